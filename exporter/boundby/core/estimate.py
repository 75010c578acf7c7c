"""Elasticities, time shares and roofline figures of one engine, from its load and its counters.

Facts go in by name, estimates come out by name, each a number or the `Unknown` that says why not.
The steps come from `steps`, their cost from `prices`, the split of time from `balance`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from boundby.core.balance import (
    LOG_IMPROVEMENT,
    MEMORY,
    PCIE_PRIORS,
    PRIORS,
    RESOURCES,
    SIGNS,
    Counted,
    Equation,
    Fit,
    Shares,
    elasticity,
    fit,
    parts,
    shares,
)
from boundby.core.prices import Prices, Work, work
from boundby.core.steps import Load, StepClass, StepMix, mix

BUSY_SPREAD = {"counters": 0.01, "nvml": 0.03, "engine": 0.15}
"""Relative deviation of busy time by tier: a cycle counter, a sampled busy share, wall time."""

TENSOR_SPREAD = 0.15
"""Relative deviation of FLOPs worked out from the tensor pipes' activity."""

BYTES_RANGE = (0.75, 6.0)
"""Measured over modelled bytes within which the measurement corrects the model."""

DECODE_LED = 0.5
"""Share of modelled bytes in steps that mostly decode from which the two can be compared."""

DRAM_BUSY = 0.35
"""DRAM activity from which more bytes than modelled are no matter of a prefill's activations."""

BYTES_EXPLAINED = 1.4
"""Measured over modelled bytes from which it is said that the model explains too few of them."""

HOST_FIXED = 0.5
"""Share of a step's host time that does not grow with the batch (launches, the loop itself)."""

LAUNCH_BOUND = (0.15, 0.4)
"""Host gap, as a share of time, from which it may be launch-bound, and where that is as likely."""

MADE_OF = {
    "compute": (0,),
    "memory_bandwidth": (1,),
    "kernel_latency": (2,),
    "interconnect": (3, 4),
}
"""Which parts of a step's time each resource stands for."""

PAIRS = tuple((one, other) for one in MADE_OF for other in MADE_OF if one < other)

