"""Snapshots in, reports out: the fold that the loop, the replay and the tests all drive.

It has no clock of its own: time is what the snapshots say. One `Watch` follows one target with all
its engines, GPUs and its host.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from boundby.core.assemble import assemble, unjudged
from boundby.core.cross import calibrated
from boundby.core.derive import Picture, PriceList, picture
from boundby.core.engine_memory import EngineMemory
from boundby.core.formula import FormulaError
from boundby.core.gpu_facts import gpu_report
from boundby.core.judge import Finding, judge
from boundby.core.limit import Limit
from boundby.core.parts import GpuPart, Snapshot
from boundby.core.report import SCOPES, EngineReport, Report, Scope
from boundby.core.setup import GpuIdentity, Setup
from boundby.core.steady import Shown, show
from boundby.core.verdict import Decision, Evidence, decide
from boundby.core.window import Span, Track

Key = tuple[str, str]
"""An engine's index and its model."""

SERIES = ("running_requests", "waiting_requests", "kv_used_ratio")
"""Engine gauges whose every read counts, not only their mean."""

FULL_SAMPLES = 5
"""Reads from which a window is taken at its word."""

SHORT_WINDOW = 0.6
"""Quality of a window that has only begun."""

RESTART_QUALITY = 0.9
"""Quality of a window with a restart in it."""

GPU_LAG_SECONDS = 30.0
"""How much older than the engine's a GPU's rows may be: dcgm-exporter collects every 30 s."""

MOST_ENGINES = 256
"""Engines of one page that are followed; a page with more is no engine's own."""

GONE_SECONDS = 3600.0
"""How long what has vanished is remembered."""

GROUPS = (1, 2, 4, 8)
"""Numbers of GPUs that are taken for one tensor-parallel group where nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to watch: lengths in seconds, and knobs by limit.

    `remember` keeps everything seen, for `summary`; a live loop must not.
    """

    window_seconds: float = 30.0
    dwell_seconds: float = 10.0
    stale_after_seconds: float = 15.0
    flap_within_seconds: float = 300.0
    knobs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    remember: bool = False


@dataclass(slots=True)
class _Gpu:
    """What is remembered of one GPU."""

    part: GpuPart
    track: Track
    whole: Track


