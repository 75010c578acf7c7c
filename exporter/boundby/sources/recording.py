"""A recording read back: a validated header, then one `Snapshot` for each moment.

The shape is `.jsonl` or `.jsonl.gz`: a header, then one line a read in time order. Lines of one
moment make one snapshot, by the same parsers that read the live pages. The file is read as it
is asked for, never as a whole.

Errors: `RecordingError` < `ValueError`; its text begins with file and line.
"""

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import ValidationError

from boundby.core.facts import GPU_FACTS, HOST_FACTS, Fact
from boundby.core.parts import EnginePart, GpuPart, HostPart, Snapshot, SourceState
from boundby.core.setup import Setup
from boundby.sources import amd, dcgm, engines
from boundby.sources.gpu_page import choose
from boundby.sources.looks import WrongPageError
from boundby.sources.recording_shape import (
    GpusBody,
    HostBody,
    Line,
    RecordingError,
    read_header,
    said,
)

_PartT = TypeVar("_PartT", GpuPart, HostPart)

GPU_PAGES = {"dcgm": dcgm.parse, "nvml": dcgm.parse, "amd": amd.parse}
"""Who reads a page of GPU counters; NVML's own reader may also give values, not text."""

SOURCES = ("engine", *GPU_PAGES, "host")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """An open recording. `warnings` fills while `snapshots` is read."""

    path: Path
    setup: Setup
    snapshots: Iterator[Snapshot]
    warnings: list[str] = field(default_factory=list)


def open_recording(path: str | Path) -> Recording:
    """Read the header and get ready to read the rest; `OSError` where there is no such file."""
    path = Path(path)
    if path.is_fifo():
        problem = "this is a pipe, and a recording is opened twice; write it to a file first"
        raise RecordingError(path, 1, problem)
    with _open(path) as file:
        try:
            first = file.readline()
        except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
            raise RecordingError(path, 1, f"cannot be read ({error})") from error
    setup = read_header(path, first).setup()
    warnings: list[str] = []
    return Recording(
        path=path,
        setup=setup,
        snapshots=_Reader(path, setup, warnings).snapshots(),
        warnings=warnings,
    )


def _open(path: Path) -> IO[str]:
    """Open as text, unpacked where the file begins as gzip does, whatever its name."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        return gzip.open(path, "rt", encoding="utf-8", newline="\n")
    return path.open(encoding="utf-8", newline="\n")


@dataclass(slots=True)
class _Moment:
    """What the lines of one moment gave so far."""

    engines: tuple[EnginePart, ...] = ()
    gpus: dict[str, tuple[GpuPart, ...]] = field(default_factory=dict)
    host: HostPart | None = None
    states: dict[str, SourceState] = field(default_factory=dict)

    def snapshot(self, t: float) -> Snapshot:
        gpu_source = next((name for name in GPU_PAGES if self.gpus.get(name)), None)
        return Snapshot(
            t=t,
            engines=self.engines,
            gpus=reduce(_joined, (self.gpus.get(name, ()) for name in GPU_PAGES)),
            host=self.host,
            gpu_source=gpu_source,
            sources=tuple(self.states.values()),
        )


def _joined(one: tuple[GpuPart, ...], other: tuple[GpuPart, ...]) -> tuple[GpuPart, ...]:
    """Both sources' GPUs; where both saw a GPU the first is believed, the other fills in."""
    if not one or not other:
        return one or other
    second = {part.gpu: part for part in other}
    joined = [
        replace(
            part,
            gauges={**also.gauges, **part.gauges},
            counters={**also.counters, **part.counters},
            infos={**also.infos, **part.infos},
        )
        if (also := second.pop(part.gpu, None))
        else part
        for part in one
    ]
    return (*joined, *second.values())


