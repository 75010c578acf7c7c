"""The commands that watch a live engine: run, demo, once, top and record."""

import asyncio
import contextlib
import math
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
from aiohttp import web

from boundby.app.config import Settings
from boundby.app.demo.world import World
from boundby.app.loop import Given, Keep, Loop, Publish
from boundby.app.server import Board, application
from boundby.app.wiring import SystemClock, Wired, board, engine_given, options, wire
from boundby.core.limit import Limit
from boundby.core.report import Report
from boundby.core.watch import Watch
from boundby.sinks import terminal
from boundby.sinks.recording import RecordingWriter
from boundby.sources import dcgm, engines
from boundby.sources.fetch import Address

STOP_SECONDS = 3.0
"""How long open connections may take to finish when we stop."""

DEMO_WINDOW_SECONDS = 8.0
DEMO_DWELL_SECONDS = 3.0
"""Shorter than usual: a scenario of the demo lasts 20 s."""

CLEAR = "\x1b[H\x1b[2J"


def say(text: str) -> None:
    """Write a line for the person at the terminal."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextlib.asynccontextmanager
async def serving(board_: Board, settings: Settings) -> AsyncIterator[str]:
    """Serve a board; gives the address it is found at."""
    host, port = settings.address()
    runner = web.AppRunner(application(board_), access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            number = 0 if isinstance(error, socket.gaierror) else error.errno or 0
            why = os.strerror(number) if number > 0 else error.strerror or error
            sys.stderr.write(f"boundby: cannot listen on {settings.listen} ({why})\n")
            raise SystemExit(2) from error
        bound = runner.addresses[0]
        name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        yield f"http://{name}:{bound[1]}"
    finally:
        await runner.cleanup()


class Changes:
    """Says each change of an engine's verdict in one line."""

    def __init__(self, suffix: str = "") -> None:
        self._shown: dict[str, str] = {}
        self.suffix = suffix

    def __call__(self, report: Report) -> None:
        """Take in a report."""
        for engine in report.engines:
            key = f"{engine.kind}-{engine.engine}/{engine.model}"
            verdict = engine.verdict["engine"]
            if self._shown.get(key) != verdict.limit:
                self._shown[key] = verdict.limit
                # Whoever read our lines may have left; those who read our page have not.
                with contextlib.suppress(OSError):
                    say(terminal.plain(engine.story + self.suffix))


async def serve(settings: Settings, limits: tuple[Limit, ...]) -> int:
    """Watch and serve until told to stop."""
    shown = board(settings, limits)
    changes = Changes()
    async with aiohttp.ClientSession() as session:
        wired = wire(settings, session, limits)

        def publish(report: Report) -> None:
            shown.publish(report)
            changes(report)

        async with serving(shown, settings) as where:
            engine = Address(url=str(settings.engine.url)).shown
            say(f"boundby: page {where}/  metrics {where}/metrics  engine {engine}")
            await _loop(wired, settings, publish).run()
    return 0


def _loop(wired: Wired, settings: Settings, publish: Publish, keep: Keep | None = None) -> Loop:
    return Loop(
        wired.feeds,
        wired.watch,
        SystemClock(),
        beat_seconds=settings.watch.beat_seconds,
        publish=publish,
        keep=keep,
        pair=wired.pair,
    )


class DemoFeed:
    """The simulated server's two pages, through the parsers that read real ones."""

    name = "demo"
    deadline_seconds = 5.0

    def __init__(self, world: World, clock: SystemClock) -> None:
        self._world = world
        self._clock = clock
        self._begun = clock.monotonic()

    async def read(self) -> Given:
        """Advance the world to now and read it."""
        self._world.advance(self._clock.monotonic() - self._begun)
        engine = engine_given(engines.parse(self._world.engine_page()))
        gpus = dcgm.parse(self._world.dcgm_page())
        scenario = self._world.scenario
        return Given(
            engines=engine.engines,
            gpus=gpus.gpus,
            gpu_source="dcgm",
            detail=f"simulated: {scenario.title} (built to show {scenario.limit})",
        )

    async def close(self) -> None:
        """Nothing is held."""


