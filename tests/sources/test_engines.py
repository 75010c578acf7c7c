from collections.abc import Callable

import pytest

from boundby.sources import engines
from boundby.sources.looks import WrongPageError

Stored = Callable[[str], str]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("vllm-0.32.0/many-decode", "vllm"), ("sglang/0.5.14", "sglang")],
)
def test_a_page_finds_its_adapter(name: str, kind: str, stored: Stored) -> None:
    parsed = engines.parse(stored(name))

    assert (parsed.kind, parsed.engines[0].kind) == (kind, kind)


def test_an_engine_that_was_named_is_insisted_on(stored: Stored) -> None:
    with pytest.raises(WrongPageError, match="not an SGLang page"):
        engines.parse(stored("vllm-0.32.0/many-decode"), "sglang")


def test_a_page_of_no_known_engine_is_named(stored: Stored) -> None:
    with pytest.raises(WrongPageError, match=r"looks like llama\.cpp") as refusal:
        engines.parse(stored("other-engines/llamacpp"))

    assert "vllm, sglang" in refusal.value.hint


def test_stats_that_are_off_are_told_without_the_engine_being_named(stored: Stored) -> None:
    with pytest.raises(WrongPageError) as refusal:
        engines.parse(stored("vllm-0.32.0/stats-disabled"))

    assert "--disable-log-stats" in refusal.value.hint


def test_an_unknown_kind_is_refused_with_the_known_ones(stored: Stored) -> None:
    with pytest.raises(WrongPageError, match="'vlm'") as refusal:
        engines.parse(stored("vllm-0.32.0/many-decode"), "vlm")

    assert "auto, vllm, sglang" in refusal.value.hint
