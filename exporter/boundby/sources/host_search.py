"""Which engine on this machine is ours: searched for rarely, kept while it lives."""

import errno
import re
from dataclasses import dataclass, field

from boundby.sources import proc
from boundby.sources.engine_command import parse
from boundby.sources.proc import Server
from boundby.sources.tree import Tree

SEARCH_EVERY = 15
"""Reads from one look at every process to the next; new processes are looked at each time."""

DEFAULT_PORTS = {"vllm": 8000, "sglang": 30000}
"""Where a server listens whose command line names no port."""

SHARE = (
    "share the engine's process namespace: shareProcessNamespace: true in the pod, "
    "--pid=container:ENGINE in Docker, hostPID or no container on a bare machine"
)
"""How a sidecar gets to see the engine's processes."""


@dataclass(slots=True)
class Search:
    """Finds the engine's server again at each read, at little cost."""

    tree: Tree
    port: int | None = None
    anew: bool = True
    _known: set[int] = field(default_factory=set)
    _reads: int = 0
    _server: Server | None = None
    _why: str = ""

    def __call__(self) -> tuple[Server | None, str]:
        """Return our server, or None and why; `OSError` where there is no /proc.

        `anew` tells whether every process was looked at.
        """
        now = proc.pids(self.tree)
        fresh = set(now) - self._known
        gone = self._server is not None and self._server.pid not in now
        self.anew = self._reads % SEARCH_EVERY == 0 or gone
        if not self.anew and fresh:
            self.anew = any(True for _ in proc.servers(self.tree, fresh)) or self._server is None
        self._reads += 1
        self._known = set(now)
        if self.anew:
            found = proc.servers(self.tree, now)
            self._server, self._why = choose(found, self.port)
            if not found:
                self._why = _nothing(self.tree, now)
        return self._server, self._why


def choose(found: tuple[Server, ...], port: int | None) -> tuple[Server | None, str]:
    """Choose the only server, or the one that listens on `port`; otherwise none, and why."""
    if not found:
        return None, "no engine runs here"
    ports = {server.pid: _port(server) for server in found}
    if len(found) == 1:
        (only,) = found
        at = ports[only.pid]
        if port is None or at is None or at == port:
            return only, ""
        return None, (
            f"the engine that runs here ({only.kind} {only.pid}) listens on port {at}, and "
            f"engine.url names {port}; a stranger's processes are not taken for ours"
        )
    ours = [server for server in found if port is not None and ports[server.pid] == port]
    if len(ours) == 1:
        return ours[0], ""
    listed = ", ".join(
        f"{server.kind} {server.pid}" + (f" on port {at}" if (at := ports[server.pid]) else "")
        for server in found
    )
    return None, (
        f"{len(found)} engines run here ({listed}) and which of them is ours is not clear; "
        "give engine.url the port of one"
    )


def _port(server: Server) -> int | None:
    if not server.argv:
        return None
    return parse(server.argv, server.kind).port or DEFAULT_PORTS[server.kind]


def _nothing(tree: Tree, pids: list[int]) -> str:
    """Say why no engine is seen."""
    if hidden := _hidepid(tree):
        return (
            f"/proc is mounted with hidepid={hidden}, which hides other users' processes; run as "
            "the engine's user, or in the group of the mount's gid= option"
        )
    if pids and _refused(tree, pids):
        return "other users' processes may not be read here; run as the engine's user"
    return f"no engine's process is visible here; {SHARE}"


def _hidepid(tree: Tree) -> str:
    try:
        mounts = tree.text("/proc/self/mounts")
    except OSError:
        return ""
    found = re.search(r"^\S+ /proc proc \S*\bhidepid=([^,\s]+)", mounts, re.MULTILINE)
    return found[1] if found and found[1] not in ("0", "off") else ""


def _refused(tree: Tree, pids: list[int]) -> bool:
    """Tell whether most processes may not be read."""
    refused = 0
    for pid in pids[:50]:
        try:
            tree.text(f"/proc/{pid}/stat")
        except OSError as error:
            refused += error.errno in (errno.EACCES, errno.EPERM)
    return refused * 2 > min(len(pids), 50)