SLOW_STEP = 1.05
"""A step with prompt tokens must be this much slower than a plain one to be told apart by ITL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What was seen in a span of `seconds`; ratios are of all of it, idle time included.

    `tier` is the quality of the GPU evidence: "counters" (cycle counters), "nvml" (busy share
    only) or "engine" (none). `prefill_spread` is the deviation of the logarithm of the number of
    prompt tokens computed: small where the engine counts them, large where cached ones are in it.
    """

    seconds: float
    load: Load
    prompt_mean_tokens: float
    prefill_spread: float
    no_work_ratio: float
    busy_ratio: float | None
    tensor_active_ratio: float | None
    dram_active_ratio: float | None
    clock_ratio: float
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The answer: elasticities by scope and resource, shares of time, and figures by name."""

    steps: StepMix
    shares: Shares
    fit: Fit
    gap_ratio: float | None
    gap_seconds: float
    batch_elasticity: float
    launch_bound: float
    time: Mapping[str, float]
    signals: Mapping[str, float]
    works: tuple[tuple[float, Work], ...] = ()
    busy_seconds: float = 0.0
    plain_decode_seconds: float | None = None
    spread: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def estimate(seen: Observed, price: Prices) -> Estimate | None:
    """Fit the step model to what was seen, or None when no step was."""
    steps = mix(seen.load)
    if steps is None or steps.steps <= 0:
        return None
    notes: list[str] = []
    steps = _by_tensor(seen, price, steps, notes)
    works = [_work(seen, price, kind) for kind in steps.classes]
    bytes_ratio = _bytes_ratio(seen, steps, works)
    factor = _believed(seen, steps, works, bytes_ratio, notes)
    works = [_more_bytes(one, factor) for one in works]
    busy, gap, gap_ratio = _busy(seen, steps, works, notes)
    counted = _count(steps, works, None)
    equation = Equation(counted, busy, BUSY_SPREAD[seen.tier])
    fitted = fit((equation,), PCIE_PRIORS if price.over_pcie else PRIORS)
    mixed = _decode_share(seen, counted, fitted, gap)
    counted = _count(steps, works, mixed)
    found = _launching(shares(counted, fitted.theta, gap), gap_ratio)
    return Estimate(
        steps=steps,
        shares=found,
        fit=fitted,
        gap_ratio=gap_ratio,
        gap_seconds=gap,
        batch_elasticity=_batch_elasticity(seen, price, steps, works, fitted, gap, factor),
        launch_bound=_launch_weight(gap_ratio),
        time=_time(seen, found, gap_ratio),
        signals=_signals(seen, price, steps, works, found, fitted, gap, bytes_ratio),
        works=tuple((kind.count, one) for kind, one in zip(steps.classes, works, strict=True)),
        busy_seconds=busy,
        plain_decode_seconds=_plain(steps, works, fitted, gap),
        spread=_spread(counted, fitted),
        notes=tuple(notes),
    )


def _launching(found: Shares, gap_ratio: float | None) -> Shares:
    """Blend in that the host may be what launches: then it alone sets the pace.

    A gap may lie between steps (the host works, then the GPU does) or be what is left of a host
    that runs ahead of the GPU but is slower than it. Counters cannot tell the two apart; in the
    second only host time matters. The larger the gap, the likelier that one.
    """
    weight = 0.5 * _launch_weight(gap_ratio)
    if weight <= 0:
        return found

    def blend(table: dict[str, float]) -> dict[str, float]:
        return {
            name: value * (1 - weight) + (weight if name == "cpu_scheduling" else 0.0)
            for name, value in table.items()
        }

    return replace(
        found,
        engine=blend(found.engine),
        decode=blend(found.decode),
        prefill=blend(found.prefill),
    )


def _launch_weight(gap_ratio: float | None) -> float:
    """How likely a gap is to be that of a host that only launches, over an even chance."""
    if gap_ratio is None:
        return 0.0
    low, high = LAUNCH_BOUND
    return min(1.0, max(0.0, (gap_ratio - low) / (high - low)))


def _work(seen: Observed, price: Prices, kind: StepClass, growth: float = 1.0) -> Work:
    """Price a class, its batch grown by `growth`."""
    prompts = max(1.0, kind.prefill_tokens / max(1.0, seen.prompt_mean_tokens))
    chunk = kind.prefill_tokens / prompts
    whole = max(chunk, min(seen.prompt_mean_tokens, 1e7)) if kind.prefill_tokens > 0 else 0.0
    return work(
        price,
        decode_sequences=kind.decode_sequences * growth,
        context_tokens=seen.load.context_tokens,
        prefill_tokens=kind.prefill_tokens * growth,
        prompt_before_tokens=max(0.0, whole - chunk) / 2,
        prompts=prompts * growth,
    )


def _by_tensor(seen: Observed, price: Prices, steps: StepMix, notes: list[str]) -> StepMix:
    """Correct the prompt tokens computed by the arithmetic that the tensor pipes really did."""
    if seen.tensor_active_ratio is None or steps.prefill_tokens <= 0:
        return steps
    measured = (
        seen.tensor_active_ratio * seen.clock_ratio * price.peak_flops_per_second * seen.seconds
    )
    whole = math.fsum(kind.count * _work(seen, price, kind).flops for kind in steps.classes)
    # Every class decodes as many sequences, so one plain step stands for all.
    decoding = StepClass(1.0, steps.classes[0].decode_sequences, 0.0)
    plain = steps.steps * _work(seen, price, decoding).flops
    prompts = whole - plain
    if prompts <= 0 or measured <= plain * 0.5:
        return steps
    ratio = max(0.02, (measured - plain) / prompts)
    spread = max(TENSOR_SPREAD * measured / max(measured - plain, 0.02 * prompts), TENSOR_SPREAD)
    own = seen.prefill_spread**-2
    weight = spread**-2 / (spread**-2 + own)
    factor = math.exp(weight * math.log(ratio))
    if factor < 0.7 or factor > 1.4:  # noqa: PLR2004  worth a word
        notes.append(
            f"tensor activity shows {factor:.2f} times the prompt tokens that the page counts; "
            "cached or recomputed tokens would explain it"
        )
    return steps.scaled(factor)


def _moved(steps: StepMix, works: Sequence[Work], *, decoding: bool = False) -> float:
    """Modelled seconds of memory traffic at the peak; of steps that mostly decode, if asked."""
    return math.fsum(
        kind.count * math.fsum(memory for _, memory in one.groups)
        for kind, one in zip(steps.classes, works, strict=True)
        if not decoding or kind.prefill_tokens <= kind.decode_sequences
    )


def _bytes_ratio(seen: Observed, steps: StepMix, works: Sequence[Work]) -> float | None:
    """Bytes that the memory interface moved over those modelled, where both are known."""
    modelled = _moved(steps, works)
    if seen.dram_active_ratio is None or modelled <= 0:
        return None
    return seen.dram_active_ratio * seen.seconds / modelled


def _believed(
    seen: Observed,
    steps: StepMix,
    works: Sequence[Work],
    ratio: float | None,
    notes: list[str],
) -> float:
    """By how much to correct modelled bytes: by the measurement where steps that decode lead."""
    if ratio is None or not BYTES_RANGE[0] <= ratio <= BYTES_RANGE[1]:
        return 1.0
    led = _moved(steps, works, decoding=True) >= DECODE_LED * _moved(steps, works)
    busy = ratio > 1 and (seen.dram_active_ratio or 0.0) >= DRAM_BUSY
    if not led and not busy:
        return 1.0
    if ratio > BYTES_EXPLAINED:
        notes.append(
            f"the memory interface moved {ratio:.1f} times the bytes that weights and KV explain; "
            "the measurement is taken"
        )
    return ratio


def _more_bytes(one: Work, ratio: float) -> Work:
    if ratio == 1.0:
        return one
    return Work(
        groups=tuple((flops, memory * ratio) for flops, memory in one.groups),
        collectives=one.collectives,
        collective_seconds=one.collective_seconds,
        layers=one.layers,
        weight_seconds=one.weight_seconds * ratio,
        kv_seconds=one.kv_seconds * ratio,
        flops=one.flops,
        bytes=one.bytes * ratio,
    )


def _busy(
    seen: Observed, steps: StepMix, works: Sequence[Work], notes: list[str]
) -> tuple[float, float, float | None]:
    """Busy seconds, host gap seconds a step, and the gap's share of the span if measured."""
    active = max(0.0, 1.0 - seen.no_work_ratio)
    if seen.busy_ratio is not None:
        busy = min(seen.busy_ratio, 1.0)
        gap_ratio = max(0.0, active - busy) if seen.no_work_ratio > 0 else 1.0 - busy
        return busy * seen.seconds, gap_ratio * seen.seconds / steps.steps, gap_ratio
    theta = [prior.median for prior in PRIORS]
    expected = math.fsum(
        kind.count * math.fsum(parts(one, theta))
        for kind, one in zip(steps.classes, works, strict=True)
    )
    wall = active * seen.seconds
    gap = max(0.0, wall - expected)
    if gap < 0.4 * wall:
        return wall, 0.0, None
    notes.append(
        f"no GPU rows: the steps should keep this GPU busy for {expected / wall:.0%} of the time "
        "that requests ran; the rest is taken for host time"
    )
    return expected, gap / steps.steps, None


