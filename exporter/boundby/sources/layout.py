"""Where the lines of a page belong, learned once and known again with every beat.

A page's lines keep their text from beat to beat, all but the value at the end. A `Layout` gives
each such text a place, or says that nobody wants it, so that a known line costs one lookup. It
also knows which places make which histogram.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, count
from operator import gt

from boundby.core.parts import Histogram
from boundby.sources.labels import LabelSet, LineError

NOWHERE = -1
"""The place of a line that nobody wants."""

LINES_KEPT = 65536
"""At most so many texts are remembered (about 20 MB), whatever is served as a page."""

VALUE, BUCKET, SUM, COUNT = range(4)
"""What a line can be to its family."""

Found = Mapping[int, float]
"""What a page gave: values by place."""


@dataclass(slots=True)
class _Series:
    """The places of one histogram: its buckets in the order of their bounds, sum and count."""

    bounds: tuple[float, ...] = ()
    places: tuple[int, ...] = ()
    sum: int = NOWHERE
    count: int = NOWHERE

    def add(self, bound: float, place: int) -> None:
        """Learn of a bucket."""
        buckets = sorted((*zip(self.bounds, self.places, strict=True), (bound, place)))
        self.bounds = tuple(bound for bound, _ in buckets)
        self.places = tuple(place for _, place in buckets)

    def read(self, found: Found, where: str, problems: list[str]) -> Histogram | None:
        """Put the histogram together, or say what it lacks; None where it is not there."""
        bounds, counts = self.bounds, tuple(map(found.get, self.places))
        if None in counts:
            bounds = tuple(b for b, count in zip(bounds, counts, strict=True) if count is not None)
        heights = tuple(count for count in counts if count is not None)
        if not heights:
            return None
        total, number = found.get(self.sum), found.get(self.count)
        if number is None and bounds[-1] == math.inf:
            number = heights[-1]
        if total is None or number is None:
            problems.append(f"{where} has buckets but no {'sum' if total is None else 'count'}")
            return None
        if bounds[-1] != math.inf:
            bounds, heights = (*bounds, math.inf), (*heights, number)
        if any(map(gt, heights, heights[1:])):
            problems.append(f"{where} has a bucket below the one before it; it is raised")
            heights = tuple(accumulate(heights, max))
        return Histogram(bounds, heights, total, number)


class Layout:
    """The places of the families that are wanted."""

    def __init__(self, values: Iterable[str], histograms: Iterable[str]) -> None:
        self.places: dict[str, int] = {}
        self._next = count()
        self._families: dict[str, tuple[str, int]] = {}
        self._values: dict[str, dict[str, list[int]]] = {}
        self._histograms: dict[str, dict[str, _Series]] = {}
        self._known: dict[tuple[str, str, float], int] = {}
        for family in values:
            self._families[family] = self._families[f"{family}_total"] = (family, VALUE)
            self._values[family] = {}
        for family in histograms:
            self._families[f"{family}_bucket"] = (family, BUCKET)
            self._families[f"{family}_sum"] = (family, SUM)
            self._families[f"{family}_count"] = (family, COUNT)
            self._histograms[family] = {}

    def remember(self, text: str, place: int) -> None:
        """Know a line by its text from now on; a line without a space has none."""
        if text and len(self.places) < LINES_KEPT:
            self.places[text] = place

    def wants(self, name: str) -> bool:
        """Whether lines of this name are wanted."""
        return name in self._families

    def place(self, name: str, labels: LabelSet) -> int:
        """Return the place of a series, the same for every spelling of its labels."""
        family, role = self._families[name]
        if role == BUCKET and labels.bound != labels.bound:  # NaN: no bound
            msg = f"a bucket of {family} without a bound"
            raise LineError(msg)
        known = (name, labels.key, 0.0)
        if role == BUCKET:
            known = (name, labels.bucket_key, labels.bound)
        if known in self._known:
            return self._known[known]
        place = self._known[known] = next(self._next)
        if role == VALUE:
            self._values[family].setdefault(labels.key, []).append(place)
            return place
        key = labels.bucket_key if role == BUCKET else labels.key
        series = self._histograms[family].setdefault(key, _Series())
        if role == BUCKET:
            series.add(labels.bound, place)
        elif role == SUM:
            series.sum = place
        else:
            series.count = place
        return place

    def values(self, found: Found) -> dict[str, dict[str, float]]:
        """Give the gauges and counters that were found, by family and label set."""
        return {
            family: rows
            for family, keys in self._values.items()
            if (
                rows := {
                    key: found[place]
                    for key, places in keys.items()
                    for place in places
                    if place in found
                }
            )
        }

    def histograms(self, found: Found, problems: list[str]) -> dict[str, dict[str, Histogram]]:
        """Give the histograms that were found, by family and label set."""
        made: dict[str, dict[str, Histogram]] = {}
        for family, keys in self._histograms.items():
            for key, series in keys.items():
                histogram = series.read(found, f"{family}{{{key}}}", problems)
                if histogram is not None:
                    made.setdefault(family, {})[key] = histogram
        return made
