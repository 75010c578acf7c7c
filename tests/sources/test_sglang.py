import re
from collections.abc import Callable

import pytest

from boundby.core.facts import ENGINE_FACTS
from boundby.sources import sglang
from boundby.sources.looks import WrongPageError

Stored = Callable[[str], str]

VERSIONS = ("0.4.0", "0.5.1", "0.5.5", "0.5.9", "0.5.14", "0.5.23")


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_tells_queue_cache_and_tokens(version: str, stored: Stored) -> None:
    (part,) = sglang.parse(stored(f"sglang/{version}")).engines

    assert (part.engine, part.model_name, part.kind) == (
        "0",
        "meta-llama/Llama-3.1-8B-Instruct",
        "sglang",
    )
    assert part.gauges["running_requests"] == 37.0
    assert part.gauges["waiting_requests"] == 5.0
    assert part.gauges["kv_used_ratio"] == 0.43
    assert part.gauges["kv_used_tokens"] == 181204.0
    assert part.counters["generation_tokens_total"] > 0
    assert part.histograms["ttft_seconds"].count == 200.0


@pytest.mark.parametrize("version", VERSIONS)
def test_only_known_facts_are_given(version: str, stored: Stored) -> None:
    (part,) = sglang.parse(stored(f"sglang/{version}")).engines

    for kind, names in (
        ("gauge", part.gauges),
        ("counter", part.counters),
        ("histogram", part.histograms),
        ("info", part.infos),
    ):
        assert {ENGINE_FACTS[fact].kind for fact in names} <= {kind}


@pytest.mark.parametrize(
    ("version", "missing"),
    [
        ("0.4.0", ("kv_capacity_tokens", "preemptions_total", "itl_seconds")),
        ("0.5.1", ("kv_capacity_tokens",)),
        ("0.5.5", ("kv_capacity_tokens", "preemptions_total")),
        ("0.5.9", ()),
        ("0.5.23", ()),
    ],
)
def test_what_a_version_lacks_is_told(
    version: str, missing: tuple[str, ...], stored: Stored
) -> None:
    assert sglang.parse(stored(f"sglang/{version}")).missing == missing


def test_tokens_are_the_schedulers_where_it_counts_them(stored: Stored) -> None:
    """The tokenizer's counters move when a request ends, the scheduler's while it runs."""
    (part,) = sglang.parse(stored("sglang/0.5.23")).engines

    assert part.counters["generation_tokens_total"] == 88123.0
    assert part.counters["prompt_tokens_total"] == 140211.0 + 63104.0
    assert part.counters["prefix_hits_tokens_total"] == 63104.0


def test_steps_and_gpu_time_are_read_where_they_are_counted(stored: Stored) -> None:
    (part,) = sglang.parse(stored("sglang/0.5.23")).engines

    assert part.counters["steps_total"] == 1291.0
    assert part.counters["forward_seconds_total"] == pytest.approx(47.8)
    assert part.gauges["decode_context_tokens"] == 90412.0


def test_capacity_is_read_from_the_info_row(stored: Stored) -> None:
    text = re.sub(r"sglang:max_total_num_tokens\{.*\n", "", stored("sglang/0.5.9"))

    (part,) = sglang.parse(text).engines

    assert part.gauges["kv_capacity_tokens"] == 424301.0


def test_the_simulated_dialect_is_read(stored: Stored) -> None:
    (part,) = sglang.parse(stored("simulated-dialects/sglang")).engines

    assert part.gauges["kv_capacity_tokens"] == 417776.0
    assert part.histograms["itl_seconds"].count > 0


def scheduler(running: int, **ranks: int) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in {"model_name": "m", **ranks}.items())
    return f"sglang:num_running_reqs{{{labels}}} {running}\n"


def test_tensor_parallel_ranks_are_never_added_up() -> None:
    text = "".join(scheduler(7, tp_rank=rank, pp_rank=0) for rank in (3, 0, 1, 2))

    (part,) = sglang.parse(text).engines

    assert part.gauges["running_requests"] == 7.0