async def demo(settings: Settings, limits: tuple[Limit, ...], *, seconds: float | None) -> int:
    """Watch the simulated server."""
    settings = settings.model_copy(
        update={
            "watch": settings.watch.model_copy(
                update={
                    "window_seconds": DEMO_WINDOW_SECONDS, "dwell_seconds": DEMO_DWELL_SECONDS
                }
            )
        }
    )  # fmt: skip
    clock = SystemClock()
    world = World(started=clock.now())
    shown = board(settings, limits)
    changes = Changes()
    feed = DemoFeed(world, clock)
    scene = ""

    def publish(report: Report) -> None:
        nonlocal scene
        if world.scenario.title != scene:
            scene = world.scenario.title
            with contextlib.suppress(OSError):
                say(f"\n-- simulated: {scene} (built to show {world.scenario.limit})")
        shown.publish(report)
        changes(report)

    wired = Wired(
        feeds=[feed],
        setup=world.setup(),
        watch=Watch(world.setup(), limits, options(settings)),
    )
    length = math.inf if seconds is None else seconds
    async with serving(shown, settings) as where:
        say("boundby demo: the engine and its GPUs are simulated; the diagnosis is the real one.")
        say(f"page {where}/   metrics {where}/metrics   report {where}/report.json   Ctrl-C ends")
        await _loop(wired, settings, publish).run(seconds=length)
    return 0


async def once(settings: Settings, limits: tuple[Limit, ...], seconds: float) -> Report:
    """Watch for so long, and give the last report."""
    settings = settings.model_copy(
        update={"watch": settings.watch.model_copy(update={"window_seconds": max(seconds, 1.0)})}
    )
    reports: list[Report] = []
    async with aiohttp.ClientSession() as session:
        wired = wire(settings, session, limits)
        beat = min(settings.watch.beat_seconds, seconds / 5)
        loop = Loop(
            wired.feeds,
            wired.watch,
            SystemClock(),
            beat_seconds=beat,
            publish=reports.append,
            pair=wired.pair,
        )
        await loop.run(seconds=seconds)
    return reports[-1]


async def top(settings: Settings, limits: tuple[Limit, ...]) -> int:
    """Show the newest report on the whole terminal."""
    async with aiohttp.ClientSession() as session:
        wired = wire(settings, session, limits)

        def publish(report: Report) -> None:
            sys.stdout.write(CLEAR + terminal.render(report))
            sys.stdout.flush()

        await _loop(wired, settings, publish).run()
    return 0


async def record(
    settings: Settings, limits: tuple[Limit, ...], out: Path, seconds: float | None
) -> int:
    """Write every read to a file; what is judged is not written."""
    async with aiohttp.ClientSession() as session:
        wired = wire(settings, session, limits)
        try:
            writer = RecordingWriter(out, wired.setup)
        except OSError as error:
            sys.stderr.write(f"boundby: cannot write {out} ({error.strerror})\n")
            return 2
        reads = 0

        def keep(t: float, source: str, given: Given | str) -> None:
            nonlocal reads
            if isinstance(given, str):
                writer.write(t, source, None, error=given)
            else:
                writer.write(t, source, given.body)
            reads += 1

        length = math.inf if seconds is None else seconds
        try:
            with writer:
                try:
                    await _loop(wired, settings, lambda _: None, keep).run(seconds=length)
                except asyncio.CancelledError:
                    say("boundby: stopped")
        except OSError as error:
            problem = f"cannot write on after {reads} reads ({error.strerror or error})"
            sys.stderr.write(f"boundby: {out}: {problem}; what was written can be replayed\n")
            return 2
        say(f"boundby: {reads} reads in {out}")
    return 0
