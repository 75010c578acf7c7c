"""Older releases of vLLM, by pages that they really served."""

from collections.abc import Callable

import pytest

from boundby.core.parts import EnginePart
from boundby.sources import vllm
from boundby.sources.looks import WrongPageError

Stored = Callable[[str], str]


def read(page: str) -> EnginePart:
    """The only engine of a page."""
    (part,) = vllm.parse(page).engines
    return part


@pytest.mark.parametrize(
    ("page", "gauges", "counters"),
    [
        pytest.param(
            "vllm-0.8.5/batch-cap-2",
            {"running_requests": 4, "waiting_requests": 8, "kv_capacity_tokens": 5461 * 16},
            {"generation_tokens_total": 1568, "prompt_tokens_total": 511, "preemptions_total": 0},
            id="V0 of 0.8.5 at its cap",
        ),
        pytest.param(
            "vllm-0.8.5/kv-starved-2",
            {"running_requests": 10, "waiting_requests": 14, "kv_used_ratio": 0.94375},
            {"generation_tokens_total": 3577, "preemptions_total": 18},
            id="V0 of 0.8.5 with its cache full",
        ),
        pytest.param(
            "vllm-0.8.5/idle",
            {"running_requests": 0, "waiting_requests": 0, "kv_used_ratio": 0},
            {"generation_tokens_total": 1576, "requests_finished_total": 12},
            id="V0 of 0.8.5 idle",
        ),
        pytest.param(
            "vllm-0.11.2/batch-cap-2",
            {"running_requests": 4, "waiting_requests": 8, "kv_capacity_tokens": 682 * 128},
            {"generation_tokens_total": 1741, "prefix_queries_tokens_total": 540},
            id="0.11.2 at its cap",
        ),
        pytest.param(
            "vllm-0.11.2/kv-starved-2",
            {"running_requests": 10, "waiting_requests": 14, "kv_capacity_tokens": 80 * 32},
            {"generation_tokens_total": 3479, "preemptions_total": 13},
            id="0.11.2 with its cache full",
        ),
    ],
)
def test_a_page_of_an_older_release_is_read(
    stored: Stored, page: str, gauges: dict[str, float], counters: dict[str, float]
) -> None:
    part = read(stored(page))

    assert {name: part.gauges[name] for name in gauges} == pytest.approx(gauges)
    assert {name: part.counters[name] for name in counters} == pytest.approx(counters)


def test_names_old_and_new_on_one_page_are_counted_once(stored: Stored) -> None:
    part = read(stored("vllm-0.11.2/hidden-names-shown"))

    assert part.counters["prefix_queries_tokens_total"] == 511
    assert part.gauges["kv_used_ratio"] == pytest.approx(0.007342, abs=1e-6)
    assert part.histograms["itl_seconds"].count == 1632


def test_time_between_tokens_of_v0_is_known_by_its_older_name(stored: Stored) -> None:
    part = read(stored("vllm-0.8.5/batch-cap-2"))

    assert part.histograms["itl_seconds"].count == 1552


def test_a_v0_engine_that_nobody_has_asked_yet_has_no_engine_to_read(stored: Stored) -> None:
    with pytest.raises(WrongPageError, match="none for an engine"):
        vllm.parse(stored("vllm-0.8.5/fresh"))
