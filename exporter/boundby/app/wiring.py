"""Settings to feeds, watch and board: the one place that names them all."""

import asyncio
import os
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from boundby import __version__
from boundby.app.config import PLACE, Settings, SettingsError
from boundby.app.loop import Feed, Given, Pair
from boundby.app.server import Board
from boundby.core.facts import GPU_FACTS
from boundby.core.limit import Limit
from boundby.core.pairing import pair
from boundby.core.parts import GpuPart
from boundby.core.setup import Setup
from boundby.core.watch import Options, Watch
from boundby.sinks.catalogue import Family, catalogue
from boundby.sinks.recording import host_body
from boundby.sources import dcgm, engines, nvml
from boundby.sources.fetch import Address, PageSource, trust
from boundby.sources.host import HostSource


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        """Unix time."""
        return time.time()

    def monotonic(self) -> float:
        """A clock that never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(slots=True)
class PageFeed:
    """A page over HTTP as a feed; `give` turns what was parsed into what the loop takes."""

    name: str
    deadline_seconds: float
    source: PageSource[Any]
    give: Callable[[Any], Given]

    async def read(self) -> Given:
        """Fetch the page once."""
        parsed = await self.source.read()
        return replace(self.give(parsed), body=self.source.page)

    async def close(self) -> None:
        """The session is another's."""


def engine_given(parsed: Any) -> Given:
    """What an engine's page gave."""
    return Given(engines=parsed.engines, detail=parsed.detail, missing=parsed.missing)


def gpus_given(parsed: dcgm.Parsed) -> Given:
    """What a dcgm-exporter page gave; which of its GPUs are ours is `Pairing`'s matter."""
    count = len(parsed.gpus)
    rows = "with PROF rows" if parsed.profiling else "no PROF rows"
    detail = f"{count} GPU{'' if count == 1 else 's'}, {rows}"
    return Given(gpus=parsed.gpus, gpu_source="dcgm", detail="; ".join((detail, *parsed.problems)))


@dataclass(slots=True)
class GpuPairing:
    """Chooses the engine's GPUs from all that the feeds tell."""

    setup: Setup
    pod: str | None = None

    def __call__(
        self, gpus: tuple[GpuPart, ...], given: Sequence[Given]
    ) -> tuple[tuple[GpuPart, ...], str]:
        """Give ours, or none and why."""
        learned = next((g.learned for g in given if g.learned is not None), None)
        whole = self.setup.filled(learned) if learned else self.setup
        # GPUs of one replica: tensor-parallel groups, one for each pipeline stage.
        replica = whole.tensor * (whole.pipeline or 1) if whole.tensor else None
        found = pair(
            gpus,
            settings=self.setup.gpus,
            pids_by_gpu=next((g.pids_by_gpu for g in given if g.pids_by_gpu), None),
            engine_pids=next((g.engine_pids for g in given if g.engine_pids), frozenset()),
            visible=next((g.visible for g in given if g.visible), None),
            tensor=replica,
            pod=self.pod,
        )
        return found.gpus, found.ambiguous_reason


@dataclass(slots=True)
class NvmlFeed:
    """NVML in this process, in a thread of its own."""

    source: nvml.NvmlSource
    deadline_seconds: float = 2.0
    name: str = "nvml"

    async def read(self) -> Given:
        """Read our GPUs once."""
        read = await self.source.read()
        detail = f"{len(read.gpus)} GPU{'' if len(read.gpus) == 1 else 's'} by {read.source}"
        why = read.reasons.get("dram_active_ratio")
        if read.source == "nvml" and why:
            detail += f", no profiling ratios ({why})"
        return Given(
            gpus=read.gpus,
            gpu_source=read.source,
            detail=detail,
            missing=tuple(sorted(name for name in read.reasons if name in GPU_FACTS)),
            body=nvml.to_body(read),
            pids_by_gpu=read.processes,
        )

    async def close(self) -> None:
        """End the thread."""
        await self.source.close()


