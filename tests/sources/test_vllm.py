from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundby.core.facts import ENGINE_FACTS
from boundby.core.parts import EnginePart
from boundby.sources import vllm
from boundby.sources.looks import WrongPageError

Stored = Callable[[str], str]

REAL = "vllm-0.32.0"


@pytest.fixture
def engine(stored: Stored) -> Callable[[str], EnginePart]:
    """Read the only engine of a captured page."""

    def read(name: str) -> EnginePart:
        (part,) = vllm.parse(stored(f"{REAL}/{name}")).engines
        return part

    return read


Engine = Callable[[str], EnginePart]


def test_a_busy_engine_is_read(engine: Engine) -> None:
    part = engine("many-decode")

    assert (part.engine, part.model_name, part.kind) == ("0", "tiny-llama", "vllm")
    assert {name: round(value, 6) for name, value in part.gauges.items()} == {
        "running_requests": 32.0,
        "waiting_requests": 0.0,
        "waiting_capacity_requests": 0.0,
        "waiting_deferred_requests": 0.0,
        "kv_used_ratio": 0.007813,
        "engine_asleep_count": 0.0,
        "kv_blocks": 8192.0,
        "kv_block_tokens": 128.0,
        "kv_capacity_tokens": 1048576.0,
        "process_start_seconds": 1796102586.69,
        "open_files_count": 66.0,
    }
    assert part.counters["generation_tokens_total"] == 6235.0
    assert part.counters["engine_cpu_seconds_total"] == pytest.approx(16.26)
    assert part.histograms["step_tokens"].count == 1329.0
    assert part.infos == {
        "cache_dtype": "auto",
        "gpu_memory_utilization_ratio": "0.92",
        "prefix_caching": "True",
    }


@pytest.mark.parametrize(
    "name",
    [
        "many-decode",
        "kv-starved",
        "data-parallel-2",
        "rust-frontend",
        "openmetrics",
        "api-servers-2-fresh",
    ],
)
def test_only_known_facts_are_given(name: str, stored: Stored) -> None:
    for part in vllm.parse(stored(f"{REAL}/{name}")).engines:
        for kind, names in (
            ("gauge", part.gauges),
            ("counter", part.counters),
            ("histogram", part.histograms),
            ("info", part.infos),
        ):
            assert {ENGINE_FACTS[fact].kind for fact in names} <= {kind}


def test_a_whole_page_lacks_nothing_that_is_expected(stored: Stored) -> None:
    assert vllm.parse(stored(f"{REAL}/many-decode")).missing == ()


# The traps: what a page seems to say and does not.


def test_trap_a_long_prompt_in_two_chunks_is_one_observation(engine: Engine) -> None:
    """Prompts of 3,000 tokens, at most 2,048 a step: two steps each, seen as one of 3,001."""
    before, after = engine("long-prefill-1"), engine("long-prefill-after")
    old, new = before.histograms["step_tokens"], after.histograms["step_tokens"]
    observed, tokens = new.count - old.count, new.sum - old.sum

    assert (observed, tokens / observed) == (5.0, 3001.0)


def test_trap_gauges_stand_still_while_one_step_goes_on(engine: Engine) -> None:
    """In a step of over a second nothing on the page moves, and nothing is stalled."""
    one, other = engine("long-prefill-1"), engine("long-prefill-2")

    assert (one.gauges["running_requests"], one.gauges["kv_used_ratio"]) == (
        other.gauges["running_requests"],
        other.gauges["kv_used_ratio"],
    )
    assert one.counters["generation_tokens_total"] == other.counters["generation_tokens_total"]


class Still(NamedTuple):
    """What a page says while nothing moves on it."""

    running: float
    waiting: float
    kv: float

    @classmethod
    def of(cls, part: EnginePart) -> "Still":
        gauges = part.gauges
        return cls(gauges["running_requests"], gauges["waiting_requests"], gauges["kv_used_ratio"])


def test_trap_a_stall_looks_idle(engine: Engine) -> None:
    """The worker was stopped with 8 requests in it: the page says that there are none."""
    stalled = [Still.of(engine(name)) for name in ("stall-1", "stall-2")]
    idle = [Still.of(engine(name)) for name in ("idle-1", "idle-2")]

    assert stalled == idle == [Still(0.0, 0.0, 0.0)] * 2


def test_a_stall_keeps_its_connections_open(engine: Engine) -> None:
    """Open files are all that tells it from idleness: 34 without requests, 42 with 8."""
    files = {
        name: engine(name).gauges["open_files_count"]
        for name in ("stall-before", "stall-1", "stall-2", "idle-1")
    }

    assert files == {"stall-before": 42.0, "stall-1": 42.0, "stall-2": 42.0, "idle-1": 34.0}


