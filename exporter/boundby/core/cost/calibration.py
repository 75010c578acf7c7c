"""A deployment's own correction of the cost model, learnt from its measured steps.

Four multipliers, one for each part of a step's time, start at 1 and are pulled towards it;
they stay in bounds, forget slowly, and learn nothing from a step far from what they expect. So
a GPU that slows down, or a step that begins to wait for something new, shows as a residual and
is never absorbed. A change of model or GPU starts afresh: the state carries its deployment.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from boundby.core.cost.duration import StepTime

PARTS = 4

LEAST, MOST = 0.4, 2.5
"""Bounds of a multiplier: 99 % of published measurements lie within of the uncalibrated model."""

PRIOR = 0.01
"""Pull towards 1, in squared relative residuals: a few measured steps outweigh it."""

HALF_LIFE_SECONDS = 1800.0
"""Time in which what was learnt loses half its weight."""

ROBUST = 0.10
"""Relative residual beyond which a step counts less (Huber)."""

SETTLED = 20.0
"""Weight of steps from which on a far one is refused."""

GATE = 0.30
"""Relative residual that counts as far."""

Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What has been learnt of one deployment. `deployment` is whatever must not change."""

    deployment: Hashable
    since_seconds: float
    at_seconds: float
    weight: float = 0.0
    refused: int = 0
    """Steps refused in a row: a sign that the deployment is not what it was."""
    residual_ratio: float = 0.0
    """Mean size of the relative residual of late."""
    products: tuple[Vector, ...] = ((0.0,) * PARTS,) * PARTS
    targets: Vector = (0.0,) * PARTS
    multipliers: Vector = (1.0,) * PARTS

    def age_seconds(self, now_seconds: float) -> float:
        """Seconds since learning began."""
        return now_seconds - self.since_seconds

    @property
    def settled(self) -> bool:
        """Whether enough was seen to rely on it."""
        return self.weight >= SETTLED

    def correct(self, time: StepTime) -> StepTime:
        """Return a step's time as this deployment is expected to take it."""
        compute, memory, interconnect, latency = self.multipliers
        return StepTime(
            compute_seconds=compute * time.compute_seconds,
            memory_seconds=memory * time.memory_seconds,
            interconnect_seconds=interconnect * time.interconnect_seconds,
            kernel_latency_seconds=latency * time.kernel_latency_seconds,
        )


def fresh(deployment: Hashable, now_seconds: float) -> Calibration:
    """Start to learn a deployment."""
    return Calibration(deployment=deployment, since_seconds=now_seconds, at_seconds=now_seconds)


def learn(
    known: Calibration,
    deployment: Hashable,
    now_seconds: float,
    estimated: StepTime,
    measured_seconds: float,
) -> Calibration:
    """Fold one measured step (or a window's mean step) into what is known."""
    if deployment != known.deployment or now_seconds < known.at_seconds:
        known = fresh(deployment, now_seconds)
    if measured_seconds <= 0 or estimated.seconds <= 0:
        return known
    expected = known.correct(estimated).seconds
    residual = expected / measured_seconds - 1.0
    if known.settled and abs(residual) > GATE:
        return replace(known, at_seconds=now_seconds, refused=known.refused + 1)
    kept = 0.5 ** ((now_seconds - known.at_seconds) / HALF_LIFE_SECONDS)
    trust = min(1.0, ROBUST / abs(residual)) if residual else 1.0
    parts = tuple(part / measured_seconds for part in _parts(estimated))
    products = tuple(
        tuple(kept * known.products[i][j] + trust * parts[i] * parts[j] for j in range(PARTS))
        for i in range(PARTS)
    )
    targets = tuple(kept * known.targets[i] + trust * parts[i] for i in range(PARTS))
    share = 0.1 if known.weight > 10 else 1.0 / (known.weight + 1.0)  # noqa: PLR2004  # a mean at first, then a moving one
    return replace(
        known,
        at_seconds=now_seconds,
        weight=kept * known.weight + 1.0,
        refused=0,
        residual_ratio=known.residual_ratio + share * (abs(residual) - known.residual_ratio),
        products=products,
        targets=targets,
        multipliers=_solve(products, targets),
    )


def _parts(time: StepTime) -> Vector:
    return (
        time.compute_seconds,
        time.memory_seconds,
        time.interconnect_seconds,
        time.kernel_latency_seconds,
    )


def _solve(products: Sequence[Vector], targets: Vector) -> Vector:
    """Return the multipliers nearest to the targets and to 1, in bounds.

    Coordinate descent: each is solved with the others held, a few rounds; bounded throughout.
    """
    found = [1.0] * PARTS
    for _ in range(40):
        for i in range(PARTS):
            others = sum(products[i][j] * found[j] for j in range(PARTS) if j != i)
            best = (targets[i] - others + PRIOR) / (products[i][i] + PRIOR)
            found[i] = min(MOST, max(LEAST, best))
    return tuple(found)
