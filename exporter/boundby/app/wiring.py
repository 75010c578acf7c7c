"""Settings to feeds, watch and board: the one place that names them all."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from typing import Any

import aiohttp

from boundby import __version__
from boundby.app.config import Settings
from boundby.app.loop import Feed, Given
from boundby.app.server import Board
from boundby.core.facts import GPU_FACTS
from boundby.core.limit import Limit
from boundby.core.setup import Setup
from boundby.core.watch import Options, Watch
from boundby.sinks.catalogue import Family, catalogue
from boundby.sources import dcgm, engines, nvml
from boundby.sources.fetch import Address, PageSource, trust


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


@dataclass(slots=True)
class GpuGive:
    """Keeps our GPUs of a dcgm-exporter page; ambiguity goes into the detail."""

    setup: Setup
    pod: str | None = None

    def __call__(self, parsed: dcgm.Parsed) -> Given:
        """Choose ours among the page's."""
        named = [g for g in self.setup.gpus if g.uuid or g.index is not None]
        choice = dcgm.choose(parsed, named or None, pod=self.pod)
        count = len(choice.gpus)
        detail = f"{count} GPU{'' if count == 1 else 's'}, " + (
            "with PROF rows" if parsed.profiling else "no PROF rows"
        )
        return Given(
            gpus=choice.gpus,
            gpu_source="dcgm",
            detail="; ".join((detail, *choice.problems)),
        )


@dataclass(slots=True)
class NvmlFeed:
    """NVML in this process, in a thread of its own."""

    source: nvml.NvmlSource
    setup: Setup
    deadline_seconds: float = 2.0
    name: str = "nvml"

    async def read(self) -> Given:
        """Read our GPUs once."""
        read = await self.source.read()
        wanted = {g.uuid for g in self.setup.gpus if g.uuid} | {
            g.index for g in self.setup.gpus if g.index is not None
        }
        ours = tuple(
            part for part in read.gpus if not wanted or part.uuid in wanted or part.index in wanted
        )
        detail = f"{len(ours)} GPU{'' if len(ours) == 1 else 's'} by {read.source}"
        why = read.reasons.get("dram_active_ratio")
        if read.source == "nvml" and why:
            detail += f", no profiling ratios ({why})"
        return Given(
            gpus=ours,
            gpu_source=read.source,
            detail=detail,
            missing=tuple(sorted(name for name in read.reasons if name in GPU_FACTS)),
            body=nvml.to_body(replace(read, gpus=ours)),
        )

    async def close(self) -> None:
        """End the thread."""
        await self.source.close()


@dataclass(slots=True)
class HostFeed:
    """The host's own evidence."""

    source: Any
    to_body: Callable[[Any], Mapping[str, Any]]
    deadline_seconds: float = 2.0
    name: str = "host"

    async def read(self) -> Given:
        """Read /proc and the cgroup once."""
        read = await self.source.read()
        said = "; ".join(dict.fromkeys(read.reasons.values()))
        return Given(host=read.part, detail=said or "host", body=self.to_body(read.part))

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(slots=True)
class Wired:
    """Everything a run needs."""

    feeds: list[Feed]
    setup: Setup
    watch: Watch
    notes: list[str] = field(default_factory=list)


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
        families(limits), stale_after_seconds=settings.watch.stale_after_seconds, now=time.time
    )


def wire(settings: Settings, session: aiohttp.ClientSession, limits: tuple[Limit, ...]) -> Wired:
    """Build feeds and watch; raises SettingsError or OSError for what the settings name."""
    setup = settings.setup()
    notes: list[str] = []
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
                GpuGive(setup),
            )
        )
    elif gpu.source in ("auto", "nvml"):
        _nvml(settings, setup, feeds)
    if settings.host.enabled:
        _host(settings, feeds, notes)
    return Wired(
        feeds=feeds, setup=setup, watch=Watch(setup, limits, options(settings)), notes=notes
    )


def _engine_feed(settings: Settings, session: aiohttp.ClientSession) -> PageFeed:
    engine = settings.engine
    address = Address(
        url=str(engine.url),
        token_file=engine.token_file,
        tls=trust(engine.ca_file) if engine.ca_file else None,
        deadline_seconds=engine.timeout_seconds,
    )
    return PageFeed(
        "engine",
        engine.timeout_seconds + 0.5,
        PageSource("engine", session, address, lambda text: engines.parse(text, engine.kind)),
        engine_given,
    )


def _nvml(settings: Settings, setup: Setup, feeds: list[Feed]) -> None:
    timeout = settings.gpu.timeout_seconds
    source = nvml.NvmlSource(deadline_seconds=timeout, gpm=settings.gpu.gpm)
    feeds.append(NvmlFeed(source, setup, deadline_seconds=timeout + 0.5))


def _host(settings: Settings, feeds: list[Feed], notes: list[str]) -> None:
    try:
        from boundby.sinks.recording import host_body  # noqa: PLC0415
        from boundby.sources import host  # noqa: PLC0415  optional on this machine
    except ImportError as error:
        notes.append(f"host: not available ({error})")
        return
    feeds.append(HostFeed(host.HostSource(root=settings.host.root), host_body))