def test_trap_estimates_that_stay_at_zero_are_no_estimates(engine: Engine, stored: Stored) -> None:
    """The MFU counters are on the page without --enable-mfu-metrics too, at zero."""
    assert "estimated_flops_per_gpu_total" in stored(f"{REAL}/many-decode")
    assert "estimated_flops_total" not in engine("many-decode").counters


def test_estimates_that_move_are_given(engine: Engine) -> None:
    counters = engine("mfu-many-decode").counters

    assert counters["estimated_flops_total"] == pytest.approx(4.7e10, rel=0.1)
    assert counters["estimated_read_bytes_total"] > 0


def test_trap_waiting_for_capacity_is_not_waiting_for_kv_blocks(engine: Engine) -> None:
    """Held by --max-num-seqs 2 with the cache all but empty, 18 wait for "capacity"."""
    gauges = engine("admission-cap-2").gauges

    assert gauges["running_requests"] == 2.0
    assert gauges["waiting_capacity_requests"] == 18.0
    assert gauges["kv_used_ratio"] < 0.001


def test_trap_a_full_cache_is_at_a_plateau_below_one(engine: Engine) -> None:
    gauges = engine("kv-starved").gauges

    assert 0.9 < gauges["kv_used_ratio"] < 1.0
    assert gauges["waiting_requests"] > 0


def test_trap_work_done_again_after_preemption_is_in_no_token_counter(engine: Engine) -> None:
    """The engine's own log counted 17,221 tokens computed in this run, the page 11,158."""
    before, after = engine("kv-starved-before"), engine("kv-starved-after")
    old, new = before.histograms["step_tokens"], after.histograms["step_tokens"]

    assert new.sum - old.sum == 11158.0
    assert after.counters["prompt_tokens_computed_total"] == 2208.0
    assert after.counters["preemptions_total"] == 32.0


def test_trap_aborted_requests_are_in_no_counter(engine: Engine) -> None:
    """Clients gave up 145 requests between these pages."""
    before, after = engine("aborts-before"), engine("aborts-after")

    assert after.counters["requests_aborted_total"] == 0.0
    assert after.counters["requests_finished_total"] == before.counters["requests_finished_total"]


def test_trap_the_prefix_cache_is_asked_for_more_than_the_prompts_counted(engine: Engine) -> None:
    """Lookups count when scheduled, prompt tokens at the first token out."""
    counters = engine("prefix-hits").counters

    assert counters["prefix_queries_tokens_total"] > counters["prompt_tokens_total"]
    assert counters["prompt_tokens_cached_total"] == counters["prefix_hits_tokens_total"]
    assert (
        counters["prompt_tokens_computed_total"] + counters["prompt_tokens_cached_total"]
        == counters["prompt_tokens_total"]
    )


def test_trap_stats_that_are_off_are_told_with_their_flag(stored: Stored) -> None:
    with pytest.raises(WrongPageError) as refusal:
        vllm.parse(stored(f"{REAL}/stats-disabled"))

    assert "no vllm: ones" in str(refusal.value)
    assert "--disable-log-stats" in refusal.value.hint


def test_trap_data_parallel_ranks_are_apart_and_each_has_its_own_blocks(stored: Stored) -> None:
    """The info row of each of 2 ranks shows 16,384 blocks, the sum; 8,192 are its own."""
    one, other = vllm.parse(stored(f"{REAL}/data-parallel-2")).engines

    assert (one.engine, other.engine) == ("0", "1")
    assert [part.gauges["running_requests"] for part in (one, other)] == [8.0, 4.0]
    assert [part.gauges["kv_blocks"] for part in (one, other)] == [8192.0, 8192.0]
    assert one.gauges["kv_used_ratio"] * (one.gauges["kv_blocks"] - 1) == pytest.approx(8.0)


def test_trap_in_multi_process_mode_there_is_no_process_row(stored: Stored) -> None:
    for part in vllm.parse(stored(f"{REAL}/data-parallel-2")).engines:
        assert "process_start_seconds" not in part.gauges
        assert "engine_cpu_seconds_total" not in part.counters


@pytest.mark.parametrize("name", ["data-parallel-2-fresh", "api-servers-2-fresh"])
def test_trap_fresh_api_servers_have_no_gauges_yet_and_that_is_not_zero(
    name: str, stored: Stored
) -> None:
    parsed = vllm.parse(stored(f"{REAL}/{name}"))

    assert parsed.missing == ("running_requests", "waiting_requests", "kv_used_ratio")
    assert all("running_requests" not in part.gauges for part in parsed.engines)


