"""No KV blocks are left for the next request, so work waits or running requests are preempted.

Weights and batch may have room to spare; the cache does not. A watermark, or a next prompt longer
than what is free, holds the level well below 100 %. Look here before buying compute: the GPU can
be half idle while this binds. A full cache that nobody queues behind is a cache well used.
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(
    kv_blocked_ratio: float,
    batch_elasticity_ratio: float,
    recomputed_ratio: float,
    *,
    churn: float = 0.15,
    avoidable: float = 0.25,
) -> float:
    """What a fifth more cache would give: a larger batch, and less work done twice.

    Some preemption goes with any full cache, whatever its size; beyond `churn` it is thrashing,
    of which a fifth more cache takes away the `avoidable` part.
    """
    thrash = avoidable * max(0.0, recomputed_ratio - churn)
    return kv_blocked_ratio * min(1.0, max(0.0, batch_elasticity_ratio) + thrash)


LIMIT = Limit(
    name="kv_capacity",
    title="KV cache capacity",
    group="software",
    page=__doc__,
    engine=engine,
    evidence=(
        "kv_used_ratio",
        "waiting_requests",
        "preemptions_per_second",
        "running_requests",
        "context_tokens_per_sequence",
        "recomputed_ratio",
    ),
    remedies=(
        "Store the KV cache in FP8 (vLLM: --kv-cache-dtype fp8): twice the sequences at once.",
        "Give the cache more of the GPU (vLLM: --gpu-memory-utilization).",
        "Quantise the weights: what they free becomes cache.",
        "Add a replica, or a GPU to the tensor-parallel group.",
    ),
    wont_help=(
        "A higher --max-num-seqs: admitted sequences would only be preempted.",
        "More FLOP/s: the GPU waits for blocks, not for arithmetic.",
    ),
    cases=(
        Case(
            "a full cache with a queue behind it binds as far as a larger batch would pay",
            {"kv_blocked_ratio": 1.0, "batch_elasticity_ratio": 0.7, "recomputed_ratio": 0.05},
            score=0.7,
        ),
        Case(
            "a full cache with nobody waiting does not bind",
            {"kv_blocked_ratio": 0.0, "batch_elasticity_ratio": 0.7, "recomputed_ratio": 0.0},
            score=0.0,
            trap=True,
        ),
        Case(
            "long contexts fill the cache, but reading them already takes the step: a larger "
            "batch would give little",
            {"kv_blocked_ratio": 1.0, "batch_elasticity_ratio": 0.13, "recomputed_ratio": 0.1},
            score=0.13,
        ),
        Case(
            "half of the work is done twice: what a larger cache would save of it counts",
            {"kv_blocked_ratio": 1.0, "batch_elasticity_ratio": 0.2, "recomputed_ratio": 0.55},
            score=0.3,
        ),
    ),
    alert=Alert(
        after="10m",
        severity="warning",
        summary="is out of KV cache blocks",
        pain="requests wait or are preempted",
    ),
    panel=Panel(shows=("kv_used_ratio", "preemptions_per_second")),
)
