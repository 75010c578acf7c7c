"""What GPUs attain in practice: the shares of their peaks and the fixed times, with sources.

Matrix products: measured GEMM kernels of seven GPUs (medians within 13 %). The rest: fitted,
with the kernels' values as priors, to 2,115 published serving measurements of seven models on
Hopper and Blackwell, each model left out in turn; docs/accuracy-cost.md has the errors.
Older and other GPUs have the kernels' own values, or those of the nearest part.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from boundby.core.cost.duration import Pace
from boundby.core.cost.generation import Generation, generation
from boundby.core.hardware import Gpu

MEMORY_RATIO = 0.9
"""The share of device memory that vLLM takes by default (0.92 in recent versions)."""

DEFAULT_ENGINE = "vllm"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Generation:
    """One generation of GPUs, whatever the engine; the meanings are those of `Pace`."""

    compute: Mapping[str, float] = field(hash=False)
    memory: Mapping[str, float] = field(hash=False)
    expert_compute: float
    expert_memory: float
    attention_compute: float
    attention_memory: float
    link: float
    ramp: float
    collective_seconds: float
    kernel_seconds: Mapping[str, float] = field(hash=False)


_AMPERE = _Generation(
    compute={"bf16": 0.80, "fp16": 0.80, "int8": 0.65},
    memory={"bf16": 0.87, "fp16": 0.87, "int8": 0.82},
    expert_compute=0.36,
    expert_memory=0.65,
    attention_compute=0.45,
    attention_memory=0.72,
    link=0.68,
    ramp=1.0,
    collective_seconds=5e-6,
    kernel_seconds={"vllm": 6.0e-6, "sglang": 5.6e-6, "trtllm": 5.4e-6},
)
_HOPPER = _Generation(
    compute={"bf16": 0.80, "fp16": 0.80, "fp8": 0.58, "int8": 0.58},
    memory={"bf16": 0.97, "fp16": 0.97, "fp8": 0.97, "int8": 0.97},
    expert_compute=0.35,
    expert_memory=0.61,
    attention_compute=0.45,
    attention_memory=0.68,
    link=0.58,
    ramp=1.0,
    collective_seconds=3.8e-6,
    kernel_seconds={"vllm": 5.0e-6, "sglang": 4.7e-6, "trtllm": 4.7e-6},
)
_BLACKWELL = _Generation(
    compute={"bf16": 0.71, "fp16": 0.71, "fp8": 0.44, "fp4": 0.43, "int8": 0.44},
    memory={"bf16": 0.97, "fp16": 0.97, "fp8": 0.95, "fp4": 0.97, "int8": 0.95},
    expert_compute=0.50,
    expert_memory=0.82,
    attention_compute=0.45,
    attention_memory=0.83,
    link=0.62,
    ramp=1.0,
    collective_seconds=4.8e-6,
    kernel_seconds={"vllm": 4.3e-6, "sglang": 4.4e-6, "trtllm": 3.6e-6},
)
_ADA = _Generation(
    compute={"bf16": 0.61, "fp16": 0.61, "fp8": 0.44, "int8": 0.44},
    memory={"bf16": 0.90, "fp16": 0.90, "fp8": 0.88, "int8": 0.88},
    expert_compute=0.36,
    expert_memory=0.65,
    attention_compute=0.45,
    attention_memory=0.84,
    link=0.40,
    ramp=1.0,
    collective_seconds=1.2e-5,
    kernel_seconds={"vllm": 5.0e-6, "sglang": 4.7e-6, "trtllm": 4.5e-6},
)
_RTX_BLACKWELL = _Generation(
    compute={"bf16": 0.82, "fp16": 0.82, "fp8": 0.71, "fp4": 0.66, "int8": 0.71},
    memory={"bf16": 0.92, "fp16": 0.92, "fp8": 0.92, "fp4": 0.90, "int8": 0.92},
    expert_compute=0.40,
    expert_memory=0.75,
    attention_compute=0.45,
    attention_memory=0.85,
    link=0.42,
    ramp=1.0,
    collective_seconds=1.2e-5,
    kernel_seconds={"vllm": 4.5e-6, "sglang": 4.4e-6, "trtllm": 4.0e-6},
)
_CDNA = _Generation(
    compute={"bf16": 0.50, "fp16": 0.50, "fp8": 0.45, "fp4": 0.40, "int8": 0.45},
    memory={"bf16": 0.80, "fp16": 0.80, "fp8": 0.80, "fp4": 0.80, "int8": 0.80},
    expert_compute=0.36,
    expert_memory=0.60,
    attention_compute=0.35,
    attention_memory=0.65,
    link=0.60,
    ramp=1.0,
    collective_seconds=8e-6,
    kernel_seconds={"vllm": 6.5e-6, "sglang": 6.5e-6, "trtllm": 6.5e-6},
)
"""By analogy: no measured rows of these parts were at hand."""

_STEP_SECONDS = {"vllm": 6.0e-4, "sglang": 5.0e-4, "trtllm": 5.3e-4}
_SEQUENCE_SECONDS = {"vllm": 1.8e-5, "sglang": 3.2e-5, "trtllm": 5.2e-6}

MEASURED: frozenset[Generation] = frozenset({"hopper", "blackwell"})
"""Generations whose constants come from serving measurements."""


_GENERATIONS: Mapping[Generation, _Generation] = {
    "ampere": _AMPERE,
    "ada": _ADA,
    "hopper": _HOPPER,
    "blackwell": _BLACKWELL,
    "rtx_blackwell": _RTX_BLACKWELL,
    "cdna": _CDNA,
}


@cache
def attainable(gpu: Gpu, engine: str | None = None) -> Pace:
    """Return the pace of a kind of GPU under an engine; vLLM's where none or another is named."""
    g = _GENERATIONS[generation(gpu)]
    kind = engine if engine in _STEP_SECONDS else DEFAULT_ENGINE
    return Pace(
        compute_ratios=g.compute,
        memory_ratios=g.memory,
        expert_compute_ratio=g.expert_compute,
        expert_memory_ratio=g.expert_memory,
        attention_compute_ratio=g.attention_compute,
        attention_memory_ratio=g.attention_memory,
        activation_memory_ratio=1.0,
        link_ratio=g.link,
        link_ramp=g.ramp,
        collective_seconds=g.collective_seconds,
        links_overlap=False,
        kernel_seconds=g.kernel_seconds[kind],
        step_seconds=_STEP_SECONDS[kind],
        sequence_seconds=_SEQUENCE_SECONDS[kind],
    )
