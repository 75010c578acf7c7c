from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from boundby.app.demo.engine import Engine
from boundby.app.demo.engine_pages import Dialect, engine_page
from boundby.app.demo.gpu_pages import Reading, gpu_page
from boundby.app.demo.load import Arrivals
from boundby.app.demo.scenarios import MACHINE, MODEL, SCENARIOS
from boundby.app.demo.tally import SGLANG_BOUNDS, EngineTally

DIALECTS: tuple[Dialect, ...] = ("vllm-v1", "vllm-v1-early", "vllm-v0", "sglang")
SCENARIO = SCENARIOS[0]


def engine_at(seconds: float) -> Engine:
    engine = Engine(MODEL, MACHINE, SCENARIO.settings, Arrivals(SCENARIO.load, 3), seed=3)
    engine.advance(seconds)
    return engine


def samples(page: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.value)
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_parses_and_its_counts_agree(dialect: Dialect) -> None:
    engine = engine_at(30.0)
    found = samples(engine_page(engine, MODEL, dialect, 1.0))
    prefix = "sglang" if dialect == "sglang" else "vllm"

    assert found[f"{prefix}:generation_tokens_total"] == [engine.tally.generation_tokens]
    assert found[f"{prefix}:e2e_request_latency_seconds_count"] == [engine.tally.finished]
    assert found[f"{prefix}:time_to_first_token_seconds_bucket"][-1] == sum(
        engine.tally.histograms["ttft"].counts
    )


def test_sglang_has_its_own_buckets() -> None:
    engine = engine_at(0.0)
    engine.tally = EngineTally(SGLANG_BOUNDS)
    engine.advance(30.0)
    page = engine_page(engine, MODEL, "sglang", 1.0)

    assert 'sglang:inter_token_latency_seconds_bucket{le="0.035"' in page


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        ("vllm-v1", "vllm:kv_cache_usage_perc"),
        ("vllm-v1", "vllm:prompt_tokens_by_source_total"),
        ("vllm-v1-early", "vllm:gpu_cache_usage_perc"),
        ("vllm-v1-early", "vllm:gpu_prefix_cache_hits_total"),
        ("vllm-v0", "vllm:num_requests_swapped"),
        ("vllm-v0", "vllm:time_per_output_token_seconds_bucket"),
        ("sglang", "sglang:token_usage"),
    ],
)
def test_each_dialect_has_its_words(dialect: Dialect, name: str) -> None:
    assert name in samples(engine_page(engine_at(5.0), MODEL, dialect, 1.0))


def reading() -> Reading:
    engine = engine_at(20.0)
    now = engine.gpu_now()
    engine.advance(21.0)
    later = engine.gpu_now()
    return Reading(
        machine=MACHINE,
        clocks=engine.clocks,
        interval=later.plus(now, -1.0),
        total=later,
        memory_used_bytes=7e10,
    )


def test_there_is_a_row_for_every_gpu() -> None:
    found = samples(gpu_page(reading()))

    assert {len(values) for values in found.values()} == {4}


def test_nvml_gives_no_profiling_rows() -> None:
    page = gpu_page(reading(), profiling=False)

    assert "DCGM_FI_PROF" not in page
    assert "DCGM_FI_DEV_GPU_UTIL" in page


def test_shares_stay_shares_however_noisy() -> None:
    noisy = replace(reading(), noise_ratio=5.0)
    for seed in range(20):
        found = samples(gpu_page(replace(noisy, seed=seed)))
        ratios = ("GR_ENGINE_ACTIVE", "SM_ACTIVE", "PIPE_TENSOR_ACTIVE", "DRAM_ACTIVE")

        assert all(0 <= v <= 1 for name in ratios for v in found[f"DCGM_FI_PROF_{name}"])
