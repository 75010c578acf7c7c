"""Spans to a book: every fact, every estimate, and a reason for each that is missing."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from boundby.core.balance import COMPUTE, MEMORY, PRIORS, RESOURCES
from boundby.core.cost.fields import ConfigError
from boundby.core.cross import counter
from boundby.core.engine_facts import EngineFacts, engine_facts
from boundby.core.estimate import Estimate, Observed, estimate
from boundby.core.formula import Book, Value
from boundby.core.gpu_facts import gpu_facts
from boundby.core.hardware import Gpu, find
from boundby.core.prices import Prices, prices
from boundby.core.report import Missing
from boundby.core.setup import Setup
from boundby.core.signals import SIGNALS
from boundby.core.window import Span

ASSUMED_BATCH_ELASTICITY = 0.6
"""Taken for the gain of a larger batch where model or GPU are not known: decode at ordinary
batches reads mostly weights, which more sequences would share."""

PCIE_COLLECTIVES = 1e9
"""PCIe bytes/s that only collectives bring about: a step's inputs and outputs are thousandths."""

TIMES = {
    "compute": "compute_time_ratio",
    "memory": "memory_time_ratio",
    "interconnect": "interconnect_time_ratio",
    "kernel_latency": "kernel_latency_time_ratio",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All that is known of one engine in one window."""

    book: Book
    facts: Mapping[str, Value]
    engine: EngineFacts
    estimate: Estimate | None
    tier: str
    time: Mapping[str, float]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]
    assumed: bool
    price: Prices | None = None


@dataclass(slots=True)
class PriceList:
    """Prices by setup, worked out once; a config that cannot be read is remembered with why."""

    known: tuple[Setup, bool, Prices | None, str] | None = None

    def of(
        self, setup: Setup, gpu: Gpu | None, *, nvlink_silent: bool
    ) -> tuple[Prices | None, str]:
        """Return the prices, or None and the reason."""
        if self.known and self.known[0] is setup and self.known[1] is nvlink_silent:
            return self.known[2:]
        answer: tuple[Prices | None, str]
        if setup.model_config is None:
            answer = None, "the model's config.json is not known"
        elif gpu is None:
            names = {g.name for g in setup.gpus if g.name}
            answer = (
                None,
                f"{', '.join(sorted(names))!r} is not in the hardware table"
                if names
                else "the GPU's name is not known",
            )
        else:
            try:
                answer = prices(setup, gpu, nvlink_silent=nvlink_silent), ""
            except ConfigError as error:
                answer = None, f"the model's config.json cannot be read: {error}"
        self.known = (setup, nvlink_silent, *answer)
        return answer


def find_gpu(setup: Setup) -> Gpu | None:
    """The kind of GPU that a setup names."""
    for identity in setup.gpus:
        if identity.name:
            return find(identity.name, identity.memory_bytes)
    return None


def picture(
    span: Span,
    gpus: Mapping[str, Span],
    host: Span | None,
    setup: Setup,
    still_seconds: float,
    price_list: PriceList,
    peers: Mapping[str, float] | None = None,
) -> Picture:
    """Derive everything of one window."""
    gpu = find_gpu(setup)
    engine = engine_facts(span, setup)
    facts: dict[str, Value] = dict(engine.facts)
    reasons = dict(engine.reasons)
    device = gpu_facts(gpus, gpu)
    facts.update(device)
    if host is not None:
        facts.update(host.mean)
        for name in host.rise:
            if (rate := host.rate(name)) is not None:
                facts[f"{name.removesuffix('_total')}_per_second"] = rate
    tier = (
        "counters"
        if "engine_active_ratio" in device
        else "nvml"
        if "gpu_busy_ratio" in device
        else "engine"
    )
    facts["still_seconds"] = still_seconds
    facts["running_last_requests"] = span.last.get("running_requests", 0.0)
    facts["usual_gap_seconds"] = _number(facts, "itl_mean_seconds", 0.1)
    facts["usual_prefill_seconds"] = _prefill_seconds(span)
    working = facts.get("engine_active_ratio", facts.get("gpu_busy_ratio"))
    if working is not None:
        facts["gpu_working_ratio"] = working
    # Without a GPU to look at nothing speaks against a stall.
    facts["gpu_denies_stall_ratio"] = working if working is not None else 0.0
    price, why = price_list.of(setup, gpu, nvlink_silent=_nvlink_silent(facts))
    found = None
    notes: list[str] = []
    if price is not None and engine.load is not None:
        observed = _observed(span, engine, facts, tier)
        found = estimate(observed, price)
        theirs = _number(facts, "estimated_flops_per_second", 0.0)
        beside = counter(found, observed, price, theirs) if found else None
        if beside is not None:
            facts["engine_flops_ratio"] = beside.ratio
            notes.extend([beside.says] if beside.says else [])
    _estimates(found, engine, facts, reasons, why)
    _admission(engine, facts)
    facts["peer_loss_ratio"] = (peers or {}).get("peer_loss_ratio", 0.0)
    return Picture(
        book=Book(facts, SIGNALS, reasons),
        facts=facts,
        engine=engine,
        estimate=found,
        tier=tier,
        time=_time(found, facts),
        missing=_missing(facts, setup, tier, why),
        notes=(*(found.notes if found else ()), *notes),
        assumed=found is None,
        price=price,
    )


def _nvlink_silent(facts: Mapping[str, Value]) -> bool:
    """Whether the GPUs talk over PCIe: NVLink shows nothing, PCIe a collective's worth."""
    nvlink = _number(facts, "nvlink_tx_bytes_per_second", 0.0)
    pcie = _number(facts, "pcie_tx_bytes_per_second", 0.0)
    return pcie > PCIE_COLLECTIVES and nvlink < pcie / 10


def _prefill_seconds(span: Span) -> float:
    """Mean length of a prefill in the span, 0 where the page does not say."""
    grown = span.grown.get("prefill_seconds")
    return grown.sum / grown.count if grown is not None and grown.count > 0 else 0.0


def _number(facts: Mapping[str, Value], name: str, default: float) -> float:
    value = facts.get(name)
    return value if isinstance(value, float) else default


def _observed(span: Span, engine: EngineFacts, facts: Mapping[str, Value], tier: str) -> Observed:
    if engine.load is None:
        msg = "an engine without a load has nothing to observe"
        raise ValueError(msg)

    def known(name: str) -> float | None:
        value = facts.get(name)
        return value if isinstance(value, float) else None

    return Observed(
        seconds=span.seconds,
        load=engine.load,
        prompt_mean_tokens=engine.prompt_mean_tokens,
        prefill_spread=engine.prefill_spread,
        no_work_ratio=_number(facts, "no_work_ratio", 0.0),
        busy_ratio=known("engine_active_ratio") if tier == "counters" else known("gpu_busy_ratio"),
        tensor_active_ratio=known("tensor_active_ratio"),
        dram_active_ratio=known("dram_active_ratio"),
        clock_ratio=_number(facts, "clock_ratio", 1.0),
        tier=tier,
    )


def _estimates(
    found: Estimate | None,
    engine: EngineFacts,
    facts: dict[str, Value],
    reasons: dict[str, str],
    why: str,
) -> None:
    """Put the estimates among the facts, or the reason for there being none among the reasons."""
    if found is not None:
        _estimated(found, facts, reasons)
        return
    idle = _number(facts, "no_work_ratio", 0.0) >= 1.0 or engine.load is None
    facts["batch_elasticity_ratio"] = 1.0 if idle else ASSUMED_BATCH_ELASTICITY
    said = why or "no step was seen in the window"
    for scope in ("engine", "decode", "prefill"):
        for resource in RESOURCES:
            reasons[f"{scope}_{resource}_elasticity_ratio"] = said
    if not idle:
        _counters_alone(facts, reasons)


def _estimated(found: Estimate, facts: dict[str, Value], reasons: dict[str, str]) -> None:
    facts["batch_elasticity_ratio"] = min(1.0, max(0.0, found.batch_elasticity))
    facts.update(found.signals)
    for part, name in TIMES.items():
        facts[name] = found.time.get(part, 0.0)
    if found.gap_ratio is not None:
        facts["host_gap_ratio"] = found.gap_ratio
    for scope, table in (
        ("engine", found.shares.engine),
        ("decode", found.shares.decode),
        ("prefill", found.shares.prefill),
    ):
        for resource, value in table.items():
            facts[f"{scope}_{resource}_elasticity_ratio"] = value
        if not table:
            reasons[f"{scope}_compute_elasticity_ratio"] = f"no {scope} step in the window"
    prompts = [kind for kind in found.steps.classes if kind.prefill_tokens > 0]
    steps = math.fsum(kind.count for kind in prompts)
    if steps <= 0:
        return
    facts["prefill_step_tokens"] = (
        math.fsum(k.count * (k.prefill_tokens + k.decode_sequences) for k in prompts) / steps
    )
    step, own = found.shares.decode_step_seconds, found.plain_decode_seconds
    if step and own is not None:
        facts["decode_lost_to_prefill_ratio"] = max(0.0, 1.0 - own / step)


def _counters_alone(facts: dict[str, Value], reasons: dict[str, str]) -> None:
    """What counters show without a cost model: the gap, and how near each roof is.

    A roof's share is its activity over what is attainable of it. Steps cannot be told apart so,
    and both scopes get the same shares.
    """
    active = 1.0 - _number(facts, "no_work_ratio", 0.0)
    if active <= 0:
        return
    found: dict[str, float] = {}
    busy = facts.get("engine_active_ratio", facts.get("gpu_busy_ratio"))
    if isinstance(busy, float):
        facts["host_gap_ratio"] = max(0.0, active - busy)
        found["cpu_scheduling"] = max(0.0, active - busy) / active
    for resource, name, prior in (
        ("memory_bandwidth", "dram_active_ratio", PRIORS[MEMORY]),
        ("compute", "tensor_active_ratio", PRIORS[COMPUTE]),
    ):
        activity = facts.get(name)
        if isinstance(activity, float):
            found[resource] = min(1.0, activity / prior.median / active)
    if "compute" in found:
        # What the arithmetic fills does not get cheaper by the sequence in a larger batch.
        facts["batch_elasticity_ratio"] = ASSUMED_BATCH_ELASTICITY * (1.0 - found["compute"])
    for resource, share in found.items():
        for scope in ("engine", "decode"):
            facts[f"{scope}_{resource}_elasticity_ratio"] = share
            reasons.pop(f"{scope}_{resource}_elasticity_ratio", None)


def _admission(engine: EngineFacts, facts: dict[str, Value]) -> None:
    """Fill in what admission signals need where an engine does not give it."""
    facts.setdefault("waiting_share_ratio", 0.0)
    facts.setdefault("open_traffic_ratio", 0.0)
    facts.setdefault("preemptions_per_second", 0.0)
    facts.setdefault("waiting_requests", 0.0)
    facts.setdefault("waiting_deferred_requests", 0.0)
    facts.setdefault("prompt_tokens_transferred_per_second", 0.0)
    facts.setdefault("no_work_ratio", 0.0)
    if "slots_used_ratio" not in facts and "batch_sequences" in facts:
        # No cap is known and none has been seen: nothing says that slots are short.
        facts["slots_used_ratio"] = 0.0
    if "kv_used_ratio" not in facts and "batch_sequences" in facts:
        facts["kv_used_ratio"] = 0.0
        facts["kv_upper_ratio"] = 0.0
    capacity = facts.get("kv_capacity_tokens")
    used = facts.get("kv_used_ratio")
    mean = engine.prompt_mean_tokens
    facts["free_for_next_ratio"] = 9.0
    if isinstance(capacity, float) and isinstance(used, float) and mean > 0:
        facts["free_for_next_ratio"] = (1.0 - used) * capacity / mean
    for name in ("context_tokens_per_sequence", "prompt_tokens_computed_per_second"):
        facts.setdefault(name, 0.0)
    facts.setdefault("generation_tokens_per_second", 0.0)
    if not any(
        _number(facts, n, 0.0) > 0
        for n in ("generation_tokens_per_second", "prompt_tokens_computed_per_second")
    ):
        facts["recomputed_ratio"] = 0.0


def _time(found: Estimate | None, facts: Mapping[str, Value]) -> dict[str, float]:
    if found is not None:
        return dict(found.time)
    no_work = _number(facts, "no_work_ratio", 0.0)
    gap = _number(facts, "host_gap_ratio", 0.0)
    gap = min(gap, 1.0 - no_work)
    return {
        "no_work": no_work, "host_gap": gap, "compute": 0.0, "memory": 0.0, "interconnect": 0.0,
        "kernel_latency": 0.0, "other": max(0.0, 1.0 - no_work - gap),
    }  # fmt: skip


def _missing(facts: Mapping[str, Value], setup: Setup, tier: str, why: str) -> tuple[Missing, ...]:
    out: list[Missing] = []
    if tier == "engine":
        out.append(
            Missing(
                "engine_active_ratio",
                "no GPU rows were read",
                "give boundby the node's dcgm-exporter page (gpu.url) or run it where NVML sees "
                "the GPU",
            )
        )
    elif tier == "nvml":
        out.append(
            Missing(
                "dram_active_ratio",
                "NVML gives a busy share, not cycles of the memory and tensor pipes",
                "enable the DCGM_FI_PROF_* rows in dcgm-exporter's CSV (`boundby doctor "
                "--dcgm-csv` prints them)",
            )
        )
    elif "dram_active_ratio" not in facts or "tensor_active_ratio" not in facts:
        absent = "dram_active_ratio" if "dram_active_ratio" not in facts else "tensor_active_ratio"
        out.append(
            Missing(
                absent,
                "the dcgm-exporter page has no such PROF row",
                "enable DCGM_FI_PROF_DRAM_ACTIVE and DCGM_FI_PROF_PIPE_TENSOR_ACTIVE in its CSV",
            )
        )
    if why:
        fix = "set model.config to the path of its config.json"
        if setup.model_config is not None:
            fix = "name the GPU as in the hardware table (gpu.name), or ask for a row to be added"
        if "cannot be read" in why:
            fix = "check the file; `boundby plan --model FILE` names the field"
        out.append(Missing("step_cost", why, fix))
    if "batch_slots_sequences" not in facts and "running_requests" in facts:
        out.append(
            Missing(
                "batch_slots_sequences",
                "the engine does not export max_num_seqs",
                "set limits.max_num_seqs to its --max-num-seqs",
            )
        )
    if "running_requests" not in facts:
        out.append(
            Missing(
                "running_requests",
                "the page has no request gauges",
                "start the engine without --disable-log-stats",
            )
        )
    return tuple(out)
