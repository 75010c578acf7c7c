"""Requests run, and nothing comes of it: no token, no step, for longer than any step takes.

A worker died or hangs, a collective waits for a lost peer, the engine core is stopped. An engine
whose gauges are frozen at zero looks idle instead; then only its clients can tell.
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(stalled_ratio: float) -> float:
    """1 while requests run without progress."""
    return stalled_ratio


LIMIT = Limit(
    name="stalled",
    title="a stall",
    group="progress",
    page=__doc__,
    engine=engine,
    evidence=("still_seconds", "running_last_requests", "gpu_working_ratio"),
    binds_at=0.9,
    remedies=(
        "Look for a dead or stopped worker and for an NCCL timeout in the engine's log.",
        "Restart the pod if it does not come back within a minute.",
        "Check XID errors on its GPUs (nvidia-smi, dmesg).",
    ),
    wont_help=("More capacity of any kind: nothing is being used.",),
    cases=(
        Case("running requests without progress bind", {"stalled_ratio": 1.0}, score=1.0),
        Case("progress within patience does not", {"stalled_ratio": 0.0}, score=0.0),
    ),
    alert=Alert(
        after="1m", severity="critical", summary="has stalled: requests run and nothing comes",
        pain="callers get nothing",
    ),
    panel=Panel(shows=("still_seconds",)),
)  # fmt: skip
