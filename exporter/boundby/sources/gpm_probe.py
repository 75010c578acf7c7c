"""Tries GPM in a process of its own, since a driver can be left unusable by it.

`python -m boundby.sources.gpm_probe` prints one JSON object: for each GPU and MIG instance ""
where GPM may be used, else why not. `Probe` is the other end: it starts the child, and asks
after it without waiting.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from boundby.sources import gpm
from boundby.sources.nvml_device import Device, NvmlCallError
from boundby.sources.nvml_session import Session

PAUSE_SECONDS = 0.12
"""Between the two samples; the driver wants 0.1."""

PROBE_SECONDS = 20.0
"""How long a child may take; without persistence mode the driver wakes up GPU by GPU."""

BEING_TRIED = "GPM is being tried in a process of its own"


def try_gpm(library: Any) -> dict[str, str]:
    """Sample every GPU twice; "" or why not, by GPU."""
    session = Session(library)
    session.open()
    devices, _ = session.devices()
    found: dict[str, str] = {}
    reader = gpm.Gpm(library, session.ask)
    for device in devices:
        found[device.key] = gpm.refused(device, session.driver_version) or _try(
            session, reader, device
        )
    reader.close()
    session.close()
    return found


def _try(session: Session, reader: gpm.Gpm, device: Device) -> str:
    ask = session.ask
    owner = device.parent or device
    try:
        before = ask("nvmlDeviceGetMemoryInfo", owner.handle)
        if not gpm.supported(ask, device):
            return "this GPU has no GPM (Hopper and later have)"
        reader.read(device, time.monotonic())
        time.sleep(PAUSE_SECONDS)
        values = reader.read(device, time.monotonic())
    except NvmlCallError as error:
        return str(error)
    try:
        after = ask("nvmlDeviceGetMemoryInfo", owner.handle)
    except NvmlCallError as error:
        return f"GPM breaks NVML with this driver ({error}). Update the driver"
    if after.total != before.total:
        return "GPM breaks NVML with this driver. Update the driver"
    return "" if values else "; ".join(sorted(set(device.gpm_reasons.values())))


class Probe:
    """A child that tries GPM, started by the first question."""

    def __init__(self, seconds: float = PROBE_SECONDS) -> None:
        self._seconds = seconds
        self._child: subprocess.Popen[str] | None = None
        self._begun = 0.0
        self._found: Mapping[str, str] | None = None
        self._failed: str | None = None

    def why_not(self, key: str, now: float) -> str | None:
        """Say why GPM of a GPU is not used (yet); None where it may be. Never waits."""
        if self._found is None and self._failed is None:
            self._look(now)
        if self._failed is not None:
            return self._failed
        if self._found is None:
            return BEING_TRIED
        return self._found.get(key, "GPM was not tried on this GPU") or None

    def knows(self, keys: Iterable[str]) -> bool:
        """Whether these GPUs were there when it tried, or it has not ended yet."""
        return self._found is None or set(keys) <= set(self._found)

    def _look(self, now: float) -> None:
        if self._child is None:
            self._begun = now
            try:
                self._child = subprocess.Popen(  # noqa: S603  our own module, by our own Python
                    [sys.executable, "-m", "boundby.sources.gpm_probe"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            except OSError as error:
                self._failed = f"GPM could not be tried: no child process ({error.strerror})"
            return
        code = self._child.poll()
        if code is None:
            if now - self._begun > self._seconds:
                self.close()
                self._failed = f"GPM hangs with this driver: no end within {self._seconds:g} s"
            return
        said = self._child.stdout.read() if self._child.stdout else ""
        self.close()
        try:
            self._found = dict(json.loads(said))
        except ValueError:
            self._failed = f"GPM could not be tried: the child ended with {code}"

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            child.kill()
        if child.stdout:
            child.stdout.close()
        try:
            child.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return  # stuck in the driver; it is dead as soon as the driver lets it go


def main() -> int:
    """Print what was found; 1 where NVML itself says no."""
    import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415  # it ships no types

    try:
        found = try_gpm(pynvml)
    except NvmlCallError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
