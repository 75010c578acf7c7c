"""Times of a step: the roof each group meets, and what is added."""

import json
from pathlib import Path

import pytest

from boundby.core.cost import Parallel, StepBatch, coefficients, read_shape, step_cost, uniform
from boundby.core.cost.duration import IDEAL, Bound, Pace, rates, step_time
from boundby.core.cost.pace import attainable
from boundby.core.hardware import find

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
H100 = find("NVIDIA H100 80GB HBM3")
PCIE_ONLY = find("NVIDIA L40S")
assert PCIE_ONLY is not None
REAL = attainable(PCIE_ONLY)
SHAPE = read_shape(CONFIGS["meta-llama/Llama-3.1-8B"])

DECODE = StepBatch(decode_sequences=8, decode_context_tokens=8 * 2048)
PREFILL = StepBatch(prefill_tokens=8192)

BOUNDS: list[tuple[str, StepBatch, Parallel, Pace, Bound]] = [
    ("a small decode waits for memory", DECODE, Parallel(), IDEAL, "memory_bandwidth"),
    ("a long prefill waits for arithmetic", PREFILL, Parallel(), IDEAL, "compute"),
    ("a prefill over PCIe waits for it", PREFILL, Parallel(tensor=8), REAL, "interconnect"),
    (
        "a decode on eight GPUs waits for short kernels",
        DECODE,
        Parallel(tensor=8),
        Pace(kernel_seconds=1e-4),
        "kernel_latency",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("batch", "parallel", "pace", "bound"), [b[1:] for b in BOUNDS], ids=[b[0] for b in BOUNDS]
)
def test_a_step_is_bound_by_its_largest_part(
    batch: StepBatch, parallel: Parallel, pace: Pace, bound: Bound
) -> None:
    gpu = PCIE_ONLY if bound == "interconnect" else H100
    assert gpu is not None
    c = coefficients(SHAPE, uniform(), parallel)

    time = step_time(step_cost(c, batch), rates(gpu, c, pace))

    assert time.bound_by == bound


def test_fixed_times_are_added_to_the_roofline() -> None:
    assert H100 is not None
    c = coefficients(SHAPE, uniform(), Parallel())
    cost = step_cost(c, DECODE)

    plain = step_time(cost, rates(H100, c))
    fixed = step_time(cost, rates(H100, c, Pace(kernel_seconds=1e-5, step_seconds=1e-3)))

    assert fixed.seconds - plain.seconds == pytest.approx(320 * 1e-5 + 1e-3)


def test_a_pipeline_takes_as_long_as_its_stages_together() -> None:
    assert H100 is not None
    times = []
    for parallel in (Parallel(), Parallel(pipeline=4)):
        c = coefficients(SHAPE, uniform(), parallel)
        times.append(step_time(step_cost(c, DECODE), rates(H100, c)).seconds)

    assert times[1] == pytest.approx(times[0])
