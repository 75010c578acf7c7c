"""The beat: read every source at once, fold into the watch, publish the report.

Sources are read concurrently and each within its deadline. One that is still busy from the beat
before is not asked again; it shows as down with its age. A source that fails darkens its own facts
and nothing else. Nothing that judging or rendering raises ends the loop: it shows as source
`judge`.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from boundby.core.parts import EnginePart, GpuPart, HostPart, Snapshot, SourceState
from boundby.core.report import Report
from boundby.core.setup import Setup
from boundby.sources.base import SourceError

log = logging.getLogger("boundby.loop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one feed gave in one read; `body` is what a recording keeps of it."""

    engines: tuple[EnginePart, ...] = ()
    gpus: tuple[GpuPart, ...] = ()
    host: HostPart | None = None
    gpu_source: str | None = None
    detail: str = ""
    missing: tuple[str, ...] = ()
    body: str | Mapping[str, Any] | None = None
    pids_by_gpu: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    engine_pids: frozenset[int] = frozenset()
    visible: Mapping[str, str] = field(default_factory=dict)
    learned: Setup | None = None


class Feed(Protocol):
    """A source as the loop drives it."""

    @property
    def name(self) -> str:
        """Its name in reports: engine, dcgm, nvml, host."""

    @property
    def deadline_seconds(self) -> float:
        """How long one read may take."""

    async def read(self) -> Given:
        """Read once; raises SourceError."""

    async def close(self) -> None:
        """Let go of what it holds."""


class Watcher(Protocol):
    """What folds snapshots into reports."""

    def observe(self, snapshot: Snapshot) -> Report:
        """Take in a snapshot."""


class Clock(Protocol):
    """Time as the loop sees it."""

    def now(self) -> float:
        """Unix time."""

    def monotonic(self) -> float:
        """A clock that never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


@dataclass(slots=True)
class _Slot:
    """One feed with what is remembered of it."""

    feed: Feed
    task: asyncio.Task[Given] | None = None
    begun: float = 0.0
    good_at: float | None = None
    said: str = ""
    took: float = 0.0
    up: bool | None = None
    last: Given = field(default_factory=Given)


Publish = Callable[[Report], None]
"""Takes each report."""

Keep = Callable[[float, str, Given | str], None]
"""Takes each read for a recording: when, which source, what it gave or why it gave nothing."""

Pair = Callable[[tuple[GpuPart, ...], Sequence[Given]], tuple[tuple[GpuPart, ...], str]]
"""Chooses the engine's GPUs; without any, the sentence says why."""


