"""Whether an engine has just begun to do something else.

A window that spans a change averages two regimes into one that never was. Two reads in a row that
both lie outside all that the window has seen mark a change; the window then begins with them.
Only what is steady under a steady load is looked at, and only where the past was of one mind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CONFIRM = 2
"""Reads that must agree."""

PAST = 4
"""Reads of the past that it takes to speak of one."""

AGREE = 0.9
"""Share of the past that must have been of one mind on a yes or no."""

FACTOR = 1.6
"""How far a level must go beyond all that was seen."""

STEP = 0.2
"""The same for a share of cycles, in absolute terms."""

CLOCK = 0.1
"""The same for a clock, in relative terms."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One read as far as regimes go; None where a source gave nothing."""

    t: float
    working: bool
    queued: bool
    running: float
    generated_per_second: float | None
    shares: Mapping[str, float]
    clock: float | None


def change(past: Sequence[Reading], recent: Sequence[Reading]) -> str | None:
    """Say what changed between `past` and the two `recent` reads, or None."""
    if len(past) < PAST or len(recent) < CONFIRM:
        return None
    for name, words in (("working", ("work ended", "work began")),
                        ("queued", ("the queue emptied", "work began to queue"))):  # fmt: skip
        share = sum(bool(getattr(r, name)) for r in past) / len(past)
        now = {bool(getattr(r, name)) for r in recent}
        if share >= AGREE and now == {False}:
            return words[0]
        if share <= 1 - AGREE and now == {True}:
            return words[1]
    if _beyond([r.running for r in past], [r.running for r in recent], FACTOR, 2.0):
        return "the batch changed"
    rates = [r.generated_per_second for r in past if r.generated_per_second is not None]
    fresh = [r.generated_per_second for r in recent if r.generated_per_second is not None]
    if len(rates) >= PAST and len(fresh) == CONFIRM and min(rates) > 0 and _beyond(
        rates, fresh, FACTOR, 1.0
    ):
        return "the rate of tokens changed"
    for name in ("busy", "dram", "tensor"):
        before = [r.shares[name] for r in past if name in r.shares]
        after = [r.shares[name] for r in recent if name in r.shares]
        if len(before) >= PAST and len(after) == CONFIRM and (
            min(after) > max(before) + STEP or max(after) < min(before) - STEP
        ):
            return f"GPU activity changed ({name})"
    clocks = [r.clock for r in past if r.clock]
    late = [r.clock for r in recent if r.clock]
    if len(clocks) >= PAST and len(late) == CONFIRM and (
        max(late) < min(clocks) * (1 - CLOCK) or min(late) > max(clocks) * (1 + CLOCK)
    ):
        return "clocks changed"
    return None


def _beyond(
    past: Sequence[float], recent: Sequence[float], factor: float, margin: float
) -> bool:
    return min(recent) > max(past) * factor + margin or max(recent) < min(past) / factor - margin
