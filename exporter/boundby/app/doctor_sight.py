"""What is visible from here: every source read once, errors kept as the sentences they are."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from boundby.core.pairing import Pairing, pair
from boundby.core.parts import EnginePart, GpuPart
from boundby.core.setup import Setup
from boundby.sources.base import SourceError


class EnginePage(Protocol):
    """An engine's page, parsed."""

    @property
    def kind(self) -> str:
        """The engine's kind."""

    @property
    def engines(self) -> tuple[EnginePart, ...]:
        """One part for each engine."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Expected facts that are not there."""


class Gpus(Protocol):
    """GPUs as a page or the driver shows them."""

    @property
    def gpus(self) -> tuple[GpuPart, ...]:
        """One part for each."""


Reading = Callable[[], Awaitable[Any]]
"""Reads one source once; raises nothing but `SourceError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """How each source is read; None where it is not set up at all."""

    engine: Reading | None = None
    dcgm: Reading | None = None
    nvml: Reading | None = None
    host: Reading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """All that was seen; a source that is None has its reason in `problems`, by name.

    `setup` is what settings and the engine's command line say together.
    """

    engine: EnginePage | None = None
    dcgm: Gpus | None = None
    nvml: Gpus | None = None
    host: Any = None
    problems: Mapping[str, str] = field(default_factory=dict)
    setup: Setup = field(default_factory=Setup)
    pairing: Pairing = field(default_factory=Pairing)

    @property
    def tier(self) -> str:
        """The best evidence of the GPU there is: "counters", "nvml" or "engine"."""
        for source in (self.dcgm, self.nvml):
            if source and any("engine_active_ratio" in gpu.gauges for gpu in source.gpus):
                return "counters"
        return "nvml" if any(s and s.gpus for s in (self.dcgm, self.nvml)) else "engine"

    @property
    def gpus(self) -> tuple[GpuPart, ...]:
        """The GPUs of the better source."""
        for source in (self.dcgm, self.nvml):
            if source and source.gpus:
                return source.gpus
        return ()

    @property
    def values(self) -> frozenset[str]:
        """Every fact that some GPU has."""
        return frozenset(
            name for gpu in self.gpus for name in (*gpu.gauges, *gpu.counters, *gpu.infos)
        )


async def look(readers: Readers, settings: Setup, pod: str | None = None) -> Sight:
    """Read every source at once."""
    names = [name for name in ("engine", "dcgm", "nvml", "host") if getattr(readers, name)]
    answers = await asyncio.gather(*(_read(getattr(readers, name)) for name in names))
    seen: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, SourceError):
            problems[name] = answer.detail
        else:
            seen[name] = answer
    setup = settings
    if (host := seen.get("host")) is not None:
        setup = settings.filled(host.setup)
    sight = Sight(**seen, problems=problems, setup=setup)
    return replace(sight, pairing=_pairing(sight, settings, pod))


async def _read(reading: Reading) -> Any:
    try:
        return await reading()
    except SourceError as error:
        return error


def _pairing(sight: Sight, settings: Setup, pod: str | None) -> Pairing:
    tensor = sight.setup.tensor
    if tensor is not None:
        tensor *= sight.setup.pipeline or 1
    return pair(
        sight.gpus,
        settings=settings.gpus,
        pids_by_gpu=getattr(sight.nvml, "processes", None),
        engine_pids=() if sight.host is None else sight.host.engine_pids,
        visible=None if sight.host is None else sight.host.visible,
        tensor=tensor,
        pod=pod,
    )