def test_counters_of_tensor_parallel_ranks_are_never_added_up() -> None:
    text = "".join(
        f'sglang:num_retracted_requests_total{{model_name="m",tp_rank="{rank}"}} 5\n'
        for rank in range(4)
    )

    (part,) = sglang.parse(text).engines

    assert part.counters["preemptions_total"] == 5.0


def test_data_parallel_ranks_are_engines() -> None:
    """With data-parallel attention the ranks of one engine begin anywhere."""
    text = (
        scheduler(1, dp_rank=0, tp_rank=0)
        + scheduler(1, dp_rank=0, tp_rank=1)
        + scheduler(2, dp_rank=1, tp_rank=2)
        + scheduler(2, dp_rank=1, tp_rank=3)
    )

    parsed = sglang.parse(text)

    assert [(part.engine, part.gauges["running_requests"]) for part in parsed.engines] == [
        ("0", 1.0),
        ("1", 2.0),
    ]


def test_rows_of_the_whole_server_belong_to_no_rank_of_several() -> None:
    text = (
        scheduler(1, dp_rank=0, tp_rank=0)
        + scheduler(2, dp_rank=1, tp_rank=0)
        + 'sglang:generation_tokens_total{model_name="m"} 9\n'
    )

    parsed = sglang.parse(text)

    assert len(parsed.engines) == 2
    assert all("generation_tokens_total" not in part.counters for part in parsed.engines)
    assert "not told by rank" in parsed.problems[-1]


def test_rows_of_the_whole_server_belong_to_the_only_rank() -> None:
    text = (
        scheduler(1, dp_rank=3, tp_rank=0) + 'sglang:generation_tokens_total{model_name="m"} 9\n'
    )

    (part,) = sglang.parse(text).engines

    assert (part.engine, part.counters["generation_tokens_total"]) == ("3", 9.0)


def test_queues_that_wait_for_no_capacity_are_deferred() -> None:
    text = scheduler(1) + (
        'sglang:num_queue_reqs{model_name="m"} 4\n'
        'sglang:num_grammar_queue_reqs{model_name="m"} 2\n'
        'sglang:num_decode_transfer_queue_reqs{model_name="m"} 1\n'
    )

    (part,) = sglang.parse(text).engines

    assert (
        part.gauges["waiting_capacity_requests"],
        part.gauges["waiting_deferred_requests"],
        part.gauges["waiting_requests"],
    ) == (4.0, 3.0, 7.0)


def test_cached_tokens_are_not_counted_once_more_with_their_total() -> None:
    text = scheduler(1) + (
        'sglang:cached_tokens_total{model_name="m",cache_source="total"} 10\n'
        'sglang:cached_tokens_total{model_name="m",cache_source="device"} 6\n'
        'sglang:cached_tokens_total{model_name="m",cache_source="host"} 4\n'
    )

    (part,) = sglang.parse(text).engines

    assert part.counters["prompt_tokens_cached_total"] == 10.0


def test_streaming_and_plain_requests_are_one_engines() -> None:
    ttft = "sglang:time_to_first_token_seconds"
    text = scheduler(1) + "".join(
        f'sglang:num_requests_total{{model_name="m",is_streaming="{word}"}} 3\n'
        f'{ttft}_bucket{{model_name="m",is_streaming="{word}",le="1"}} 2\n'
        f'{ttft}_sum{{model_name="m",is_streaming="{word}"}} 1.5\n'
        f'{ttft}_count{{model_name="m",is_streaming="{word}"}} 3\n'
        for word in ("true", "false")
    )

    (part,) = sglang.parse(text).engines

    assert part.counters["requests_finished_total"] == 6.0
    assert part.histograms["ttft_seconds"].sum == 3.0


def test_rows_that_have_no_engine_are_refused_as_such() -> None:
    with pytest.raises(WrongPageError, match="SGLang's rows but none for an engine"):
        sglang.parse("sglang:something_else 1\n")


def test_another_page_is_refused_by_its_name(stored: Stored) -> None:
    with pytest.raises(WrongPageError, match="not an SGLang page; it looks like vLLM"):
        sglang.parse(stored("vllm-0.32.0/many-decode"))
