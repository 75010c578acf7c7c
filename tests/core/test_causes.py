import pytest

from boundby.core.causes import CAUSES, cause
from boundby.core.formula import Book


@pytest.mark.parametrize(
    ("limit", "seen", "expected"),
    [
        pytest.param(
            "memory_bandwidth",
            {"weight_bytes_ratio": 0.9},
            "90 % of the bytes are weights: a larger batch shares them",
            id="weights are read once for the whole batch",
        ),
        pytest.param(
            "memory_bandwidth",
            {"weight_bytes_ratio": 0.2},
            "80 % of the bytes are KV: each sequence brings its own, so a larger batch helps "
            "little",
            id="KV is read for each sequence",
        ),
        pytest.param(
            "memory_bandwidth",
            {"weight_bytes_ratio": 0.5},
            "weights and KV share the bytes (50 % weights)",
            id="near half and half neither is the one",
        ),
        pytest.param(
            "kv_capacity",
            {"recomputed_ratio": 0.3, "kv_upper_ratio": 0.8, "free_for_next_ratio": 0.4},
            "preemption thrash: about 30 % of the work is done again",
            id="work done twice comes before what does not fit",
        ),
        pytest.param(
            "kv_capacity",
            {"recomputed_ratio": 0.0, "kv_upper_ratio": 0.8, "free_for_next_ratio": 0.4},
            "the next prompt does not fit in what is free (KV at 80 %)",
            id="a long prompt holds a cache below full",
        ),
        pytest.param(
            "kv_capacity",
            {
                "kv_upper_ratio": 0.99,
                "free_for_next_ratio": 0.4,
                "context_tokens_per_sequence": 4096.0,
                "kv_fitting_sequences": 134.4,
            },
            "134 sequences fit at 4096 tokens each",
            id="a full cache is told in sequences",
        ),
        pytest.param(
            "demand",
            {"no_work_ratio": 1.0},
            "no request came in the window",
            id="an idle server",
        ),
        pytest.param(
            "demand",
            {"open_traffic_ratio": 0.1, "batch_sequences": 7.6},
            "about 8 callers keep it busy, each waiting for its answer",
            id="callers that wait for their answers",
        ),
        pytest.param(
            "demand",
            {"open_traffic_ratio": 0.9, "batch_sequences": 7.6},
            "requests come of their own accord, and all are served",
            id="traffic that waits for nobody",
        ),
        pytest.param(
            "cpu_scheduling",
            {"host_gap_ratio": 0.3, "cpu_throttled_ratio": 0.5, "cpu_quota_cores_count": 2.0},
            "the container ran into its CPU limit of 2 cores in 50% of periods",
            id="the host's own evidence is told",
        ),
        pytest.param(
            "cpu_scheduling",
            {"host_gap_ratio": 0.3},
            "why is not seen: share the engine's process namespace with boundby to tell",
            id="a gap whose host was not seen says how to see it",
        ),
        pytest.param(
            "cpu_scheduling", {"host_gap_ratio": 0.05}, None, id="a small gap needs no cause"
        ),
        pytest.param("compute", {"mfu_ratio": 0.5}, None, id="a limit without a second level"),
    ],
)
def test_the_cause_is_told_as_far_as_the_evidence_goes(
    limit: str, seen: dict[str, float], expected: str | None
) -> None:
    assert cause(limit, Book(seen)) == expected


@pytest.mark.parametrize("limit", sorted(CAUSES))
def test_without_evidence_no_cause_is_told(limit: str) -> None:
    assert cause(limit, Book({})) is None
