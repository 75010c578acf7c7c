"""One GPU, or one MIG instance, as NVML shows it: what it gives, and why not the rest.

A call that says for good that it is not supported is a reason and is not made again.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from boundby.core.facts import GPU_FACTS
from boundby.core.parts import GpuPart
from boundby.sources import nvml_errors as errors
from boundby.sources.nvml_readings import (
    INSTANCE_READINGS,
    NVLINK_RECEIVED,
    NVLINK_SENT,
    PCIE_RECEIVED,
    PCIE_SENT,
    RAW,
    READINGS,
    Call,
    Field,
    Reading,
)

RATES = {
    NVLINK_SENT: "nvlink_tx_bytes_per_second",
    NVLINK_RECEIVED: "nvlink_rx_bytes_per_second",
    PCIE_SENT: "pcie_tx_bytes_per_second",
    PCIE_RECEIVED: "pcie_rx_bytes_per_second",
}

VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of a field value's union, by its value type."""

BLANK = float(0xFFFFFFFFFFFFFFFF)
"""What NVML writes for a value that is not available."""


class NvmlCallError(Exception):
    """A call's return code, the binding's own error taken apart."""

    def __init__(self, code: int, function: str) -> None:
        super().__init__(f"{function}: {errors.means(code)}")
        self.code = code
        self.function = function


Ask = Callable[..., Any]
"""Call a function of the binding by name; raises NvmlCallError."""


@dataclass(slots=True, eq=False)
class _Track:
    """A reading and which of its ways is in use; none is left once all failed for good."""

    reading: Reading
    way: int = 0

    @property
    def current(self) -> Call | Field | None:
        ways = self.reading.ways
        return ways[self.way] if self.way < len(ways) else None


@dataclass(slots=True, kw_only=True)
class Device:
    """A GPU with its handle; `instance` is a MIG instance's id and `parent` its GPU."""

    handle: Any
    key: str
    index: int
    uuid: str | None
    name: str | None
    instance: int | None = None
    parent: "Device | None" = None
    mig: bool = False
    compute_capability: str | None = None
    values: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    gpm_reasons: dict[str, str] = field(default_factory=dict)
    answered: int = 0
    codes: set[int] = field(default_factory=set)
    pids: tuple[int, ...] = ()
    lists_processes: bool = True
    _tracks: list[_Track] = field(default_factory=list)
    _slow: dict[str, float] = field(default_factory=dict)
    _raw: dict[str, float] = field(default_factory=dict)
    _raw_at: float = 0.0

    def __post_init__(self) -> None:
        """Start with the best way of each reading."""
        readings = READINGS if self.instance is None else INSTANCE_READINGS
        self._tracks = [_Track(reading) for reading in readings]

    def read(
        self, ask: Ask, now: float, *, slow: bool, wait: bool, given: Collection[str] = ()
    ) -> None:
        """Read all that is due into `values`; what a better source gave already is not asked.

        Raises NvmlCallError where the GPU or the driver is gone.
        """
        self.values, self.answered, self.codes = {}, 0, set()
        raw: dict[str, float] = {}
        due = [
            track
            for track in self._tracks
            if (slow or not track.reading.slow) and not set(track.reading.facts) <= set(given)
        ]
        fields = [track for track in due if isinstance(track.current, Field)]
        self._fields(fields, ask, raw)
        for track in due:
            self._call(track, ask, raw, wait=wait)
        late = [track for track in due if isinstance(track.current, Field)]
        self._fields([track for track in late if track not in fields], ask, raw)
        self._rates(raw, now)
        self.values = {**self._slow, **self.values}

    def _call(self, track: _Track, ask: Ask, raw: dict[str, float], *, wait: bool) -> None:
        while isinstance(way := track.current, Call):
            if way.waits and not wait:
                return
            try:
                answer = ask(way.function, self.handle, *way.arguments)
            except NvmlCallError as error:
                self._failed(track, error)
                if error.code not in errors.FINAL:
                    return
            else:
                self._take(track, way, answer, raw)
                return

    def _fields(self, tracks: Sequence[_Track], ask: Ask, raw: dict[str, float]) -> None:
        """Read the field values of all tracks by one call."""
        ways = [track.current for track in tracks]
        wanted = [(way.number, way.scope) for way in ways if isinstance(way, Field)]
        if not wanted:
            return
        function = "nvmlDeviceGetFieldValues"
        try:
            found = ask(function, self.handle, wanted)
        except NvmlCallError as error:
            for track in tracks:
                self._failed(track, error)
                while error.code in errors.FINAL and isinstance(track.current, Field):
                    self._failed(track, error)  # it would be the same call
            return
        for track, way, value in zip(tracks, ways, found, strict=True):
            if value.nvmlReturn:
                self._failed(track, NvmlCallError(value.nvmlReturn, f"{function} {value.fieldId}"))
            elif way is not None and value.valueType < len(VALUE_MEMBERS):
                answer = getattr(value.value, VALUE_MEMBERS[value.valueType])
                self._take(track, way, answer, raw)

    def _take(self, track: _Track, way: Call | Field, answer: Any, raw: dict[str, float]) -> None:
        self.answered += 1
        for fact, value in way.take(answer).items():
            if not math.isfinite(value) or value < 0 or answer == BLANK:
                self.reasons[fact] = "the driver gave a blank value"
                continue
            self.reasons.pop(fact, None)
            if fact in RAW:
                raw[fact] = value
            elif track.reading.slow or (isinstance(way, Call) and way.waits):
                self._slow[fact] = value
            else:
                self.values[fact] = value

    def _failed(self, track: _Track, error: NvmlCallError) -> None:
        if error.code in errors.GPU_GONE or error.code in errors.DRIVER_GONE:
            raise error
        self.codes.add(error.code)
        if error.code in errors.FINAL:
            track.way += 1
        if error.code not in errors.FINAL or track.current is None:
            for fact in track.reading.facts:
                self.reasons[fact] = str(error)
                self._slow.pop(fact, None)

    def _rates(self, raw: dict[str, float], now: float) -> None:
        """Turn byte counters into rates since the read before; one that went back gives none."""
        span = now - self._raw_at
        for name, value in raw.items():
            before, rate = self._raw.get(name), RATES[name]
            self.reasons.pop(rate, None)
            if before is None:
                self.reasons[rate] = "a rate needs two reads"
            elif value < before:
                self.reasons[rate] = "its counter began anew"
            elif span > 0:
                self.values[rate] = (value - before) / span
        if NVLINK_SENT in raw and NVLINK_RECEIVED in raw:
            self.values["nvlink_bytes_total"] = raw[NVLINK_SENT] + raw[NVLINK_RECEIVED]
        self._raw, self._raw_at = raw, now

    def part(self, driver_version: str | None) -> GpuPart:
        """Return the values as a part."""
        infos = {
            "driver_version": driver_version,
            "compute_capability": self.compute_capability,
        }
        return GpuPart(
            gpu=self.key,
            index=self.index,
            uuid=self.uuid,
            name=self.name,
            mig_instance=None if self.instance is None else str(self.instance),
            gauges=_of_kind(self.values, "gauge"),
            counters=_of_kind(self.values, "counter"),
            infos={name: value for name, value in infos.items() if value is not None},
        )


def _of_kind(values: dict[str, float], kind: str) -> dict[str, float]:
    return {name: value for name, value in values.items() if GPU_FACTS[name].kind == kind}
