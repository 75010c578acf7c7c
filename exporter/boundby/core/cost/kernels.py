"""How long single kernels take: matrix products, attention, experts, all-reduces.

Each is a launch, a line (the slower of arithmetic and bytes at attained shares of the peaks),
and a ramp between the two. Constants: least squares on measured kernels of vLLM 0.24 (A100:
0.14) on seven GPUs, published with aiconfigurator-core 0.12.0; docs/accuracy-cost.md has the
errors. A share above 1 is a fit's, where a cache serves part of the bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Literal, TypeVar

from boundby.core.cost.feedforward import distinct
from boundby.core.cost.formats import scheme
from boundby.core.cost.generation import Generation, generation
from boundby.core.cost.kernel_table import (
    ALLREDUCE,
    ATTENTION_DECODE,
    ATTENTION_PREFILL,
    EXPERTS,
    GEMM,
    L2_BYTES,
)
from boundby.core.hardware import Gpu

T = TypeVar("T")

RAMP_SECONDS = 5e-6
"""The latency that a ramp is a multiple of."""


class NotMeasuredError(LookupError):
    """No kernel of that dtype was measured on that generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A matrix product: `rows` tokens by `inner`, into `columns`."""

    rows: int
    columns: int
    inner: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One layer's attention over sequences of like length."""

    sequences: int
    context: int
    query_heads: int
    kv_heads: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertLayer:
    """One layer of experts on one GPU; `read` overrides how many experts are met."""

    tokens: int
    hidden: int
    inner: int
    count: int
    active: int
    holders: int = 1
    """GPUs that hold whole experts each."""
    read: float | None = None


def _curve(line: float, launch: float, ramp: float) -> float:
    return launch + line + ramp * sqrt(line * RAMP_SECONDS)


def _found(table: Mapping[tuple[Generation, str], T], gpu: Gpu, dtype: str) -> T:
    try:
        return table[generation(gpu), dtype]
    except KeyError:
        msg = f"no {dtype} kernel was measured on {generation(gpu)}"
        raise NotMeasuredError(msg) from None


def gemm_seconds(gpu: Gpu, product: Product, dtype: str) -> float:
    """Time one matrix product with weights and inputs in `dtype` and a 16-bit result."""
    launch, compute, memory, ramp = _found(GEMM, gpu, dtype)
    each = scheme(dtype).bytes_per_element
    m, n, k = product.rows, product.columns, product.inner
    busy = 2 * m * n * k / (gpu.best_peak_flops(scheme(dtype).arithmetic) * compute)
    moved = n * k * each + m * k * each + 2 * m * n
    return _curve(max(busy, moved / (gpu.memory_bytes_per_second * memory)), launch, ramp)


def decode_attention_seconds(gpu: Gpu, attention: Attention, kv_dtype: str) -> float:
    """Time one layer's attention of one new token a sequence."""
    launch, compute, memory, ramp, cached = _found(ATTENTION_DECODE, gpu, kv_dtype)
    a = attention
    kv = 2 * a.sequences * a.context * a.kv_heads * a.width * scheme(kv_dtype).bytes_per_element
    queries = a.sequences * a.query_heads * a.width
    faster = cached if kv < L2_BYTES[generation(gpu)] else 1.0
    waiting = (kv + 4 * queries) / (gpu.memory_bytes_per_second * memory * faster)
    busy = 4 * queries * a.context / (gpu.best_peak_flops("bf16") * compute)
    return _curve(max(busy, waiting), launch, ramp)


def prefill_attention_seconds(gpu: Gpu, attention: Attention, kv_dtype: str) -> float:
    """Time one layer's causal attention of whole prompts; some keys too many for each query."""
    launch, compute, extra, ramp = _found(ATTENTION_PREFILL, gpu, kv_dtype)
    a = attention
    pairs = a.sequences * (a.context * (a.context + 1) / 2 + extra * a.context)
    flops = 4 * pairs * a.query_heads * a.width
    return _curve(flops / (gpu.best_peak_flops("bf16") * compute), launch, ramp)


def experts_seconds(gpu: Gpu, layer: ExpertLayer, dtype: str) -> float:
    """Time one layer of experts, routing apart. Few tokens an expert fill its tiles badly."""
    launch, compute, memory, ramp, activations, tile = _found(EXPERTS, gpu, dtype)
    stored = scheme(dtype)
    each = 3 * layer.hidden * layer.inner
    met = layer.read
    if met is None:
        met = distinct(layer.count, layer.active, layer.tokens)
    met = max(1.0, met / layer.holders)
    pairs = layer.tokens * layer.active / layer.holders
    filled = met * sqrt((pairs / met) ** 2 + tile**2)
    bandwidth = gpu.memory_bytes_per_second
    busy = 2 * filled * each / (gpu.best_peak_flops(stored.arithmetic) * compute)
    waiting = met * each * stored.bytes_per_element / (bandwidth * memory)
    moved = 2 * pairs * (2 * layer.hidden + 3 * layer.inner)
    return _curve(max(busy, waiting), launch, ramp) + activations * moved / bandwidth


def allreduce_seconds(
    gpu: Gpu, message_bytes: float, gpus: int, kind: Literal["graph", "nccl"] = "graph"
) -> float:
    """Time one all-reduce over NVLink: vLLM's own kernel in a CUDA graph, or NCCL's."""
    if not gpu.nvlink_bytes_per_second:
        msg = f"all-reduces over PCIe depend on the host; none is known for {gpu.key}"
        raise NotMeasuredError(msg)
    launch, power, link, ramp = _found(ALLREDUCE, gpu, kind)
    line = message_bytes * 2 * (gpus - 1) / gpus / (gpu.nvlink_bytes_per_second * link)
    ramped = ramp * sqrt(line * link * RAMP_SECONDS)
    fixed: float = launch * gpus**power
    return fixed + line + ramped
