"""Snapshots in, reports out: the fold that the loop, the replay and the tests all drive.

It has no clock of its own: time is what the snapshots say. One `Watch` follows one target with all
its engines, GPUs and its host.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from boundby.core.derive import Picture, PriceList, picture
from boundby.core.formula import FormulaError
from boundby.core.judge import Finding, judge
from boundby.core.limit import Limit
from boundby.core.parts import EnginePart, GpuPart, Snapshot
from boundby.core.regime import CONFIRM, Reading, change
from boundby.core.report import (
    SCOPES,
    EngineReport,
    GpuReport,
    LimitReport,
    Report,
    Scope,
    Verdict,
)
from boundby.core.setup import GpuIdentity, Setup
from boundby.core.steady import Shown, flapping, show
from boundby.core.story import because, headroom, story, why_not
from boundby.core.verdict import Decision, Evidence, decide
from boundby.core.window import Span, Track

SERIES = ("running_requests", "waiting_requests", "kv_used_ratio")
"""Engine gauges whose every read counts, not only their mean."""

PROGRESS = (
    "generation_tokens_total",
    "prompt_tokens_total",
    "requests_finished_total",
)
"""Counters that move when an engine gets on."""

FULL_SAMPLES = 5
"""Reads from which a window is taken at its word."""

SHOWN_SIGNALS = (
    "mfu_ratio", "mbu_ratio", "kv_used_ratio", "kv_capacity_tokens", "kv_fitting_sequences",
    "decode_step_seconds", "decode_step_floor_seconds", "batch_sequences",
    "batch_slots_sequences", "decode_arithmetic_intensity_flops_per_byte",
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
    "decode_lost_to_prefill_ratio",
)  # fmt: skip
"""Signals that a report carries where they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to watch: lengths in seconds, and knobs by limit."""

    window_seconds: float = 30.0
    dwell_seconds: float = 10.0
    stale_after_seconds: float = 15.0
    flap_within_seconds: float = 300.0
    knobs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    remember: bool = False
    """Keep everything seen, for `summary`; a live loop must not."""


@dataclass(slots=True)
class _Engine:
    """What is remembered of one engine."""

    part: EnginePart
    track: Track
    whole: Track
    moved_at: float
    shown: dict[Scope, Shown] = field(default_factory=dict)
    binding: dict[tuple[str, str], float] = field(default_factory=dict)
    gap_seconds: float = 0.0
    last_at: float = 0.0
    since: float = -math.inf
    readings: list[Reading] = field(default_factory=list)
    changed: str = ""
    made: tuple[float, float] | None = None


class Watch:
    """Follows one target; `observe` every snapshot in time order."""

    def __init__(
        self, setup: Setup, limits: Sequence[Limit], options: Options | None = None
    ) -> None:
        """Raise FormulaError for a knob that no limit has."""
        self._given = setup
        self._setup = setup
        self._seen_gpus: tuple[tuple[str | None, int | None, str | None], ...] = ()
        self._limits = tuple(sorted(limits, key=lambda limit: limit.name))
        self._options = options or Options()
        self._check_knobs()
        self._engines: dict[tuple[str, str], _Engine] = {}
        self._gpus: dict[str, Track] = {}
        self._whole_gpus: dict[str, Track] = {}
        self._gpu_parts: dict[str, GpuPart] = {}
        self._host = Track(self._options.window_seconds * 2)
        self._all = math.inf if self._options.remember else self._options.window_seconds * 2
        self._whole_host = Track(self._all)
        self._prices: dict[tuple[str, str], PriceList] = {}
        self._begin: float | None = None
        self._last: Snapshot | None = None

    def _check_knobs(self) -> None:
        named = {limit.name: limit for limit in self._limits}
        for name, knobs in self._options.knobs.items():
            limit = named.get(name)
            if limit is None:
                msg = f"limits.{name}: no such limit; there are: {', '.join(named)}"
                raise FormulaError(msg)
            known = {k for formula in limit.scores.values() for k in formula.knobs}
            for knob in knobs:
                if knob not in known:
                    have = ", ".join(sorted(known)) or "none"
                    msg = f"limits.{name}.{knob}: no such knob; {name} has: {have}"
                    raise FormulaError(msg)

    def observe(self, snapshot: Snapshot) -> Report:
        """Take in one snapshot and report on the window that ends with it."""
        at = snapshot.t
        if self._begin is None:
            self._begin = at
        self._last = snapshot
        for gpu in snapshot.gpus:
            keep = self._options.window_seconds * 2
            self._gpus.setdefault(gpu.gpu, Track(keep)).append(at, gpu)
            self._whole_gpus.setdefault(gpu.gpu, Track(self._all)).append(at, gpu)
            self._gpu_parts[gpu.gpu] = gpu
        if snapshot.host is not None:
            self._host.append(at, snapshot.host)
            self._whole_host.append(at, snapshot.host)
        self._identify(snapshot)
        for part in snapshot.engines:
            self._take(part, at)
            self._regime(self._engines[part.engine, part.model_name], at)
        return self._report(at, self._options.window_seconds, live=True)

    def summary(self) -> Report:
        """Judge all that was seen as one window, its first window left out."""
        if self._last is None or self._begin is None:
            return Report(at=0.0, window_seconds=0.0, ready=False)
        at = self._last.t
        seen = at - self._begin
        skip = min(self._options.window_seconds, seen / 2)
        return self._report(at, max(seen - skip, 1e-9), live=False)

    def _take(self, part: EnginePart, at: float) -> None:
        key = (part.engine, part.model_name)
        engine = self._engines.get(key)
        if engine is None:
            engine = _Engine(
                part=part,
                track=Track(self._options.window_seconds * 2),
                whole=Track(self._all),
                moved_at=at,
                last_at=at,
            )
            self._engines[key] = engine
        before = engine.part
        moved = any(
            part.counters.get(name) != before.counters.get(name) for name in PROGRESS
        ) or part.gauges.get("kv_used_ratio") != before.gauges.get("kv_used_ratio")
        if moved or part.gauges.get("running_requests", 0.0) <= 0:
            engine.moved_at = at
        engine.part = part
        engine.track.append(at, part, part.histograms)
        engine.whole.append(at, part, part.histograms)

    def _identify(self, snapshot: Snapshot) -> None:
        """Fill in from the sources what settings left open: the GPUs' kind and their number."""
        if any(identity.name for identity in self._given.gpus) or not snapshot.gpus:
            return
        seen = tuple(
            GpuIdentity(
                index=part.index,
                uuid=part.uuid,
                name=part.name,
                memory_bytes=part.gauges.get("memory_total_bytes"),
            )
            for part in snapshot.gpus
            if part.mig_instance is None
        )
        key = tuple((identity.uuid, identity.index, identity.name) for identity in seen)
        if key == self._seen_gpus:
            return
        self._seen_gpus = key
        origins = dict(self._given.origins)
        origins["gpus"] = "the GPU source"
        tensor = self._given.tensor
        if tensor is None and len(seen) in (1, 2, 4, 8):
            tensor = len(seen)
            origins["tensor"] = f"inferred: {len(seen)} GPUs are taken to be one group"
        self._setup = replace(self._given, gpus=seen, tensor=tensor, origins=origins)

    def _regime(self, engine: _Engine, at: float) -> None:
        """Begin the window anew where the engine has begun to do something else."""
        part = engine.part
        running = part.gauges.get("running_requests")
        if running is None:
            return
        waiting = part.gauges.get("waiting_requests", 0.0)
        made = part.counters.get("generation_tokens_total")
        rate = None
        if made is not None and engine.made is not None and at > engine.made[0]:
            rate = max(0.0, made - engine.made[1]) / (at - engine.made[0])
        engine.made = (at, made) if made is not None else None
        gpus = [g.gauges for g in self._last.gpus] if self._last else []

        def mean(*names: str) -> float | None:
            values = [next((g[n] for n in names if n in g), None) for g in gpus]
            known = [value for value in values if value is not None]
            return math.fsum(known) / len(known) if known else None

        shares = {
            key: value
            for key, value in (
                ("busy", mean("engine_active_ratio", "gpu_busy_ratio")),
                ("dram", mean("dram_active_ratio")),
                ("tensor", mean("tensor_active_ratio")),
            )
            if value is not None
        }
        engine.readings.append(
            Reading(
                at, running > 0 or waiting > 0, waiting > 0, running, rate, shares,
                mean("sm_clock_hertz"),
            )  # fmt: skip
        )
        floor = max(engine.since, at - self._options.window_seconds)
        engine.readings = [r for r in engine.readings if r.t >= floor - 1e-6]
        what = change(engine.readings[:-CONFIRM], engine.readings[-CONFIRM:])
        if what:
            engine.since = engine.readings[-CONFIRM].t
            engine.readings = engine.readings[-CONFIRM:]
            engine.changed = what

    def _gpu_spans(
        self, seconds: float, at: float, since: float, until: float, *, live: bool
    ) -> dict[str, Span]:
        tracks = self._gpus if live else self._whole_gpus
        out = {}
        for name, track in tracks.items():
            last = track.last
            if last is None or last.t < at - self._options.stale_after_seconds - 30.0:
                continue
            span = track.span(
                seconds, since=since, until=until, series=("clock_event_reasons_count",)
            )
            if span is not None:
                out[name] = span
        return out

    def _report(self, at: float, seconds: float, *, live: bool) -> Report:
        spans: dict[tuple[str, str], Span] = {}
        gpus: dict[tuple[str, str], dict[str, Span]] = {}
        known: dict[tuple[float, float], dict[str, Span]] = {}
        for key, engine in self._engines.items():
            track = engine.track if live else engine.whole
            last = track.last
            if last is None or last.t < at - self._options.stale_after_seconds:
                continue
            since, until = (engine.since, math.inf) if live else _worked(track, at, seconds)
            span = track.span(seconds, since=since, until=until, series=SERIES)
            if span is None:
                continue
            spans[key] = span
            bounds = (since, until)
            if bounds not in known:
                known[bounds] = self._gpu_spans(seconds, at, since, until, live=live)
            gpus[key] = known[bounds]
        host = (self._host if live else self._whole_host).span(seconds)
        peers = peer_loss(spans)
        reports = tuple(
            self._engine_report(key, span, gpus[key], host, at, peers, live=live)
            for key, span in sorted(spans.items())
        )
        every = next(iter(known.values()), None)
        if every is None:
            every = self._gpu_spans(seconds, at, -math.inf, math.inf, live=live)
        return Report(
            at=at,
            window_seconds=seconds,
            engines=reports,
            gpus=tuple(self._gpu_report(name, span) for name, span in every.items()),
            sources=self._last.sources if self._last else (),
            ready=bool(reports),
        )

    def _gpu_report(self, name: str, span: Span) -> GpuReport:
        part = self._gpu_parts[name]
        signals = {k: v for k, v in span.mean.items() if k.endswith("_ratio")}
        return GpuReport(gpu=name, name=part.name, index=part.index, signals=signals)

    def _engine_report(
        self,
        key: tuple[str, str],
        span: Span,
        gpus: Mapping[str, Span],
        host: Span | None,
        at: float,
        peers: Mapping[tuple[str, str], float],
        *,
        live: bool,
    ) -> EngineReport:
        engine = self._engines[key]
        seen = picture(
            span,
            gpus,
            host,
            self._setup,
            at - engine.moved_at,
            self._prices.setdefault(key, PriceList()),
            {"peer_loss_ratio": peers.get(key, 0.0)},
        )
        findings = [
            judge(limit, seen.book, self._options.knobs.get(limit.name)) for limit in self._limits
        ]
        decisions = self._decide(findings, seen, span, at, live=live)
        shown: dict[Scope, Shown] = {}
        for scope, decision in decisions.items():
            before = engine.shown.get(scope) if live else None
            shown[scope] = show(before, decision, at, self._options.dwell_seconds)
        if live:
            engine.shown = shown
            self._account(engine, shown, seen, at)
        return self._assemble(engine, seen, findings, shown, at)

    def _account(
        self, engine: _Engine, shown: Mapping[Scope, Shown], seen: Picture, at: float
    ) -> None:
        elapsed = max(0.0, at - engine.last_at)
        engine.last_at = at
        for scope, one in shown.items():
            key = (scope, one.decision.limit)
            engine.binding[key] = engine.binding.get(key, 0.0) + elapsed
        gap = seen.book.number("host_gap_ratio")
        if gap is not None:
            engine.gap_seconds += gap * elapsed

    def _decide(
        self,
        findings: Sequence[Finding],
        seen: Picture,
        span: Span,
        at: float,
        *,
        live: bool,
    ) -> dict[Scope, Decision]:
        evidence = Evidence(
            tier=seen.tier,
            spread=seen.estimate.spread if seen.estimate else {},
            quality=self._quality(span, live=live),
            assumed=seen.assumed,
        )
        out: dict[Scope, Decision] = {}
        for scope in SCOPES:
            decision = decide(findings, scope, evidence)
            if decision is not None:
                out[scope] = decision
        if "engine" not in out or "running_requests" not in seen.facts:
            out = {
                "engine": Decision(
                    limit="unknown", confidence=0.0, why="the page has no request gauges"
                )
            }
        return out

    def _quality(self, span: Span, *, live: bool) -> float:
        """How far a window can be taken at its word: its reads, its length, its restarts."""
        quality = min(1.0, span.samples / FULL_SAMPLES)
        if live:
            quality *= min(1.0, 0.6 + 0.4 * span.seconds / self._options.window_seconds)
        if span.restarts:
            quality *= 0.9
        return quality

    def _assemble(
        self,
        engine: _Engine,
        seen: Picture,
        findings: Sequence[Finding],
        shown: Mapping[Scope, Shown],
        at: float,
    ) -> EngineReport:
        answer = shown["engine"].decision.limit
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
        rows = tuple(
            LimitReport(
                limit=finding.limit.name,
                score=finding.score("engine")
                if "engine" in finding.limit.scores
                else finding.score("decode"),
                headroom=headroom(finding, findings, seen),
                binds=finding.limit.name in {v.limit for v in verdict.values()},
                evidence=finding.evidence,
                remedies=finding.limit.remedies,
                wont_help=finding.limit.wont_help,
                why_not=why_not(finding),
                missing=tuple(unknown.name for unknown in finding.missing),
            )
            for finding in findings
            if finding.limit.name != "unknown"
        )
        notes = list(seen.notes)
        swing = flapping(shown["engine"], at, self._options.flap_within_seconds)
        if swing:
            notes.append(f"flapping between {swing[0]} and {swing[1]}")
        for name, origin in seen.engine.origins.items():
            if origin.startswith(("inferred", "assumed")):
                notes.append(f"{name}: {origin}")
        report = EngineReport(
            engine=engine.part.engine,
            kind=engine.part.kind,
            model=engine.part.model_name,
            state=self._state(engine, seen, answer),
            saturated=self._saturated(seen, findings),
            verdict=verdict,
            limits=rows,
            time=seen.time,
            signals={
                name: number
                for name in SHOWN_SIGNALS
                if (number := seen.book.number(name)) is not None
            },
            missing=seen.missing,
            notes=tuple(notes),
            infos=engine.part.infos,
            binding_seconds=dict(engine.binding),
            verdict_changes={scope: float(one.changes) for scope, one in shown.items()},
            host_gap_seconds_total=engine.gap_seconds,
        )
        return replace(report, story=story(report, at, self._limits))

    def _state(self, engine: _Engine, seen: Picture, answer: str) -> str:
        if engine.part.gauges.get("engine_asleep_count", 0.0) > 0:
            return "asleep"
        if answer == "stalled":
            return "stalled"
        idle = seen.book.number("no_work_ratio")
        return "idle" if idle is not None and idle >= 1.0 else "active"

    def _saturated(self, seen: Picture, findings: Sequence[Finding]) -> bool | None:
        """Work is waiting, or more load would bring little."""
        waiting = seen.book.number("waiting_share_ratio")
        load = next((f.score("engine") for f in findings if f.limit.name == "demand"), None)
        if waiting is None or load is None:
            return None
        return waiting >= 0.5 or load < 0.25  # noqa: PLR2004  half the time; the mark of binding


