"""The tensor cores are at their attainable rate: prefill is bound here.

Intensity lies right of the ridge point. Judge by tensor activity or MFU against what kernels reach
(0.55 to 0.78 of the data sheet), never by "GPU utilisation".
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(engine_compute_elasticity_ratio: float) -> float:
    """What a fifth more FLOP/s would give in throughput."""
    return engine_compute_elasticity_ratio


def decode(decode_compute_elasticity_ratio: float) -> float:
    """What a fifth more FLOP/s would give in steps that decode."""
    return decode_compute_elasticity_ratio


def prefill(prefill_compute_elasticity_ratio: float) -> float:
    """What a fifth more FLOP/s would give in prefill steps."""
    return prefill_compute_elasticity_ratio


LIMIT = Limit(
    name="compute",
    title="compute",
    group="roof",
    page=__doc__,
    engine=engine,
    decode=decode,
    prefill=prefill,
    evidence=(
        "mfu_ratio",
        "tensor_active_ratio",
        "compute_time_ratio",
        "prefill_arithmetic_intensity_flops_per_byte",
        "ridge_point_flops_per_byte",
        "clock_ratio",
    ),
    remedies=(
        "Cache prefixes, or route requests that share one to the same replica: the "
        "cheapest FLOP is the one not done.",
        "Run in FP8 where the GPU has it: twice the FLOP/s.",
        "Add GPUs or replicas; disaggregate prefill where decoding must stay smooth.",
    ),
    wont_help=(
        "INT4 weight-only quantisation: the arithmetic stays in 16 bits.",
        "More memory bandwidth or a larger KV cache.",
    ),
    cases=(
        Case(
            "long prompts back to back bind",
            {"engine_compute_elasticity_ratio": 0.85},
            score=0.85,
        ),
        Case(
            "decode at a small batch does not",
            {"decode_compute_elasticity_ratio": 0.06},
            score=0.06,
            scope="decode",
        ),
    ),
    alert=Alert(
        after="10m",
        severity="warning",
        summary="is saturated and bound by compute",
        pain="requests wait for prefill",
    ),
    panel=Panel(shows=("mfu_ratio", "tensor_active_ratio")),
)
