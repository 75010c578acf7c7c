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


@dataclass(frozen=True, slots=True)
class Reading:
    """One read as far as regimes go: yes-or-nos, and levels; what a source gave nothing of is out.

    Levels: `running` sequences, `generated` tokens/s, shares of cycles `busy`, `dram`, `tensor`,
    and `clock` in hertz.
    """

    t: float
    flags: Mapping[str, bool]
    levels: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Mark:
    """How far a level must go beyond all that was seen: a factor, then an absolute margin."""

    factor: float
    margin: float
    words: str


MARKS = {
    "running": _Mark(1.6, 2.0, "the batch changed"),
    "generated": _Mark(1.6, 1.0, "the rate of tokens changed"),
    "busy": _Mark(1.0, 0.2, "GPU activity changed"),
    "dram": _Mark(1.0, 0.2, "DRAM activity changed"),
    "tensor": _Mark(1.0, 0.2, "tensor activity changed"),
    "clock": _Mark(1.1, 0.0, "clocks changed"),
}

FLAGS = {
    "working": ("work began", "work ended"),
    "queued": ("work began to queue", "the queue emptied"),
}


def change(past: Sequence[Reading], recent: Sequence[Reading]) -> str | None:
    """Say what changed between `past` and the two `recent` reads, or None."""
    if len(past) < PAST or len(recent) < CONFIRM:
        return None
    for name, (began, ended) in FLAGS.items():
        share = sum(reading.flags[name] for reading in past) / len(past)
        now = {reading.flags[name] for reading in recent}
        if (share <= 1 - AGREE and now == {True}) or (share >= AGREE and now == {False}):
            return began if now == {True} else ended
    for name, mark in MARKS.items():
        before = [reading.levels[name] for reading in past if name in reading.levels]
        after = [reading.levels[name] for reading in recent if name in reading.levels]
        if len(before) < PAST or len(after) < CONFIRM:
            continue
        above = min(after) > max(before) * mark.factor + mark.margin
        below = max(after) < min(before) / mark.factor - mark.margin
        if above or below:
            return mark.words
    return None
