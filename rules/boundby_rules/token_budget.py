"""The cap on tokens in a step (max_num_batched_tokens) is reached while the GPU has room.

Prompts are cut into chunks of the budget; a larger one would need fewer steps, and save what each
step costs whatever it holds: launches, fixed kernel time, host time. When the arithmetic of the
chunk fills the step, a larger chunk only makes longer steps, and this does not bind.
"""

from boundby.core.limit import Case, Limit, Panel


def engine(
    budget_blocked_ratio: float,
    prefill_kernel_latency_elasticity_ratio: float,
    prefill_cpu_scheduling_elasticity_ratio: float,
) -> float:
    """What fewer, larger prefill steps would save: the part of them that does not grow."""
    return budget_blocked_ratio * (
        prefill_kernel_latency_elasticity_ratio + prefill_cpu_scheduling_elasticity_ratio
    )


LIMIT = Limit(
    name="token_budget",
    title="token budget (max_num_batched_tokens)",
    group="software",
    page=__doc__,
    engine=engine,
    evidence=("prefill_step_tokens", "token_budget_tokens", "waiting_requests"),
    remedies=(
        "Raise --max-num-batched-tokens (SGLang: --chunked-prefill-size).",
        "If decoding suffers from it, keep it and move prefill to its own workers.",
    ),
    wont_help=(
        "More KV cache or batch slots: prompts wait for room in the step, not in the batch.",
    ),
    cases=(
        Case(
            "full chunks with half their time in launches bind",
            {
                "budget_blocked_ratio": 1.0,
                "prefill_kernel_latency_elasticity_ratio": 0.3,
                "prefill_cpu_scheduling_elasticity_ratio": 0.2,
            },
            score=0.5,
        ),
        Case(
            "full chunks that the arithmetic fills do not",
            {
                "budget_blocked_ratio": 1.0,
                "prefill_kernel_latency_elasticity_ratio": 0.01,
                "prefill_cpu_scheduling_elasticity_ratio": 0.0,
            },
            score=0.01,
            trap=True,
        ),
        Case(
            "chunks far below the budget do not",
            {
                "budget_blocked_ratio": 0.0,
                "prefill_kernel_latency_elasticity_ratio": 0.3,
                "prefill_cpu_scheduling_elasticity_ratio": 0.3,
            },
            score=0.0,
        ),
    ),
    panel=Panel(shows=("prefill_step_tokens",)),
)
