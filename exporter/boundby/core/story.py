"""A report in words: the one line, the evidence, headroom, and why a limit does not bind."""

import math
import re
from collections.abc import Sequence

from boundby.core.causes import cause
from boundby.core.derive import Picture
from boundby.core.formula import Unknown
from boundby.core.judge import Finding
from boundby.core.limit import Limit
from boundby.core.report import EngineReport
from boundby.core.verdict import Decision
from boundby.core.words import percent, phrase, seconds

TIERS = {
    "counters": "GPU cycle counters",
    "nvml": "plain NVML: a busy share, no cycle counters",
    "engine": "engine metrics alone: no GPU rows",
}
"""What a verdict was based on."""

INTERFERENCE = 0.25
"""Share of decode time lost to prefills from which it is said."""

MOST = 9.0
"""Headroom is not said beyond ten times today's."""


def because(
    finding: Finding | None, decision: Decision, seen: Picture, scope: str
) -> tuple[str, ...]:
    """Evidence as phrases, the tier last."""
    lines = []
    if decision.why:
        lines.append(decision.why)
    if finding is not None:
        lines.extend(phrase(name, number) for name, number in list(finding.evidence.items())[:4])
    if behind := cause(decision.limit, seen.book):
        lines.append(behind)
    lost = seen.book.number("decode_lost_to_prefill_ratio")
    if scope == "decode" and lost is not None and lost >= INTERFERENCE:
        lines.append(f"{percent(lost)} of decode time goes to prefills in the same steps")
    if decision.ties:
        lines.append(f"as likely: {', '.join(decision.ties)}")
    lines.append(f"based on {TIERS[seen.tier]}")
    return tuple(lines)


def headroom(finding: Finding, findings: Sequence[Finding], seen: Picture) -> float | None:
    """What lifting this limit would give until the next one binds, as a share of today's rate."""
    own = finding.score("engine")
    if own is None:
        return None
    if finding.limit.group == "load":
        room = seen.book.number("admission_room_ratio")
        slots, kv = seen.book.number("slots_used_ratio"), seen.book.number("kv_used_ratio")
        idle = seen.book.number("no_work_ratio") or 0.0
        if room is None:
            return None
        caps = [1 / v for v in (slots, kv) if v]
        grow = min(caps) if caps else 1 + MOST
        gain = max(own, 0.0) * math.log(max(1.0, grow))
        return min(MOST, max(math.expm1(gain), idle / max(1.0 - idle, 0.1)))
    others = [
        score
        for other in findings
        if other is not finding
        and other.limit.group in ("software", "roof")
        and (score := other.score("engine")) is not None
    ]
    behind = max(others, default=0.0)
    lead = max(0.0, own - behind)
    return min(MOST, 1.0 / (1.0 - lead) - 1.0) if lead < 1.0 else MOST


def why_not(finding: Finding) -> str:
    """The condition that failed and by how much, or what was missing."""
    value = finding.scores.get("engine", finding.scores.get("decode"))
    if value is None:
        return ""
    if isinstance(value, Unknown):
        return f"not judged: {value.why}"
    mark = finding.limit.binds_at
    if value < mark:
        return f"elasticity {value:.2f}, {mark - value:.2f} short of the {mark:g} it binds at"
    return ""


def short(remedy: str) -> str:
    """A remedy's first clause."""
    return re.split(r" \(|: |; |\. ", remedy)[0].rstrip(".")


def _gain(headroom: float | None) -> str:
    if not headroom:
        return ""
    more = "more than " if headroom >= MOST else ""
    return f" at {more}+{percent(headroom)}"


def story(report: EngineReport, at: float, limits: Sequence[Limit]) -> str:
    """The one line a person reads first."""
    named = {limit.name: limit for limit in limits}
    verdict = report.verdict["engine"]
    who = f"{report.kind}-{report.engine}"
    rows = {row.limit: row for row in report.limits}
    if verdict.limit == "unknown":
        reasons = [*verdict.because[:1], *(missing.why for missing in report.missing[:2])]
        return f"{who}: unknown. {'; '.join(dict.fromkeys(reasons))}."
    title = named[verdict.limit].title
    row = rows[verdict.limit]
    length = max(0.0, at - verdict.since)
    since = f" for {seconds(length)}" if length >= 1 else ""
    facts = ", ".join(phrase(n, v) for n, v in list(row.evidence.items())[:3])
    line = f"{who}: bound by {title}{since} ({percent(verdict.confidence)}). {facts}."
    if row.remedies:
        line += f" Next: {short(row.remedies[0])}."
    if verdict.next and verdict.next in named:
        gain = _gain(row.headroom)
        line += f" Then {named[verdict.next].title} binds{gain}."
    return line
