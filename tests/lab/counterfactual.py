"""Elasticities by experiment, and the answers that follow from them.

The same load on the same server, then again with each resource a fifth better in turn; the
elasticity is ln(throughput ratio) / ln(factor). A step's elasticities come from the steps of the
first run, each timed again with one resource better and its batch held as it is.
"""

from collections import defaultdict
from dataclasses import replace
from math import log

from trial import Trial

from boundby.app.demo.machine import FIFTH, MACHINE_RESOURCES, improved
from boundby.app.demo.pace import Pace
from boundby.app.demo.step import Step, wall

DEMAND_FROM, BINDS_FROM = 0.5, 0.25
NEAR_TIE = 0.15
"""Two elasticities this near to each other are both right answers."""
NEAR_DEMAND = (0.4, 0.62)
"""Between these, demand and what would bind without it are both right."""
NEAR_BINDS = (0.18, 0.35)
"""Between these, a limit and what would be the answer without it are both right."""

SOFTWARE = ("cpu_scheduling", "kv_capacity", "batch_slots", "interconnect", "power", "thermal")
HARDWARE = ("compute", "memory_bandwidth", "kernel_latency")

Shares = dict[str, float]


def throughput(trial: Trial) -> float:
    """Useful requests per second once warm."""
    engine = trial.engine()
    engine.advance(trial.warm_seconds)
    before = engine.tally.progress_requests
    engine.advance(trial.warm_seconds + trial.truth_seconds)
    return (engine.tally.progress_requests - before) / trial.truth_seconds


def elasticities(trial: Trial) -> Shares:
    """Of throughput, by resource, load included."""
    base = throughput(trial)
    found = {}
    for resource in ("demand", *trial.resources()):
        better, factor = trial.improved(resource)
        found[resource] = log(max(throughput(better), 1e-9) / max(base, 1e-9)) / log(factor)
    return found


class StepShares:
    """Gathers step elasticities while a trial runs."""

    def __init__(self, trial: Trial, every: int = 1) -> None:
        self._pace, self._host = Pace(trial.model, trial.machine), trial.machine.host
        self._better = {
            resource: (Pace(trial.model, machine), machine.host)
            for resource in MACHINE_RESOURCES
            if resource not in ("power", "thermal")
            for machine in [improved(trial.machine, resource)]
        }
        self._cap = trial.machine.board.thermal_clock_ratio
        self._every, self._seen = every, 0
        self._sums: dict[str, Shares] = {"decode": defaultdict(float), "prefill": {}}
        self._sums["prefill"] = defaultdict(float)
        self._weights = {"decode": 0.0, "prefill": 0.0}

    def __call__(self, step: Step) -> None:
        """Weigh one group of equal steps."""
        weights = {
            "decode": step.decoding * step.steps,
            "prefill": step.prefill_tokens if step.prefill_tokens >= step.decoding else 0,
        }
        self._seen += 1
        if self._seen % self._every:
            return
        shares = self.shares(step)
        for scope, weight in weights.items():
            if weight:
                self._weights[scope] += weight
                for resource, share in shares.items():
                    self._sums[scope][resource] += share * weight

    def shares(self, step: Step) -> Shares:
        """Of one step's time, by resource."""
        work, sequences, clock = step.work, step.sequences, step.clock
        base = wall(self._pace, self._host, work, sequences, clock)
        times = {
            resource: wall(pace, host, work, sequences, clock)
            for resource, (pace, host) in self._better.items()
        }
        # A held clock, let go as far as a fifth more clock, or the top, goes.
        for resource, held, top in (
            ("power", step.held_by_power, self._cap),
            ("thermal", step.held_by_heat, 1.0),
        ):
            if resource == "thermal" and self._cap == 1.0:
                continue
            faster = min(top, clock * FIFTH) if held else clock
            times[resource] = wall(self._pace, self._host, work, sequences, max(clock, faster))
        return {resource: log(base / time) / log(FIFTH) for resource, time in times.items()}

    def means(self) -> dict[str, Shares]:
        """Weighted means by scope; a scope that had no step is empty."""
        return {
            scope: {name: value / self._weights[scope] for name, value in sums.items()}
            if self._weights[scope]
            else {}
            for scope, sums in self._sums.items()
        }


def step_elasticities(trial: Trial, every: int = 4) -> dict[str, Shares]:
    """Run the trial once and weigh its steps."""
    engine = trial.engine()
    engine.advance(trial.warm_seconds)
    shares = StepShares(trial, every)
    engine.on_step = shares
    engine.advance(trial.warm_seconds + trial.truth_seconds)
    return shares.means()


def _strongest(shares: Shares, names: tuple[str, ...]) -> tuple[str, float]:
    return max(((name, shares.get(name, 0.0)) for name in names), key=lambda pair: pair[1])


def _ties(shares: Shares, names: tuple[str, ...], *, least: float = 0.0) -> set[str]:
    _, top = _strongest(shares, names)
    return {
        name
        for name in names
        if shares.get(name, 0.0) >= top - NEAR_TIE and shares.get(name, 0.0) > least
    }


def engine_answer(shares: Shares) -> tuple[str, list[str]]:
    """Name the limit of the engine scope, and every answer that is right."""
    demand = shares["demand"]
    hard, _ = _strongest(shares, HARDWARE)
    hard_accepted = _ties(shares, HARDWARE) or {hard}
    soft, soft_share = _strongest(shares, SOFTWARE)
    accepted: set[str] = set()
    if soft_share >= NEAR_BINDS[0]:
        accepted |= _ties(shares, SOFTWARE, least=NEAR_BINDS[0])
    if soft_share < NEAR_BINDS[1]:
        accepted |= hard_accepted
    limit = soft if soft_share >= BINDS_FROM else hard
    if demand >= DEMAND_FROM:
        limit = "demand"
    if demand > NEAR_DEMAND[1]:
        accepted = set()
    if demand >= NEAR_DEMAND[0]:
        accepted.add("demand")
    return limit, sorted(accepted)


def step_answer(shares: Shares) -> tuple[str, list[str]] | None:
    """Name the limit of a step scope, and every answer that is right; None without steps."""
    if not shares:
        return None
    names = tuple(shares)
    limit, _ = _strongest(shares, names)
    for held in ("power", "thermal"):
        # A clock that is held down explains the same seconds as compute: the cause is named.
        if shares.get(held, 0.0) >= shares[limit] - 0.02:
            limit = held
    return limit, sorted(_ties(shares, names))


def quieter(trial: Trial) -> Trial:
    """Give the trial with a host that does not jitter, for a truth without its noise."""
    host = replace(trial.machine.host, jitter_ratio=0.0)
    return replace(trial, machine=replace(trial.machine, host=host))
