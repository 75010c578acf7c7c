"""NVML initialised: calls by name, and the GPUs and MIG instances that are there.

A driver that was replaced under a running process is met by letting the library go, so that the
next session loads the new one; the binding never does so itself.
"""

import _ctypes
import contextlib
from typing import Any

from boundby.sources import nvml_errors as errors
from boundby.sources.nvml_device import Device, NvmlCallError

NO_INSTANCE = 0xFFFFFFFF


class Session:
    """One initialisation of NVML. `doing` names the call that is out, for who waits for it."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._older = getattr(library, "NVMLLibraryMismatchError", library.NVMLError)
        self.doing = "NVML"
        self.driver_version: str | None = None

    def ask(self, function: str, *arguments: Any) -> Any:
        """Call a function of the binding; raises NvmlCallError with its return code.

        A function that an older binding lacks counts as one that the library lacks.
        """
        call = getattr(self._library, function, None)
        if call is None:
            raise NvmlCallError(errors.FUNCTION_NOT_FOUND, function)
        self.doing = function
        try:
            return call(*arguments)
        except self._library.NVMLError as error:
            raise NvmlCallError(int(error.value), function) from None
        except self._older:  # newer bindings' word for a symbol that an older library lacks
            raise NvmlCallError(errors.FUNCTION_NOT_FOUND, function) from None

    def open(self) -> None:
        """Initialise; raises NvmlCallError."""
        self.ask("nvmlInit")
        with contextlib.suppress(NvmlCallError):
            self.driver_version = text(self.ask("nvmlSystemGetDriverVersion"))

    def close(self) -> None:
        """Shut down, as far as the driver lets us."""
        with contextlib.suppress(NvmlCallError):
            self.ask("nvmlShutdown")

    def unload(self) -> None:
        """Let the library go, so that the next call loads what is installed now."""
        loaded = getattr(self._library, "nvmlLib", None)
        pointers = getattr(self._library, "_nvmlGetFunctionPointer_cache", None)
        if loaded is None or pointers is None:
            return
        pointers.clear()
        self._library.nvmlLib = None
        with contextlib.suppress(OSError):
            _ctypes.dlclose(loaded._handle)  # noqa: SLF001  ctypes has no public way

    def count(self) -> int:
        """How many GPUs there are."""
        return int(self.ask("nvmlDeviceGetCount"))

    def devices(self) -> tuple[list[Device], dict[str, str]]:
        """Find the GPUs and their MIG instances; and why some could not be opened."""
        found: list[Device] = []
        reasons: dict[str, str] = {}
        for index in range(self.count()):
            try:
                device = self._device(index)
            except NvmlCallError as error:
                if error.code in errors.DRIVER_GONE:
                    raise
                reasons[f"gpu {index}"] = str(error)
                continue
            found.append(device)
            if device.mig:
                found += self._instances(device)
        return found, reasons

    def _device(self, index: int) -> Device:
        handle = self.ask("nvmlDeviceGetHandleByIndex", index)
        uuid = self._text("nvmlDeviceGetUUID", handle)
        capability = self._maybe("nvmlDeviceGetCudaComputeCapability", handle)
        return Device(
            handle=handle,
            key=uuid or str(index),
            index=index,
            uuid=uuid,
            name=self._text("nvmlDeviceGetName", handle),
            mig=self.mig(handle),
            compute_capability=None if capability is None else f"{capability[0]}.{capability[1]}",
        )

    def mig(self, handle: Any) -> bool:
        """Whether the GPU is in MIG mode now."""
        mode = self._maybe("nvmlDeviceGetMigMode", handle)
        return mode is not None and mode[0] == 1

    def _instances(self, parent: Device) -> list[Device]:
        """Find the GPU instances; several compute instances of one are one."""
        found: dict[int, Device] = {}
        most = self._maybe("nvmlDeviceGetMaxMigDeviceCount", parent.handle) or 0
        for slot in range(most):
            handle = self._maybe("nvmlDeviceGetMigDeviceHandleByIndex", parent.handle, slot)
            instance = (
                None if handle is None else self._maybe("nvmlDeviceGetGpuInstanceId", handle)
            )
            if handle is None or instance is None:
                continue  # the slots in use need not be the first ones
            found.setdefault(
                instance,
                Device(
                    handle=handle,
                    key=f"{parent.key}/{instance}",
                    index=parent.index,
                    uuid=parent.uuid,
                    name=parent.name,
                    instance=instance,
                    parent=parent,
                    compute_capability=parent.compute_capability,
                ),
            )
        return list(found.values())

    def _text(self, function: str, handle: Any) -> str | None:
        value = self._maybe(function, handle)
        return None if value is None else text(value)

    def _maybe(self, function: str, *arguments: Any) -> Any:
        """Ask what a GPU need not have; None where it has not."""
        try:
            return self.ask(function, *arguments)
        except NvmlCallError as error:
            if error.code in errors.DRIVER_GONE or error.code in errors.GPU_GONE:
                raise
            return None


def text(value: bytes | str) -> str:
    """Return text of what older bindings give as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
