"""Collectives between GPUs set the pace: two all-reduces a layer under tensor parallelism.

Over PCIe their bytes bind, in prefill first: volume grows with tokens. Over NVLink their latency
counts at small batches. GPUs that wait in a collective read as busy, with little DRAM and tensor
activity, which no busy share tells from work.
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(engine_interconnect_elasticity_ratio: float) -> float:
    """What a fifth faster collectives would give in throughput."""
    return engine_interconnect_elasticity_ratio


def decode(decode_interconnect_elasticity_ratio: float) -> float:
    """What a fifth faster collectives would give in decode steps."""
    return decode_interconnect_elasticity_ratio


def prefill(prefill_interconnect_elasticity_ratio: float) -> float:
    """What a fifth faster collectives would give in prefill steps."""
    return prefill_interconnect_elasticity_ratio


LIMIT = Limit(
    name="interconnect",
    title="the interconnect",
    group="software",
    page=__doc__,
    engine=engine,
    decode=decode,
    prefill=prefill,
    evidence=(
        "interconnect_time_ratio",
        "pcie_tx_bytes_per_second",
        "nvlink_tx_bytes_per_second",
        "dram_active_ratio",
        "tensor_active_ratio",
    ),
    remedies=(
        "Lower tensor parallelism: fewer GPUs a replica and more replicas, if the model fits.",
        "Use GPUs joined by NVLink, or pipeline parallelism across slow links.",
        "Check that peer-to-peer and the custom all-reduce are in use (NCCL_P2P_DISABLE).",
    ),
    wont_help=(
        "More HBM bandwidth or FLOP/s: GPUs wait for each other.",
        "A larger token budget: bytes on the link grow with the tokens.",
    ),
    cases=(
        Case(
            "eight GPUs over PCIe spend most of a step in all-reduces",
            {"engine_interconnect_elasticity_ratio": 0.68},
            score=0.68,
        ),
        Case(
            "NVLink at a good batch does not bind",
            {"engine_interconnect_elasticity_ratio": 0.09},
            score=0.09,
        ),
    ),
    alert=Alert(
        after="10m",
        severity="warning",
        summary="spends its steps in collectives",
        pain="GPUs wait for each other",
    ),
    panel=Panel(shows=("interconnect_time_ratio",)),
)