class Watch:
    """Follows one target; `observe` every snapshot in time order."""

    def __init__(
        self, setup: Setup, limits: Sequence[Limit], options: Options | None = None
    ) -> None:
        """Raise FormulaError for a knob that no limit has."""
        self._given = self._setup = setup
        self._limits = tuple(sorted(limits, key=lambda limit: limit.name))
        self._options = options or Options()
        _check_knobs(self._limits, self._options.knobs)
        self._keep = self._options.window_seconds * 2
        self._keep_all = math.inf if self._options.remember else self._keep
        self._engines: dict[Key, EngineMemory] = {}
        self._gpus: dict[str, _Gpu] = {}
        self._host, self._whole_host = Track(self._keep), Track(self._keep_all)
        self._prices: dict[Key, PriceList] = {}
        self._seen_gpus: tuple[tuple[str | None, int | None, str | None], ...] = ()
        self._learned: Setup | None = None
        self._begin: float | None = None
        self._last: Snapshot | None = None

    def observe(self, snapshot: Snapshot) -> Report:
        """Take in one snapshot and report on the window that ends with it."""
        self.take(snapshot)
        return self._report(snapshot.t, self._options.window_seconds, live=True)

    def take(self, snapshot: Snapshot) -> None:
        """Take in one snapshot without a report."""
        at = snapshot.t
        if self._begin is None:
            self._begin = at
        self._last = snapshot
        for part in snapshot.gpus:
            gpu = self._gpus.get(part.gpu)
            if gpu is None:
                gpu = _Gpu(part, Track(self._keep), Track(self._keep_all))
                self._gpus[part.gpu] = gpu
            gpu.part = part
            gpu.track.append(at, part)
            gpu.whole.append(at, part)
        if snapshot.host is not None:
            self._host.append(at, snapshot.host)
            self._whole_host.append(at, snapshot.host)
        self._learn(snapshot.learned)
        self._identify(snapshot)
        self._forget(at)
        for engine_part in snapshot.engines[:MOST_ENGINES]:
            key = (engine_part.engine, engine_part.model_name)
            engine = self._engines.get(key)
            if engine is None:
                engine = EngineMemory.of(engine_part, at, self._keep, self._keep_all)
                self._engines[key] = engine
            before = engine.part
            engine.take(engine_part, at)
            engine.follow(before, snapshot.gpus, at, self._options.window_seconds)

    def summary(self) -> Report:
        """Judge all that was seen as one window, its first window left out."""
        if self._last is None or self._begin is None:
            return Report(at=0.0, window_seconds=0.0, ready=False)
        at = self._last.t
        seen = at - self._begin
        skip = min(self._options.window_seconds, seen / 2)
        return self._report(at, max(seen - skip, 1e-9), live=False)

    def _forget(self, at: float) -> None:
        """Let go of engines and GPUs that have been gone for long."""
        if self._options.remember:
            return
        for key, engine in list(self._engines.items()):
            if (last := engine.track.last) and last.t < at - GONE_SECONDS:
                del self._engines[key]
                self._prices.pop(key, None)
        for name, gpu in list(self._gpus.items()):
            if (seen := gpu.track.last) and seen.t < at - GONE_SECONDS:
                del self._gpus[name]

    def _learn(self, learned: Setup | None) -> None:
        """Fill in from the engine's command line what settings left open."""
        if learned is None or learned == self._learned:
            return
        self._learned = learned
        self._given = self._setup = self._given.filled(learned)
        self._seen_gpus = ()

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
        if tensor is None and len(seen) in GROUPS:
            tensor = len(seen)
            origins["tensor"] = f"inferred: {len(seen)} GPUs are taken to be one group"
        self._setup = replace(self._given, gpus=seen, tensor=tensor, origins=origins)

    def _gpu_spans(
        self, seconds: float, at: float, since: float, until: float, *, live: bool
    ) -> dict[str, Span]:
        out = {}
        for name, gpu in self._gpus.items():
            track = gpu.track if live else gpu.whole
            last = track.last
            if last is None or last.t < at - self._options.stale_after_seconds - GPU_LAG_SECONDS:
                continue
            span = track.span(
                seconds, since=since, until=until, series=("clock_event_reasons_count",)
            )
            if span is not None:
                out[name] = span
        return out

    def _report(self, at: float, seconds: float, *, live: bool) -> Report:
        spans: dict[Key, Span] = {}
        gpus: dict[Key, dict[str, Span]] = {}
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
        reports: list[EngineReport] = []
        for key, span in sorted(spans.items()):
            try:
                judged = self._engine_report(key, span, gpus[key], host, at, peers, live=live)
            except (ArithmeticError, ValueError) as error:
                judged = unjudged(self._engines[key], at, error, self._limits)
            reports.append(judged)
        every = next(iter(known.values()), None)
        if every is None:
            every = self._gpu_spans(seconds, at, -math.inf, math.inf, live=live)
        return Report(
            at=at,
            window_seconds=seconds,
            engines=tuple(reports),
            gpus=tuple(
                gpu_report(self._gpus[name].part, span, self._setup)
                for name, span in every.items()
            ),
            sources=self._last.sources if self._last else (),
            ready=bool(reports),
        )

    def _engine_report(
        self,
        key: Key,
        span: Span,
        gpus: Mapping[str, Span],
        host: Span | None,
        at: float,
        peers: Mapping[Key, float],
        *,
        live: bool,
    ) -> EngineReport:
        engine = self._engines[key]
        seen = picture(
            span,
            gpus,
            host,
            self._setup,
            span.end - engine.moved_at,
            self._prices.setdefault(key, PriceList()),
            {"peer_loss_ratio": peers.get(key, 0.0)},
        )
        if not all(map(math.isfinite, seen.time.values())):
            msg = "shares of time that are not finite"
            raise ArithmeticError(msg)
        findings = [
            judge(limit, seen.book, self._options.knobs.get(limit.name)) for limit in self._limits
        ]
        decisions = self._decide(findings, seen, span, live=live)
        shown: dict[Scope, Shown] = {}
        for scope, decision in decisions.items():
            before = engine.shown.get(scope) if live else None
            shown[scope] = show(before, decision, at, self._options.dwell_seconds)
        if live:
            engine.shown = shown
            self._account(engine, shown, seen, at)
            self._calibrate(engine, seen, at)
        return assemble(
            engine, seen, findings, shown, self._limits, at, self._options.flap_within_seconds
        )

    def _account(
        self, engine: EngineMemory, shown: Mapping[Scope, Shown], seen: Picture, at: float
    ) -> None:
        elapsed = max(0.0, at - engine.last_at)
        engine.last_at = at
        for scope, one in shown.items():
            key = (scope, one.decision.limit)
            engine.binding[key] = engine.binding.get(key, 0.0) + elapsed
        gap = seen.book.number("host_gap_ratio")
        if gap is not None:
            engine.gap_seconds += gap * elapsed

    def _calibrate(self, engine: EngineMemory, seen: Picture, at: float) -> None:
        """Learn from each whole window once, where cycle counters say how busy the GPUs were."""
        known = engine.calibration
        due = known is None or at - known.at_seconds >= self._options.window_seconds
        if seen.estimate is None or seen.tier != "counters" or not due:
            return
        kind = seen.price.gpu.key if seen.price else ""
        deployment = (engine.part.model_name, kind, self._setup.tensor, self._setup.weights_dtype)
        engine.calibration = calibrated(
            known, deployment, at, seen.estimate, seen.estimate.busy_seconds
        )

    def _decide(
        self,
        findings: Sequence[Finding],
        seen: Picture,
        span: Span,
        *,
        live: bool,
    ) -> dict[Scope, Decision]:
        evidence = Evidence(
            tier=seen.tier,
            spread=seen.estimate.spread if seen.estimate else {},
            quality=self._quality(span, live=live),
            assumed=seen.assumed,
            waiting_share=seen.book.number("waiting_share_ratio") or 0.0,
            slots_known="batch_slots_sequences" in seen.facts,
            launch_bound=seen.estimate.launch_bound if seen.estimate else 0.0,
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
            share = min(1.0, span.seconds / self._options.window_seconds)
            quality *= SHORT_WINDOW + (1 - SHORT_WINDOW) * share
        if span.restarts:
            quality *= RESTART_QUALITY
        return quality


def _check_knobs(limits: Sequence[Limit], given: Mapping[str, Mapping[str, float]]) -> None:
    named = {limit.name: limit for limit in limits}
    for name, knobs in given.items():
        if name not in named:
            msg = f"limits.{name}: no such limit; there are: {', '.join(named)}"
            raise FormulaError(msg)
        known = {knob for formula in named[name].scores.values() for knob in formula.knobs}
        for knob in knobs:
            if knob not in known:
                have = ", ".join(sorted(known)) or "none"
                msg = f"limits.{name}.{knob}: no such knob; {name} has: {have}"
                raise FormulaError(msg)


def _worked(track: Track, at: float, seconds: float) -> tuple[float, float]:
    """The part of a recording in which there was work; idle ends are not part of the load."""
    worked = track.working()
    if worked is None:
        return -math.inf, math.inf
    first, last = worked
    begin = max(first, at - seconds)
    # What is left must still be worth a window: a load that ended before it counts from its start.
    return (begin, last) if last - begin >= (last - first) / 2 else ((first + last) / 2, last)


def peer_loss(spans: Mapping[Key, Span]) -> dict[Key, float]:
    """For ranks of one model: the share of work that a queue here and room there leaves undone.

    The fullest rank queues while the emptiest has at most half its batch: what a level spread
    would give is the difference to the mean.
    """
    out: dict[Key, float] = {}
    models: dict[str, list[tuple[Key, Span]]] = {}
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
