"""Findings, a picture and what is shown, put together as one engine's report."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from boundby.core.derive import Picture
from boundby.core.engine_memory import EngineMemory
from boundby.core.judge import Finding
from boundby.core.limit import Limit
from boundby.core.report import EngineReport, LimitReport, Scope, Verdict
from boundby.core.steady import Shown, flapping
from boundby.core.story import because, headroom, story, why_not

SHOWN_SIGNALS = (
    "mfu_ratio", "mbu_ratio", "kv_used_ratio", "kv_capacity_tokens", "kv_fitting_sequences",
    "decode_step_seconds", "decode_step_floor_seconds", "prefill_step_seconds",
    "batch_sequences", "batch_slots_sequences", "decode_arithmetic_intensity_flops_per_byte",
    "prefill_arithmetic_intensity_flops_per_byte", "ridge_point_flops_per_byte",
    "running_requests", "waiting_requests", "preemptions_per_second",
    "generation_tokens_per_second", "prompt_tokens_per_second", "steps_per_second",
    "host_gap_ratio", "host_gap_seconds_per_step", "no_work_ratio", "batch_elasticity_ratio",
    "admission_room_ratio", "weight_bytes_ratio", "modelled_bytes_ratio",
    "attainable_bytes_ratio", "prefix_hit_ratio", "context_tokens_per_sequence",
    "token_budget_tokens", "prefill_step_tokens", "itl_mean_seconds", "ttft_mean_seconds",
    "queue_mean_seconds", "engine_active_ratio", "gpu_busy_ratio", "dram_active_ratio",
    "tensor_active_ratio", "sm_active_ratio", "clock_ratio", "power_throttled_ratio",
    "thermal_throttled_ratio", "power_watts", "power_limit_watts", "recomputed_ratio",
    "decode_lost_to_prefill_ratio", "engine_flops_ratio",
)  # fmt: skip
"""Signals that a report carries where they are known."""

SATURATED_WAITING = 0.5
"""Share of reads with work waiting from which an engine is saturated."""

SATURATED_LOAD = 0.25
"""Elasticity of load below which it is saturated without a queue."""


def assemble(
    engine: EngineMemory,
    seen: Picture,
    findings: Sequence[Finding],
    shown: Mapping[Scope, Shown],
    limits: Sequence[Limit],
    at: float,
    flap_within_seconds: float,
) -> EngineReport:
    """Put one engine's report together."""
    named = {finding.limit.name: finding for finding in findings}
    verdict: dict[Scope, Verdict] = {
        scope: Verdict(
            limit=one.decision.limit,
            confidence=one.decision.confidence,
            since=one.since,
            because=because(named.get(one.decision.limit), one.decision, seen, scope),
            next=one.decision.next,
            ties=one.decision.ties,
        )
        for scope, one in shown.items()
    }
    named_by = {answer.limit for answer in verdict.values()}
    report = EngineReport(
        engine=engine.part.engine,
        kind=engine.part.kind,
        model=engine.part.model_name,
        state=_state(engine, seen, verdict["engine"].limit),
        saturated=_saturated(seen, named),
        verdict=verdict,
        limits=tuple(
            _row(finding, findings, seen, named=name in named_by)
            for name, finding in named.items()
            if name != "unknown"
        ),
        time=seen.time,
        signals=_signals(engine, seen, at),
        missing=seen.missing,
        notes=_notes(engine, seen, shown["engine"], at, flap_within_seconds),
        infos=engine.part.infos,
        binding_seconds=dict(engine.binding),
        verdict_changes={scope: float(one.changes) for scope, one in shown.items()},
        host_gap_seconds_total=engine.gap_seconds,
    )
    return replace(report, story=story(report, at, limits))


def unjudged(
    engine: EngineMemory, at: float, error: Exception, limits: Sequence[Limit]
) -> EngineReport:
    """The report of an engine whose numbers no engine has: unknown, and why."""
    why = f"the page's numbers fit no engine ({type(error).__name__}: {error})"
    report = EngineReport(
        engine=engine.part.engine,
        kind=engine.part.kind,
        model=engine.part.model_name,
        state="active",
        saturated=None,
        verdict={"engine": Verdict(limit="unknown", confidence=0.0, since=at, because=(why,))},
        infos=engine.part.infos,
        binding_seconds=dict(engine.binding),
        verdict_changes={scope: float(one.changes) for scope, one in engine.shown.items()},
        host_gap_seconds_total=engine.gap_seconds,
    )
    return replace(report, story=story(report, at, limits))


def _signals(engine: EngineMemory, seen: Picture, at: float) -> dict[str, float]:
    out = {
        name: number for name in SHOWN_SIGNALS if (number := seen.book.number(name)) is not None
    }
    known = engine.calibration
    if known is not None and known.weight > 0:
        out["calibration_age_seconds"] = known.age_seconds(at)
        if math.isfinite(known.residual_ratio):
            out["calibration_residual_ratio"] = known.residual_ratio
    return out


def _row(
    finding: Finding, findings: Sequence[Finding], seen: Picture, *, named: bool
) -> LimitReport:
    """One limit's row; it binds from its mark on, and where a verdict names it."""
    scope = "engine" if "engine" in finding.limit.scores else "decode"
    score = finding.score(scope)
    return LimitReport(
        limit=finding.limit.name,
        score=score,
        headroom=headroom(finding, findings, seen),
        binds=named or (score is not None and score >= finding.limit.binds_at),
        evidence=finding.evidence,
        remedies=finding.limit.remedies,
        wont_help=finding.limit.wont_help,
        why_not=why_not(finding),
        missing=tuple(unknown.name for unknown in finding.missing),
    )


def _notes(
    engine: EngineMemory, seen: Picture, shown: Shown, at: float, within: float
) -> tuple[str, ...]:
    notes = list(seen.notes)
    swing = flapping(shown, at, within)
    if swing:
        notes.append(f"flapping between {swing[0]} and {swing[1]}")
    if engine.changed and at - engine.since < within:
        notes.append(f"{at - engine.since:.0f} s ago {engine.changed}; the window begins there")
    notes.extend(
        f"{name}: {origin}"
        for name, origin in seen.engine.origins.items()
        if origin.startswith(("inferred", "assumed"))
    )
    return tuple(notes)


def _state(engine: EngineMemory, seen: Picture, answer: str) -> str:
    if engine.part.gauges.get("engine_asleep_count", 0.0) > 0:
        return "asleep"
    if answer == "stalled":
        return "stalled"
    idle = seen.book.number("no_work_ratio")
    return "idle" if idle is not None and idle >= 1.0 else "active"


def _saturated(seen: Picture, named: Mapping[str, Finding]) -> bool | None:
    """Work is waiting, or more load would bring little."""
    waiting = seen.book.number("waiting_share_ratio")
    load = named["demand"].score("engine") if "demand" in named else None
    if waiting is None or load is None:
        return None
    return waiting >= SATURATED_WAITING or load < SATURATED_LOAD
