"""The whole fold: labelled simulated servers, real vLLM runs, regimes, resets, steadiness."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boundby.core.formula import FormulaError
from boundby.core.parts import EnginePart, Histogram, Snapshot
from boundby.core.report import Report
from boundby.core.setup import Setup
from boundby.core.watch import Options, Watch
from boundby.sources.recording import open_recording
from boundby_rules import LIMITS

FIXTURES = Path(__file__).parents[1] / "fixtures"
SIMULATED = FIXTURES / "simulated-servers"
RUNS = FIXTURES / "vllm-0.32.0-runs"
TRUTH: Mapping[str, Any] = json.loads((SIMULATED / "truth.json").read_text())


def summary(path: Path, *, gpus: bool = True) -> Report:
    recording = open_recording(path)
    watch = Watch(recording.setup, LIMITS, Options(remember=True))
    for snapshot in recording.snapshots:
        watch.take(snapshot if gpus else replace(snapshot, gpus=(), gpu_source=None))
    return watch.summary()


@pytest.mark.parametrize("name", TRUTH)
def test_a_labelled_server_is_named_rightly_in_every_scope(name: str) -> None:
    verdict = summary(SIMULATED / f"{name}.jsonl.gz").engines[0].verdict

    for scope, accepted in TRUTH[name]["accept"].items():
        assert verdict[scope].limit in accepted, scope


@pytest.mark.parametrize("name", TRUTH)
def test_without_gpu_rows_no_answer_is_wrong_and_sure(name: str) -> None:
    verdict = summary(SIMULATED / f"{name}.jsonl.gz", gpus=False).engines[0].verdict

    for scope, answer in verdict.items():
        accepted = TRUTH[name]["accept"].get(scope, [answer.limit])
        assert answer.limit in accepted or answer.confidence < 0.9


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        pytest.param("idle_fresh", "demand", id="an idle engine is bound by demand"),
        pytest.param("admission_cap_2", "batch_slots", id="a cap nobody told of is inferred"),
        pytest.param("kv_starved", "kv_capacity", id="a starved cache is told from a cap"),
        pytest.param("many_decode", "demand", id="a batch with room and no queue lacks demand"),
        pytest.param("long_prefill", "unknown", id="prefill without a GPU row is not guessed at"),
    ],
)
def test_a_real_run_is_named_rightly(name: str, limit: str) -> None:
    assert summary(RUNS / f"{name}.jsonl.gz").engines[0].verdict["engine"].limit == limit


@pytest.mark.parametrize("path", sorted(RUNS.glob("*.gz")), ids=lambda path: path.name)
def test_engine_metrics_alone_never_claim_a_roof_for_sure(path: Path) -> None:
    for engine in summary(path).engines:
        for answer in engine.verdict.values():
            roof = answer.limit in {"compute", "memory_bandwidth", "kernel_latency"}
            assert not roof or answer.confidence < 0.9


def test_an_inferred_cap_says_so() -> None:
    notes = summary(RUNS / "admission_cap_2.jsonl.gz").engines[0].notes

    assert "batch_slots_sequences: inferred: the batch stays at 2 while work waits" in notes


def test_data_parallel_ranks_are_judged_apart() -> None:
    engines = summary(RUNS / "data_parallel_2.jsonl.gz").engines

    assert [engine.engine for engine in engines] == ["0", "1"]


@pytest.mark.parametrize("name", TRUTH)
def test_time_shares_sum_to_one(name: str) -> None:
    time = summary(SIMULATED / f"{name}.jsonl.gz").engines[0].time

    assert sum(time.values()) == pytest.approx(1.0)
    assert min(time.values()) >= 0.0


def part(t: float, *, running: float, waiting: float, rate: float = 100.0) -> EnginePart:
    tokens = rate * t
    return EnginePart(
        engine="0",
        model_name="m",
        kind="vllm",
        gauges={"running_requests": running, "waiting_requests": waiting, "kv_used_ratio": 0.2},
        counters={"generation_tokens_total": tokens, "prompt_tokens_total": tokens},
        histograms={
            "itl_seconds": Histogram((1.0, float("inf")), (tokens, tokens), tokens, tokens)
        },
    )


def seconds(
    begin: int, end: int, *, running: float, waiting: float, rate: float = 100.0
) -> Iterator[Snapshot]:
    for t in range(begin, end):
        shown = part(float(t), running=running, waiting=waiting, rate=rate)
        yield Snapshot(t=float(t), engines=(shown,))


def test_a_change_shows_within_two_beats_and_the_dwell() -> None:
    watch = Watch(Setup(max_num_seqs=8), LIMITS, Options(dwell_seconds=10.0))
    for snapshot in seconds(0, 60, running=2, waiting=0):
        watch.observe(snapshot)

    limits = [
        watch.observe(snapshot).engines[0].verdict["engine"].limit
        for snapshot in seconds(60, 80, running=8, waiting=5)
    ]

    assert limits.index("batch_slots") <= 12


def test_a_moment_of_queueing_changes_nothing() -> None:
    watch = Watch(Setup(max_num_seqs=8), LIMITS, Options(dwell_seconds=10.0))
    for snapshot in seconds(0, 60, running=2, waiting=0):
        watch.observe(snapshot)
    for snapshot in seconds(60, 64, running=8, waiting=5):
        watch.observe(snapshot)

    answers = {
        watch.observe(snapshot).engines[0].verdict["engine"].limit
        for snapshot in seconds(64, 100, running=2, waiting=0)
    }

    assert answers == {"demand"}


def test_requests_that_run_without_a_token_are_a_stall() -> None:
    watch = Watch(Setup(), LIMITS)
    for snapshot in seconds(0, 30, running=4, waiting=0):
        watch.observe(snapshot)
    frozen = part(29.0, running=4, waiting=0)

    for t in range(30, 60):
        report = watch.observe(Snapshot(t=float(t), engines=(frozen,)))

    assert report.engines[0].verdict["engine"].limit == "stalled"
    assert report.engines[0].state == "stalled"


def test_an_engine_that_is_gone_is_not_reported_as_it_was() -> None:
    watch = Watch(Setup(), LIMITS, Options(stale_after_seconds=15.0))
    for snapshot in seconds(0, 30, running=4, waiting=0):
        watch.observe(snapshot)

    report = watch.observe(Snapshot(t=50.0))

    assert report.engines == ()
    assert not report.ready


def test_binding_seconds_add_up_to_the_time_watched() -> None:
    watch = Watch(Setup(), LIMITS)
    for snapshot in seconds(0, 31, running=4, waiting=0):
        report = watch.observe(snapshot)

    spent = sum(
        value
        for (scope, _), value in report.engines[0].binding_seconds.items()
        if scope == "engine"
    )

    assert spent == pytest.approx(30.0)


def test_a_restart_of_the_engine_gives_no_negative_rate() -> None:
    watch = Watch(Setup(), LIMITS)
    for snapshot in seconds(0, 20, running=4, waiting=0):
        watch.observe(snapshot)
    for t in range(20, 30):
        shown = part(float(t - 20), running=4, waiting=0)
        report = watch.observe(Snapshot(t=float(t), engines=(shown,)))

    assert report.engines[0].signals["generation_tokens_per_second"] > 0


def test_a_knob_for_no_limit_is_refused_by_name() -> None:
    with pytest.raises(FormulaError, match=r"limits.kv_cap: no such limit"):
        Watch(Setup(), LIMITS, Options(knobs={"kv_cap": {}}))


def test_a_page_without_gauges_is_unknown_and_says_why() -> None:
    watch = Watch(Setup(), LIMITS)
    bare = EnginePart(engine="0", model_name="m", kind="vllm", counters={"preemptions_total": 0.0})

    for t in range(5):
        report = watch.observe(Snapshot(t=float(t), engines=(bare,)))

    assert report.engines[0].verdict["engine"].limit == "unknown"
    assert "no request gauges" in report.engines[0].story


def test_the_command_line_fills_what_settings_left_open() -> None:
    watch = Watch(Setup(max_num_seqs=16), LIMITS)
    told = Setup(max_num_seqs=8, tensor=2, origins={"max_num_seqs": "cli", "tensor": "cli"})
    for snapshot in seconds(0, 10, running=4, waiting=0):
        report = watch.observe(replace(snapshot, learned=told))

    assert report.engines[0].signals["batch_slots_sequences"] == 16


def test_what_has_long_vanished_is_forgotten() -> None:
    watch = Watch(Setup(), LIMITS)
    for snapshot in seconds(0, 10, running=4, waiting=0):
        watch.observe(snapshot)

    for t in (5000.0, 5001.0):
        report = watch.observe(Snapshot(t=t, engines=(part(t - 5000.0, running=1, waiting=0),)))

    assert report.engines[0].verdict_changes["engine"] == 0.0
    assert sum(report.engines[0].binding_seconds.values()) <= 2.0


def test_a_page_that_comes_late_is_no_stall() -> None:
    recording = open_recording(FIXTURES / "runs" / "vllm-0.32.0-cpu-contended.jsonl.gz")
    watch = Watch(recording.setup, LIMITS, Options(window_seconds=15.0))

    answers = {
        engine.verdict["engine"].limit
        for snapshot in recording.snapshots
        for engine in watch.observe(snapshot).engines
    }

    assert "stalled" not in answers


def test_a_stall_that_is_over_goes_at_once() -> None:
    watch = Watch(Setup(), LIMITS)
    for snapshot in seconds(0, 30, running=4, waiting=0):
        watch.observe(snapshot)
    for t in range(30, 60):
        watch.observe(Snapshot(t=float(t), engines=(part(29.0, running=4, waiting=0),)))

    (first, *_) = seconds(60, 62, running=4, waiting=0)
    report = watch.observe(first)

    assert report.engines[0].verdict["engine"].limit != "stalled"
