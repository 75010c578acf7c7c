"""What one read of one source returns: plain frozen values under names from `facts`.

A part carries only what its page gave. A name that is not in `gauges`, `counters`,
`histograms` or `infos` was not there; nothing is ever filled in with zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from boundby.core.setup import Setup


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram: ascending upper bounds (the last is inf) and their counts."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePart:
    """One engine (one scheduler) as its page showed it.

    `engine` is the engine's index label ("0" when the page has none), `model_name` the served
    model. Names in the four mappings are those of `facts.ENGINE_FACTS`, in base SI units.
    """

    engine: str
    model_name: str
    kind: str
    gauges: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    infos: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPart:
    """One GPU (or MIG instance) as one source showed it.

    `gpu` is its stable identity: the UUID where known, else the index as text; a MIG instance
    adds "/" and its instance id. Names are those of `facts.GPU_FACTS`. `age_seconds` is how old
    the values are known to be when the page says so, else None.
    """

    gpu: str
    index: int | None = None
    uuid: str | None = None
    name: str | None = None
    pod: str | None = None
    namespace: str | None = None
    mig_instance: str | None = None
    age_seconds: float | None = None
    gauges: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    infos: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPart:
    """What the host and the container showed of the engine's processes: `facts.HOST_FACTS`."""

    gauges: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    infos: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """How one source fared at one moment: up or down, the age of its newest good read, why.

    `duration_seconds` is how long the read took; `missing` lists expected names it lacked.
    """

    source: str
    up: bool
    age_seconds: float
    detail: str
    duration_seconds: float = 0.0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All sources as of one moment; `t` in seconds (unix time live, file time in a replay).

    A source that did not deliver leaves its share empty and a `SourceState` that says why.
    `learned` is what the engine's own command line says, where it could be read.
    `gpu_source` names where GPU rows came from ("dcgm", "nvml", "gpm", "amd"), None without any.
    """

    t: float
    engines: tuple[EnginePart, ...] = ()
    gpus: tuple[GpuPart, ...] = ()
    host: HostPart | None = None
    gpu_source: str | None = None
    learned: Setup | None = None
    sources: tuple[SourceState, ...] = ()
