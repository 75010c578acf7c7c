"""NVIDIA GPUs through NVML in this process, in a thread of their own.

NVML blocks, and hangs when a driver does. A read waits for it no longer than its deadline; a
call that does not come back makes the source down, naming the call, until it does.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pynvml  # type: ignore[import-untyped]  # it ships no types

from boundby.core.parts import GpuPart
from boundby.sources import nvml_errors as errors
from boundby.sources.base import SourceError
from boundby.sources.gpm import APART_SECONDS, ONE_SAMPLE
from boundby.sources.gpm_probe import BEING_TRIED, Probe
from boundby.sources.nvml_driver import Driver, GpmMode, NvmlRead
from boundby.sources.worker import BusyError, Worker

SETTLE_SECONDS = 8.0
"""How long a single look waits for GPM; the child that tries it takes less than a second."""

CLOSE_SECONDS = 1.0
"""How long closing may take; a driver that hangs keeps what it has."""


class NvmlSource:
    """All GPUs of this machine that the driver shows us."""

    name = errors.NAME

    def __init__(
        self,
        *,
        library: Any = pynvml,
        clock: Callable[[], float] = time.monotonic,
        deadline_seconds: float = 2.0,
        gpm: GpmMode = "auto",
        probe: Callable[[], Probe] = Probe,
    ) -> None:
        self._clock = clock
        self._deadline = deadline_seconds
        self._driver = Driver(library, clock, gpm, probe)
        self._worker = Worker("boundby-nvml")
        self._begun = 0.0

    @property
    def hangs(self) -> bool:
        """Whether a call is out that nobody waits for any more, or is waited for now."""
        return self._worker.busy

    async def read(self) -> NvmlRead:
        """Read every GPU once; raises nothing but SourceError."""
        if not self._worker.busy:
            self._begun = self._clock()
        try:
            return await self._worker.run(self._driver.read, self._deadline)
        except BusyError:
            raise self._hung() from None
        except TimeoutError:
            raise self._hung() from None
        except SourceError:
            raise
        except Exception as error:
            raise SourceError(
                self.name,
                f"the binding failed ({type(error).__name__}: {error})",
                hint="Is another package installed under the name pynvml?",
            ) from error

    async def settled(self, patience_seconds: float = SETTLE_SECONDS) -> NvmlRead:
        """Read until GPM has been tried and has its two samples, for who reads once only."""
        until = time.monotonic() + patience_seconds
        while True:
            read = await self.read()
            said = str(read.reasons.get("dram_active_ratio"))
            if not said.endswith((BEING_TRIED, ONE_SAMPLE)) or time.monotonic() > until:
                return read
            await asyncio.sleep(2 * APART_SECONDS)

    def _hung(self) -> SourceError:
        long = max(self._deadline, self._clock() - self._begun)
        return SourceError(
            self.name,
            f"{self._driver.doing} has not come back for {long:.1f} s",
            hint="A hung driver shows in dmesg; one without persistence mode wakes slowly.",
        )

    async def close(self) -> None:
        """Give the driver what we hold, unless it hangs."""
        try:
            await self._worker.run(self._driver.close, CLOSE_SECONDS)
        except (BusyError, TimeoutError):
            return
        finally:
            self._worker.stop()


def to_body(read: NvmlRead) -> dict[str, Any]:
    """Return a read as a recording keeps it: the GPUs under our own names."""
    return {"gpus": [_body(part) for part in read.gpus]}


def _body(part: GpuPart) -> dict[str, Any]:
    whole = {
        "gpu": part.gpu,
        "index": part.index,
        "uuid": part.uuid,
        "name": part.name,
        "mig_instance": part.mig_instance,
        "gauges": dict(part.gauges),
        "counters": dict(part.counters),
        "infos": dict(part.infos),
    }
    return {name: value for name, value in whole.items() if value is not None}


__all__ = ["NvmlRead", "NvmlSource", "to_body"]
