"""Prometheus text and OpenMetrics pages, read only where somebody wants a family.

A page is scanned line by line; a line whose name nobody wants costs one dictionary lookup.
Values are finite: a NaN or an infinity is left out. Counters lose `_total`, so that both
spellings of one name meet; `_created` rows and exemplars are passed over. Of a series that is
there twice the first is kept. What was wrong with the page is told in `Page.problems`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Self

from boundby.core.parts import Histogram

Labels = Mapping[str, str]

VALUE, BUCKET, SUM, COUNT = range(4)
"""What a line can be to its family."""

PROBLEMS_KEPT = 8
"""How many problems of one page are told one by one; the rest are counted."""

LABEL_SETS_KEPT = 8192
"""Parsed label texts kept from beat to beat: three times those of a page of 8 vLLM engines."""

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(
    r'\s*([a-zA-Z_][a-zA-Z0-9_]*|"(?:[^"\\]|\\.)*")\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|$)', re.DOTALL
)
_LABELS_AND_REST = re.compile(r'((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\}(.*)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED = {"n": "\n", '"': '"', "\\": "\\"}


class _Bad(ValueError):
    """A line, or a part of one, that does not follow the format."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The families to read, by every name their lines may have."""

    lines: Mapping[str, tuple[str, int]]

    @classmethod
    def of(cls, values: Iterable[str] = (), histograms: Iterable[str] = ()) -> Self:
        """Want `values` (gauges and counters, named without `_total`) and `histograms`."""
        lines: dict[str, tuple[str, int]] = {}
        for family in values:
            lines[family] = (family, VALUE)
            lines[f"{family}_total"] = (family, VALUE)
        for family in histograms:
            lines[f"{family}_bucket"] = (family, BUCKET)
            lines[f"{family}_sum"] = (family, SUM)
            lines[f"{family}_count"] = (family, COUNT)
        return cls(MappingProxyType(lines))


