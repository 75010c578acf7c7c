"""The slowest of several peers sets the pace: one full DP rank beside an empty one, a slow GPU.

GPUs of one tensor-parallel group run in lockstep; a card with lower clocks holds up all. Ranks
that share expert layers wait for the fullest.
"""

from boundby.core.limit import Case, Limit, Panel


def engine(peer_loss_ratio: float) -> float:
    """What peers as fast or as full as the mean would give."""
    return peer_loss_ratio


LIMIT = Limit(
    name="imbalance",
    title="imbalance between peers",
    group="software",
    page=__doc__,
    engine=engine,
    evidence=("peer_loss_ratio", "clock_lowest_ratio", "busy_lowest_ratio", "busy_highest_ratio"),
    remedies=(
        "Route by load (waiting requests, KV in use), not in turns.",
        "Look at the slow GPU: clocks, temperature, ECC, its PCIe link.",
    ),
    wont_help=("More of everything: the slowest peer stays the slowest.",),
    cases=(
        Case("one rank queueing beside an idle one binds", {"peer_loss_ratio": 0.5}, score=0.5),
        Case("peers alike do not", {"peer_loss_ratio": 0.0}, score=0.0),
    ),
    panel=Panel(shows=("peer_loss_ratio",)),
)
