"""What NVML tells beside its readings: the XID errors of GPUs and the processes on them."""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

from boundby.sources import nvml_errors as errors
from boundby.sources.nvml_device import Ask, Device, NvmlCallError

XID_EVENT = 0x8
"""nvmlEventTypeXidCriticalError."""

MOST_EVENTS = 64
"""Events taken in one read; a storm of them must not hold it up."""

BROKEN_DRIVERS = ((535, 43), (535, 98))
"""From and before: drivers whose list of processes has entries of 32 bytes in place of 24."""

WIDE_ENTRY = 32


class Xids:
    """The last XID of each GPU, by the driver's events; outlives the sessions."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self._set: Any = None
        self._keys: dict[int, str] = {}
        self.reason: str | None = None

    def open(self, ask: Ask, devices: Iterable[Device]) -> None:
        """Ask to be told of the GPUs' XIDs; `reason` says why that is not to be had."""
        self._set, self._keys, self.reason = None, {}, None
        try:
            self._set = ask("nvmlEventSetCreate")
        except NvmlCallError as error:
            self.reason = str(error)
            return
        for device in devices:
            if device.parent is not None:
                continue
            try:
                ask("nvmlDeviceRegisterEvents", device.handle, XID_EVENT, self._set)
            except NvmlCallError as error:
                self.reason = str(error)
            else:
                self._keys[_address(device.handle)] = device.key
        if not self._keys:
            self.close(ask)

    def read(self, ask: Ask) -> None:
        """Take in what happened since; does not wait for more."""
        if self._set is None:
            return
        for _ in range(MOST_EVENTS):
            try:
                event = ask("nvmlEventSetWait", self._set, 0)
            except NvmlCallError as error:
                if error.code != errors.TIMEOUT:
                    self.reason = str(error)
                if error.code in errors.DRIVER_GONE:
                    raise
                return
            key = self._keys.get(_address(event.device))
            if key is not None and event.eventType & XID_EVENT:
                self.last[key] = int(event.eventData)

    def close(self, ask: Ask) -> None:
        """Give the event set back."""
        if self._set is not None:
            try:
                ask("nvmlEventSetFree", self._set)
            except NvmlCallError as error:
                self.reason = str(error)
            self._set = None


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def unreadable(library: Any, driver_version: str | None) -> str | None:
    """Say why this binding would read this driver's processes wrongly; None where it would not.

    Some R535 drivers and the bindings of their time had a wider entry, under the same name.
    """
    entry = getattr(library, "c_nvmlProcessInfo_t", None)
    wide_binding = entry is not None and ctypes.sizeof(entry) == WIDE_ENTRY
    numbers = [int(part) for part in (driver_version or "").split(".")[:2] if part.isdecimal()]
    first, behind = BROKEN_DRIVERS
    wide_driver = first <= tuple(numbers) < behind
    if wide_binding == wide_driver:
        return None
    return (
        f"this nvidia-ml-py and driver {driver_version} lay processes out differently. "
        "Update whichever is of R535"
    )


def read_pids(ask: Ask, devices: Sequence[Device]) -> None:
    """Give each GPU and instance the process ids on it, as the host numbers them.

    What runs on an instance is not its GPU's too: the GPU is shared with strangers.
    """
    for device in devices:
        if device.parent is not None or not device.lists_processes:
            continue
        device.reasons.pop("processes", None)
        try:
            entries = _entries(ask, device)
        except NvmlCallError as error:
            if error.code in errors.GPU_GONE or error.code in errors.DRIVER_GONE:
                raise
            device.reasons["processes"] = str(error)
            device.lists_processes = error.code not in errors.FINAL
            entries = []
        rest = list(entries)
        for instance in devices:
            if instance.parent is device:
                mine = [one for one in rest if one.gpuInstanceId == instance.instance]
                instance.pids = _pids(mine)
                rest = [one for one in rest if one not in mine]
        device.pids = _pids(rest)


def _entries(ask: Ask, device: Device) -> Sequence[Any]:
    """List the processes, by the call of drivers before R510 where there is no other."""
    try:
        found: Sequence[Any] = ask("nvmlDeviceGetComputeRunningProcesses", device.handle)
    except NvmlCallError as error:
        if error.code != errors.FUNCTION_NOT_FOUND:
            raise
        found = ask("nvmlDeviceGetComputeRunningProcesses_v2", device.handle)
    return found


def _pids(entries: Iterable[Any]) -> tuple[int, ...]:
    return tuple(sorted({int(entry.pid) for entry in entries}))
