"""Requests wait for KV that another worker computed, or that was offloaded, to arrive.

Seen as requests that wait deferred, not for capacity, while prompt tokens come by transfer.
"""

from boundby.core.limit import Case, Limit, Panel


def engine(
    waiting_deferred_requests: float,
    waiting_requests: float,
    prompt_tokens_transferred_per_second: float,
) -> float:
    """Share of the queue that waits for a transfer, where transfers happen at all."""
    if prompt_tokens_transferred_per_second <= 0 or waiting_requests <= 0:
        return 0.0
    return waiting_deferred_requests / max(waiting_requests, waiting_deferred_requests)


LIMIT = Limit(
    name="kv_transfer",
    title="KV transfer",
    group="software",
    page=__doc__,
    engine=engine,
    evidence=("waiting_deferred_requests", "prompt_tokens_transferred_per_second"),
    binds_at=0.5,
    remedies=(
        "Check the transfer path (RDMA, NVLink, GPUDirect) and its bandwidth.",
        "Keep prefill and decode workers in one fabric domain.",
        "Send short prompts to the decode workers whole.",
    ),
    wont_help=("More decode GPUs: they would wait too.",),
    cases=(
        Case(
            "a queue that waits for transfers binds",
            {
                "waiting_deferred_requests": 9.0,
                "waiting_requests": 10.0,
                "prompt_tokens_transferred_per_second": 5000.0,
            },
            score=0.9,
        ),
        Case(
            "deferred requests without any transfer wait for something else",
            {
                "waiting_deferred_requests": 9.0,
                "waiting_requests": 10.0,
                "prompt_tokens_transferred_per_second": 0.0,
            },
            score=0.0,
            trap=True,
        ),
    ),
    panel=Panel(shows=("waiting_deferred_requests",)),
)
