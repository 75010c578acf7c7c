"""One blocking read of the host: facts of the engine's processes, and a reason for each absent."""

import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from boundby.core.parts import HostPart
from boundby.core.setup import Setup
from boundby.sources import cgroup, pressure, proc
from boundby.sources.engine_command import ORIGINS, Command, parse
from boundby.sources.host_search import Search
from boundby.sources.model_files import NoModelConfigError, model_config
from boundby.sources.proc import Process, Role, Server
from boundby.sources.thread_times import Growth, ThreadTimes, Totals
from boundby.sources.tree import Tree

ROLE_FACTS: Mapping[Role, tuple[str, ...]] = {
    "engine_core": (
        "engine_core_cpu_seconds_total",
        "engine_core_busiest_thread_cpu_seconds_total",
        "engine_core_run_queue_seconds_total",
        "context_switches_total",
    ),
    "api_server": (
        "api_server_cpu_seconds_total",
        "api_server_busiest_thread_cpu_seconds_total",
        "api_server_run_queue_seconds_total",
    ),
    "worker": ("worker_cpu_seconds_total",),
}
CGROUP_FACTS = (
    "cpu_quota_cores_count",
    "cpu_throttled_seconds_total",
    "cpu_throttled_periods_total",
    "cpu_periods_total",
)
VISIBLE = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
"""The only variables of an engine's environment that are kept."""

NO_SCHEDSTAT = "this kernel keeps no run-queue times (built without CONFIG_SCHED_INFO)"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRead:
    """What one read gave; `reasons` says for each fact that is absent why, and what brings it.

    `setup` is what the engine's command line says, `command` all of it that was understood.
    `visible` holds the engine's own CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES where they
    may be read; `server_pid` is its server's, `engine_pids` are all of its processes.
    """

    part: HostPart
    reasons: Mapping[str, str] = field(default_factory=dict)
    setup: Setup = field(default_factory=Setup)
    command: Command | None = None
    engine_pids: frozenset[int] = frozenset()
    server_pid: int | None = None
    visible: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Draft:
    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    infos: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def lacks(self, names: Iterable[str], why: str) -> None:
        for name in names:
            self.reasons[name] = why


@dataclass(slots=True)
class _Fixed:
    """What does not change while one server lives."""

    pid: int
    command: Command | None
    setup: Setup
    visible: Mapping[str, str]
    reasons: Mapping[str, str]


class Reader:
    """Reads the host again and again, and remembers what a counter needs."""

    def __init__(self, tree: Tree, *, port: int | None, ticks_per_second: float) -> None:
        self._tree = tree
        self._search = Search(tree, port)
        self._times = ThreadTimes(tree, ticks_per_second)
        self._totals = {role: Totals() for role in ROLE_FACTS}
        self._fixed: _Fixed | None = None

    def read(self) -> HostRead:
        """Read once; `OSError` where there is no /proc at all."""
        draft = _Draft()
        server, why = self._search()
        self._read_pressure(draft, None)
        if server is None:
            draft.lacks((name for names in ROLE_FACTS.values() for name in names), why)
            draft.lacks((*CGROUP_FACTS, *CORES, "engine_command"), why)
            return HostRead(part=_part(draft), reasons=draft.reasons)
        for role in ROLE_FACTS:
            self._read_role(server, role, draft)
        self._read_cgroup(server, draft)
        fixed = self._read_fixed(server)
        if fixed.command is not None:
            draft.infos["engine_command"] = fixed.command.shown
        draft.reasons.update(fixed.reasons)
        return HostRead(
            part=_part(draft),
            reasons=draft.reasons,
            setup=fixed.setup,
            command=fixed.command,
            engine_pids=frozenset(process.pid for process in server.processes),
            server_pid=server.pid,
            visible=fixed.visible,
        )

    def _read_role(self, server: Server, role: Role, draft: _Draft) -> None:
        growths: list[Growth] = []
        total = self._totals[role]
        problem: OSError | None = None
        for process in server.of(role):
            try:
                growths.append(self._growth(process, role))
            except OSError as error:
                problem = error
        total.add(growths, together=role == "worker")
        if self._search.anew:
            self._times.forget_all_but(server.processes)
        names = ROLE_FACTS[role]
        if not growths:
            draft.lacks(names, _no_process(role, server, problem))
            return
        given = (total.cpu, total.busiest_cpu, total.busiest_wait, total.switches)
        for name, value in zip(names, given, strict=False):
            if value is not None:
                draft.counters[name] = value
            else:
                draft.reasons[name] = NO_SCHEDSTAT if "run_queue" in name else _UNREAD

    def _growth(self, process: Process, role: Role) -> Growth:
        if role == "worker":
            return self._times.cpu(process)
        growth = self._times.threads(process, choose=self._search.anew)
        if role == "engine_core":
            lines = proc.status(self._tree.text(f"/proc/{process.pid}/status"))
            count = lines.get("nonvoluntary_ctxt_switches", "")
            if count.isdecimal():
                growth.switches = self._times.switches(process, float(count))
        return growth

    def _read_cgroup(self, server: Server, draft: _Draft) -> None:
        process = next((p for role in _LIMITED for p in server.of(role)), server.processes[0])
        usable = None
        try:
            lines = proc.status(self._tree.text(f"/proc/{process.pid}/status"))
            usable = proc.cores(lines["Cpus_allowed_list"])
            draft.gauges["cpu_usable_cores_count"] = float(usable)
        except (OSError, KeyError, ValueError):
            draft.lacks(CORES, f"the affinity of process {process.pid} cannot be read")
        try:
            limits = cgroup.limits(self._tree, process.pid)
        except OSError as error:
            draft.lacks(CGROUP_FACTS, _no_cgroup(error))
            limits = None
        if limits is not None:
            self._read_pressure(draft, limits)
            _put_limits(limits, draft)
        if usable is not None:
            quota = draft.gauges.get("cpu_quota_cores_count", float(usable))
            draft.gauges["cpu_cores_count"] = min(quota, float(usable))

    def _read_pressure(self, draft: _Draft, limits: cgroup.Limits | None) -> None:
        """Take the cgroup's own pressure where it has one, else the machine's."""
        for resource in ("cpu", "memory"):
            name = f"{resource}_pressure_ratio"
            try:
                if limits is None:
                    draft.gauges[name] = pressure.machine_ratio(self._tree, resource)
                elif resource in limits.pressure:
                    draft.gauges[name] = pressure.some_ratio(limits.pressure[resource])
                    draft.reasons.pop(name, None)
            except (OSError, ValueError) as error:
                if name not in draft.gauges:
                    draft.reasons[name] = pressure.why_missing(self._tree, error)

    def _read_fixed(self, server: Server) -> _Fixed:
        if self._fixed is None or self._fixed.pid != server.pid:
            self._fixed = _fixed(self._tree, server)
        return self._fixed


