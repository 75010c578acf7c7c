"""CPU and run-queue time of processes and their busiest threads, added up read by read.

Every counter here starts at zero with the first read. That is what makes "the busiest thread"
a counter: each read adds the growth of the thread that grew most since the read before, so it
is right whichever thread is the busy one now, and it survives a restart of the engine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from boundby.sources import proc
from boundby.sources.proc import Process
from boundby.sources.tree import Tree

WATCHED = 24
"""Threads of one process that are read each time: the main one and those that grew most."""

MOST_THREADS = 512
"""Threads of one process that are looked at when the watched ones are chosen."""


@dataclass(slots=True)
class _Thread:
    cpu: float
    wait: float | None


@dataclass(slots=True)
class _Watched:
    """One process as it was at the last read."""

    cpu: float
    switches: float
    threads: dict[int, _Thread] = field(default_factory=dict)
    chosen: tuple[int, ...] = ()
    at_choice: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class Growth:
    """What one process used between two reads; None where /proc does not say."""

    cpu: float = 0.0
    busiest_cpu: float | None = None
    busiest_wait: float | None = None
    switches: float | None = None


@dataclass(slots=True)
class Totals:
    """Sums since the first read; None until something was read."""

    cpu: float | None = None
    busiest_cpu: float | None = None
    busiest_wait: float | None = None
    switches: float | None = None

    def add(self, growths: Iterable[Growth], *, together: bool = False) -> None:
        """Add the growth of the busiest process, or of all of them together."""
        grown = list(growths)
        if not grown:
            return
        if together:
            self.cpu = (self.cpu or 0.0) + sum(one.cpu for one in grown)
            return
        top = max(grown, key=lambda one: (one.busiest_cpu or one.cpu, one.cpu))
        self.cpu = _plus(self.cpu, top.cpu)
        self.busiest_cpu = _plus(self.busiest_cpu, top.busiest_cpu)
        self.busiest_wait = _plus(self.busiest_wait, top.busiest_wait)
        self.switches = _plus(self.switches, top.switches)


def _plus(total: float | None, growth: float | None) -> float | None:
    return total if growth is None else (total or 0.0) + growth


class ThreadTimes:
    """Remembers each process's times, so that a read gives what was used since the last."""

    def __init__(self, tree: Tree, ticks_per_second: float) -> None:
        self._tree = tree
        self._tick = 1.0 / ticks_per_second
        self._seen: dict[tuple[int, int], _Watched] = {}

    def forget_all_but(self, alive: Sequence[Process]) -> None:
        """Drop what is remembered of processes that are gone."""
        keep = {(process.pid, process.start_ticks) for process in alive}
        self._seen = {key: value for key, value in self._seen.items() if key in keep}

    def cpu(self, process: Process) -> Growth:
        """Growth of a process's CPU time alone; `OSError` once it has ended."""
        stat = self._stat(process)
        now = stat.cpu_ticks * self._tick
        seen = self._seen.setdefault((process.pid, process.start_ticks), _Watched(now, 0.0))
        growth = Growth(cpu=max(0.0, now - seen.cpu))
        seen.cpu = now
        return growth

    def threads(self, process: Process, *, choose: bool) -> Growth:
        """Growth with that of the busiest thread; `choose` picks anew which are watched."""
        growth = self.cpu(process)
        seen = self._seen[process.pid, process.start_ticks]
        if choose or not seen.chosen:
            self._choose(process, seen)
        self._busiest(process, seen, growth)
        return growth

    def _stat(self, process: Process) -> proc.Stat:
        try:
            stat = proc.stat(self._tree.text(f"/proc/{process.pid}/stat"))
        except ValueError as error:
            raise ProcessLookupError(3, "half a stat line", f"/proc/{process.pid}") from error
        if stat.start_ticks != process.start_ticks:
            raise ProcessLookupError(3, "another process has its number", f"/proc/{process.pid}")
        return stat

    def _choose(self, process: Process, seen: _Watched) -> None:
        tids = sorted(int(t) for t in self._tree.names(f"/proc/{process.pid}/task"))[:MOST_THREADS]
        now = {tid: found for tid in tids if (found := self._thread(process.pid, tid))}
        grown = sorted(now, key=lambda tid: seen.at_choice.get(tid, 0.0) - now[tid].cpu)
        main = [process.pid] if process.pid in now else []
        seen.chosen = tuple(dict.fromkeys((*main, *grown)))[:WATCHED]
        seen.at_choice = {tid: thread.cpu for tid, thread in now.items()}
        seen.threads = {
            tid: seen.threads.get(tid, now[tid]) for tid in seen.chosen
        }  # a thread seen for the first time has grown by nothing yet

    def _busiest(self, process: Process, seen: _Watched, growth: Growth) -> None:
        for tid in seen.chosen:
            now = self._thread(process.pid, tid)
            if now is None:
                continue
            before = seen.threads.get(tid, now)
            cpu = max(0.0, now.cpu - before.cpu)
            wait = None if now.wait is None else max(0.0, now.wait - (before.wait or 0.0))
            seen.threads[tid] = now
            top = (growth.busiest_cpu or 0.0) + (growth.busiest_wait or 0.0)
            if growth.busiest_cpu is None or cpu + (wait or 0.0) > top:
                growth.busiest_cpu, growth.busiest_wait = cpu, wait

    def _thread(self, pid: int, tid: int) -> _Thread | None:
        """Read a thread's times: from schedstat, to the nanosecond, or else from stat."""
        task = f"/proc/{pid}/task/{tid}"
        try:
            return _Thread(*proc.schedstat(self._tree.text(f"{task}/schedstat")))
        except (OSError, ValueError):
            pass
        try:
            ticks = proc.stat(self._tree.text(f"{task}/stat")).cpu_ticks
        except (OSError, ValueError):
            return None
        return _Thread(ticks * self._tick, None)

    def switches(self, process: Process, count: float) -> float:
        """Growth of a count of involuntary context switches."""
        seen = self._seen[process.pid, process.start_ticks]
        before = seen.switches or count
        seen.switches = count
        return max(0.0, count - before)
