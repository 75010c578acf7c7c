"""The verdict shown: a new answer counts once it has held for the dwell time.

A fold over decisions in time order. The first answer shows at once; a stall shows at once too,
for it is certain by the time it is seen.
"""

from dataclasses import dataclass

from boundby.core.verdict import Decision

AT_ONCE = frozenset({"stalled"})
"""Limits that need no dwell, neither to come nor to go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is shown, since when, what may follow it, and how often it has changed."""

    decision: Decision
    since: float
    challenger: Decision | None = None
    challenged_at: float = 0.0
    changes: int = 0
    recent: tuple[tuple[float, str], ...] = ()


def show(before: Shown | None, decision: Decision, at: float, dwell_seconds: float) -> Shown:
    """Fold one decision into what is shown."""
    if before is None:
        return Shown(decision=decision, since=at, recent=((at, decision.limit),))
    if decision.limit == before.decision.limit:
        return Shown(
            decision=decision, since=before.since, changes=before.changes, recent=before.recent
        )
    began = (
        before.challenged_at
        if before.challenger is not None and before.challenger.limit == decision.limit
        else at
    )
    if at - began >= dwell_seconds or {decision.limit, before.decision.limit} & AT_ONCE:
        return Shown(
            decision=decision,
            since=began,
            changes=before.changes + 1,
            recent=(*before.recent[-7:], (at, decision.limit)),
        )
    return Shown(
        decision=before.decision,
        since=before.since,
        challenger=decision,
        challenged_at=began,
        changes=before.changes,
        recent=before.recent,
    )


def flapping(shown: Shown, at: float, within_seconds: float) -> tuple[str, str] | None:
    """The two limits the verdict keeps swinging between, if it does."""
    late = [limit for t, limit in shown.recent if t >= at - within_seconds]
    if len(late) >= 4 and len(set(late[-4:])) == 2:  # noqa: PLR2004
        one, other = sorted(set(late[-4:]))
        return one, other
    return None
