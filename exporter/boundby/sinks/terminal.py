"""A report as lines for a terminal, at most 100 columns wide."""

import re
import textwrap
from collections.abc import Sequence

from boundby.core.limit import Limit
from boundby.core.report import EngineReport, Report
from boundby.core.words import LABELS, percent, seconds, value

WIDTH = 100
INDENT = "          "

PARTS = {
    "no_work": "no work",
    "host_gap": "host gap",
    "compute": "compute",
    "memory": "memory",
    "interconnect": "interconnect",
    "kernel_latency": "kernel latency",
    "other": "other",
}


_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Text from outside without what a terminal would obey: control characters as numbers."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _wrapped(head: str, text: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=f"{head:<10}", subsequent_indent=INDENT, break_long_words=False
    )


def render(report: Report) -> str:
    """Write every engine's answer, then the sources that are down."""
    if not report.engines:
        lines = ["no engine seen yet"]
    else:
        lines = [_engine(engine) for engine in report.engines]
    lines.extend(
        _wrapped(source.source, f"down for {seconds(source.age_seconds)}: {source.detail}")
        for source in report.sources
        if not source.up
    )
    return plain("\n".join(lines)) + "\n"


def _engine(engine: EngineReport) -> str:
    lines = [textwrap.fill(engine.story, WIDTH, subsequent_indent=INDENT)]
    for scope in ("engine", "decode", "prefill"):
        verdict = engine.verdict.get(scope)
        if verdict is None:
            continue
        ties = f", or {' or '.join(verdict.ties)}" if verdict.ties else ""
        head = f"{verdict.limit}{ties} ({percent(verdict.confidence)})"
        lines.append(_wrapped(f"  {scope}", f"{head}: {'; '.join(verdict.because)}"))
    spent = [
        f"{PARTS[part]} {percent(share)}"
        for part, share in sorted(engine.time.items(), key=lambda item: -item[1])
        if share >= 0.005  # noqa: PLR2004  less rounds to nothing
    ]
    lines.append(_wrapped("  time", ", ".join(spent)))
    answer = engine.verdict["engine"].limit
    row = next((r for r in engine.limits if r.limit == answer), None)
    if row is not None:
        lines.extend(_wrapped("  try", remedy) for remedy in row.remedies[:2])
        lines.extend(_wrapped("  not", text) for text in row.wont_help[:1])
    lines.extend(_wrapped("  note", note) for note in engine.notes)
    lines.extend(
        _wrapped("  missing", f"{missing.signal}: {missing.why}. To fix: {missing.fix}")
        for missing in engine.missing
    )
    return "\n".join(lines)


def explain(limit: Limit) -> str:
    """Write a limit's page."""
    lines = [limit.name, "=" * len(limit.name), "", textwrap.dedent(limit.page).strip(), ""]
    if limit.scores:
        lines.append("Judged from")
        for scope, formula in limit.scores.items():
            lines.append(_wrapped(f"  {scope}", formula.says))
            lines.append(_wrapped("", f"needs {', '.join(formula.needs)}"))
            if formula.knobs:
                knobs = ", ".join(f"{name} = {number:g}" for name, number in formula.knobs.items())
                lines.append(_wrapped("", f"knobs {knobs}"))
        lines.append(f"  binds at an elasticity of {limit.binds_at:g}")
        lines.append("")
    if limit.evidence:
        shown = ", ".join(LABELS.get(name, name) for name in limit.evidence)
        lines.extend((_wrapped("Evidence", shown), ""))
    lines.append("What would help, cheapest first")
    lines.extend(_wrapped("  -", text) for text in limit.remedies)
    lines.extend(("", "What will not help"))
    lines.extend(_wrapped("  -", text) for text in limit.wont_help)
    if limit.cases:
        lines.extend(("", "Worked cases"))
        for case in limit.cases:
            given = ", ".join(f"{name} {number:g}" for name, number in case.given.items())
            lines.append(_wrapped("  -", f"{case.says}: {given} scores {case.score:g}"))
    return "\n".join(lines) + "\n"


def table(engine: EngineReport, names: Sequence[str]) -> str:
    """Write signals by name, one a line."""
    return "\n".join(
        f"  {LABELS.get(name, name):32}{value(name, engine.signals[name])}"
        for name in names
        if name in engine.signals
    )