def _count(steps: StepMix, works: Sequence[Work], mixed: float | None) -> list[Counted]:
    """Weigh each class for the scopes; `mixed` is the share of decoding done beside prompts."""
    plain = math.fsum(k.count * k.decode_sequences for k in steps.classes if k.prefill_tokens <= 0)
    beside = math.fsum(k.count * k.decode_sequences for k in steps.classes if k.prefill_tokens > 0)
    out = []
    for kind, one in zip(steps.classes, works, strict=True):
        weight = kind.count * kind.decode_sequences
        if mixed is not None and plain > 0 and beside > 0:
            weight *= ((1 - mixed) / plain if kind.prefill_tokens <= 0 else mixed / beside) * (
                plain + beside
            )
        prefills = 0 < kind.prefill_tokens >= kind.decode_sequences
        out.append(
            Counted(
                kind.count,
                one,
                weight,
                kind.count * kind.prefill_tokens if prefills else 0.0,
            )
        )
    return out


def _decode_share(
    seen: Observed, counted: Sequence[Counted], fitted: Fit, gap: float
) -> float | None:
    """Share of decoded tokens that came from steps with prompts in them, told by the mean ITL."""
    itl = seen.load.itl_mean_seconds
    if itl is None:
        return None
    plain = [c for c in counted if not c.prefill_weight and c.decode_weight]
    beside = [c for c in counted if c.prefill_weight and c.decode_weight]
    if not plain or not beside:
        return None

    def mean(rows: Sequence[Counted]) -> float:
        total = math.fsum(c.count * (math.fsum(parts(c.work, fitted.theta)) + gap) for c in rows)
        return total / math.fsum(c.count for c in rows)

    fast, slow = mean(plain), mean(beside)
    if slow < SLOW_STEP * fast:
        return None
    told = min(1.0, max(0.0, (itl - fast) / (slow - fast)))
    counts = math.fsum(c.count for c in beside) / math.fsum(c.count for c in (*plain, *beside))
    return (told + counts) / 2 if abs(told - counts) < 0.15 else told  # noqa: PLR2004


