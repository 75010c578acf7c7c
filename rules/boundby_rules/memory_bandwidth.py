"""The memory interface is at its attainable rate: every step reads all weights and the whole KV.

Decode is bound here almost always: its arithmetic intensity lies far left of the ridge point.
SM activity reads 0.9 and "GPU utilisation" 100 % meanwhile; neither says compute. Whether weights
or KV are read decides what helps: a larger batch shares the weights, not the KV.
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(engine_memory_bandwidth_elasticity_ratio: float) -> float:
    """What a fifth more bandwidth would give in throughput."""
    return engine_memory_bandwidth_elasticity_ratio


def decode(decode_memory_bandwidth_elasticity_ratio: float) -> float:
    """What a fifth more bandwidth would give in decode steps."""
    return decode_memory_bandwidth_elasticity_ratio


def prefill(prefill_memory_bandwidth_elasticity_ratio: float) -> float:
    """What a fifth more bandwidth would give in prefill steps."""
    return prefill_memory_bandwidth_elasticity_ratio


LIMIT = Limit(
    name="memory_bandwidth",
    title="memory bandwidth",
    group="roof",
    page=__doc__,
    engine=engine,
    decode=decode,
    prefill=prefill,
    evidence=(
        "mbu_ratio",
        "dram_active_ratio",
        "memory_time_ratio",
        "decode_arithmetic_intensity_flops_per_byte",
        "ridge_point_flops_per_byte",
        "weight_bytes_ratio",
    ),
    remedies=(
        "Larger batches, where weights are most of the bytes: one read serves all sequences.",
        "Quantise the weights (FP8, INT4), or the KV cache (FP8) where that is most of the bytes.",
        "Speculative decoding: several tokens for one read of the weights.",
        "A GPU with more bandwidth (H200 over H100 is 1.43 times), or more tensor parallelism.",
    ),
    wont_help=(
        "More FLOP/s, or faster clocks: the tensor cores wait for bytes.",
        "A larger batch where KV reads dominate: each sequence brings its own bytes.",
    ),
    cases=(
        Case(
            "decode that spends its steps reading binds",
            {"decode_memory_bandwidth_elasticity_ratio": 0.84},
            score=0.84,
            scope="decode",
        ),
        Case(
            "a prefill that reads little does not",
            {"prefill_memory_bandwidth_elasticity_ratio": 0.02},
            score=0.02,
            scope="prefill",
        ),
        Case(
            "throughput follows the reads of the whole mix",
            {"engine_memory_bandwidth_elasticity_ratio": 0.6},
            score=0.6,
        ),
    ),
    alert=Alert(
        after="10m",
        severity="warning",
        summary="is saturated and bound by memory bandwidth",
        pain="requests wait, and only fewer bytes or more bandwidth would help",
    ),
    panel=Panel(shows=("mbu_ratio", "dram_active_ratio", "weight_bytes_ratio")),
)
