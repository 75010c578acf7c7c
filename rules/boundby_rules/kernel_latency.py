"""A step is a chain of short kernels, and their fixed time sets its length.

The GPU reads busy, yet neither DRAM nor tensor activity is near a roof: small batches, high tensor
parallelism, many layers. The measured gap of served models to a plain roofline is additive, 60 to
90 microseconds a layer.
"""

from boundby.core.limit import Case, Limit, Panel


def engine(engine_kernel_latency_elasticity_ratio: float) -> float:
    """What a fifth less fixed kernel time would give in throughput."""
    return engine_kernel_latency_elasticity_ratio


def decode(decode_kernel_latency_elasticity_ratio: float) -> float:
    """What a fifth less fixed kernel time would give in decode steps."""
    return decode_kernel_latency_elasticity_ratio


def prefill(prefill_kernel_latency_elasticity_ratio: float) -> float:
    """What a fifth less fixed kernel time would give in prefill steps."""
    return prefill_kernel_latency_elasticity_ratio


LIMIT = Limit(
    name="kernel_latency",
    title="kernel latency",
    group="roof",
    page=__doc__,
    engine=engine,
    decode=decode,
    prefill=prefill,
    evidence=(
        "kernel_latency_time_ratio",
        "decode_step_seconds",
        "batch_sequences",
        "dram_active_ratio",
        "tensor_active_ratio",
    ),
    remedies=(
        "A larger batch: the fixed time is shared.",
        "Fewer GPUs a replica: each layer then does more in the same fixed time.",
        "Fused kernels, CUDA graphs or torch.compile; speculative decoding.",
    ),
    wont_help=("More bandwidth or FLOP/s: neither roof is near.",),
    cases=(
        Case(
            "a small batch over eight fast GPUs binds in decode",
            {"decode_kernel_latency_elasticity_ratio": 0.5},
            score=0.5,
            scope="decode",
        ),
        Case(
            "a step that reads for 70 ms does not",
            {"decode_kernel_latency_elasticity_ratio": 0.03},
            score=0.03,
            scope="decode",
        ),
    ),
    panel=Panel(shows=("kernel_latency_time_ratio",)),
)
