"""What the engine adapters share: a table from family to fact, and engines put together by it.

An adapter is a table and its quirks. A `Row` gives one fact from one family; of several rows
for one fact the first whose family is on the page gives it, so that an older name is a row
further down. Errors: `NotThisEngine` < `ValueError`, its text names what the page looks like.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from boundby.core.facts import ENGINE_FACTS
from boundby.core.parts import EnginePart, Histogram
from boundby.sources.exposition import Page, Wanted
from boundby.sources.labels import Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """An engine page read: its engines, what was wrong with it, and the facts it lacks."""

    kind: str
    engines: tuple[EnginePart, ...]
    problems: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    dialect: str = ""

    @property
    def detail(self) -> str:
        """What was read, in a few words for a person."""
        count = len(self.engines)
        says = f"{self.dialect or self.kind}, {count} engine{'' if count == 1 else 's'}"
        return f"{says}; {self.problems[0]}" if self.problems else says


@dataclass(frozen=True, slots=True)
class Row:
    """One fact and the family that gives it; `where` picks rows by one label's value."""

    fact: str
    family: str
    where: tuple[str, str] | None = None
    scale: float = 1.0


Identity = Callable[[Labels], tuple[str, str] | None]
"""From a row's labels to the engine and model it belongs to; None for a row to pass over."""


@dataclass(slots=True)
class Draft:
    """One engine while its page is read."""

    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    infos: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """An adapter's rows, ready to be wanted and gathered."""

    rows: tuple[Row, ...]
    wanted: Wanted

    @classmethod
    def of(cls, rows: Iterable[Row], also: Iterable[str] = ()) -> "Table":
        """Make the table; `also` are families an adapter reads by itself."""
        rows = tuple(rows)
        kinds = {row.family: ENGINE_FACTS[row.fact].kind for row in rows}
        return cls(
            rows,
            Wanted(
                values=(*(name for name, kind in kinds.items() if kind != "histogram"), *also),
                histograms=(name for name, kind in kinds.items() if kind == "histogram"),
            ),
        )

    def gather(self, page: Page, identity: Identity) -> dict[tuple[str, str], Draft]:
        """Give each engine and model of the page what the rows say.

        Counters and histograms of one engine that the page splits by some label are added up; of
        gauges the first row is taken, or the highest of those of several server processes.
        """
        drafts: dict[tuple[str, str], Draft] = {}
        given: set[str] = set()
        for row in self.rows:
            if row.fact in given:
                continue
            kind = ENGINE_FACTS[row.fact].kind
            if kind == "histogram":
                if _gather_histograms(row, page, identity, drafts):
                    given.add(row.fact)
                continue
            for labels, value in page.rows(row.family):
                if row.where and labels.get(row.where[0]) != row.where[1]:
                    continue
                owner = identity(labels)
                if owner is None:
                    continue
                given.add(row.fact)
                draft = drafts.setdefault(owner, Draft())
                if kind == "counter":
                    before = draft.counters.get(row.fact, 0.0)
                    draft.counters[row.fact] = before + value * row.scale
                elif "pid" in labels and row.fact in draft.gauges:
                    # One row for each server process, of which one alone has the value.
                    draft.gauges[row.fact] = max(draft.gauges[row.fact], value * row.scale)
                else:
                    draft.gauges.setdefault(row.fact, value * row.scale)
        return drafts


def _gather_histograms(
    row: Row, page: Page, identity: Identity, drafts: dict[tuple[str, str], Draft]
) -> bool:
    found = False
    for labels, histogram in page.histogram_rows(row.family):
        if row.where and labels.get(row.where[0]) != row.where[1]:
            continue
        owner = identity(labels)
        if owner is None:
            continue
        found = True
        into = drafts.setdefault(owner, Draft()).histograms
        known = into.get(row.fact)
        into[row.fact] = add(known, histogram) if known else histogram
    return found


def add(one: Histogram, other: Histogram) -> Histogram:
    """Both histograms as one; the first alone where their buckets differ."""
    if one.bounds != other.bounds:
        return one
    return Histogram(
        one.bounds,
        tuple(a + b for a, b in zip(one.counts, other.counts, strict=True)),
        one.sum + other.sum,
        one.count + other.count,
    )


def parts(kind: str, drafts: Mapping[tuple[str, str], Draft]) -> tuple[EnginePart, ...]:
    """Freeze the drafts, engines in the order of their numbers."""
    return tuple(
        EnginePart(
            engine=engine,
            model_name=model,
            kind=kind,
            gauges=draft.gauges,
            counters=draft.counters,
            histograms=draft.histograms,
            infos=draft.infos,
        )
        for (engine, model), draft in sorted(
            drafts.items(), key=lambda item: (len(item[0][0]), item[0])
        )
    )


def lacking(engines: Iterable[EnginePart], expected: Iterable[str]) -> tuple[str, ...]:
    """Which of the expected facts at least one engine lacks."""
    engines = tuple(engines)
    return tuple(
        name
        for name in expected
        if any(
            name not in part.gauges and name not in part.counters and name not in part.histograms
            for part in engines
        )
    )
