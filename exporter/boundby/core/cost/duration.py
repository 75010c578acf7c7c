"""How long a step takes: a roofline for each group of kernels, summed, and fixed times added.

Kernels run one after another, so each group (dense matrices, experts, attention, output head)
waits for the slower of its arithmetic and its bytes. Collectives and the fixed time of a chain
of short kernels come on top: the measured gap to a plain roofline is additive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal

from boundby.core.cost.coefficients import Coefficients
from boundby.core.cost.step import StepCost
from boundby.core.hardware import Gpu

Bound = Literal["compute", "memory_bandwidth", "interconnect", "kernel_latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The shares of its peaks that a GPU attains, and its fixed times. The default is ideal."""

    compute_ratios: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Of large matrix products, by the dtype they run in; 1 where absent."""
    memory_ratios: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Of reading weights, by the same."""
    expert_compute_ratio: float = 1.0
    """Of experts, on top of `compute_ratios`."""
    expert_memory_ratio: float = 1.0
    attention_compute_ratio: float = 1.0
    attention_memory_ratio: float = 1.0
    activation_memory_ratio: float | None = None
    """Of activations; None leaves their traffic out."""
    link_ratio: float = 1.0
    link_ramp: float = 0.0
    """Half way between latency and bandwidth a collective is slower than both; how much."""
    collective_seconds: float = 0.0
    """Fixed time of one collective."""
    links_overlap: bool = True
    """Whether collectives hide behind the rest, so that only the slower of the two counts."""
    kernel_seconds: float = 0.0
    """Fixed time of one kernel in a chain of short ones."""
    step_seconds: float = 0.0
    """Fixed time of one step: sampling, and the host where it is not hidden."""
    sequence_seconds: float = 0.0
    """The same for each sequence in the step."""


IDEAL = Pace()
"""Every peak attained, nothing fixed: a bound from below."""

RAMP_SECONDS = 5e-6
"""The latency that `link_ramp` is a multiple of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """One kind of GPU at one pace, for one model's formats: what time is linear in."""

    dense_flops_per_second: float
    expert_flops_per_second: float
    attention_flops_per_second: float
    head_flops_per_second: float
    bytes_per_second: float
    head_bytes_per_second: float
    attention_bytes_per_second: float
    expert_bytes_per_second: float
    activation_bytes_per_second: float | None
    link_bytes_per_second: float
    pace: Pace
    stages: int


def rates(gpu: Gpu, c: Coefficients, pace: Pace = IDEAL) -> Rates:
    """Work out the rates of a deployment, once. Scores and the head are 16-bit arithmetic."""
    wide, moved = gpu.best_peak_flops("bf16"), gpu.memory_bytes_per_second
    dense, routed = gpu.runs_in(c.arithmetic), gpu.runs_in(c.expert_arithmetic)

    def compute(dtype: str) -> float:
        return pace.compute_ratios.get(dtype, 1.0)

    activations = pace.activation_memory_ratio
    return Rates(
        dense_flops_per_second=gpu.peaks[dense] * compute(dense),
        expert_flops_per_second=gpu.peaks[routed] * compute(routed) * pace.expert_compute_ratio,
        attention_flops_per_second=wide * pace.attention_compute_ratio,
        head_flops_per_second=wide * compute("bf16"),
        bytes_per_second=moved * pace.memory_ratios.get(dense, 1.0),
        head_bytes_per_second=moved * pace.memory_ratios.get("bf16", 1.0),
        attention_bytes_per_second=moved * pace.attention_memory_ratio,
        expert_bytes_per_second=moved * pace.expert_memory_ratio,
        activation_bytes_per_second=moved * activations if activations else None,
        link_bytes_per_second=gpu.link_bytes_per_second * pace.link_ratio,
        pace=pace,
        stages=c.parallel.pipeline,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """One step's seconds by what they wait for; they add up to `seconds`."""

    compute_seconds: float
    memory_seconds: float
    interconnect_seconds: float
    kernel_latency_seconds: float

    @property
    def seconds(self) -> float:
        """The whole step."""
        return (
            self.compute_seconds
            + self.memory_seconds
            + self.interconnect_seconds
            + self.kernel_latency_seconds
        )

    @property
    def bound_by(self) -> Bound:
        """What the largest part waits for; the roofs come first where parts are equal."""
        parts: tuple[tuple[Bound, float], ...] = (
            ("memory_bandwidth", self.memory_seconds),
            ("compute", self.compute_seconds),
            ("interconnect", self.interconnect_seconds),
            ("kernel_latency", self.kernel_latency_seconds),
        )
        return max(parts, key=lambda part: part[1])[0]


def step_time(cost: StepCost, r: Rates) -> StepTime:
    """Time one step; through a pipeline, from the first stage to the last."""
    compute = memory = 0.0
    for flops, flops_per_second, moved, bytes_per_second in (
        (
            cost.weight_flops - cost.expert_flops,
            r.dense_flops_per_second,
            cost.weight_bytes - cost.expert_bytes,
            r.bytes_per_second,
        ),
        (
            cost.expert_flops,
            r.expert_flops_per_second,
            cost.expert_bytes,
            r.expert_bytes_per_second,
        ),
        (
            cost.attention_flops,
            r.attention_flops_per_second,
            cost.kv_read_bytes + cost.kv_write_bytes + cost.state_bytes,
            r.attention_bytes_per_second,
        ),
        (cost.head_flops, r.head_flops_per_second, cost.head_bytes, r.head_bytes_per_second),
    ):
        busy, waiting = flops / flops_per_second, moved / bytes_per_second
        if busy > waiting:
            compute += busy
        else:
            memory += waiting
    if r.activation_bytes_per_second:
        memory += cost.activation_bytes / r.activation_bytes_per_second
    link = collective_seconds(cost.collective_bytes, cost.collective_count, r)
    if r.pace.links_overlap:
        if link > compute + memory:
            compute = memory = 0.0
        else:
            link = 0.0
    stages, pace = r.stages, r.pace
    return StepTime(
        compute_seconds=compute * stages,
        memory_seconds=memory * stages,
        interconnect_seconds=link * stages,
        kernel_latency_seconds=stages * cost.kernels * pace.kernel_seconds
        + pace.step_seconds
        + cost.sequences * pace.sequence_seconds,
    )


def collective_seconds(moved: float, count: float, r: Rates) -> float:
    """Return the time of `count` like collectives that move `moved` bytes over a link in all."""
    if count <= 0:
        return 0.0
    line = moved / r.link_bytes_per_second
    ramp = r.pace.link_ramp * sqrt(line * count * RAMP_SECONDS)
    return line + ramp + count * r.pace.collective_seconds
