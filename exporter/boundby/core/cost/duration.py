"""How long a step takes: a roofline for each group of kernels, summed, and fixed times added.

Kernels run one after another, so each group (dense matrices, experts, attention, output head)
waits for the slower of its arithmetic and its bytes. Collectives and the fixed time of a chain
of short kernels come on top: the measured gap to a plain roofline is additive.
"""

from dataclasses import dataclass
from typing import Literal

from boundby.core.cost.step import Coefficients, StepCost
from boundby.core.hardware import Gpu

Bound = Literal["compute", "memory_bandwidth", "interconnect", "kernel_latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The shares of its peaks that a GPU attains, and its fixed times. The default is ideal."""

    compute_ratio: float = 1.0
    attention_compute_ratio: float = 1.0
    memory_ratio: float = 1.0
    attention_memory_ratio: float = 1.0
    expert_memory_ratio: float = 1.0
    expert_compute_ratio: float = 1.0
    link_ratio: float = 1.0
    links_overlap: bool = True
    """Whether collectives hide behind the rest, so that only the slower of the two counts."""
    block_seconds: float = 0.0
    """Fixed time of one mixer or feed-forward."""
    collective_seconds: float = 0.0
    """Fixed time of one collective."""
    step_seconds: float = 0.0
    """Fixed time of one step: sampling, and the host where it is not hidden."""


IDEAL = Pace()
"""Every peak attained, nothing fixed: a bound from below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """One kind of GPU at one pace, for one model's formats: what time is linear in."""

    dense_flops_per_second: float
    expert_flops_per_second: float
    attention_flops_per_second: float
    head_flops_per_second: float
    bytes_per_second: float
    attention_bytes_per_second: float
    expert_bytes_per_second: float
    link_bytes_per_second: float
    links_overlap: bool
    block_seconds: float
    collective_seconds: float
    step_seconds: float
    stages: int


def rates(gpu: Gpu, c: Coefficients, pace: Pace = IDEAL) -> Rates:
    """Work out the rates of a deployment, once. Scores and the head are 16-bit arithmetic."""
    wide = gpu.best_peak_flops("bf16")
    routed = c.experts[0].arithmetic if c.experts else c.arithmetic
    return Rates(
        dense_flops_per_second=gpu.best_peak_flops(c.arithmetic) * pace.compute_ratio,
        expert_flops_per_second=gpu.best_peak_flops(routed) * pace.expert_compute_ratio,
        attention_flops_per_second=wide * pace.attention_compute_ratio,
        head_flops_per_second=wide * pace.compute_ratio,
        bytes_per_second=gpu.memory_bytes_per_second * pace.memory_ratio,
        attention_bytes_per_second=gpu.memory_bytes_per_second * pace.attention_memory_ratio,
        expert_bytes_per_second=gpu.memory_bytes_per_second * pace.expert_memory_ratio,
        link_bytes_per_second=gpu.link_bytes_per_second * pace.link_ratio,
        links_overlap=pace.links_overlap,
        block_seconds=pace.block_seconds,
        collective_seconds=pace.collective_seconds,
        step_seconds=pace.step_seconds,
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
    dense_bytes = cost.weight_bytes - cost.expert_bytes
    for flops, flops_per_second, moved, bytes_per_second in (
        (
            cost.weight_flops - cost.expert_flops,
            r.dense_flops_per_second,
            dense_bytes,
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
        (cost.head_flops, r.head_flops_per_second, cost.head_bytes, r.bytes_per_second),
    ):
        busy, waiting = flops / flops_per_second, moved / bytes_per_second
        if busy > waiting:
            compute += busy
        else:
            memory += waiting
    link = (
        cost.collective_bytes / r.link_bytes_per_second
        + cost.collective_count * r.collective_seconds
    )
    if r.links_overlap:
        if link > compute + memory:
            compute = memory = 0.0
        else:
            link = 0.0
    stages = r.stages
    return StepTime(
        compute_seconds=compute * stages,
        memory_seconds=memory * stages,
        interconnect_seconds=link * stages,
        kernel_latency_seconds=stages * cost.blocks * r.block_seconds + r.step_seconds,
    )
