"""The inputs of a verdict: for each what was seen, what it improves, and what supplies it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from boundby.app.doctor_csv import fields_for
from boundby.app.doctor_sight import Sight
from boundby.core.hardware import find
from boundby.sources.host_search import DEFAULT_PORTS

Tier = Literal["needed", "useful", "extra"]
"""`needed`: no verdict without it. `useful`: limits go unjudged or are told with less confidence.
`extra`: it says more of a cause that is named without it."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one check found; `there` is None where the input does not apply here."""

    there: bool | None
    says: str
    remedy: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One input: its tier, what it improves, how to look for it, and what supplies it."""

    name: str
    tier: Tier
    improves: str
    look: Callable[[Sight], Look]
    remedy: tuple[str, ...]


def yes(says: str) -> Look:
    """Say that an input is there."""
    return Look(there=True, says=says)


def no(says: str, *remedy: str) -> Look:
    """Say that an input is missing, with a remedy that fits better than the check's own."""
    return Look(there=False, says=says, remedy=remedy)


def beside(says: str) -> Look:
    """Say that an input is of no use here."""
    return Look(there=None, says=says)


def _engine(sight: Sight) -> Look:
    if sight.engine is None:
        command = None if sight.host is None else sight.host.command
        if "engine" in sight.problems or command is None:
            return no(sight.problems.get("engine", "no address is set"))
        port = command.port or DEFAULT_PORTS[command.setup.kind]
        return no(
            f"no address is set, and {command.setup.kind} runs here on port {port}",
            f"boundby run --engine http://127.0.0.1:{port}",
        )
    engines = sight.engine.engines
    models = ", ".join(sorted({part.model_name for part in engines if part.model_name}))
    count = f"{len(engines)} engine{'' if len(engines) == 1 else 's'}"
    return yes(f"{sight.engine.kind}, {count}{f', {models}' if models else ''}")


def _engine_rows(sight: Sight) -> Look:
    if sight.engine is None:
        return beside("the engine's page was not read")
    if sight.engine.missing:
        return no(f"the page lacks {', '.join(sight.engine.missing)}")
    return yes("every expected row is there")


def _activity(sight: Sight) -> Look:
    if sight.tier == "counters":
        lacking = [
            name for name in ("dram_active_ratio", "tensor_active_ratio")
            if name not in sight.values
        ]  # fmt: skip
        if lacking:
            return no(f"the page lacks {', '.join(lacking)}", *_rows(*lacking))
        return yes("cycles of the memory and tensor pipes")
    if sight.dcgm is not None and sight.dcgm.gpus:
        return no(
            "the dcgm-exporter page has no PROF rows",
            *_rows("engine_active_ratio", "dram_active_ratio", "tensor_active_ratio"),
        )
    if sight.nvml is not None and sight.nvml.gpus:
        reasons = getattr(sight.nvml, "reasons", {})
        why = reasons.get("dram_active_ratio") or reasons.get("gpm")
        return no(f"NVML gives a busy share alone{f' ({why})' if why else ''}")
    return beside("no GPU is visible")


def _rows(*facts: str) -> tuple[str, ...]:
    listed = ", ".join(fields_for(facts))
    return (
        f"dcgm-exporter: add to its CSV the rows {listed}",
        "boundby doctor --dcgm-csv > boundby.csv; dcgm-exporter -f boundby.csv",
    )


def _gpus(sight: Sight) -> Look:
    if sight.gpus:
        names = sorted({gpu.name or "unnamed" for gpu in sight.gpus})
        source = "dcgm-exporter" if sight.dcgm is not None and sight.dcgm.gpus else "NVML"
        return yes(f"{len(sight.gpus)} by {source}: {', '.join(names)}")
    said = [
        f"{name}: {sight.problems[name]}" for name in ("dcgm", "nvml") if name in sight.problems
    ]
    return no("; ".join(said) or "no dcgm-exporter page is set and NVML is switched off")


def _known_gpu(sight: Sight) -> Look:
    names = {gpu.name for gpu in sight.gpus if gpu.name}
    names |= {gpu.name for gpu in sight.setup.gpus if gpu.name}
    if not names:
        return no("no source names the GPU") if sight.gpus else beside("no GPU is visible")
    unknown = sorted(name for name in names if find(name) is None)
    if unknown:
        return no(f"{', '.join(unknown)} is not in the hardware table")
    return yes(", ".join(sorted(names)))


def _pairing(sight: Sight) -> Look:
    if not sight.gpus:
        return beside("no GPU is visible")
    pairing = sight.pairing
    if not pairing.gpus:
        return no(_short(pairing.ambiguous_reason))
    return yes(f"{len(pairing.gpus)} of {len(sight.gpus)}, by {pairing.how.replace('_', ' ')}")


