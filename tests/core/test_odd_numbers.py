"""Numbers that no engine and no GPU has: each darkens what rests on it, and nothing else."""

import json
import math

import pytest

from boundby.core.formula import Book, Formula, Unknown
from boundby.core.gpu_facts import gpu_facts, gpu_report
from boundby.core.parts import EnginePart, GpuPart, Histogram, Snapshot
from boundby.core.setup import GpuIdentity, Setup
from boundby.core.watch import Watch
from boundby.core.window import Span, Track, grow
from boundby_rules import LIMITS

BOUNDS = (8.0, 64.0, math.inf)


def holding(engine: str, running: float) -> EnginePart:
    return EnginePart(
        engine=engine,
        model_name="tiny",
        kind="vllm",
        gauges={"running_requests": running, "waiting_requests": 0.0, "kv_used_ratio": 0.0},
        counters={"generation_tokens_total": 1.0, "prompt_tokens_total": 1.0},
    )


def span(part: GpuPart) -> Span:
    track = Track(math.inf)
    for at in range(3):
        track.append(at, part)
    seen = track.span()
    assert seen is not None
    return seen


def test_an_engine_whose_numbers_overflow_is_unknown_and_the_other_is_judged() -> None:
    watch = Watch(Setup(), LIMITS)
    for at in range(20):
        report = watch.observe(
            Snapshot(t=float(at), engines=(holding("0", 0.0), holding("1", at * 1e200)))
        )

    sane, odd = report.engines
    assert (sane.verdict["engine"].limit, odd.verdict["engine"].limit) == ("demand", "unknown")
    assert odd.story.startswith("vllm-1: unknown. the page's numbers fit no engine (OverflowError")
    assert json.dumps(report.as_dict(), allow_nan=False)


def test_a_torn_histogram_grows_as_a_whole_one_does() -> None:
    older = Histogram(BOUNDS, (0.0, 0.0, 0.0), 0.0, 0.0)

    grown = grow(older, Histogram(BOUNDS, (9.0, 2.0, 10.0), 90.0, 10.0))

    assert grown.counts == (9.0, 9.0, 10.0)


def test_a_clock_of_zero_says_nothing_of_what_clocks_cost() -> None:
    seen = span(GpuPart(gpu="GPU-1", gauges={"sm_clock_hertz": 0.0}))

    assert "clock_ratio" not in gpu_facts({"GPU-1": seen}, None)


def test_an_intensity_over_next_to_no_traffic_is_absent() -> None:
    part = GpuPart(
        gpu="GPU-1",
        name="NVIDIA H100 80GB HBM3",
        gauges={"tensor_active_ratio": 0.5, "dram_active_ratio": 5e-324},
    )
    setup = Setup(gpus=(GpuIdentity(name=part.name),))

    signals = gpu_report(part, span(part), setup).signals

    assert signals
    assert all(map(math.isfinite, signals.values()))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_fact_that_overflowed_on_the_way_is_unknown(value: float) -> None:
    assert Book({"rate": value})["rate"] == Unknown("rate", "rate is not a finite number")


def test_a_formula_outside_its_domain_is_unknown_and_says_why() -> None:
    def loss(ratio: float) -> float:
        """What is lost."""
        return -math.log(ratio)

    answer = Book({"ratio": 0.0}, {"loss": Formula.of(loss)})["loss"]

    assert answer == Unknown("loss", "loss has no value here (math domain error)")
