"""A deployment on paper: its curves over batch and prompt, what fits, and what would change it.

Bytes are those of the whole model; seconds are those of the deployment. Ideal unless a pace
says otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from boundby.core.cost.capacity import (
    Crossing,
    crossings,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    sequences_that_fit,
)
from boundby.core.cost.coefficients import Coefficients, coefficients
from boundby.core.cost.duration import IDEAL, Bound, Pace, Rates, rates, step_time
from boundby.core.cost.formats import Formats
from boundby.core.cost.parallel import Parallel
from boundby.core.cost.shape import ModelShape
from boundby.core.cost.step import StepBatch, step_cost
from boundby.core.hardware import Gpu

PROMPTS = (128, 512, 2048, 8192, 32768)
"""Prompt lengths of the prefill curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A model, its formats, the GPUs and how it is spread over them."""

    shape: ModelShape
    formats: Formats
    gpu: Gpu
    parallel: Parallel = field(default_factory=Parallel)
    pace: Pace = IDEAL
    memory_ratio: float = 1.0
    """The share of GPU memory that weights and cache may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePoint:
    """One batch size, each sequence at the same context."""

    batch: int
    fits: bool
    step_seconds: float
    kv_bytes: float
    intensity: float
    flops_per_second: float
    bound_by: Bound

    @property
    def tokens_per_second(self) -> float:
        """Tokens of all sequences."""
        return self.batch / self.step_seconds

    @property
    def tokens_per_second_per_request(self) -> float:
        """Tokens of one sequence."""
        return 1.0 / self.step_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPoint:
    """One prompt, computed alone in one step. FLOPs are of all GPUs together."""

    prompt: int
    flops: float
    compute_seconds: float
    weight_read_seconds: float
    seconds: float
    intensity: float
    bound_by: Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a deployment can do, at one context and prompt length."""

    context: int
    ridge_point_flops_per_byte: float
    parameters: int
    active_parameters: int
    weight_bytes: float
    kv_bytes_per_token: float
    kv_bytes_per_sequence: float
    max_sequences: int
    prefill: PrefillPoint
    prefill_curve: tuple[PrefillPoint, ...]
    decode: tuple[DecodePoint, ...]
    crossing: Crossing

    @property
    def fits(self) -> bool:
        """Whether the weights leave room for one sequence."""
        return self.max_sequences > 0


def free_bytes_per_gpu(deployment: Deployment, c: Coefficients) -> float:
    """Bytes of a GPU's memory that the weights leave."""
    return deployment.gpu.memory_bytes * deployment.memory_ratio - c.weight_bytes_per_gpu


def decode_point(
    c: Coefficients, r: Rates, batch: int, context: int, *, most: int, kv_bytes: float
) -> DecodePoint:
    """Work out one decode step of `batch` sequences."""
    cost = step_cost(c, StepBatch(decode_sequences=batch, decode_context_tokens=batch * context))
    time = step_time(cost, r)
    return DecodePoint(
        batch=batch,
        fits=batch <= most,
        step_seconds=time.seconds,
        kv_bytes=batch * kv_bytes,
        intensity=cost.intensity,
        flops_per_second=cost.flops * c.parallel.pipeline / time.seconds,
        bound_by=time.bound_by,
    )


def prefill_point(c: Coefficients, r: Rates, prompt: int) -> PrefillPoint:
    """Work out one prompt on its own."""
    cost = step_cost(c, StepBatch(prefill_tokens=prompt))
    time = step_time(cost, r)
    layers = cost.weight_flops - cost.expert_flops
    compute = (
        layers / r.dense_flops_per_second
        + cost.expert_flops / r.expert_flops_per_second
        + cost.attention_flops / r.attention_flops_per_second
        + cost.head_flops / r.head_flops_per_second
    )
    return PrefillPoint(
        prompt=prompt,
        flops=cost.flops * c.parallel.gpus,
        compute_seconds=compute * c.parallel.pipeline,
        weight_read_seconds=(
            (cost.weight_bytes + c.head_weight_bytes) / r.bytes_per_second * c.parallel.pipeline
        ),
        seconds=time.seconds,
        intensity=cost.intensity,
        bound_by=time.bound_by,
    )


def plan(deployment: Deployment, *, batches: Sequence[int], context: int, prompt: int) -> Plan:
    """Work a deployment out."""
    shape, formats = deployment.shape, deployment.formats
    c = coefficients(shape, formats, deployment.parallel)
    r = rates(deployment.gpu, c, deployment.pace)
    each_gpu = kv_bytes_per_sequence(c, context)
    whole = coefficients(shape, formats, Parallel())
    each = kv_bytes_per_sequence(whole, context)
    most = sequences_that_fit(c, context, free_bytes_per_gpu(deployment, c)) if each_gpu else 0
    ridge = deployment.gpu.ridge_point(c.arithmetic)
    return Plan(
        context=context,
        ridge_point_flops_per_byte=ridge,
        parameters=shape.parameters,
        active_parameters=shape.active_parameters,
        weight_bytes=whole.weight_bytes_per_gpu,
        kv_bytes_per_token=kv_bytes_per_token(shape, formats),
        kv_bytes_per_sequence=each,
        max_sequences=most,
        prefill=prefill_point(c, r, prompt),
        prefill_curve=tuple(prefill_point(c, r, tokens) for tokens in PROMPTS),
        decode=tuple(
            decode_point(c, r, batch, context, most=most, kv_bytes=each) for batch in batches
        ),
        crossing=crossings(c, context, ridge),
    )
