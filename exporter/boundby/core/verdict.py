"""Findings in, one answer a scope out.

The engine's scope is decided in product order: `stalled`; `demand` from an elasticity of 0.5;
the strongest of the software limits that binds; else the strongest roof. The scopes of steps take
the strongest. Confidence is the probability of that decision: each comparison it rests on is a
score against a mark or against another score, known within a deviation, and the probabilities
multiply. It says how often such an answer is right, and is checked against labelled recordings.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from boundby.core.judge import Finding

TIE = 0.06
"""Scores closer than this are named together."""

MARK_SPREAD = 0.10
"""Deviation of a score against the mark it binds at."""

DEMAND_SPREAD = 0.15
"""Deviation of the elasticity of load, which rests on the batch as well as on the steps."""

MODEL_SPREAD = 0.08
"""Deviation of the difference of two roofs beyond what the fit itself says."""

CEILING = {"counters": 0.97, "nvml": 0.95, "engine": 0.85}
"""Highest confidence by tier of evidence."""

ROOF_CEILING = {"counters": 0.97, "nvml": 0.93, "engine": 0.6}
"""Highest confidence in a hardware roof: engine metrics alone never show one."""

STALL_CONFIDENCE = 0.9
"""Confidence in a stall: patience has run out, but a step longer than any before is possible."""

ASSUMED_SPREAD = 1.6
"""How much wider deviations are where the gain of a larger batch is assumed, not estimated."""

ASSUMED_CEILING = 0.75
"""Highest confidence in a software limit then."""

UNNAMED_CEILING = 0.85
"""Highest confidence in demand where the cap on the batch is not known."""

UNJUDGED = 0.4
"""Chance that a limit which could not be judged is what keeps work waiting."""

EVEN = 0.45
"""Likelihood below which the host is not taken to be what launches everything."""

LAUNCH_MARGIN = 0.1
"""How much surer than that likelihood an answer that rests on it may be."""

CLOCKS = ("thermal", "power")
"""Limits that act through the clocks, the surer one first."""

CLOCKS_CONFIDENCE = 0.9
"""Highest confidence that it is the clocks and not the arithmetic they slow down."""

THROTTLE_SHARE = 0.85
"""A step bound by compute is put down to held-down clocks when these explain this much of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One scope's answer: the limit, how sure, the runner-up, and those as likely."""

    limit: str
    confidence: float
    next: str | None = None
    ties: tuple[str, ...] = ()
    why: str = ""


def normal(z: float) -> float:
    """The standard normal distribution function."""
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the verdict needs beside findings: the tier, spreads of differences, window quality.

    `launch_bound` (0 to 1) is how likely a host that launches too slowly is behind a small gap.
    `quality` (0 to 1) scales confidence for short windows, restarts and stale inputs.
    """

    tier: str
    spread: Mapping[tuple[str, str, str], float]
    quality: float = 1.0
    assumed: bool = False
    launch_bound: float = 0.0
    slots_known: bool = True
    waiting_share: float = 0.0


def decide(findings: Sequence[Finding], scope: str, evidence: Evidence) -> Decision | None:
    """Decide one scope, or None where nothing was judged in it."""
    scored = {f.limit.name: (f, score) for f in findings if (score := f.score(scope)) is not None}
    if not scored:
        return None
    if scope == "engine":
        return _engine(findings, scored, evidence)
    return _steps(findings, scored, scope, evidence)


def _ranked(scored: Mapping[str, tuple[Finding, float]], group: str) -> list[tuple[str, float]]:
    """Limits of a group, strongest first; equal ones by name, so that order never matters."""
    rows = [(name, s) for name, (f, s) in scored.items() if f.limit.group == group]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def _engine(
    findings: Sequence[Finding],
    scored: Mapping[str, tuple[Finding, float]],
    evidence: Evidence,
) -> Decision:
    """Decide the engine's scope in product order."""
    for name, score in _ranked(scored, "progress"):
        if score >= _mark(scored, name):
            return Decision(limit=name, confidence=STALL_CONFIDENCE * evidence.quality)
    software = _ranked(scored, "software")
    roofs = _ranked(scored, "roof")
    binding = [(name, score) for name, score in software if score >= _mark(scored, name)]
    unsure = 1.0
    for name, score in _ranked(scored, "load"):
        spread = DEMAND_SPREAD * (ASSUMED_SPREAD if evidence.assumed else 1.0)
        sure = normal((score - _mark(scored, name)) / spread)
        if score >= _mark(scored, name):
            after = binding or roofs
            following = after[0][0] if after else None
            ceiling = CEILING[evidence.tier] * evidence.quality
            if evidence.assumed or not evidence.slots_known:
                # The batch may be at a cap that nobody named: then more load would only wait.
                ceiling = min(ceiling, UNNAMED_CEILING)
            # Work that waits now and then speaks against it, by as much as it does.
            sure *= 1.0 - evidence.waiting_share
            return Decision(limit=name, confidence=min(ceiling, sure), next=following)
        unsure *= 1.0 - sure
    if binding:
        return _software(software, roofs, scored, unsure, evidence)
    for name, score in software:
        unsure *= 1.0 - normal((score - _mark(scored, name)) / MARK_SPREAD)
    unjudged = [f for f in findings if f.limit.group == "software" and f.unjudged("engine")]
    if unjudged and evidence.waiting_share > 0:
        # Something keeps work waiting, and what it may be was not judged.
        unsure *= 1.0 - UNJUDGED * evidence.waiting_share
    if not roofs or roofs[0][1] <= 0:
        blind = [
            f.limit.name for f in findings if f.limit.group == "roof" and f.unjudged("engine")
        ]
        return Decision(
            limit="unknown",
            confidence=0.0,
            ties=tuple(blind),
            why="nothing before the hardware binds, and its roofs could not be judged",
        )
    answer = _strongest(roofs, "engine", evidence)
    ceiling = _roof_ceiling(evidence)
    return replace(answer, confidence=min(ceiling, answer.confidence * unsure))