class _Reader:
    """One pass over a recording's lines."""

    def __init__(self, path: Path, setup: Setup, warnings: list[str]) -> None:
        self.path = path
        self.setup = setup
        self.warnings = warnings
        self.warned: set[str] = set()
        self.good: dict[str, float] = {}
        self.first_t: float | None = None

    def warn(self, text: str) -> None:
        """Say it once."""
        if text not in self.warned:
            self.warned.add(text)
            self.warnings.append(text)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Give the lines after the header; what a killed writer cut off is the end."""
        with _open(self.path) as file:
            number = 0
            while True:
                try:
                    line = file.readline()
                except EOFError:
                    self.warn(f"{self.path}: ends within line {number + 1}; it is left out")
                    return
                except (zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
                    problem = f"cannot be read ({error}); the file is damaged"
                    raise RecordingError(self.path, number + 1, problem) from error
                if not line:
                    return
                number += 1
                if number > 1 and line.strip():
                    yield number, line

    def snapshots(self) -> Iterator[Snapshot]:
        """Give one snapshot for each moment, in time order."""
        moment: _Moment | None = None
        now = -math.inf
        for number, text in self.lines():
            line = self.line(number, text)
            if line is None:
                break
            if line.t < now:
                problem = f"t is {line.t:g} after {now:g}; lines go in time order"
                raise RecordingError(self.path, number, problem)
            if moment is not None and line.t > now:
                yield moment.snapshot(now)
                moment = None
            now = line.t
            if self.first_t is None:
                self.first_t = now
            moment = moment or _Moment()
            self.take(number, line, moment)
        if moment is not None:
            yield moment.snapshot(now)

    def line(self, number: int, text: str) -> Line | None:
        """Read one line; None where it was cut off at the end of the file."""
        try:
            return Line.model_validate(json.loads(text))
        except ValidationError as error:
            raise RecordingError(self.path, number, said(error)) from error
        except (ValueError, RecursionError) as error:
            if not text.endswith("\n"):
                self.warn(f"{self.path}: ends within line {number}; it is left out")
                return None
            problem = f"not JSON ({error}); remove the line, or all from it on"
            raise RecordingError(self.path, number, problem) from error

    def take(self, number: int, line: Line, moment: _Moment) -> None:
        """Give one read to its moment."""
        source, body = line.source, line.body
        if source not in SOURCES:
            self.warn(f"source {source!r} is not known here; its lines are skipped")
            return
        if line.error is not None:
            moment.states[source] = self.down(source, line.t, line.error)
            return
        if body is None:
            problem = f'a read of {source} has neither "body" nor "error"'
            raise RecordingError(self.path, number, problem)
        try:
            if isinstance(body, str):
                detail, missing = self.page(number, source, body, line.t, moment)
            else:
                detail, missing = self.values(number, source, body, moment)
        except WrongPageError as error:
            moment.states[source] = self.down(source, line.t, f"{error}. {error.hint}".strip())
            return
        self.good[source] = line.t
        moment.states[source] = SourceState(
            source=source, up=True, age_seconds=0.0, detail=detail, missing=missing
        )

    def down(self, source: str, t: float, why: str) -> SourceState:
        since = self.good.get(source, self.first_t if self.first_t is not None else t)
        return SourceState(source=source, up=False, age_seconds=t - since, detail=why)

    def page(
        self, number: int, source: str, body: str, t: float, moment: _Moment
    ) -> tuple[str, tuple[str, ...]]:
        """Read a page as served: an engine's, or dcgm-exporter's (its shape also for NVML)."""
        if source == "engine":
            page = engines.parse(body, self.setup.kind or "auto")
            moment.engines = page.engines
            return page.detail, page.missing
        if source == "host":
            problem = "the body of a host read is an object, not text"
            raise RecordingError(self.path, number, problem)
        parsed = GPU_PAGES[source](body, now=t)
        choice = choose(parsed, self.setup.gpus)
        for problem in choice.problems:
            self.warn(f"{source}: {problem}")
        moment.gpus[source] = choice.gpus
        return _gpus_say(len(choice.gpus), profiling=parsed.profiling), ()

    def values(
        self, number: int, source: str, body: dict[str, Any], moment: _Moment
    ) -> tuple[str, tuple[str, ...]]:
        """Read values under our own names."""
        try:
            if source == "nvml":
                parts = tuple(
                    self.known(GpuPart(**gpu.model_dump()), GPU_FACTS)
                    for gpu in GpusBody.model_validate(body).gpus
                )
                moment.gpus[source] = parts
                profiling = any("dram_active_ratio" in part.gauges for part in parts)
                return _gpus_say(len(parts), profiling=profiling), ()
            if source == "host":
                host = HostPart(**HostBody.model_validate(body).model_dump())
                moment.host = self.known(host, HOST_FACTS)
                return "host", ()
        except ValidationError as error:
            raise RecordingError(self.path, number, f"body: {said(error)}") from error
        problem = f"the body of {source} is the page as text, not an object"
        raise RecordingError(self.path, number, problem)

    def known(self, part: _PartT, facts: Mapping[str, Fact]) -> _PartT:
        """Leave out names that are no facts, and say so."""
        odd = [name for name in (*part.gauges, *part.counters, *part.infos) if name not in facts]
        if not odd:
            return part
        self.warn(f"values of unknown names are skipped: {', '.join(sorted(set(odd)))}")
        return replace(
            part,
            gauges={name: value for name, value in part.gauges.items() if name in facts},
            counters={name: value for name, value in part.counters.items() if name in facts},
            infos={name: value for name, value in part.infos.items() if name in facts},
        )


def _gpus_say(count: int, *, profiling: bool) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}, {'with' if profiling else 'no'} PROF rows"
