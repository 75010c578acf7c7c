"""All GPUs read in one go, and NVML kept alive: initialised again when it or a GPU was lost.

Everything here blocks. It runs in the worker's thread and never in two at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from boundby.core.parts import GpuPart
from boundby.sources import gpm as gpm_metrics
from boundby.sources import nvml_errors as errors
from boundby.sources.base import SourceError
from boundby.sources.gpm_probe import Probe
from boundby.sources.nvml_device import Device, NvmlCallError
from boundby.sources.nvml_readings import BOARD
from boundby.sources.nvml_session import Session
from boundby.sources.nvml_watch import Xids, read_pids, unreadable

GpmMode = Literal["auto", "off", "on"]

SLOW_SECONDS = 10.0
"""How often what hardly changes is read: limits, maxima, links, processes, the number of GPUs."""

RETRY_SECONDS = 5.0
"""How long after a failed start the next one is made."""

LOST_SECONDS = 30.0
"""How long after a GPU was lost NVML is initialised again to look for it."""

PROBE_AGAIN_SECONDS = 600.0
"""A new session within this time believes the probe of the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlRead:
    """What one read gave. `reasons` says of facts why (some) GPUs do not give them.

    `source` is "gpm" where a GPU's profiling ratios are among the values. `processes` are the
    process ids on each GPU, by the part's `gpu`, as the host numbers them.
    """

    gpus: tuple[GpuPart, ...]
    source: Literal["nvml", "gpm"]
    reasons: Mapping[str, str] = field(default_factory=dict)
    processes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


