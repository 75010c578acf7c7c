"""The cap on sequences in a step (max_num_seqs) is reached: work waits with room in the cache.

Running stays flat at the cap, KV has room, nothing is preempted. The cap is a setting; raising it
costs a line in a manifest. Where it is not known it is inferred from the plateau, and said so.
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(
    batch_slots_sequences: float, slots_blocked_ratio: float, batch_elasticity_ratio: float
) -> float:
    """What a fifth more slots would give: as much as a larger batch gives."""
    if batch_slots_sequences < 1:
        return 0.0
    return slots_blocked_ratio * max(0.0, batch_elasticity_ratio)


LIMIT = Limit(
    name="batch_slots",
    title="batch slots (max_num_seqs)",
    group="software",
    page=__doc__,
    engine=engine,
    evidence=(
        "running_requests",
        "batch_slots_sequences",
        "waiting_requests",
        "kv_used_ratio",
        "batch_elasticity_ratio",
    ),
    remedies=(
        "Raise --max-num-seqs (SGLang: --max-running-requests) until KV or the step time objects.",
        "Capture CUDA graphs up to the new batch, so that steps stay fast.",
    ),
    wont_help=(
        "Another GPU or replica: this one has room that its own setting keeps closed.",
        "More KV cache: it is not full.",
    ),
    cases=(
        Case(
            "full slots with a queue bind as far as a larger batch would pay",
            {
                "batch_slots_sequences": 64.0,
                "slots_blocked_ratio": 1.0,
                "batch_elasticity_ratio": 0.72,
            },
            score=0.72,
        ),
        Case(
            "full slots with a queue do not bind where the GPU has nothing left to give",
            {
                "batch_slots_sequences": 64.0,
                "slots_blocked_ratio": 1.0,
                "batch_elasticity_ratio": 0.06,
            },
            score=0.06,
            trap=True,
        ),
        Case(
            "a queue beside empty slots is not about slots",
            {
                "batch_slots_sequences": 64.0,
                "slots_blocked_ratio": 0.0,
                "batch_elasticity_ratio": 0.9,
            },
            score=0.0,
        ),
    ),
    alert=Alert(
        after="10m",
        severity="warning",
        summary="is at its cap on sequences",
        pain="requests wait beside a GPU with room",
    ),
    panel=Panel(shows=("batch_sequences", "batch_slots_sequences")),
)
