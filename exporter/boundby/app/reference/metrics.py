"""METRICS.md: every family that is published, every fact that is read, every signal between."""

from collections.abc import Iterable, Mapping

from boundby.app.reference.markdown import code, page, table
from boundby.core.facts import Fact
from boundby.core.formula import Formula
from boundby.sinks.catalogue import Family

INTRO = (
    "What boundby publishes, and what it works it out from.\n"
    "A value that is not known has no row; nothing is ever filled in with zero.\n"
    "Units are in the names: base SI units, and ratios from 0 to 1."
)


def render(
    families: Iterable[Family],
    facts: Mapping[str, Iterable[Fact]],
    signals: Iterable[Formula],
) -> str:
    """Write the page; `facts` are tables by their heading."""
    return page(
        "# Metrics",
        INTRO,
        "## Published at /metrics",
        table(
            ("Name", "Type", "Labels", "Stability", "Meaning"),
            (
                (
                    code(family.name),
                    family.kind,
                    ", ".join(code(label) for label in family.labels),
                    family.stability,
                    family.help,
                )
                for family in families
            ),
        ),
        *(
            f"## {heading}\n\n"
            + table(
                ("Name", "Type", "Meaning"),
                ((code(fact.name), fact.kind, fact.says) for fact in rows),
            )
            for heading, rows in facts.items()
        ),
        "## Signals between facts and limits",
        table(
            ("Name", "Made from", "Meaning"),
            (
                (code(signal.name), ", ".join(code(need) for need in signal.needs), signal.says)
                for signal in signals
            ),
        ),
    )