class Driver:
    """NVML with its GPUs, from one read to the next."""

    def __init__(
        self, library: Any, clock: Callable[[], float], gpm: GpmMode, probe: Callable[[], Probe]
    ) -> None:
        self._library = library
        self._clock = clock
        self._mode = gpm
        self._new_probe = probe
        self._probe = probe()
        self._probed_at: float | None = None
        self._xids = Xids()
        self._newest = Session(library)
        self._session: Session | None = None
        self._gpm: gpm_metrics.Gpm | None = None
        self._gpm_off: dict[str, str] = {}
        self._gpm_asked: set[str] = set()
        self._gpm_broken: str | None = None
        self._devices: list[Device] = []
        self._count = 0
        self._lost: dict[str, str] = {}
        self._lost_at: float | None = None
        self._slow_at: float | None = None
        self._turn = 0
        self._failed: SourceError | None = None
        self._failed_at = 0.0

    @property
    def doing(self) -> str:
        """The call that is out, or was last."""
        return self._newest.doing

    def read(self) -> NvmlRead:
        """Read every GPU; raises SourceError when none answers."""
        now = self._clock()
        try:
            session = self._session or self._start(now)
            if self._changed(session, now):
                self._stop()
                session = self._start(now)
            return self._read(session, now)
        except NvmlCallError as error:
            unload = error.code == errors.VERSION_MISMATCH
            self._stop(unload=unload)
            raise self._fail(errors.down(error.code, error.function), now) from None

    def _fail(self, error: SourceError, now: float) -> SourceError:
        self._failed, self._failed_at = error, now
        return error

    def _start(self, now: float) -> Session:
        if self._failed is not None and now - self._failed_at < RETRY_SECONDS:
            raise SourceError(self._failed.source, self._failed.problem, self._failed.hint)
        session = Session(self._library)
        self._session = self._newest = session
        session.open()
        self._devices, self._lost = session.devices()
        self._count = session.count()
        if not self._devices:
            self._stop()
            why = "; ".join(f"{name}: {said}" for name, said in self._lost.items())
            hint = "Is NVIDIA_VISIBLE_DEVICES set, and is this container given a GPU?"
            raise self._fail(SourceError(errors.NAME, why or "no GPU is visible", hint), now)
        self._lost_at = now if self._lost else None
        self._slow_at = None
        self._gpm = gpm_metrics.Gpm(self._library, session.ask)
        self._gpm_off, self._gpm_asked = {}, set()
        self._renew_probe(now)
        self._xids.open(session.ask, self._devices)
        self._failed = None
        return session

    def _renew_probe(self, now: float) -> None:
        """Try GPM again where the last trial is old, or did not see all of these GPUs."""
        if self._probed_at is None:
            return
        keys = [device.key for device in self._devices]
        if now - self._probed_at > PROBE_AGAIN_SECONDS or not self._probe.knows(keys):
            self._probe.close()
            self._probe, self._probed_at = self._new_probe(), None

    def _stop(self, *, unload: bool = False) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        if self._gpm is not None:
            self._gpm.close()
        self._gpm, self._devices = None, []
        self._xids.close(session.ask)
        session.close()
        if unload:
            session.unload()

    def _changed(self, session: Session, now: float) -> bool:
        """Whether GPUs came or went, MIG was switched, or a lost GPU may be back."""
        if self._lost_at is not None and now - self._lost_at >= LOST_SECONDS:
            return True
        if self._slow_at is None or now - self._slow_at < SLOW_SECONDS:
            return False
        if session.count() != self._count:
            return True
        boards = [device for device in self._devices if device.parent is None]
        try:
            return any(session.mig(device.handle) != device.mig for device in boards)
        except NvmlCallError as error:
            if error.code not in errors.GPU_GONE:
                raise
            return False  # the read that follows meets it again and names it

    def _read(self, session: Session, now: float) -> NvmlRead:
        slow = self._slow_at is None or now - self._slow_at >= SLOW_SECONDS
        boards = [device for device in self._devices if device.parent is None]
        self._turn = (self._turn + 1) % max(1, len(boards))
        profiled = False
        for device in tuple(self._devices):
            if device not in self._devices:
                continue  # its board was lost a moment ago
            wait = device.parent is None and boards[self._turn] is device
            try:
                profiled |= self._read_device(session, device, now, slow=slow, wait=wait)
            except NvmlCallError as error:
                if error.code not in errors.GPU_GONE:
                    raise
                self._lose(device, error, now)
        self._xids.read(session.ask)
        if slow:
            self._slow_at = now
            self._processes(session)
        if not self._devices:
            self._stop()
            why = "; ".join(f"{name}: {said}" for name, said in self._lost.items())
            raise self._fail(SourceError(errors.NAME, why, "See dmesg for the XID."), now)
        return self._joined(session, profiled=profiled)

    def _read_device(
        self, session: Session, device: Device, now: float, *, slow: bool, wait: bool
    ) -> bool:
        """Read one GPU or instance; whether GPM gave something."""
        given = self._profile(session, device, now)
        device.read(session.ask, now, slow=slow, wait=wait, given=given)
        if not device.answered and errors.UNKNOWN in device.codes:
            self._silent(device)
        if device.parent is not None:
            for fact in BOARD:
                if fact in device.parent.values:
                    device.values[fact] = device.parent.values[fact]
        elif device.key in self._xids.last:
            device.values["xid_last_count"] = float(self._xids.last[device.key])
        device.values.update(given)
        return bool(given)

    def _silent(self, device: Device) -> None:
        """Meet a GPU that answers errors only: begin anew, without GPM where that was on."""
        if self._mode != "off" and device.key not in self._gpm_off:
            self._gpm_broken = (
                "GPM is off: NVML gave nothing but errors after it. Update the driver"
            )
        raise NvmlCallError(errors.UNKNOWN, f"every call for GPU {device.index}")

    def _profile(self, session: Session, device: Device, now: float) -> Mapping[str, float]:
        """Return what GPM gives; its facts get a reason where it gives nothing."""
        why = self._why_no_gpm(session, device, now)
        if why is None and self._gpm is not None:
            try:
                return self._gpm.read(device, now)
            except NvmlCallError as error:
                if error.code in errors.GPU_GONE or error.code in errors.DRIVER_GONE:
                    raise
                why = str(error)
                if error.code in errors.FINAL:
                    self._gpm_off[device.key] = why
        for fact in gpm_metrics.FACTS:
            device.gpm_reasons[fact] = why or "GPM is off"
        return {}

    def _why_no_gpm(self, session: Session, device: Device, now: float) -> str | None:
        if self._mode == "off":
            return "GPM is switched off (gpu.gpm)"
        why = self._gpm_broken or self._gpm_off.get(device.key)
        if why is not None:
            return why
        why = gpm_metrics.refused(device, session.driver_version) or self._unsupported(
            session, device
        )
        if why is not None:
            self._gpm_off[device.key] = why
        elif self._mode == "auto":
            if self._probed_at is None:
                self._probed_at = now
            why = self._probe.why_not(device.key, now)
        return why

    def _unsupported(self, session: Session, device: Device) -> str | None:
        """Say why the driver has no GPM for this GPU; asked once, None where it has."""
        if device.key in self._gpm_asked:
            return None
        try:
            if not gpm_metrics.supported(session.ask, device):
                return "this GPU has no GPM (Hopper and later have)"
        except NvmlCallError as error:
            if error.code in errors.GPU_GONE or error.code in errors.DRIVER_GONE:
                raise
            return str(error)
        self._gpm_asked.add(device.key)
        return None

    def _lose(self, device: Device, error: NvmlCallError, now: float) -> None:
        """Leave a GPU out, with its instances, until NVML is initialised again."""
        board = device.parent or device
        gone = [one for one in self._devices if one is board or one.parent is board]
        for one in gone:
            if self._gpm is not None:
                self._gpm.drop(one)
        self._devices = [one for one in self._devices if one not in gone]
        self._lost[f"gpu {board.index}"] = str(error)
        self._lost_at = now

    def _processes(self, session: Session) -> None:
        why = unreadable(self._library, session.driver_version)
        if why is None:
            try:
                read_pids(session.ask, self._devices)
            except NvmlCallError as error:
                if error.code not in errors.GPU_GONE:
                    raise
            return
        for device in self._devices:
            device.reasons["processes"] = why

    def _joined(self, session: Session, *, profiled: bool) -> NvmlRead:
        reasons: dict[str, str] = {}
        for device in self._devices:
            if device.parent is not None:
                continue
            for fact, why in {**device.gpm_reasons, **device.reasons}.items():
                if fact not in device.values:
                    reasons.setdefault(fact, f"GPU {device.index}: {why}")
        if self._xids.reason is not None:
            reasons["xid_last_count"] = self._xids.reason
        return NvmlRead(
            gpus=tuple(device.part(session.driver_version) for device in self._devices),
            source="gpm" if profiled else "nvml",
            reasons={**reasons, **self._lost},
            processes={device.key: device.pids for device in self._devices},
        )

    def close(self) -> None:
        """Give everything back."""
        self._stop()
        self._probe.close()
