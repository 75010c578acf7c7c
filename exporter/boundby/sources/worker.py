"""One thread for calls that may block for ever, so that the event loop never does.

At most one call is out at a time. One that does not come back is waited for by nobody: further
calls are refused at once until it does, and then the same thread goes on. So a hung driver
costs one thread, however long it hangs and however often it is asked.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

_Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class BusyError(Exception):
    """The call before has not come back yet."""


class Worker:
    """A daemon thread, begun with the first call; a process with a hung one can still end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._busy = threading.Event()

    @property
    def busy(self) -> bool:
        """Whether a call is out."""
        return self._busy.is_set()

    async def run(self, call: Callable[[], ResultT], deadline_seconds: float) -> ResultT:
        """Make a call; `TimeoutError` at the deadline, `BusyError` when one is out already."""
        if self.busy:
            raise BusyError(self._name)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._busy.set()
        self._jobs.put((call, loop, future))
        async with asyncio.timeout(deadline_seconds):
            result: ResultT = await future
        return result

    def stop(self) -> None:
        """Let the thread end once it is idle."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread = None

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            call, loop, future = job
            result: Any = None
            error: BaseException | None = None
            try:
                result = call()
            except BaseException as raised:  # noqa: BLE001  it is raised where it was asked for
                error = raised
            self._busy.clear()
            with contextlib.suppress(RuntimeError):  # the loop that asked has closed
                loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():
        return  # nobody waits for it any more
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