def _model(sight: Sight) -> Look:
    if sight.setup.model_config is not None:
        origin = sight.setup.origins.get("model_config", "settings")
        return yes(f"from {origin}")
    reasons = {} if sight.host is None else sight.host.reasons
    return no(reasons.get("model_config", "the model's config.json is not known"))


def _cap(field: str, fact: str) -> Callable[[Sight], Look]:
    def look(sight: Sight) -> Look:
        value = getattr(sight.setup, field)
        if value is not None:
            return yes(f"{value} from {sight.setup.origins.get(field, 'settings')}")
        if sight.engine is not None and any(fact in e.gauges for e in sight.engine.engines):
            return yes("on the engine's page")
        if sight.host is not None and sight.host.command is not None:
            return no("the engine's command line leaves it at its default")
        return no("the engine does not export it, and its command line is out of sight")

    return look


def _parallel(sight: Sight) -> Look:
    setup = sight.setup
    if setup.tensor is not None:
        return yes(f"tensor {setup.tensor} from {setup.origins.get('tensor', 'settings')}")
    if len(sight.gpus) <= 1:
        return beside("one GPU" if sight.gpus else "no GPU is visible")
    if sight.host is not None and sight.host.command is not None:
        return yes("tensor 1, which the engine's command line leaves at its default")
    return no(f"{len(sight.gpus)} GPUs, and how the model is spread over them is not known")


def _processes(sight: Sight) -> Look:
    if sight.host is None:
        return no(sight.problems.get("host", "reading the host is switched off"))
    if sight.host.engine_pids:
        count = len(sight.host.engine_pids)
        return yes(f"{count} process{'' if count == 1 else 'es'} of the engine")
    return no(_short(sight.host.reasons.get("engine_core_cpu_seconds_total", "none is visible")))


def _short(reason: str) -> str:
    """Return a reason without what would help, which the check says itself."""
    return reason.partition("; ")[0]


def _host_facts(*facts: str, good: str = "", needs_engine: bool = True) -> Callable[[Sight], Look]:
    """Look for facts of the host; the first that is missing says why."""

    def look(sight: Sight) -> Look:
        if sight.host is None:
            return no(sight.problems.get("host", "reading the host is switched off"))
        if needs_engine and not sight.host.engine_pids:
            return beside("no process of the engine is visible")
        part = sight.host.part
        lacking = [name for name in facts if name not in part.gauges and name not in part.counters]
        if lacking:
            return no(_short(sight.host.reasons.get(lacking[0], f"{lacking[0]} was not read")))
        return yes(good or ", ".join(_shown(part, name) for name in facts))

    return look


def _shown(part: object, name: str) -> str:
    value = {**getattr(part, "gauges", {}), **getattr(part, "counters", {})}[name]
    return f"{name} {value:g}"


def _quota(sight: Sight) -> Look:
    look = _host_facts("cpu_quota_cores_count", "cpu_throttled_periods_total")(sight)
    if look.there is False and look.says == "the engine's cgroup has no CPU limit":
        return yes(look.says)
    return look


def _gpu_facts(*facts: str) -> Callable[[Sight], Look]:
    def look(sight: Sight) -> Look:
        if not sight.gpus:
            return beside("no GPU is visible")
        if any(fact in sight.values for fact in facts):
            return yes(", ".join(fact for fact in facts if fact in sight.values))
        if sight.dcgm is not None and sight.dcgm.gpus:
            return no("the dcgm-exporter page has no such row", *_rows(*facts))
        reasons = getattr(sight.nvml, "reasons", {})
        said = [reasons[fact] for fact in facts if fact in reasons]
        return no(said[0] if said else "NVML does not give it on this GPU")

    return look


def _links(sight: Sight) -> Look:
    if len(sight.pairing.gpus or sight.gpus) <= 1:
        return beside("one GPU" if sight.gpus else "no GPU is visible")
    return _gpu_facts(
        "nvlink_tx_bytes_per_second", "nvlink_rx_bytes_per_second", "nvlink_bytes_per_second",
        "nvlink_bytes_total", "pcie_tx_bytes_per_second",
    )(sight)  # fmt: skip


SHARED_PIDS = (
    "Kubernetes, in the pod's spec: shareProcessNamespace: true",
    "Docker: --pid=container:ENGINE_CONTAINER",
    "Across users: run boundby as the engine's user, or add the capability SYS_PTRACE",
)