def _plain(steps: StepMix, works: Sequence[Work], fitted: Fit, gap: float) -> float | None:
    """Seconds of a step that only decodes, as fitted."""
    rows = [
        (k.count, w)
        for k, w in zip(steps.classes, works, strict=True)
        if k.prefill_tokens <= 0 and k.decode_sequences > 0
    ]
    total = math.fsum(count for count, _ in rows)
    if total <= 0:
        return None
    return math.fsum(c * (math.fsum(parts(w, fitted.theta)) + gap) for c, w in rows) / total


def _batch_elasticity(
    seen: Observed,
    price: Prices,
    steps: StepMix,
    works: Sequence[Work],
    fitted: Fit,
    gap: float,
    factor: float,
) -> float:
    """What a fifth more sequences in every step would give in throughput."""
    before = after = 0.0
    for kind, now in zip(steps.classes, works, strict=True):
        more = _more_bytes(_work(seen, price, kind, 1.2), factor)
        before += kind.count * (math.fsum(parts(now, fitted.theta)) + gap)
        after += kind.count * (
            math.fsum(parts(more, fitted.theta)) + gap * (1 + 0.2 * (1 - HOST_FIXED))
        )
    return 1.0 + elasticity(before, after) if before > 0 else 0.0


def _time(seen: Observed, found: Shares, gap_ratio: float | None) -> dict[str, float]:
    """Shares of wall time that sum to 1."""
    spent = {name: seconds / seen.seconds for name, seconds in found.seconds.items()}
    spent["no_work"] = seen.no_work_ratio
    if gap_ratio is not None:
        spent["host_gap"] = gap_ratio
    total = math.fsum(spent.values())
    if total > 1.0:
        spent = {name: share / total for name, share in spent.items()}
        total = 1.0
    spent["other"] = max(0.0, 1.0 - total)
    return spent