class Loop:
    """Drives feeds and a watcher; `publish` gets each report, `keep` each read for a recording."""

    def __init__(
        self,
        feeds: Sequence[Feed],
        watcher: Watcher,
        clock: Clock,
        *,
        beat_seconds: float,
        publish: Publish,
        keep: Keep | None = None,
        pair: Pair | None = None,
    ) -> None:
        self._slots = [_Slot(feed) for feed in feeds]
        self._watcher = watcher
        self._clock = clock
        self._beat = beat_seconds
        self._publish = publish
        self._keep = keep
        self._pair = pair
        self._started = self._now = clock.now()
        self._read_at = clock.monotonic()
        self._broken = ""

    async def run(self, beats: int | None = None, *, seconds: float = math.inf) -> None:
        """Beat for ever, so many times, or until so long has passed; at least once."""
        due = self._clock.monotonic()
        ends = due + seconds
        done = 0
        try:
            while True:
                await self.beat()
                done += 1
                due += self._beat
                late = self._clock.monotonic() - due
                if late > self._beat:
                    due += late - late % self._beat
                if done == beats or due > ends:
                    return
                await self._clock.sleep(max(0.0, due - self._clock.monotonic()))
        finally:
            await self.close()

    async def close(self) -> None:
        """End what is still reading."""
        running = [slot.task for slot in self._slots if slot.task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for slot in self._slots:
            await slot.feed.close()

    async def beat(self) -> None:
        """Read everything once and publish."""
        begun = self._clock.monotonic()
        for slot in self._slots:
            if slot.task is None:
                slot.begun = begun
                slot.task = asyncio.ensure_future(_within(slot.feed))
        waiting = [slot.task for slot in self._slots if slot.task is not None]
        if waiting:
            longest = max(slot.feed.deadline_seconds for slot in self._slots)
            # A read that ends at its deadline still gets to say so.
            await asyncio.wait(waiting, timeout=min(longest * 1.5, self._beat * 0.9))
        now = self._time()
        states = [self._state(slot, now) for slot in self._slots]
        fresh = [slot.last for slot, state in zip(self._slots, states, strict=True) if state.up]
        gpus = tuple(part for given in fresh for part in given.gpus)
        if gpus and self._pair is not None:
            gpus, ambiguous = self._pair(gpus, fresh)
            if ambiguous:
                states.append(
                    SourceState(source="pairing", up=False, age_seconds=0.0, detail=ambiguous)
                )
        snapshot = Snapshot(
            t=now,
            engines=tuple(part for given in fresh for part in given.engines),
            gpus=gpus,
            host=next((given.host for given in fresh if given.host is not None), None),
            gpu_source=next((g.gpu_source for g in fresh if g.gpu_source), None),
            learned=next((g.learned for g in fresh if g.learned is not None), None),
            sources=tuple(states),
        )
        try:
            self._publish(self._watcher.observe(snapshot))
        except BrokenPipeError:
            raise  # whoever the reports were for has gone
        except Exception as error:  # noqa: BLE001  the loop outlives any report
            self._break(error, snapshot)
        else:
            self._broken = ""

    def _time(self) -> float:
        """Unix time that never goes back, since what is judged must be in order.

        Where the machine's clock was set back, ours goes on from where it was until it is met.
        """
        wall, ticks = self._clock.now(), self._clock.monotonic()
        if wall < self._now:
            wall = self._now + max(ticks - self._read_at, 1e-3)
        self._now, self._read_at = wall, ticks
        return wall

    def _break(self, error: Exception, snapshot: Snapshot) -> None:
        said = f"{type(error).__name__}: {error}"
        if said != self._broken:
            log.exception("judge failed: %s", said)
            self._broken = said
        state = SourceState(source="judge", up=False, age_seconds=0.0, detail=said)
        self._publish(
            Report(
                at=snapshot.t, window_seconds=0.0, sources=(*snapshot.sources, state), ready=False
            )
        )

    def _state(self, slot: _Slot, now: float) -> SourceState:
        task = slot.task
        name = slot.feed.name
        if task is None or not task.done():
            long = self._clock.monotonic() - slot.begun
            return self._down(slot, now, f"still reading after {long:.1f} s")
        slot.task = None
        slot.took = self._clock.monotonic() - slot.begun
        try:
            given = task.result()
        except SourceError as error:
            return self._down(slot, now, error.detail)
        except asyncio.CancelledError:
            return self._down(slot, now, "the read was cancelled")
        except Exception as error:  # noqa: BLE001  a source's fault darkens the source alone
            return self._down(slot, now, f"{type(error).__name__}: {error}")
        slot.last, slot.good_at = given, now
        self._say(slot, up=True, detail=given.detail)
        if self._keep is not None:
            self._keep(now, name, given)
        return SourceState(
            source=name,
            up=True,
            age_seconds=0.0,
            detail=given.detail,
            duration_seconds=slot.took,
            missing=given.missing,
        )

    def _down(self, slot: _Slot, now: float, detail: str) -> SourceState:
        self._say(slot, up=False, detail=detail)
        if self._keep is not None:
            self._keep(now, slot.feed.name, detail)
        since = slot.good_at if slot.good_at is not None else self._started
        return SourceState(
            source=slot.feed.name,
            up=False,
            age_seconds=max(0.0, now - since),
            detail=detail,
            duration_seconds=slot.took,
        )

    def _say(self, slot: _Slot, *, up: bool, detail: str) -> None:
        """One line a change."""
        if slot.up is not up:
            slot.up = up
            level = logging.INFO if up else logging.WARNING
            log.log(level, "source=%s up=%s detail=%r", slot.feed.name, str(up).lower(), detail)


async def _within(feed: Feed) -> Given:
    try:
        async with asyncio.timeout(feed.deadline_seconds):
            return await feed.read()
    except TimeoutError as error:
        raise SourceError(
            feed.name,
            f"no answer within {feed.deadline_seconds:g} s",
            hint="Is it overloaded, or is the network in the way?",
        ) from error


def without_engines(report: Report) -> Report:
    """A report as it is served when it is too old: its sources, and nothing concluded."""
    return replace(report, engines=(), gpus=(), ready=False)
