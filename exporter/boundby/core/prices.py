"""What one step asks of one GPU in ideal seconds: at the peaks, before any efficiency.

`Prices` joins a model's coefficients with a GPU's peaks. A step's work falls into groups of
kernels that run one after the other (weight matrices, head, decode attention, prefill attention),
and each group has its own roofline.
"""

from dataclasses import dataclass

from boundby.core.cost.deployed import read_formats
from boundby.core.cost.formats import Formats
from boundby.core.cost.reading import read_shape
from boundby.core.cost.step import Coefficients, Parallel, coefficients
from boundby.core.hardware import Gpu
from boundby.core.setup import Setup

GEMM_ROWS = 64
"""Rows a tensor-core matrix product is padded to (the M of Hopper's wgmma instruction)."""


BRIDGED = 2
"""GPUs that an NVLink bridge joins."""

PCIE_ALLREDUCE = 40e9
"""Bytes/s beyond which an all-reduce over PCIe does not go, whatever the generation: it crosses
root ports and, between sockets, the processors' own link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """One model on one kind of GPU under one parallel layout; figures per GPU."""

    model: Coefficients
    gpu: Gpu
    formats: Formats
    peak_flops_per_second: float
    peak_bytes_per_second: float
    link_bytes_per_second: float
    over_pcie: bool

    @property
    def ridge_point_flops_per_byte(self) -> float:
        """Where the two roofs meet."""
        return self.peak_flops_per_second / self.peak_bytes_per_second


@dataclass(frozen=True, slots=True)
class Work:
    """One step's ideal seconds by group, (compute, memory) each, and what comes beside them."""

    groups: tuple[tuple[float, float], ...]
    collectives: float
    collective_seconds: float
    layers: float
    weight_seconds: float
    kv_seconds: float
    flops: float
    bytes: float


def prices(setup: Setup, gpu: Gpu, *, nvlink_silent: bool = False) -> Prices:
    """Join a setup's model with a GPU; raises ConfigError where its config cannot be read.

    `nvlink_silent` says that the GPUs have been seen to talk over PCIe, whatever their name.
    """
    config = setup.model_config or {}
    shape = read_shape(config)
    formats = read_formats(config, shape, weights=setup.weights_dtype, kv=setup.kv_cache_dtype)
    tensor = setup.tensor or 1
    model = coefficients(shape, formats, Parallel(tensor=tensor, pipeline=setup.pipeline or 1))
    pcie_part = "pcie" in (setup.gpus[0].name or "").lower() if setup.gpus else False
    # PCIe cards are joined by bridges in pairs at best; beyond two, traffic takes the bus.
    over_pcie = (
        nvlink_silent or not gpu.nvlink_bytes_per_second or (pcie_part and tensor > BRIDGED)
    )
    return Prices(
        model=model,
        gpu=gpu,
        formats=formats,
        peak_flops_per_second=gpu.best_peak_flops(model.arithmetic),
        peak_bytes_per_second=gpu.memory_bytes_per_second,
        link_bytes_per_second=(
            min(gpu.pcie_bytes_per_second, PCIE_ALLREDUCE)
            if over_pcie
            else gpu.link_bytes_per_second
        ),
        over_pcie=over_pcie,
    )


def padded(tokens: float) -> float:
    """Rows that a matrix product over so many tokens works on.

    Large products come in whole tiles. Small ones take narrower tiles or skinny kernels, which
    waste up to half.
    """
    if tokens >= GEMM_ROWS:
        return GEMM_ROWS * -(-tokens // GEMM_ROWS)
    return min(GEMM_ROWS, 2.0 * tokens)


def work(
    price: Prices,
    *,
    decode_sequences: float,
    context_tokens: float,
    prefill_tokens: float,
    prompt_before_tokens: float = 0.0,
    prompts: float = 1.0,
) -> Work:
    """Price one step.

    `context_tokens` is the context of each decoding sequence; the step's `prefill_tokens` belong
    to `prompts` prompts, with `prompt_before_tokens` of each already in the cache.
    """
    c, peak, memory = price.model, price.peak_flops_per_second, price.peak_bytes_per_second
    tokens = decode_sequences + prefill_tokens
    rows = padded(tokens)
    # Experts split a step's tokens between them; padding them all would overstate the arithmetic.
    dense = c.dense_flops_per_token * (rows if not c.experts else tokens)
    linear = dense + (c.flops_per_token - c.dense_flops_per_token) * tokens
    weights = c.weight_bytes(tokens)
    logits = decode_sequences + (prompts if prefill_tokens > 0 else 0.0)
    head_flops = c.head_flops_per_sequence * logits
    decode_flops = decode_bytes = prompt_flops = prompt_bytes = 0.0
    chunk = prefill_tokens / prompts if prompts > 0 else 0.0
    for reach in c.reaches:
        if decode_sequences > 0:
            seen = reach.seen(context_tokens)
            decode_flops += decode_sequences * (
                seen * reach.decode_pair_flops + context_tokens * reach.index_pair_flops
            )
            decode_bytes += decode_sequences * (
                seen * reach.kv_bytes_per_token + context_tokens * reach.index_bytes_per_token
            )
        if prefill_tokens > 0:
            prompt_flops += (
                prompts * reach.pairs(chunk, prompt_before_tokens) * reach.prefill_pair_flops
            )
            prompt_bytes += prompts * (prompt_before_tokens + chunk) * reach.kv_bytes_per_token
    decode_flops += c.state_flops_per_token * decode_sequences
    decode_bytes += c.state_bytes_per_sequence * decode_sequences
    prompt_flops += c.state_flops_per_token * prefill_tokens
    groups = (
        (linear / peak, weights / memory),
        (head_flops / peak, c.head_weight_bytes / memory),
        (decode_flops / peak, decode_bytes / memory),
        (prompt_flops / peak, prompt_bytes / memory),
    )
    return Work(
        groups=groups,
        collectives=c.allreduce_count + c.alltoall_count,
        collective_seconds=(
            (c.allreduce_bytes_per_token + c.alltoall_bytes_per_token)
            * tokens
            / price.link_bytes_per_second
        ),
        layers=c.layers,
        weight_seconds=(weights + c.head_weight_bytes) / memory,
        kv_seconds=decode_bytes / memory,
        flops=c.flops_per_token * tokens + head_flops + decode_flops + prompt_flops,
        bytes=weights + c.head_weight_bytes + decode_bytes + prompt_bytes,
    )