@dataclass(frozen=True, slots=True)
class Page:
    """What was wanted and found: finite values and histograms by family and label set.

    Keys of the inner mappings are label sets in one fixed spelling; `rows` gives them as
    mappings. `stamps` holds the timestamps (unix seconds) of the values that carry one.
    `repeated` counts series that were there again, `not_finite` values left out.
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


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda m: _UNESCAPED.get(m[1], m[0]), text)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _spell(labels: Labels) -> str:
    return ",".join(f'{name}="{_escape(labels[name])}"' for name in sorted(labels))


@lru_cache(maxsize=LABEL_SETS_KEPT)
def _read_labels(text: str) -> tuple[str, Labels, str, float]:
    """Read what stands between the braces: its fixed spelling, itself, both without `le`.

    The last two are the spelling without `le` and the bound, NaN where there is none.
    """
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            if text[at:].strip():
                msg = f"labels cannot be read from {_short(text[at:])}"
                raise _Bad(msg)
            break
        name = found[1]
        if name[0] == '"':
            name = _unescape(name[1:-1])
        if name in labels:
            msg = f"label {name} is there twice"
            raise _Bad(msg)
        labels[name] = _unescape(found[2])
        at = found.end()
    spelling = _spell(labels)
    if "le" not in labels:
        return spelling, MappingProxyType(labels), spelling, math.nan
    try:
        bound = float(labels["le"])
    except ValueError:
        bound = math.nan
    rest = {name: value for name, value in labels.items() if name != "le"}
    return spelling, MappingProxyType(labels), _spell(rest), bound


def labels_of(key: str) -> Labels:
    """Return the labels that a `Page` key spells."""
    return _read_labels(key)[1]


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")  # noqa: PLR2004  # one line


def _read_tail(tail: str) -> tuple[float, float | None]:
    """Read what follows the labels: a value, perhaps a timestamp, perhaps an exemplar."""
    words = tail.partition(" # ")[0].split()
    if not 1 <= len(words) <= 2:  # noqa: PLR2004  # the value and a timestamp
        msg = f"a value was expected at {_short(tail)}"
        raise _Bad(msg)
    try:
        return float(words[0]), _unix_seconds(words[1]) if len(words) > 1 else None
    except ValueError:
        msg = f"{_short(' '.join(words))} is not a number"
        raise _Bad(msg) from None


def _unix_seconds(stamp: str) -> float:
    """Read a timestamp: the text format counts milliseconds, OpenMetrics seconds."""
    value = float(stamp)
    return value / 1000 if value > 1e11 else value  # noqa: PLR2004  # 1e11 s is the year 5138


class _Scan:
    """One pass over a page."""

    def __init__(self, wanted: Wanted) -> None:
        self.slots: dict[str, tuple[str, int] | None] = dict(wanted.lines)
        self.values: dict[str, dict[str, float]] = {}
        self.buckets: dict[str, dict[str, dict[float, float]]] = {}
        self.sums: dict[str, dict[str, float]] = {}
        self.counts: dict[str, dict[str, float]] = {}
        self.stamps: dict[tuple[str, str], float] = {}
        self.problems: list[str] = []
        self.untold = 0
        self.repeated = 0
        self.not_finite = 0

    def tell(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(problem)
        else:
            self.untold += 1

    def lines(self, lines: list[str], *, exemplars: bool) -> None:
        """Read all lines. The common shape, `name{labels} value`, is done right here."""
        slots, values, buckets = self.slots, self.values, self.buckets
        no_slot = ("", -1)
        for number, line in enumerate(lines, 1):
            name, brace, rest = line.partition("{")
            slot = slots.get(name, no_slot)
            if slot is None:
                continue
            if slot is no_slot:
                if line and line[0] != "#":
                    self.odd_line(number, line)
                continue
            if exemplars:
                self.line(number, slot, rest)
                continue
            text, brace, tail = rest.rpartition("}")
            family, role = slot
            try:
                value = float(tail)
                spelling, _, rest_spelling, bound = _read_labels(text)
            except ValueError:
                self.line(number, slot, rest)
                continue
            if value - value:  # NaN or infinite, as the difference is then NaN
                self.not_finite += 1
            elif role == BUCKET and bound == bound:  # noqa: PLR0124  # a bound that is a number
                rows = buckets.get(family)
                if rows is None:
                    rows = buckets[family] = {}
                row = rows.get(rest_spelling)
                if row is None:
                    row = rows[rest_spelling] = {}
                if bound in row:
                    self.repeated += 1
                else:
                    row[bound] = value
            elif role == VALUE:
                found = values.get(family)
                if found is None:
                    found = values[family] = {}
                if spelling in found:
                    self.repeated += 1
                else:
                    found[spelling] = value
            else:
                self.keep(number, slot, spelling, rest_spelling, bound, value)

    def odd_line(self, number: int, line: str) -> None:
        """Read a line that has no labels, odd spaces, or a name not seen before."""
        text = line.strip()
        if not text or text[0] == "#":
            return
        found = _NAME.match(text)
        if found is None:
            if text[0] != "{":  # a name in quotes inside the braces: valid, and never wanted
                self.tell(f"line {number}: no metric name in {_short(text)}")
            return
        name, rest = found[0], text[found.end() :]
        slot = self.slots.get(name)
        after = rest.lstrip()
        if after.startswith("{"):
            if slot is None:
                self.slots[line.partition("{")[0]] = None
            else:
                self.line(number, slot, after[1:])
            return
        if rest == after:  # nothing between the name and what follows
            self.tell(f"line {number}: no metric name in {_short(text)}")
            return
        try:
            value, stamp = _read_tail(rest)
        except _Bad as error:
            self.tell(f"line {number}: {error}")
            return
        if slot is not None:
            self.keep(number, slot, "", "", math.nan, value, stamp)

    def line(self, number: int, slot: tuple[str, int], rest: str) -> None:
        """Read a wanted line with all that the format allows."""
        found = _LABELS_AND_REST.match(rest)
        try:
            if found is None:
                msg = f"labels are not closed in {_short(rest)}"
                raise _Bad(msg)  # noqa: TRY301  # one place tells every bad line
            value, stamp = _read_tail(found[2])
            spelling, _, rest_spelling, bound = _read_labels(found[1])
        except _Bad as error:
            self.tell(f"line {number}: {error}")
            return
        self.keep(number, slot, spelling, rest_spelling, bound, value, stamp)

    def keep(
        self,
        number: int,
        slot: tuple[str, int],
        spelling: str,
        rest_spelling: str,
        bound: float,
        value: float,
        stamp: float | None = None,
    ) -> None:
        """Keep one value in its place, unless it is not finite or was there before."""
        family, role = slot
        if not math.isfinite(value):
            self.not_finite += 1
            return
        if role == BUCKET:
            if math.isnan(bound):
                self.tell(f"line {number}: a bucket of {family} without a bound")
                return
            row = self.buckets.setdefault(family, {}).setdefault(rest_spelling, {})
            if bound in row:
                self.repeated += 1
            row.setdefault(bound, value)
            return
        rows = (self.values, {}, self.sums, self.counts)[role].setdefault(family, {})
        if spelling in rows:
            self.repeated += 1
            return
        rows[spelling] = value
        if stamp is not None and math.isfinite(stamp):
            self.stamps[family, spelling] = stamp

    def histograms(self) -> dict[str, dict[str, Histogram]]:
        """Put buckets, sums and counts together; what lacks a part is told and left out."""
        made: dict[str, dict[str, Histogram]] = {}
        for family, rows in self.buckets.items():
            sums, counts = self.sums.get(family, {}), self.counts.get(family, {})
            for key, buckets in rows.items():
                total = sums.get(key)
                count = counts.get(key, buckets.get(math.inf))
                where = f"{family}{{{key}}}"
                if total is None or count is None:
                    self.tell(f"{where} has no {'sum' if total is None else 'count'}")
                    continue
                made.setdefault(family, {})[key] = self.histogram(where, buckets, total, count)
        return made

    def histogram(
        self, where: str, buckets: dict[float, float], total: float, count: float
    ) -> Histogram:
        buckets.setdefault(math.inf, count)
        bounds = tuple(buckets)
        ordered = tuple(sorted(bounds))
        counts = tuple(buckets.values())
        if bounds != ordered:
            counts = tuple(buckets[bound] for bound in ordered)
        if any(map(float.__gt__, counts, counts[1:])):
            self.tell(f"{where} has a bucket below the one before it; it was raised to that")
            highest = 0.0
            counts = tuple(highest := max(highest, count) for count in counts)
        return Histogram(ordered, counts, total, count)


def parse(text: str, wanted: Wanted) -> Page:
    """Read what `wanted` names from a page; any text is a page, at worst an empty one."""
    scan = _Scan(wanted)
    lines = text.split("\n")
    last = lines.pop()
    scan.lines(lines, exemplars=" # {" in text)
    histograms = scan.histograms()
    if last.strip() and not last.startswith("#"):
        scan.tell(f"line {len(lines) + 1}: cut off at {_short(last)}; it is left out")
    if scan.repeated:
        scan.tell(f"{scan.repeated} series appear again; the first of each is kept")
    if scan.not_finite:
        scan.tell(f"{scan.not_finite} values are not finite; they are left out")
    if scan.untold:
        scan.problems.append(f"and {scan.untold} more")
    return Page(
        scan.values,
        histograms,
        tuple(scan.problems),
        scan.stamps,
        scan.repeated,
        scan.not_finite,
    )
