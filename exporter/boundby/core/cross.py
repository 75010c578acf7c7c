"""Our estimate held beside others': the engine's own FLOP counter, and its steps so far.

A disagreement is shown, never averaged in: it means that one side has the model wrong, or that
the deployment is not what it was.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from boundby.core.balance import COLLECTIVE, COMPUTE, LAYER, LINK, MEMORY, PRIORS, parts
from boundby.core.cost.calibration import Calibration, fresh, learn
from boundby.core.cost.duration import StepTime
from boundby.core.cost.engine_estimate import AGREES_WITHIN, flops_their_way
from boundby.core.cost.step import StepBatch
from boundby.core.estimate import Estimate, Observed
from boundby.core.prices import Prices


@dataclass(frozen=True, slots=True)
class Counter:
    """The engine's FLOPs over ours counted its way, and the sentence where they differ."""

    ratio: float
    says: str


def counter(found: Estimate, seen: Observed, price: Prices, theirs: float) -> Counter | None:
    """Hold the engine's FLOPs a second beside ours, or None where either is nothing."""
    if theirs <= 0:
        return None
    expected = 0.0
    for kind in found.steps.classes:
        batch = StepBatch(
            decode_sequences=kind.decode_sequences,
            decode_context_tokens=kind.decode_sequences * seen.load.context_tokens,
            prefill_tokens=kind.prefill_tokens,
            prefill_sequences=max(1.0, kind.prefill_tokens / max(1.0, seen.prompt_mean_tokens)),
        )
        expected += kind.count * flops_their_way(price.model, batch)
    if expected <= 0:
        return None
    ratio = theirs * seen.seconds / expected
    if abs(ratio - 1.0) <= AGREES_WITHIN:
        return Counter(ratio, "")
    return Counter(
        ratio,
        f"the engine's FLOP counter shows {ratio:.2f} times what the cost model does; "
        "one of them has the model or its load wrong",
    )


def calibrated(
    known: Calibration | None,
    deployment: Hashable,
    at: float,
    found: Estimate,
    busy_seconds: float,
) -> Calibration:
    """Fold a window's mean step into what is known of this deployment."""
    known = known or fresh(deployment, at)
    steps = found.steps.steps
    theta = [prior.median for prior in PRIORS]
    totals = [0.0] * len(PRIORS)
    for count, work in found.works:
        for index, seconds in enumerate(parts(work, theta)):
            totals[index] += count * seconds
    mean = [total / steps for total in totals]
    expected = StepTime(
        compute_seconds=mean[COMPUTE],
        memory_seconds=mean[MEMORY],
        interconnect_seconds=mean[LINK] + mean[COLLECTIVE],
        kernel_latency_seconds=mean[LAYER],
    )
    return learn(known, deployment, at, expected, busy_seconds / steps)