def _signals(
    seen: Observed,
    price: Prices,
    steps: StepMix,
    works: Sequence[Work],
    found: Shares,
    fitted: Fit,
    gap: float,
    bytes_ratio: float | None,
) -> dict[str, float]:
    peak, memory = price.peak_flops_per_second, price.peak_bytes_per_second
    flops = math.fsum(k.count * w.flops for k, w in zip(steps.classes, works, strict=True))
    moved = math.fsum(k.count * w.bytes for k, w in zip(steps.classes, works, strict=True))
    out = {
        "mfu_ratio": flops / peak / seen.seconds,
        "mbu_ratio": moved / memory / seen.seconds,
        "ridge_point_flops_per_byte": price.ridge_point_flops_per_byte,
        "steps_per_second": steps.steps / seen.seconds,
        "host_gap_seconds_per_step": gap,
        "weight_bytes_ratio": found.weight_ratio,
        "attainable_bytes_ratio": fitted.theta[MEMORY],
    }
    if bytes_ratio is not None:
        out["modelled_bytes_ratio"] = 1 / bytes_ratio if bytes_ratio > 0 else 0.0
    if found.decode_step_seconds is not None:
        out["decode_step_seconds"] = found.decode_step_seconds
    if found.prefill_step_seconds is not None:
        out["prefill_step_seconds"] = found.prefill_step_seconds
    for phase, chosen in (
        ("decode", [i for i, k in enumerate(steps.classes) if k.prefill_tokens <= 0]),
        ("prefill", [i for i, k in enumerate(steps.classes) if k.prefill_tokens > 0]),
    ):
        f = math.fsum(steps.classes[i].count * works[i].flops for i in chosen)
        b = math.fsum(steps.classes[i].count * works[i].bytes for i in chosen)
        if b > 0:
            out[f"{phase}_arithmetic_intensity_flops_per_byte"] = f / b
        if (
            phase == "decode"
            and chosen
            and (n := math.fsum(steps.classes[i].count for i in chosen))
        ):
            out["decode_step_floor_seconds"] = (
                math.fsum(
                    steps.classes[i].count * math.fsum(max(g) for g in works[i].groups)
                    for i in chosen
                )
                / n
            )
    return out


def _spread(counted: Sequence[Counted], fitted: Fit) -> dict[tuple[str, str, str], float]:
    """Deviation of the difference of two resources' shares, by scope, to first order."""
    out: dict[tuple[str, str, str], float] = {}
    for scope in ("engine", "decode", "prefill"):
        totals = [0.0] * 5
        for c in counted:
            weight = {
                "engine": c.count, "decode": c.decode_weight, "prefill": c.prefill_weight
            }[scope]  # fmt: skip
            if weight <= 0:
                continue
            own = parts(c.work, fitted.theta)
            scale = 1.0 if scope == "engine" else 1.0 / max(math.fsum(own), 1e-12)
            for i, seconds in enumerate(own):
                totals[i] += weight * seconds * scale
        whole = math.fsum(totals)
        if whole <= 0:
            continue
        slopes = _slopes([total / whole for total in totals])
        spread = {
            name: [
                math.fsum(row[i] * slope[i] for i in range(len(slope)))
                for row in fitted.covariance
            ]
            for name, slope in slopes.items()
        }
        for one, other in PAIRS:
            away = [a - b for a, b in zip(slopes[one], slopes[other], strict=True)]
            along = [a - b for a, b in zip(spread[one], spread[other], strict=True)]
            variance = math.fsum(a * b for a, b in zip(away, along, strict=True))
            out[scope, one, other] = math.sqrt(max(0.0, variance))
    return out


def _slopes(share: Sequence[float]) -> dict[str, list[float]]:
    """How each resource's share changes with the logarithm of each efficiency."""
    return {
        name: [
            SIGNS[i] * ((share[i] if i in members else 0.0) - share[i] * own)
            for i in range(len(share))
        ]
        for name, members in MADE_OF.items()
        for own in (math.fsum(share[j] for j in members),)
    }


__all__ = ["LOG_IMPROVEMENT", "RESOURCES", "Estimate", "Observed", "estimate"]