def test_the_rust_front_end_does_not_say_how_large_the_cache_is(stored: Stored) -> None:
    parsed = vllm.parse(stored(f"{REAL}/rust-frontend"))

    assert parsed.missing == ("kv_capacity_tokens",)
    assert parsed.engines[0].counters["requests_finished_total"] == 12.0


def test_a_fresh_rust_front_end_lacks_what_has_not_happened(stored: Stored) -> None:
    parsed = vllm.parse(stored(f"{REAL}/rust-frontend-fresh"))

    assert "prompt_tokens_total" in parsed.missing
    assert parsed.engines[0].gauges["running_requests"] == 0.0


def test_speculative_decoding_is_read(engine: Engine) -> None:
    counters = engine("spec-decode-ngram").counters

    assert counters["spec_accepted_tokens_total"] <= counters["spec_draft_tokens_total"]
    assert counters["spec_drafts_total"] > 0


def test_a_page_asked_for_as_openmetrics_reads_as_well(stored: Stored) -> None:
    assert vllm.parse(stored(f"{REAL}/openmetrics")).missing == ()


# Older names, on pages of a simulator that speaks them, and on lines written by hand.


@pytest.mark.parametrize("dialect", ["vllm-v0", "vllm-early-v1", "vllm-v1"])
def test_each_dialect_gives_all_that_is_expected(dialect: str, stored: Stored) -> None:
    assert vllm.parse(stored(f"simulated-dialects/{dialect}")).missing == ()


def test_v0_pages_have_no_engine_label(stored: Stored) -> None:
    (part,) = vllm.parse(stored("simulated-dialects/vllm-v0")).engines

    assert part.engine == "0"
    assert part.gauges["kv_capacity_tokens"] == part.gauges["kv_blocks"] * 16
    assert part.histograms["itl_seconds"].count > part.histograms["request_seconds"].count


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in ("vllm:num_requests_running 1", *rows))


@pytest.mark.parametrize(
    ("row", "fact", "value"),
    [
        pytest.param("vllm:num_requests_swapped 3", "swapped_requests", 3.0, id="swapped, V0"),
        pytest.param("vllm:gpu_cache_usage_perc 0.5", "kv_used_ratio", 0.5, id="KV before 0.10"),
        pytest.param(
            "vllm:avg_generation_throughput_toks_per_s 9",
            "reported_generation_tokens_per_second",
            9.0,
            id="rate gauge, V0",
        ),
        pytest.param("vllm:generation_tokens 4", "generation_tokens_total", 4.0, id="no _total"),
        pytest.param(
            "vllm:gpu_prefix_cache_hits_total 4", "prefix_hits_tokens_total", 4.0, id="hits"
        ),
        pytest.param(
            "vllm:prompt_tokens_cached_total 4", "prompt_tokens_cached_total", 4.0, id="cached"
        ),
        pytest.param(
            'vllm:engine_sleep_state{sleep_state="awake"} 0',
            "engine_asleep_count",
            1.0,
            id="asleep",
        ),
    ],
)
def test_a_name_of_another_version_gives_the_same_fact(row: str, fact: str, value: float) -> None:
    (part,) = vllm.parse(lines(row)).engines

    assert {**part.gauges, **part.counters}[fact] == value


def test_the_newer_of_two_names_is_believed() -> None:
    (part,) = vllm.parse(
        lines("vllm:gpu_cache_usage_perc 0.1", "vllm:kv_cache_usage_perc 0.2")
    ).engines

    assert part.gauges["kv_used_ratio"] == 0.2


def test_a_prefix_cache_that_counts_blocks_is_told_in_tokens() -> None:
    (part,) = vllm.parse(
        lines(
            "# HELP vllm:gpu_prefix_cache_queries_total GPU prefix cache queries, in terms of "
            "number of queried blocks.",
            "vllm:gpu_prefix_cache_queries_total 10",
            "vllm:gpu_prefix_cache_hits_total 4",
            'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1',
        )
    ).engines

    assert part.counters["prefix_queries_tokens_total"] == 160.0
    assert part.counters["prefix_hits_tokens_total"] == 64.0


def test_several_models_on_one_page_are_several_parts() -> None:
    text = (
        'vllm:num_requests_running{model_name="a",engine="0"} 1\n'
        'vllm:num_requests_running{model_name="b",engine="0"} 2\n'
    )

    parsed = vllm.parse(text)

    assert [(part.model_name, part.gauges["running_requests"]) for part in parsed.engines] == [
        ("a", 1.0),
        ("b", 2.0),
    ]