@dataclass(slots=True)
class HostFeed:
    """The host's own evidence."""

    source: HostSource
    deadline_seconds: float = 2.0
    name: str = "host"

    async def read(self) -> Given:
        """Read /proc and the cgroup once."""
        read = await self.source.read()
        count = len(read.engine_pids)
        said = f"{count} processes of the engine" if count else "no process of the engine is seen"
        return Given(
            host=read.part,
            detail=said if count else "; ".join((said, *dict.fromkeys(read.reasons.values()))),
            body=host_body(read.part),
            engine_pids=read.engine_pids,
            visible=read.visible,
            learned=read.setup,
        )

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(slots=True)
class Wired:
    """Everything a run needs."""

    feeds: list[Feed]
    setup: Setup
    watch: Watch
    pair: Pair | None = None


def all_limits() -> tuple[Limit, ...]:
    """Every limit that an installed package brings, by name; ours come by the same door."""
    found: dict[str, Limit] = {}
    for point in entry_points(group="boundby.limits"):
        for limit in point.load():
            found.setdefault(limit.name, limit)
    return tuple(found[name] for name in sorted(found))


def families(limits: tuple[Limit, ...]) -> tuple[Family, ...]:
    """The catalogue for these limits."""
    return catalogue(tuple(limit.name for limit in limits), __version__)


def options(settings: Settings) -> Options:
    """How to watch, by the settings."""
    return Options(
        window_seconds=settings.watch.window_seconds,
        dwell_seconds=settings.watch.dwell_seconds,
        stale_after_seconds=settings.watch.stale_after_seconds,
        knobs=settings.knobs,
    )


def board(settings: Settings, limits: tuple[Limit, ...]) -> Board:
    """The board that the server serves from."""
    return Board(
        families(limits),
        stale_after_seconds=settings.watch.stale_after_seconds,
        now=time.monotonic,
    )


def wire(settings: Settings, session: aiohttp.ClientSession, limits: tuple[Limit, ...]) -> Wired:
    """Build feeds and watch; raises SettingsError for what the settings name."""
    setup = settings.setup()
    feeds: list[Feed] = []
    if settings.engine.url:
        feeds.append(_engine_feed(settings, session))
    gpu = settings.gpu
    if gpu.url and gpu.source in ("auto", "dcgm"):
        address = Address(url=gpu.url, deadline_seconds=gpu.timeout_seconds)
        feeds.append(
            PageFeed(
                "dcgm",
                gpu.timeout_seconds + 0.5,
                PageSource("dcgm", session, address, dcgm.parse),
                gpus_given,
            )
        )
    elif gpu.source in ("auto", "nvml"):
        _nvml(settings, feeds)
    port = _local_port(settings.engine.url)
    if settings.host.enabled and port is not None:
        feeds.append(HostFeed(HostSource(settings.host.root, port=port)))
    return Wired(
        feeds=feeds,
        setup=setup,
        watch=Watch(setup, limits, options(settings)),
        pair=GpuPairing(setup, os.environ.get("POD_NAME")),
    )


def engine_tls(settings: Settings) -> ssl.SSLContext | None:
    """The context that knows the engine's CA; raises SettingsError for a file that holds none."""
    file = settings.engine.ca_file
    if file is None:
        return None
    try:
        return trust(file)
    except OSError as error:
        problem = f"{file} is no CA bundle in PEM form ({error.strerror or error})"
        raise SettingsError(PLACE, [("engine.ca_file", problem)]) from error


def _engine_feed(settings: Settings, session: aiohttp.ClientSession) -> PageFeed:
    engine = settings.engine
    address = Address(
        url=str(engine.url),
        token_file=engine.token_file,
        tls=engine_tls(settings),
        deadline_seconds=engine.timeout_seconds,
    )
    return PageFeed(
        "engine",
        engine.timeout_seconds + 0.5,
        PageSource("engine", session, address, lambda text: engines.parse(text, engine.kind)),
        engine_given,
    )


def _nvml(settings: Settings, feeds: list[Feed]) -> None:
    timeout = settings.gpu.timeout_seconds
    source = nvml.NvmlSource(deadline_seconds=timeout, gpm=settings.gpu.gpm)
    feeds.append(NvmlFeed(source, deadline_seconds=timeout + 0.5))


def _local_port(url: str | None) -> int | None:
    """The port of an engine on this machine, by which its process is told from others.

    None for an engine elsewhere: then this host's processes say nothing of it.
    """
    parts = urlsplit(url or "")
    if parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        return None
    return parts.port or (443 if parts.scheme == "https" else 80)
