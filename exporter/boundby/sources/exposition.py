"""Prometheus text and OpenMetrics pages, read only where somebody wants a family.

Values are finite: a NaN or an infinity is left out. Counters lose `_total`, so that both
spellings of one name meet; `_created` rows and exemplars are passed over. Of a series that is
there twice the first is kept. What was wrong with the page is told in `Page.problems`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from boundby.core.parts import Histogram
from boundby.sources.labels import Labels, LineError, labels_of, read_labels, short
from boundby.sources.layout import NOWHERE, Layout

PROBLEMS_KEPT = 8
"""How many problems of one page are told one by one; the rest are counted."""

PAGES_KEPT = 8
"""A layout is forgotten once it knows so many times the lines of the page at hand.

Enough for the pages of a few servers read in turn; labels that come and go don't pile up.
"""

LARGEST = 1e30
"""Beyond this a value measures nothing: a year's FLOPs of a large server are below 1e24.

It is taken for what it most likely is, rubbish or an overflow, as an infinity is: what is summed
and squared later stays finite.
"""

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABELS_AND_REST = re.compile(r'[ \t]*\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\}(.*)', re.DOTALL)


class Wanted:
    """The families to read: gauges and counters (named without `_total`), and histograms.

    It remembers the lines of the pages read with it, and nothing of their values.
    """

    def __init__(self, values: Iterable[str] = (), histograms: Iterable[str] = ()) -> None:
        self._values = tuple(dict.fromkeys(values))
        self._histograms = tuple(dict.fromkeys(histograms))
        self._layout = Layout(self._values, self._histograms)

    def layout(self, lines: int) -> Layout:
        """Return what is remembered, or a new layout where most of it is of other pages."""
        if len(self._layout.places) > PAGES_KEPT * max(lines, 256):
            self._layout = Layout(self._values, self._histograms)
        return self._layout


@dataclass(frozen=True, slots=True)
class Page:
    """What was wanted and found: finite values and histograms by family and label set.

    Keys of the inner mappings are label sets in one fixed spelling; `rows` gives them as
    mappings. `stamps` holds the timestamps (unix seconds) of lines that carry one, by name and
    label set. `repeated` counts series that were there again, `not_finite` values left out.
    """

    values: Mapping[str, Mapping[str, float]]
    histograms: Mapping[str, Mapping[str, Histogram]]
    problems: tuple[str, ...] = ()
    stamps: Mapping[tuple[str, str], float] = field(default_factory=dict)
    repeated: int = 0
    not_finite: int = 0

    def __bool__(self) -> bool:
        """Whether anything that was wanted is on the page."""
        return bool(self.values or self.histograms)

    def rows(self, family: str) -> Iterator[tuple[Labels, float]]:
        """Give each series of a gauge or counter with its labels."""
        for key, value in self.values.get(family, {}).items():
            yield labels_of(key), value

    def histogram_rows(self, family: str) -> Iterator[tuple[Labels, Histogram]]:
        """Give each series of a histogram with its labels, `le` left out."""
        for key, histogram in self.histograms.get(family, {}).items():
            yield labels_of(key), histogram


def parse(text: str, wanted: Wanted) -> Page:
    """Read what `wanted` names from a page; any text is a page, at worst an empty one."""
    lines = text.split("\n")
    layout = wanted.layout(len(lines))
    scan = _Scan(layout)
    last = lines.pop()
    scan.read(lines)
    if last.strip() and not last.startswith("#"):
        scan.problems.append(f"line {len(lines) + 1}: cut off at {short(last)}; it is left out")
    if scan.repeated:
        scan.problems.append(f"{scan.repeated} series appear again; the first of each is kept")
    if scan.not_finite:
        scan.problems.append(
            f"{scan.not_finite} values are not finite, or beyond {LARGEST:g}; they are left out"
        )
    histograms = layout.histograms(scan.found, scan.problems)
    return Page(
        values=layout.values(scan.found),
        histograms=histograms,
        problems=_some(scan.problems),
        stamps=scan.stamps,
        repeated=scan.repeated,
        not_finite=scan.not_finite,
    )


def _some(problems: list[str]) -> tuple[str, ...]:
    """Tell the first few and count the others."""
    if len(problems) <= PROBLEMS_KEPT:
        return tuple(problems)
    return (*problems[:PROBLEMS_KEPT], f"and {len(problems) - PROBLEMS_KEPT} more problems")


class _Scan:
    """One pass over a page."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.found: dict[int, float] = {}
        self.stamps: dict[tuple[str, str], float] = {}
        self.problems: list[str] = []
        self.repeated = 0
        self.not_finite = 0

    def read(self, lines: list[str]) -> None:
        """Read all lines: text, a space, a value; a text not met before is learned."""
        places, found = self.layout.places, self.found
        for number, line in enumerate(lines, 1):
            text, _, tail = line.rpartition(" ")
            place = places.get(text)
            if place is None:
                self.learn(number, line, text)
                continue
            if place == NOWHERE:
                continue
            try:
                value = float(tail)
            except ValueError:
                self.problems.append(f"line {number}: {short(tail)} is not a number")
                continue
            if not -LARGEST <= value <= LARGEST:  # neither is NaN
                self.not_finite += 1
            elif place in found:
                self.repeated += 1
            else:
                found[place] = value

    def learn(self, number: int, line: str, text: str) -> None:
        """Read a line of any allowed shape, and remember its text where that will come again."""
        stripped = line.strip()
        if not stripped:
            return
        if stripped[0] == "#":
            if text:
                self.layout.remember(text, NOWHERE)
            return
        if stripped[0] == "{":
            return  # a name in quotes inside the braces: valid, and never wanted
        try:
            self.learn_series(stripped, text)
        except LineError as error:
            self.problems.append(f"line {number}: {error}")

    def learn_series(self, line: str, text: str) -> None:
        found = _NAME.match(line)
        rest = line[found.end() :] if found else ""
        if found is None or (rest and rest[0] not in " \t{"):
            msg = f"no metric name in {short(line)}"
            raise LineError(msg)
        name = found[0]
        if not self.layout.wants(name) and "{" in rest:
            self.layout.remember(text, NOWHERE)  # unread: nobody wants it, whatever it says
            return
        labels, tail = _split(rest)
        value, stamp = _read_tail(tail)
        if not self.layout.wants(name):
            self.layout.remember(text, NOWHERE)
            return
        label_set = read_labels(labels)
        place = self.layout.place(name, label_set)
        if text == line[: len(line) - len(tail)].rstrip() and stamp is None and "#" not in tail:
            self.layout.remember(text, place)
        self.keep(place, value)
        if stamp is not None and math.isfinite(stamp):
            self.stamps[name, label_set.key] = stamp

    def keep(self, place: int, value: float) -> None:
        """Keep a value, unless it measures nothing or its series was there before."""
        if not -LARGEST <= value <= LARGEST:
            self.not_finite += 1
        elif place in self.found:
            self.repeated += 1
        else:
            self.found[place] = value


def _split(rest: str) -> tuple[str, str]:
    """Split what follows a name into the text of its labels and what follows them."""
    if rest.lstrip()[:1] != "{":
        return "", rest
    parts = _LABELS_AND_REST.match(rest)
    if parts is None:
        msg = f"labels are not closed in {short(rest)}"
        raise LineError(msg)
    return parts[1], parts[2]


def _read_tail(tail: str) -> tuple[float, float | None]:
    """Read what follows the labels: a value, perhaps a timestamp, perhaps an exemplar."""
    words = tail.partition(" # ")[0].split()
    if not 1 <= len(words) <= 2:  # noqa: PLR2004  # the value and a timestamp
        msg = f"a value was expected at {short(tail)}"
        raise LineError(msg)
    try:
        return float(words[0]), _unix_seconds(words[1]) if len(words) > 1 else None
    except ValueError:
        msg = f"{short(' '.join(words))} is not a number"
        raise LineError(msg) from None


def _unix_seconds(stamp: str) -> float:
    """Read a timestamp: the text format counts milliseconds, OpenMetrics seconds."""
    value = float(stamp)
    return value / 1000 if value > 1e11 else value  # noqa: PLR2004  # 1e11 s is the year 5138