CHECKS = (
    Check(
        name="engine page",
        tier="needed",
        improves="everything: without it there is no verdict",
        look=_engine,
        remedy=("boundby run --engine http://HOST:8000", "or BOUNDBY_ENGINE_URL=http://HOST:8000"),
    ),
    Check(
        name="engine rows",
        tier="needed",
        improves="demand, kv_capacity and batch_slots are told by them",
        look=_engine_rows,
        remedy=("vLLM: start it without --disable-log-stats", "SGLang: add --enable-metrics"),
    ),
    Check(
        name="GPU",
        tier="useful",
        improves="what the GPU does while the engine waits; power, heat and clocks",
        look=_gpus,
        remedy=(
            "With dcgm-exporter on the node: --gpu-url http://NODE_IP:9400/metrics, where "
            "Kubernetes gives NODE_IP by fieldRef status.hostIP",
            "With NVML: runtimeClassName: nvidia, and in the container's env "
            "NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=utility",
        ),
    ),
    Check(
        name="GPU activity",
        tier="useful",
        improves="compute and memory_bandwidth as measured, and not as modelled",
        look=_activity,
        remedy=(
            "boundby doctor --dcgm-csv > boundby.csv; dcgm-exporter -f boundby.csv",
            'On Hopper and later NVML gives it: gpu.gpm = "auto" and no MIG',
        ),
    ),
    Check(
        name="GPU pairing",
        tier="useful",
        improves="that the GPUs judged are the engine's own",
        look=_pairing,
        remedy=(
            'gpu.devices = ["GPU-UUID", ...] in the settings, as nvidia-smi -L lists them',
            "Kubernetes with dcgm-exporter: env POD_NAME by fieldRef metadata.name",
        ),
    ),
    Check(
        name="GPU in the table",
        tier="useful",
        improves="ridge point, MFU and MBU",
        look=_known_gpu,
        remedy=('gpu.name = "H100 SXM" in the settings; boundby plan --gpu NAME tries a name',),
    ),
    Check(
        name="model config",
        tier="useful",
        improves="what a step must cost: compute, memory_bandwidth, kernel_latency, what-ifs",
        look=_model,
        remedy=(
            "--model-config /path/to/model (its folder or config.json), mounted read-only",
            *SHARED_PIDS[:1],
        ),
    ),
    Check(
        name="max_num_seqs",
        tier="useful",
        improves="batch_slots is known before the cap is reached",
        look=_cap("max_num_seqs", "batch_slots_sequences"),
        remedy=("--max-num-seqs N, as the engine logs it when it starts",),
    ),
    Check(
        name="max_num_batched_tokens",
        tier="extra",
        improves="token_budget, and how prompts are cut into steps",
        look=_cap("max_num_batched_tokens", "token_budget_tokens"),
        remedy=("--max-num-batched-tokens N, as the engine logs it when it starts",),
    ),
    Check(
        name="parallel sizes",
        tier="useful",
        improves="the cost of a step on each GPU, and interconnect",
        look=_parallel,
        remedy=("--tensor N",),
    ),
    Check(
        name="engine processes",
        tier="useful",
        improves="cpu_scheduling names its cause; flags that the page lacks are read",
        look=_processes,
        remedy=SHARED_PIDS,
    ),
    Check(
        name="run-queue time",
        tier="extra",
        improves="cpu_scheduling: too few cores, or others on them",
        look=_host_facts("engine_core_run_queue_seconds_total", good="of the engine core"),
        remedy=SHARED_PIDS,
    ),
    Check(
        name="CPU limit",
        tier="useful",
        improves="cpu_scheduling: throttling by the container's own limit",
        look=_quota,
        remedy=(
            *SHARED_PIDS,
            "or mount the machine's cgroups: hostPath /sys/fs/cgroup, read-only, with hostPID",
        ),
    ),
    Check(
        name="CPU pressure",
        tier="extra",
        improves="cpu_scheduling: whether anything waits for a CPU",
        look=_host_facts("cpu_pressure_ratio", needs_engine=False),
        remedy=("Linux 4.20 or later with CONFIG_PSI=y, booted with psi=1",),
    ),
    Check(
        name="throttle time",
        tier="extra",
        improves="power and thermal as shares of time, and not as a bit",
        look=_gpu_facts(
            "power_violation_seconds_total", "power_throttled_ratio",
            "thermal_violation_seconds_total",
        ),
        remedy=_rows("power_violation_seconds_total", "thermal_violation_seconds_total"),
    ),
    Check(
        name="link rates",
        tier="extra",
        improves="interconnect as measured",
        look=_links,
        remedy=_rows("nvlink_tx_bytes_per_second", "nvlink_rx_bytes_per_second"),
    ),
)  # fmt: skip
"""Every input, the most needed first."""
