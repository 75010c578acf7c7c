"""vLLM's own estimate of its FLOPs, held beside ours: corrected where it is known to differ.

With `--enable-mfu-metrics` vLLM counts FLOPs from its config (v1/metrics/perf.py). It takes each
prefill token to see the whole context after the step (causal attention sees half of that in one
chunk), and latent attention to decode unabsorbed. Both are known, so its count is first compared
with ours made its way; only what is left is a disagreement, and that is shown, not averaged.
"""

from dataclasses import dataclass

from boundby.core.cost.coefficients import Coefficients
from boundby.core.cost.step import StepBatch, step_cost

AGREES_WITHIN = 0.10
"""Relative difference that unmodelled small terms explain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crosscheck:
    """Both counts of FLOPs, per GPU, over the same work."""

    ours: float
    theirs: float
    corrected: float | None
    """Theirs without its known differences; None where it does not count this model."""
    agrees: bool
    says: str


def flops_their_way(c: Coefficients, batch: StepBatch) -> float:
    """Return our FLOPs under vLLM's conventions."""
    plain = step_cost(c, batch)
    sequences, tokens = batch.decode_sequences, batch.prefill_tokens
    queries = sequences if batch.decode_tokens is None else batch.decode_tokens
    context = batch.decode_context_tokens / sequences if sequences else 0.0
    chunks = batch.prefill_sequences if tokens > 0 else 0.0
    whole = (batch.prefill_context_tokens + tokens) / chunks if chunks else 0.0
    attention = sum(
        r.prefill_pair_flops
        * (
            queries * (min(context, r.reach) if r.reach else context)
            + tokens * (min(whole, r.reach) if r.reach else whole)
        )
        for r in c.reaches
    )
    return plain.weight_flops + plain.head_flops + attention


def crosscheck(c: Coefficients, batch: StepBatch, theirs: float) -> Crosscheck:
    """Compare the engine's count for the work in `batch` (a step, or a window's sum) with ours."""
    ours = step_cost(c, batch).flops
    expected = flops_their_way(c, batch)
    if theirs <= 0:
        says = "the engine's counter is there but 0: it does not count this model"
        return Crosscheck(ours=ours, theirs=theirs, corrected=None, agrees=False, says=says)
    ratio = theirs / expected if expected else 0.0
    agrees = abs(ratio - 1.0) <= AGREES_WITHIN
    says = (
        "the engine's own count agrees"
        if agrees
        else f"the engine counts {ratio:.2f} times our FLOPs; one of us has the model wrong"
    )
    corrected = theirs * ours / expected if expected else None
    return Crosscheck(ours=ours, theirs=theirs, corrected=corrected, agrees=agrees, says=says)
