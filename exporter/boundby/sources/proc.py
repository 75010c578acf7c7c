"""What /proc says of one process, and which processes are the engine's.

vLLM names its processes (`VLLM::EngineCore`, `VLLM::EngineCore_DP1`, `VLLM::Worker_TP0`,
`VLLM::APIServer_0`), SGLang too (`sglang::scheduler_TP0`, `sglang::detokenizer`). The server that
started them keeps its command line. Releases that name nothing are told by descent: a server's
children are engine cores, and what those started are workers. /proc/PID/schedstat and
/proc/PID/status are those of the main thread alone, whatever their place suggests.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from boundby.sources.tree import Tree

Role = Literal["server", "api_server", "engine_core", "worker", "helper"]
"""`server` is the process whose command line the user wrote; alone it is the API server too."""

MOST_PROCESSES = 20_000
"""Processes that a search looks at."""

TITLES: tuple[tuple[str, str, Role], ...] = (
    ("VLLM::EngineCore", "vllm", "engine_core"),
    ("VLLM::DPEngineCore", "vllm", "engine_core"),
    ("VLLM::APIServer", "vllm", "api_server"),
    ("VLLM::Worker", "vllm", "worker"),
    ("VLLM::", "vllm", "helper"),
    ("sglang::scheduler", "sglang", "engine_core"),
    ("sglang::tokenizer", "sglang", "api_server"),
    ("sglang::", "sglang", "helper"),
)
"""How a title begins, whose it is, and its role."""

_SERVERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("vllm", re.compile(r"(^|/)vllm\0serve(\0|$)|\0-m\0vllm\.entrypoints\.(openai\.)?api_server")),
    ("vllm", re.compile(r"/vllm/entrypoints/(openai/|cli/)?(api_server|main)\.py(\0|$)")),
    ("vllm", re.compile(r"\0-m\0vllm\.entrypoints\.cli\.main\0serve(\0|$)")),
    ("sglang", re.compile(r"\0-m\0sglang\.launch_server(\0|$)|/sglang/launch_server\.py(\0|$)")),
    ("sglang", re.compile(r"(^|/)sglang\0serve(\0|$)")),
)
"""Command lines, their arguments apart by NUL, of the servers that a user starts."""

_ASIDE = re.compile(r"multiprocessing[./](resource_tracker|forkserver)")
"""Python's own helpers of multiprocessing: never an engine core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """Of /proc/PID/stat: parent, CPU time and start, both in clock ticks."""

    parent: int
    cpu_ticks: int
    start_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of an engine; `start_ticks` tells it from a later one of the same number."""

    pid: int
    kind: str
    role: Role
    start_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server with all that it started; `argv` is empty where only titles are seen."""

    kind: str
    pid: int
    argv: tuple[str, ...]
    processes: tuple[Process, ...]

    def of(self, role: Role) -> tuple[Process, ...]:
        """Its processes of one role."""
        return tuple(process for process in self.processes if process.role == role)


def stat(text: str) -> Stat:
    """Read a stat line; `ValueError` for half a line. The name may hold blanks and brackets."""
    fields = text[text.rindex(")") + 2 :].split()
    try:
        return Stat(
            parent=int(fields[1]),
            cpu_ticks=int(fields[11]) + int(fields[12]),
            start_ticks=int(fields[19]),
        )
    except IndexError as error:
        msg = f"a stat line of {len(fields) + 2} fields"
        raise ValueError(msg) from error


def schedstat(text: str) -> tuple[float, float]:
    """Seconds on a CPU and seconds waiting for one."""
    run, wait, *_ = text.split()
    return int(run) / 1e9, int(wait) / 1e9


def status(text: str) -> Mapping[str, str]:
    """Read the lines of a status file, by name."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def cores(listed: str) -> int:
    """Count the members of a list such as "0-3,8"."""
    count = 0
    for piece in filter(None, listed.strip().split(",")):
        first, _, last = piece.partition("-")
        count += int(last or first) - int(first) + 1
    return count


@dataclass(frozen=True, slots=True)
class _Seen:
    pid: int
    line: str
    stat: Stat


def pids(tree: Tree) -> list[int]:
    """Every process that is visible; `OSError` where there is no /proc."""
    return sorted(int(name) for name in tree.names("/proc") if name.isdecimal())[:MOST_PROCESSES]


def servers(tree: Tree, among: Iterable[int]) -> tuple[Server, ...]:
    """Find every engine's processes; one that ends meanwhile is passed over."""
    seen: dict[int, _Seen] = {}
    for pid in among:
        try:
            line = tree.text(f"/proc/{pid}/cmdline")
            if line:  # a kernel thread has none
                seen[pid] = _Seen(pid, line, stat(tree.text(f"/proc/{pid}/stat")))
        except (OSError, ValueError):
            continue
    kinds = {pid: kind for pid, one in seen.items() if (kind := _server_kind(one.line))}
    tops = {pid: kind for pid, kind in kinds.items() if seen[pid].stat.parent not in kinds}
    members: dict[int, list[_Seen]] = {pid: [] for pid in tops}
    strays: dict[str, list[_Seen]] = {}
    for one in seen.values():
        top = _top(one, seen, tops)
        if top is not None:
            members[top].append(one)
        elif titled := _titled(one.line):
            strays.setdefault(titled[0], []).append(one)
    found = [_server(seen[pid], kind, members[pid], seen) for pid, kind in tops.items()]
    found += [
        # Their server is out of sight, as when it runs elsewhere or is named by a wrapper.
        Server(kind=kind, pid=ones[0].pid, argv=(), processes=_roles(kind, None, ones, seen))
        for kind, ones in strays.items()
    ]
    return tuple(sorted(found, key=lambda server: server.pid))


def _server_kind(line: str) -> str | None:
    return next((kind for kind, pattern in _SERVERS if pattern.search(line)), None)


def _titled(line: str) -> tuple[str, Role] | None:
    return next(((kind, role) for start, kind, role in TITLES if line.startswith(start)), None)


def _top(one: _Seen, seen: Mapping[int, _Seen], tops: Mapping[int, str]) -> int | None:
    """The server that `one` is, or descends from."""
    walked: set[int] = set()
    at: _Seen | None = one
    while at is not None and at.pid not in walked:
        if at.pid in tops:
            return at.pid
        walked.add(at.pid)
        at = seen.get(at.stat.parent)
    return None


def _server(top: _Seen, kind: str, members: list[_Seen], seen: Mapping[int, _Seen]) -> Server:
    argv = tuple(top.line.rstrip("\0").split("\0"))
    return Server(
        kind=kind, pid=top.pid, argv=argv, processes=_roles(kind, top.pid, members, seen)
    )


def _roles(
    kind: str, top: int | None, members: Iterable[_Seen], seen: Mapping[int, _Seen]
) -> tuple[Process, ...]:
    members = list(members)
    named = any(_titled(one.line) for one in members)
    roles: dict[int, Role] = {}
    for one in members:
        if one.pid == top:
            roles[one.pid] = "server"
        elif titled := _titled(one.line):
            roles[one.pid] = titled[1]
        elif named or _ASIDE.search(one.line):
            roles[one.pid] = "helper"
        else:
            roles[one.pid] = "engine_core" if one.stat.parent == top else "worker"
    if top is not None and "api_server" not in roles.values():
        roles[top] = "api_server"
    return tuple(
        Process(
            pid=one.pid, kind=kind, role=roles[one.pid], start_ticks=seen[one.pid].stat.start_ticks
        )
        for one in members
    )
