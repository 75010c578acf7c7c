"""What is remembered of one engine from read to read: its tracks, its progress, its regime."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from boundby.core.cost.calibration import Calibration
from boundby.core.parts import EnginePart, GpuPart
from boundby.core.regime import CONFIRM, Reading, change
from boundby.core.report import Scope
from boundby.core.steady import Shown
from boundby.core.window import Track

PROGRESS = (
    "generation_tokens_total",
    "prompt_tokens_total",
    "requests_finished_total",
)
"""Counters that move when an engine gets on."""


@dataclass(slots=True)
class EngineMemory:
    """One engine. `since` is when its regime began; `moved_at` when it last got on."""

    part: EnginePart
    track: Track
    whole: Track
    moved_at: float
    last_at: float
    since: float = -math.inf
    changed: str = ""
    readings: list[Reading] = field(default_factory=list)
    shown: dict[Scope, Shown] = field(default_factory=dict)
    binding: dict[tuple[str, str], float] = field(default_factory=dict)
    gap_seconds: float = 0.0
    calibration: Calibration | None = None

    @classmethod
    def of(cls, part: EnginePart, at: float, keep: float, keep_all: float) -> "EngineMemory":
        """Begin with a first read."""
        return cls(part=part, track=Track(keep), whole=Track(keep_all), moved_at=at, last_at=at)

    def take(self, part: EnginePart, at: float) -> None:
        """Take in a read."""
        before = self.part
        moved = any(
            part.counters.get(name) != before.counters.get(name) for name in PROGRESS
        ) or part.gauges.get("kv_used_ratio") != before.gauges.get("kv_used_ratio")
        if moved or part.gauges.get("running_requests", 0.0) <= 0:
            self.moved_at = at
        self.part = part
        self.track.append(at, part, part.histograms)
        self.whole.append(at, part, part.histograms)

    def follow(
        self, before: EnginePart, gpus: Sequence[GpuPart], at: float, window: float
    ) -> None:
        """Begin the regime anew where the engine has begun to do something else."""
        running = self.part.gauges.get("running_requests")
        if running is None:
            return
        waiting = self.part.gauges.get("waiting_requests", 0.0)
        levels = {"running": running, **_gpu_levels(gpus)}
        rate = self._rate(before, at)
        if rate is not None:
            levels["generated"] = rate
        flags = {"working": running > 0 or waiting > 0, "queued": waiting > 0}
        self.readings.append(Reading(at, flags, levels))
        floor = max(self.since, at - window) - 1e-6
        self.readings = [reading for reading in self.readings if reading.t >= floor]
        what = change(self.readings[:-CONFIRM], self.readings[-CONFIRM:])
        if what:
            self.readings = self.readings[-CONFIRM:]
            self.since = self.readings[0].t
            self.changed = what

    def _rate(self, before: EnginePart, at: float) -> float | None:
        old = before.counters.get("generation_tokens_total")
        new = self.part.counters.get("generation_tokens_total")
        if old is None or new is None or not self.readings or at <= self.readings[-1].t:
            return None
        return max(0.0, new - old) / (at - self.readings[-1].t)


def _gpu_levels(gpus: Sequence[GpuPart]) -> dict[str, float]:
    """Means over the GPUs of what a regime shows in."""
    out: dict[str, float] = {}
    for level, names in (
        ("busy", ("engine_active_ratio", "gpu_busy_ratio")),
        ("dram", ("dram_active_ratio",)),
        ("tensor", ("tensor_active_ratio",)),
        ("clock", ("sm_clock_hertz",)),
    ):
        values = [
            next(g.gauges[name] for name in names if name in g.gauges)
            for g in gpus
            if any(name in g.gauges for name in names)
        ]
        if values:
            out[level] = math.fsum(values) / len(values)
    return out
