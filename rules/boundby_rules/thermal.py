"""Heat holds the clocks down: airflow, a failed fan, a hot aisle.

Judged by the thermal clock-event reasons and the clocks lost, not by a temperature: a heat-soaked
card can look cool at clocks far below its maximum.
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(
    thermal_throttled_ratio: float, clock_loss_ratio: float, engine_compute_elasticity_ratio: float
) -> float:
    """What the lost clocks would give back in throughput."""
    return thermal_throttled_ratio * clock_loss_ratio * engine_compute_elasticity_ratio


def decode(
    thermal_throttled_ratio: float, clock_loss_ratio: float, decode_compute_elasticity_ratio: float
) -> float:
    """What the lost clocks would give back in steps that decode."""
    return thermal_throttled_ratio * clock_loss_ratio * decode_compute_elasticity_ratio


def prefill(
    thermal_throttled_ratio: float,
    clock_loss_ratio: float,
    prefill_compute_elasticity_ratio: float,
) -> float:
    """What the lost clocks would give back in prefill steps."""
    return thermal_throttled_ratio * clock_loss_ratio * prefill_compute_elasticity_ratio


LIMIT = Limit(
    name="thermal",
    title="heat",
    group="software",
    page=__doc__,
    engine=engine,
    decode=decode,
    prefill=prefill,
    evidence=("thermal_throttled_ratio", "clock_ratio", "temperature_celsius", "power_watts"),
    remedies=(
        "Look at the machine: fans, airflow, inlet temperature, thermal paste.",
        "Until then drain it, or lower its power limit to where clocks are steady.",
    ),
    wont_help=(
        "A higher power limit: it makes more heat.",
        "Engine settings: no batch or cache size cools a GPU.",
    ),
    cases=(
        Case(
            "clocks halved by heat in prefill bind",
            {
                "thermal_throttled_ratio": 1.0,
                "clock_loss_ratio": 1.0,
                "engine_compute_elasticity_ratio": 0.99,
            },
            score=0.99,
        ),
        Case(
            "a moment of thermal slowdown does not",
            {
                "thermal_throttled_ratio": 0.05,
                "clock_loss_ratio": 0.3,
                "engine_compute_elasticity_ratio": 0.99,
            },
            score=0.01485,
        ),
    ),
    alert=Alert(
        after="5m",
        severity="critical",
        summary="is held down by heat",
        pain="the GPU runs below its clocks and may fail",
    ),
    panel=Panel(shows=("thermal_throttled_ratio", "clock_ratio", "temperature_celsius")),
)
