"""The host's evidence: the engine's processes, its cgroup, pressure, and its command line.

Read in a thread, since /proc blocks while a process's memory map is locked. While a read is
still going the next one says so and starts no second thread.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from boundby.sources.base import SourceError
from boundby.sources.host_read import HostRead, Reader
from boundby.sources.tree import Tree

__all__ = ["HostRead", "HostSource"]

DEADLINE_SECONDS = 1.0
"""How long a read may take by default; a usual one takes a few milliseconds."""


class HostSource:
    """The host below `root`; `port` tells our engine from others on the same machine.

    `reading` is what reads once, and blocks while it does; by default the files below `root`.
    """

    name = "host"

    def __init__(
        self,
        root: str | Path = "/",
        *,
        port: int | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
        ticks_per_second: float | None = None,
        reading: Callable[[], HostRead] | None = None,
    ) -> None:
        self._root = Path(root)
        ticks = ticks_per_second or float(os.sysconf("SC_CLK_TCK"))
        self._reading = reading or Reader(Tree(root), port=port, ticks_per_second=ticks).read
        self._deadline = deadline_seconds
        self._going: asyncio.Future[HostRead] | None = None

    async def read(self) -> HostRead:
        """Read once; raises nothing but `SourceError`."""
        if self._going is not None and not self._going.done():
            problem = "the read before has not come back"
            raise SourceError(
                self.name, problem, "/proc hangs while a process's memory is locked."
            )
        self._going = asyncio.ensure_future(asyncio.to_thread(self._reading))
        try:
            async with asyncio.timeout(self._deadline):
                return await asyncio.shield(self._going)
        except TimeoutError as error:
            self._going.add_done_callback(_forget)
            problem = f"no answer from {self._root / 'proc'} within {self._deadline:g} s"
            raise SourceError(self.name, problem, "Is the machine out of memory?") from error
        except OSError as error:
            problem = f"{self._root / 'proc'} cannot be read ({error.strerror or error})"
            hint = "Is host.root the folder that holds proc and sys?"
            raise SourceError(self.name, problem, hint) from error


def _forget(going: asyncio.Future[HostRead]) -> None:
    """Take a late error, so that nobody complains that it was never looked at."""
    if not going.cancelled():
        going.exception()