CORES = ("cpu_usable_cores_count", "cpu_cores_count")

_LIMITED: tuple[Role, ...] = ("engine_core", "api_server", "worker")
"""Whose cgroup is read: the first of these that there is."""

_UNREAD = "its threads may not be read here; run as the engine's user"


def _part(draft: _Draft) -> HostPart:
    return HostPart(gauges=draft.gauges, counters=draft.counters, infos=draft.infos)


def _no_process(role: Role, server: Server, problem: OSError | None) -> str:
    if problem is not None and problem.errno in (errno.EACCES, errno.EPERM):
        return _UNREAD
    if role == "worker":
        return f"this {server.kind} runs no separate worker process"
    return f"no {role.replace('_', ' ')} process of {server.kind} {server.pid} is visible"


def _no_cgroup(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            "the engine's cgroup is out of sight; run as its user, add CAP_SYS_PTRACE, or mount "
            "the machine's /sys/fs/cgroup"
        )
    return "the engine's cgroup is not below /sys/fs/cgroup; mount the machine's, read-only"


def _put_limits(limits: cgroup.Limits, draft: _Draft) -> None:
    if limits.quota_cores is None:
        draft.lacks(CGROUP_FACTS, "the engine's cgroup has no CPU limit")
        return
    draft.gauges["cpu_quota_cores_count"] = limits.quota_cores
    for name, value in (
        ("cpu_throttled_seconds_total", limits.throttled_seconds),
        ("cpu_throttled_periods_total", limits.throttled_periods),
        ("cpu_periods_total", limits.periods),
    ):
        if value is not None:
            draft.counters[name] = value
        else:
            draft.reasons[name] = "cpu.stat of the engine's cgroup does not say"


def _fixed(tree: Tree, server: Server) -> _Fixed:
    reasons: dict[str, str] = {}
    setup, command = Setup(kind=server.kind, origins={"kind": "its processes"}), None
    if server.argv:
        command = parse(server.argv, server.kind)
        setup = command.setup
        try:
            setup = _with_model(tree, server, command)
        except NoModelConfigError as error:
            reasons["model_config"] = str(error)
        if command.config_file:
            reasons["config_file"] = (
                f"the engine also reads flags from {command.config_file}, which is not read here; "
                "set limits.max_num_seqs and the like if they stand there"
            )
    else:
        reasons["engine_command"] = f"the server that started {server.kind} is out of sight"
    visible: dict[str, str] = {}
    core = next((p for role in _LIMITED for p in server.of(role)), server.processes[0])
    try:
        visible = _visible(tree.data(f"/proc/{core.pid}/environ"))
    except OSError:
        reasons["visible_devices"] = (
            "the engine's environment may not be read here; run as its user, or add CAP_SYS_PTRACE"
        )
    return _Fixed(server.pid, command, setup, visible, reasons)


def _visible(environ: bytes) -> dict[str, str]:
    pairs = (entry.partition(b"=") for entry in environ.split(b"\0"))
    kept = {name.encode() for name in VISIBLE}
    return {n.decode(): v.decode("utf-8", errors="replace") for n, _, v in pairs if n in kept}


def _with_model(tree: Tree, server: Server, command: Command) -> Setup:
    """Add the model's config, and a weights' type that only an unquantised model allows."""
    if command.model is None:
        msg = "the engine's command line names no model; set model.config"
        raise NoModelConfigError(msg)
    config = model_config(tree, server.pid, command.model, command.download_dir)
    setup = command.setup
    origins = {
        **setup.origins,
        "model_config": f"the config.json that {ORIGINS[server.kind]} leads to",
    }
    quantised = command.quantization or config.get("quantization_config")
    if command.dtype and not quantised and setup.weights_dtype is None:
        origins["weights_dtype"] = ORIGINS[server.kind]
        return replace(setup, model_config=config, weights_dtype=command.dtype, origins=origins)
    return replace(setup, model_config=config, origins=origins)
