"""Where the busy time of a span went: a step model fitted to what was measured.

Each step takes the sum of its groups' roofline times, a fixed time a layer (a chain of short
kernels), and its collectives. Five efficiencies are not known beforehand; each has a prior with
its source below. They are fitted, by Gauss-Newton on their logarithms, so that the modelled steps
add up to the busy time that the GPU's counters show. The posterior spread says how far the answer
could be off, and confidence is made from it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from boundby.core.prices import Work

RESOURCES = ("compute", "memory_bandwidth", "kernel_latency", "interconnect", "cpu_scheduling")
"""What a step's time can be made of, by the limit that would relieve it."""


@dataclass(frozen=True, slots=True)
class Prior:
    """A quantity known within a factor: its median and the deviation of its logarithm."""

    median: float
    spread: float


PRIORS = (
    Prior(0.64, 0.15),
    Prior(0.83, 0.07),
    Prior(70e-6, 0.25),
    Prior(12e-6, 0.40),
    Prior(0.80, 0.22),
)
"""Attainable share of peak FLOP/s (large GEMMs reach 0.55 to 0.78 on measured kernels) and of
peak bytes/s (0.75 to 0.92), seconds a layer (60 to 90 us is the additive gap of served models to
their roofline), seconds a collective (8 to 20 us), attainable share of the link's bytes/s."""

PCIE_PRIORS = (*PRIORS[:4], Prior(0.70, 0.40))
"""The same over PCIe, where switches, bridges and root ports make the link a wide guess."""

COMPUTE, MEMORY, LAYER, COLLECTIVE, LINK = range(5)

IMPROVEMENT = 1.2
"""By how much a resource is improved when its elasticity is worked out."""

LOG_IMPROVEMENT = math.log(IMPROVEMENT)


@dataclass(frozen=True, slots=True)
class Counted:
    """`count` steps of the same work, with the weight each scope gives one of them."""

    count: float
    work: Work
    decode_weight: float
    prefill_weight: float


@dataclass(frozen=True, slots=True)
class Equation:
    """These steps took `seconds` of busy time, give or take `spread` of it."""

    steps: Sequence[Counted]
    seconds: float
    spread: float


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted efficiencies (in the order of PRIORS), their log-covariance, the worst misfit."""

    theta: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    misfit: float


def parts(work: Work, theta: Sequence[float]) -> tuple[float, float, float, float, float]:
    """One step's seconds: compute, memory, layers, collective latency, collective transfer."""
    compute = memory = 0.0
    for flop_seconds, byte_seconds in work.groups:
        by_compute, by_memory = flop_seconds / theta[COMPUTE], byte_seconds / theta[MEMORY]
        if by_compute >= by_memory:
            compute += by_compute
        else:
            memory += by_memory
    return (
        compute,
        memory,
        work.layers * theta[LAYER],
        work.collectives * theta[COLLECTIVE],
        work.collective_seconds / theta[LINK],
    )


SIGNS = (-1.0, -1.0, 1.0, 1.0, -1.0)
"""Whether more of an efficiency lengthens (+) or shortens (-) its part of a step."""


def fit(equations: Sequence[Equation], priors: Sequence[Prior] = PRIORS, rounds: int = 4) -> Fit:
    """Fit the efficiencies to the equations; without any, the priors are the answer."""
    start = [math.log(prior.median) for prior in priors]
    x = list(start)
    size = len(x)
    precision = [[0.0] * size for _ in range(size)]
    misfit = 0.0
    for _ in range(rounds):
        theta = [math.exp(value) for value in x]
        precision = [[0.0] * size for _ in range(size)]
        gradient = [0.0] * size
        for index, prior in enumerate(priors):
            precision[index][index] = prior.spread**-2
            gradient[index] = (start[index] - x[index]) / prior.spread**2
        misfit = 0.0
        for equation in equations:
            totals = [0.0] * size
            for counted in equation.steps:
                for index, seconds in enumerate(parts(counted.work, theta)):
                    totals[index] += counted.count * seconds
            whole = math.fsum(totals)
            if whole <= 0 or equation.seconds <= 0:
                continue
            off = math.log(equation.seconds / whole)
            misfit = max(misfit, abs(off))
            slope = [SIGNS[i] * totals[i] / whole for i in range(size)]
            weight = equation.spread**-2
            for i in range(size):
                gradient[i] += weight * slope[i] * off
                for j in range(size):
                    precision[i][j] += weight * slope[i] * slope[j]
        step = solve(precision, gradient)
        x = [value + max(-0.7, min(0.7, move)) for value, move in zip(x, step, strict=True)]
    columns = [
        solve(precision, [1.0 if i == j else 0.0 for j in range(size)]) for i in range(size)
    ]
    return Fit(tuple(math.exp(v) for v in x), tuple(tuple(c) for c in columns), misfit)


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solve a small symmetric positive definite system by Gaussian elimination."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for pivot in range(size):
        for below in range(pivot + 1, size):
            factor = rows[below][pivot] / rows[pivot][pivot]
            for column in range(pivot, size + 1):
                rows[below][column] -= factor * rows[pivot][column]
    answer = [0.0] * size
    for pivot in range(size - 1, -1, -1):
        rest = math.fsum(rows[pivot][c] * answer[c] for c in range(pivot + 1, size))
        answer[pivot] = (rows[pivot][size] - rest) / rows[pivot][pivot]
    return answer


