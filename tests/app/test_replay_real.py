"""Recordings of a real vLLM under known loads, judged again."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from boundby.app.replay import replay
from boundby.core.watch import Options
from boundby_rules import LIMITS

RUNS = Path(__file__).parent.parent / "fixtures" / "runs"

ROOFS = {"compute", "memory_bandwidth", "interconnect", "power", "thermal"}


def summary(run: str) -> dict[str, Any]:
    """The only engine of a recording's summary."""
    out = io.StringIO()
    replay(RUNS / f"vllm-0.32.0-cpu-{run}.jsonl.gz", LIMITS, Options(), "json", out)
    (engine,) = json.loads(out.getvalue())["summary"]["engines"]
    return dict(engine)


@pytest.mark.parametrize(
    ("run", "limit"),
    [
        pytest.param("one-client", "demand", id="one client is demand"),
        pytest.param("batch-cap", "batch_slots", id="a queue before an untold cap is batch_slots"),
        pytest.param("kv-starved", "kv_capacity", id="a queue before a full cache is kv_capacity"),
        pytest.param("stall", "stalled", id="requests that get no step are a stall"),
    ],
)
def test_a_real_load_is_answered_with_what_holds_it(run: str, limit: str) -> None:
    assert summary(run)["verdict"]["engine"]["limit"] == limit


def test_the_cap_of_a_real_engine_is_found_from_its_plateau() -> None:
    engine = summary("batch-cap")

    assert engine["signals"]["batch_slots_sequences"] == 4
    assert [note for note in engine["notes"] if "inferred: the batch stays at 4" in note]


@pytest.mark.parametrize(
    "run", ["one-client", "batch-cap", "kv-starved", "stall", "long-prefill", "aborts"]
)
def test_no_roof_of_a_gpu_is_claimed_surely_where_none_was_read(run: str) -> None:
    claims = [
        (scope, verdict)
        for scope, verdict in summary(run)["verdict"].items()
        if verdict["limit"] in ROOFS and verdict["confidence"] >= 0.9
    ]

    assert claims == []