def test_engines_are_in_the_order_of_their_numbers() -> None:
    text = "".join(f'vllm:num_requests_running{{engine="{n}"}} 1\n' for n in (10, 9, 1, 0))

    assert [part.engine for part in vllm.parse(text).engines] == ["0", "1", "9", "10"]


def test_of_the_rows_on_lora_adapters_the_newest_holds() -> None:
    """The row's value is the time at which it was so; older rows stay on the page."""
    (part,) = vllm.parse(
        lines(
            *(
                f'vllm:lora_requests_info{{max_lora="2",running_lora_adapters="{running}",'
                f'waiting_lora_adapters="{waiting}"}} {time}'
                for running, waiting, time in (("a", "", 1.7e9), ("a,b", "c", 1.8e9), ("", "", 1))
            )
        )
    ).engines

    assert part.infos == {"lora_running": "a,b", "lora_waiting": "c", "lora_slots": "2"}


def test_unknown_block_counts_are_absent_and_not_zero() -> None:
    (part,) = vllm.parse(
        lines('vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1')
    ).engines

    assert "kv_blocks" not in part.gauges
    assert "kv_capacity_tokens" not in part.gauges


@pytest.mark.parametrize(
    ("name", "looks"),
    [
        pytest.param("sglang/0.5.14", "SGLang", id="SGLang"),
        pytest.param("other-engines/tgi", "Text Generation Inference", id="TGI"),
        pytest.param("other-engines/tensorrt-llm", "TensorRT-LLM", id="TensorRT-LLM"),
        pytest.param("other-engines/triton-trtllm", "Triton with TensorRT-LLM", id="Triton"),
        pytest.param("other-engines/llamacpp", "llama.cpp", id="llama.cpp"),
        pytest.param("other-engines/lmdeploy", "LMDeploy", id="LMDeploy"),
        pytest.param("other-engines/dynamo", "NVIDIA Dynamo", id="Dynamo"),
        pytest.param("other-engines/ray-vllm", "vLLM behind Ray's exporter", id="Ray"),
        pytest.param("dcgm-exporter/4.8.2-8xh100-default", "dcgm-exporter", id="dcgm-exporter"),
    ],
)
def test_another_page_is_refused_by_its_name(name: str, looks: str, stored: Stored) -> None:
    with pytest.raises(WrongPageError, match=f"not a vLLM page; it looks like {looks}"):
        vllm.parse(stored(name))


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        pytest.param("", "an empty page", id="nothing"),
        pytest.param(" \n\n", "an empty page", id="blank"),
        pytest.param("<!DOCTYPE html><html></html>\n", "a web page", id="HTML"),
        pytest.param('{"detail":"Not Found"}\n', "JSON", id="a JSON object"),
        pytest.param("[]\n", "JSON", id="a JSON list"),
        pytest.param("# TYPE go_goroutines gauge\ngo_goroutines 7\n", "an exporter", id="other"),
        pytest.param("\x7fELF\x00\n", "binary data", id="binary"),
        pytest.param("it works\n", "no metrics page", id="text"),
    ],
)
def test_what_is_no_metrics_page_is_refused_by_its_looks(text: str, looks: str) -> None:
    with pytest.raises(WrongPageError, match=f"it looks like {looks}"):
        vllm.parse(text)


def test_rows_that_have_no_engine_are_refused_as_such() -> None:
    with pytest.raises(WrongPageError, match="vLLM's rows but none for an engine"):
        vllm.parse("vllm:something_else 1\n")


@given(st.text(), st.integers(0, 400))
def test_a_damaged_page_gives_parts_or_a_refusal(text: str, cut: int) -> None:
    page = lines('vllm:kv_cache_usage_perc{engine="0"} 0.5') * 3
    try:
        parsed = vllm.parse(page[:cut] + text + page[cut:])
    except WrongPageError:
        return
    for part in parsed.engines:
        assert all(value == value for value in (*part.gauges.values(), *part.counters.values()))  # noqa: PLR0124  # NaN


def test_of_several_server_processes_the_one_with_the_value_counts() -> None:
    page = "".join(
        f'vllm:kv_cache_usage_perc{{engine="0",model_name="m",pid="{pid}"}} {value}\n'
        for pid, value in ((277, 0.0), (273, 0.65), (271, 0.0))
    )

    (engine,) = vllm.parse(page).engines

    assert engine.gauges["kv_used_ratio"] == 0.65