def elasticity(before: float, after: float) -> float:
    """ln(before/after) / ln(1.2): 1 when a fifth more of the resource gives a fifth more speed."""
    return math.log(before / after) / LOG_IMPROVEMENT if before > 0 and after > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Per scope, each resource's elasticity; and the seconds of a span by what they went to."""

    engine: dict[str, float]
    decode: dict[str, float]
    prefill: dict[str, float]
    seconds: dict[str, float]
    fixed_ratio: float
    weight_ratio: float
    decode_step_seconds: float | None
    prefill_step_seconds: float | None


def _step_times(work: Work, theta: Sequence[float], gap: float) -> tuple[float, dict[str, float]]:
    """A step's seconds as it is, and with each resource improved by a fifth."""
    own = parts(work, theta)
    whole = math.fsum(own) + gap
    better_compute = (theta[COMPUTE] * IMPROVEMENT, *theta[1:])
    better_memory = (theta[COMPUTE], theta[MEMORY] * IMPROVEMENT, *theta[2:])
    saved = 1 - 1 / IMPROVEMENT
    return whole, {
        "compute": math.fsum(parts(work, better_compute)) + gap,
        "memory_bandwidth": math.fsum(parts(work, better_memory)) + gap,
        "kernel_latency": whole - own[LAYER] * saved,
        "interconnect": whole - (own[COLLECTIVE] + own[LINK]) * saved,
        "cpu_scheduling": whole - gap * saved,
    }


def shares(steps: Sequence[Counted], theta: Sequence[float], gap_seconds: float) -> Shares:
    """Work out the elasticities of each scope with `gap_seconds` of host time before each step."""
    total = 0.0
    improved = dict.fromkeys(RESOURCES, 0.0)
    scopes: dict[str, dict[str, float]] = {"decode": {}, "prefill": {}}
    weights = {"decode": 0.0, "prefill": 0.0}
    lengths = {"decode": 0.0, "prefill": 0.0}
    spent = dict.fromkeys(("compute", "memory", "kernel_latency", "interconnect", "host_gap"), 0.0)
    fixed = weight_seconds = 0.0
    for counted in steps:
        whole, after = _step_times(counted.work, theta, gap_seconds)
        own = parts(counted.work, theta)
        total += counted.count * whole
        for resource in RESOURCES:
            improved[resource] += counted.count * after[resource]
        for scope, weight in (
            ("decode", counted.decode_weight),
            ("prefill", counted.prefill_weight),
        ):
            if weight > 0:
                weights[scope] += weight
                lengths[scope] += weight * whole
                table = scopes[scope]
                for resource in RESOURCES:
                    table[resource] = table.get(resource, 0.0) + weight * elasticity(
                        whole, after[resource]
                    )
        spent["compute"] += counted.count * own[COMPUTE]
        spent["memory"] += counted.count * own[MEMORY]
        spent["kernel_latency"] += counted.count * own[LAYER]
        spent["interconnect"] += counted.count * (own[COLLECTIVE] + own[LINK])
        spent["host_gap"] += counted.count * gap_seconds
        read = counted.work.weight_seconds / theta[MEMORY]
        by_weights = min(own[MEMORY], read)
        weight_seconds += counted.count * by_weights
        fixed += counted.count * (by_weights + own[LAYER] + own[COLLECTIVE])
    return Shares(
        engine={r: elasticity(total, improved[r]) for r in RESOURCES} if total > 0 else {},
        decode=_mean(scopes["decode"], weights["decode"]),
        prefill=_mean(scopes["prefill"], weights["prefill"]),
        seconds=spent,
        fixed_ratio=fixed / total if total > 0 else 0.0,
        weight_ratio=weight_seconds / spent["memory"] if spent["memory"] > 0 else 0.0,
        decode_step_seconds=lengths["decode"] / weights["decode"] if weights["decode"] else None,
        prefill_step_seconds=lengths["prefill"] / weights["prefill"]
        if weights["prefill"]
        else None,
    )


def _mean(table: dict[str, float], weight: float) -> dict[str, float]:
    return {name: value / weight for name, value in table.items()} if weight > 0 else {}