def _worked(track: Track, at: float, seconds: float) -> tuple[float, float]:
    """The part of a recording in which there was work; idle ends are not part of the load."""
    worked = track.working()
    if worked is None:
        return -math.inf, math.inf
    first, last = worked
    begin = max(first, at - seconds)
    # What is left must still be worth a window: a load that ended before it counts from its start.
    return (begin, last) if last - begin >= (last - first) / 2 else ((first + last) / 2, last)


def peer_loss(spans: Mapping[tuple[str, str], Span]) -> dict[tuple[str, str], float]:
    """For ranks of one model: the share of work that a queue here and room there leaves undone.

    The fullest rank queues while the emptiest has at most half its batch: what a level spread
    would give is the difference to the mean.
    """
    out: dict[tuple[str, str], float] = {}
    models: dict[str, list[tuple[tuple[str, str], Span]]] = {}
    for key, span in spans.items():
        models.setdefault(key[1], []).append((key, span))
    for rows in models.values():
        if len(rows) < 2:  # noqa: PLR2004
            continue
        running = [span.mean.get("running_requests", 0.0) for _, span in rows]
        mean = math.fsum(running) / len(running)
        for (key, span), own in zip(rows, running, strict=True):
            waits = span.mean.get("waiting_requests", 0.0)
            if waits > 0 and own > 0 and min(running) <= own / 2:
                out[key] = max(0.0, 1.0 - mean / own)
    return out
