"""Nothing is saturated: more load alone would give more throughput.

The engine has room in its batch and its cache, and a larger batch would be served at nearly the
same step time. Gaps on the GPU are there because there is no work. This is the healthy state of a
server with headroom; it is also what an over-provisioned fleet looks like.
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(
    batch_elasticity_ratio: float,
    admission_room_ratio: float,
    open_load_elasticity_ratio: float,
    open_traffic_ratio: float,
    no_work_ratio: float,
    waiting_share_ratio: float,
    *,
    idle_for_a_fifth: float = 1 / 6,
) -> float:
    """What a fifth more load would give: room in the batch, or idle time to fill.

    Callers who wait for their answers get what a larger batch gives. Independent ones are served
    in full for as long as the batch can grow to their number.
    """
    closed = min(batch_elasticity_ratio, admission_room_ratio)
    room = closed + open_traffic_ratio * max(0.0, open_load_elasticity_ratio - closed)
    idle = min(1.0, no_work_ratio / idle_for_a_fifth)
    return max(room, idle) * (1.0 - waiting_share_ratio)


LIMIT = Limit(
    name="demand",
    title="demand",
    group="load",
    page=__doc__,
    engine=engine,
    evidence=(
        "running_requests",
        "waiting_requests",
        "no_work_ratio",
        "batch_elasticity_ratio",
        "admission_room_ratio",
    ),
    binds_at=0.5,
    remedies=(
        "Send more traffic here, or run fewer replicas.",
        "If callers see low throughput, look at the client: concurrency, connection limits, "
        "the router's balance.",
    ),
    wont_help=("A faster GPU, more replicas, or a larger KV cache: nothing is waiting for them.",),
    cases=(
        Case(
            "an idle engine is bound by demand",
            {
                "batch_elasticity_ratio": 1.0,
                "admission_room_ratio": 1.0,
                "open_load_elasticity_ratio": 1.0,
                "open_traffic_ratio": 0.0,
                "no_work_ratio": 1.0,
                "waiting_share_ratio": 0.0,
            },
            score=1.0,
        ),
        Case(
            "a batch that would grow for free, with room, is bound by demand",
            {
                "batch_elasticity_ratio": 0.9,
                "admission_room_ratio": 1.0,
                "open_load_elasticity_ratio": 1.0,
                "open_traffic_ratio": 0.0,
                "no_work_ratio": 0.0,
                "waiting_share_ratio": 0.0,
            },
            score=0.9,
        ),
        Case(
            "independent requests that are all served leave a large batch bound by demand",
            {
                "batch_elasticity_ratio": 0.3,
                "admission_room_ratio": 1.0,
                "open_load_elasticity_ratio": 0.9,
                "open_traffic_ratio": 1.0,
                "no_work_ratio": 0.0,
                "waiting_share_ratio": 0.0,
            },
            score=0.9,
        ),
        Case(
            "work that waits has demand enough, however idle the GPU",
            {
                "batch_elasticity_ratio": 0.9,
                "admission_room_ratio": 1.0,
                "open_load_elasticity_ratio": 1.0,
                "open_traffic_ratio": 0.0,
                "no_work_ratio": 0.0,
                "waiting_share_ratio": 1.0,
            },
            score=0.0,
            trap=True,
        ),
        Case(
            "a full batch that nobody queues behind has no room for more load",
            {
                "batch_elasticity_ratio": 0.9,
                "admission_room_ratio": 0.02,
                "open_load_elasticity_ratio": 1.0,
                "open_traffic_ratio": 0.0,
                "no_work_ratio": 0.0,
                "waiting_share_ratio": 0.0,
            },
            score=0.02,
        ),
    ),
    alert=Alert(
        after="6h",
        share=0.95,
        severity="info",
        summary="has had more capacity than load",
        pain="",
    ),
    panel=Panel(shows=("running_requests", "no_work_ratio")),
)
