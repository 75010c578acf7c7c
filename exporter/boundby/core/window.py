"""Snapshots in time order, and what happened between the first and the last of them.

A `Track` follows one thing (an engine, a GPU, the host). Counters are unwrapped as they come in:
a counter that falls has restarted, and counting goes on from its new value, as Prometheus does.
A `Span` is the summary of a track over its last seconds: means of gauges, rises of counters,
rises of histograms. Nothing here divides by a length of zero: a span has two samples or is None.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from boundby.core.parts import Histogram


class Part(Protocol):
    """What a track can follow."""

    @property
    def gauges(self) -> Mapping[str, float]:
        """Gauges by name."""

    @property
    def counters(self) -> Mapping[str, float]:
        """Counters by name."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One read with its counters and histograms unwrapped."""

    t: float
    gauges: Mapping[str, float]
    counters: Mapping[str, float]
    histograms: Mapping[str, Histogram]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a track did between two moments.

    `mean`, `low`, `high` and `last` are of gauges. `rise` is each counter's growth, `grown` each
    histogram's. `restarts` counts the counter resets inside. `samples` counts reads.
    """

    begin: float
    end: float
    samples: int
    mean: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]
    last: Mapping[str, float]
    rise: Mapping[str, float]
    grown: Mapping[str, Histogram]
    restarts: int = 0
    series: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Length of the span, above zero."""
        return self.end - self.begin

    def rate(self, counter: str) -> float | None:
        """Growth of `counter` per second, or None where it was not seen."""
        rise = self.rise.get(counter)
        return None if rise is None else rise / self.seconds


def grow(older: Histogram, newer: Histogram) -> Histogram:
    """What `newer` has beyond `older`; `newer` itself where their buckets differ.

    Counts are cumulative, so that none is below the one before it, whatever a torn page says.
    """
    if older.bounds != newer.bounds:
        return newer
    return Histogram(
        newer.bounds,
        tuple(
            accumulate(
                (max(0.0, b - a) for a, b in zip(older.counts, newer.counts, strict=True)), max
            )
        ),
        newer.sum - older.sum,
        max(0.0, newer.count - older.count),
    )


def together(one: Histogram, other: Histogram) -> Histogram:
    """Both histograms as one; `other` where their buckets differ."""
    if one.bounds != other.bounds:
        return other
    return Histogram(
        one.bounds,
        tuple(a + b for a, b in zip(one.counts, other.counts, strict=True)),
        one.sum + other.sum,
        one.count + other.count,
    )


class Track:
    """The recent past of one thing; keeps `keep_seconds` of it."""

    def __init__(self, keep_seconds: float) -> None:
        self._keep = keep_seconds
        self._samples: deque[Sample] = deque()
        self._raw_counters: Mapping[str, float] = {}
        self._raw_histograms: Mapping[str, Histogram] = {}
        self._past: dict[str, float] = {}
        self._past_histograms: dict[str, Histogram] = {}
        self._restarts: deque[float] = deque()

    @property
    def last(self) -> Sample | None:
        """The newest sample."""
        return self._samples[-1] if self._samples else None

    def working(self) -> tuple[float, float] | None:
        """When work was first and last seen, or None."""
        times = [
            sample.t
            for sample in self._samples
            if sample.gauges.get("running_requests", 0.0) > 0
            or sample.gauges.get("waiting_requests", 0.0) > 0
        ]
        return (times[0], times[-1]) if times else None

    def append(
        self, t: float, part: Part, histograms: Mapping[str, Histogram] | None = None
    ) -> None:
        """Add one read; a read that is not newer than the last one is ignored."""
        if self._samples and t <= self._samples[-1].t:
            return
        histograms = histograms or {}
        restarted = False
        for name, value in part.counters.items():
            before = self._raw_counters.get(name)
            if before is not None and value < before:
                self._past[name] = self._past.get(name, 0.0) + before
                restarted = True
        for name, histogram in histograms.items():
            old = self._raw_histograms.get(name)
            if old is not None and histogram.count < old.count:
                past = self._past_histograms.get(name)
                self._past_histograms[name] = together(past, old) if past else old
                restarted = True
        if restarted:
            self._restarts.append(t)
        self._raw_counters = part.counters
        self._raw_histograms = histograms
        past_counters = self._past
        self._samples.append(
            Sample(
                t,
                part.gauges,
                {
                    name: value + past_counters.get(name, 0.0)
                    for name, value in part.counters.items()
                }
                if past_counters
                else part.counters,
                {
                    name: together(past, value)
                    if (past := self._past_histograms.get(name))
                    else value
                    for name, value in histograms.items()
                }
                if self._past_histograms
                else histograms,
            )
        )
        while len(self._samples) > 2 and self._samples[1].t < t - self._keep:  # noqa: PLR2004
            self._samples.popleft()
        while self._restarts and self._restarts[0] < self._samples[0].t:
            self._restarts.popleft()

    def span(
        self,
        seconds: float = math.inf,
        *,
        since: float = -math.inf,
        until: float = math.inf,
        series: Iterable[str] = (),
    ) -> Span | None:
        """Summarise the last `seconds` between two moments, or None before two samples there."""
        if not self._samples:
            return None
        begin = max(since, self._samples[-1].t - seconds) - 1e-6
        chosen = [sample for sample in self._samples if begin <= sample.t <= until]
        if len(chosen) < 2:  # noqa: PLR2004
            return None
        first, last = chosen[0], chosen[-1]
        columns: dict[str, list[float]] = {
            name: [sample.gauges[name] for sample in chosen if name in sample.gauges]
            for name in {**first.gauges, **last.gauges}
        }
        rise = {
            name: value - start
            for name, value in last.counters.items()
            if (start := _first(chosen, name)) is not None
        }
        grown = {
            name: grow(first.histograms[name], histogram)
            for name, histogram in last.histograms.items()
            if name in first.histograms
        }
        return Span(
            begin=first.t,
            end=last.t,
            samples=len(chosen),
            mean={name: sum(values) / len(values) for name, values in columns.items()},
            low={name: min(values) for name, values in columns.items()},
            high={name: max(values) for name, values in columns.items()},
            last=last.gauges,
            rise=rise,
            grown=grown,
            restarts=sum(1 for t in self._restarts if t > first.t),
            series={name: tuple(columns.get(name, ())) for name in series},
        )


def _first(samples: list[Sample], counter: str) -> float | None:
    """The counter's value where it was first seen, if that is before the last sample."""
    for sample in samples[:-1]:
        if counter in sample.counters:
            return sample.counters[counter]
    return None