def _software(
    software: Sequence[tuple[str, float]],
    roofs: Sequence[tuple[str, float]],
    scored: Mapping[str, tuple[Finding, float]],
    unsure: float,
    evidence: Evidence,
) -> Decision:
    """The strongest software limit, known to bind; `unsure` is the chance that demand does not."""
    (name, score), *others = software
    spread = MARK_SPREAD * (ASSUMED_SPREAD if evidence.assumed else 1.0)
    sure = unsure * normal((score - _mark(scored, name)) / spread)
    following = roofs[0][0] if roofs else None
    ties: tuple[str, ...] = ()
    if others and others[0][1] >= _mark(scored, others[0][0]):
        following, behind = others[0]
        sure *= normal((score - behind) / MARK_SPREAD)
        ties = (following,) if score - behind < TIE else ()
    # What is judged from the time of steps rests on the same evidence as a roof does.
    by_time = "decode" in scored[name][0].limit.scores
    ceiling = (ROOF_CEILING if by_time else CEILING)[evidence.tier] * evidence.quality
    if evidence.assumed:
        ceiling = min(ceiling, ASSUMED_CEILING)
    return Decision(limit=name, confidence=min(ceiling, sure), next=following, ties=ties)


def _roof_ceiling(evidence: Evidence) -> float:
    ceiling = ROOF_CEILING[evidence.tier] * evidence.quality
    return min(ceiling, ASSUMED_CEILING) if evidence.assumed else ceiling


def _mark(scored: Mapping[str, tuple[Finding, float]], name: str) -> float:
    return scored[name][0].limit.binds_at


def _strongest(rows: Sequence[tuple[str, float]], scope: str, evidence: Evidence) -> Decision:
    """The strongest of ranked rows, with the probability that it really is."""
    name, score = rows[0]
    if len(rows) == 1:
        return Decision(limit=name, confidence=0.9)
    second, behind = rows[1]
    own = evidence.spread.get((scope, *sorted((name, second))), 0.0)  # type: ignore[arg-type]  # a triple of names
    sure = normal((score - behind) / math.hypot(own, MODEL_SPREAD))
    ties = tuple(other for other, s in rows[1:] if score - s < TIE and s > 0)
    return Decision(limit=name, confidence=sure, next=second if behind > 0 else None, ties=ties)


def _steps(
    findings: Sequence[Finding],
    scored: Mapping[str, tuple[Finding, float]],
    scope: str,
    evidence: Evidence,
) -> Decision | None:
    # Group `none` is said beside the verdict: the loss to prefills is made of the same seconds.
    rows = sorted(
        ((name, s) for name, (f, s) in scored.items() if f.limit.group != "none"),
        key=lambda row: (-row[1], row[0]),
    )
    if not rows:
        return None
    top, best = rows[0]
    if best <= 0:
        return None
    if top == "compute":
        # Clocks are why the arithmetic takes as long as it does, where they explain most of it.
        for name in CLOCKS:
            share = scored[name][1] if name in scored else 0.0
            if name in scored and share >= max(_mark(scored, name), THROTTLE_SHARE * best):
                return _clocks(name, share, rows, evidence)
        rows = [row for row in rows if row[0] not in CLOCKS]
    blind = [f.limit.name for f in findings if f.limit.group == "roof" and f.unjudged(scope)]
    if blind and rows[0][1] < _mark(scored, rows[0][0]):
        # What was judged explains too little, and what would explain it was not judged.
        return None
    answer = _beside_launches(rows, scope, evidence)
    ceiling = _roof_ceiling(evidence)
    return replace(answer, confidence=min(ceiling, answer.confidence))


def _beside_launches(
    rows: Sequence[tuple[str, float]], scope: str, evidence: Evidence
) -> Decision:
    """The strongest, given that a gap may be what a slow launcher leaves of the whole step.

    Scores have both readings of the gap blended in, by how likely each is. Where the host leads
    by that blend alone, the likelier reading decides.
    """
    launching = evidence.launch_bound / 2
    answer = _strongest(rows, scope, evidence)
    if answer.limit != "cpu_scheduling":
        return replace(answer, confidence=answer.confidence * (1 - evidence.launch_bound))
    if launching <= 0 or len(rows) == 1 or rows[0][1] - launching >= rows[1][1]:
        return answer
    if launching < EVEN:
        other = _strongest([rows[1], rows[0], *rows[2:]], scope, evidence)
        return replace(other, confidence=1 - launching, next="cpu_scheduling", ties=())
    return replace(answer, confidence=min(answer.confidence, launching + LAUNCH_MARGIN))


def _clocks(
    name: str, share: float, rows: Sequence[tuple[str, float]], evidence: Evidence
) -> Decision:
    """A step whose arithmetic is held up by its clocks."""
    best = rows[0][1]
    rest = [score for other, score in rows if other not in (name, "compute")]
    sure = normal((best - max(rest, default=0.0)) / MODEL_SPREAD)
    return Decision(
        limit=name,
        confidence=min(CEILING[evidence.tier] * evidence.quality, CLOCKS_CONFIDENCE * sure),
        next="compute",
        ties=("compute",) if share - best < TIE else (),
    )
