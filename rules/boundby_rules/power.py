"""The power limit holds the clocks down, and the arithmetic with them.

Judged by the share of time the clocks were held down and by how far, not by watts near the limit:
98 % of the limit with full clocks is a GPU well used. Steps bound by bandwidth lose little.
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(
    power_throttled_ratio: float,
    clock_loss_ratio: float,
    engine_compute_elasticity_ratio: float,
    *,
    clock_per_power: float = 0.42,
) -> float:
    """What a fifth more of the limit would give in throughput.

    Clocks follow about the cube root of the watts that they draw, and those are what is left of
    the limit once the board and the memory have had theirs: a fifth more of the limit is more than
    a fifth more for the clocks.
    """
    return (
        power_throttled_ratio
        * min(clock_per_power, clock_loss_ratio)
        * engine_compute_elasticity_ratio
    )


def decode(
    power_throttled_ratio: float, clock_loss_ratio: float, decode_compute_elasticity_ratio: float
) -> float:
    """What the lost clocks would give back in steps that decode."""
    return power_throttled_ratio * clock_loss_ratio * decode_compute_elasticity_ratio


def prefill(
    power_throttled_ratio: float, clock_loss_ratio: float, prefill_compute_elasticity_ratio: float
) -> float:
    """What the lost clocks would give back in prefill steps."""
    return power_throttled_ratio * clock_loss_ratio * prefill_compute_elasticity_ratio


LIMIT = Limit(
    name="power",
    title="the power limit",
    group="software",
    page=__doc__,
    engine=engine,
    decode=decode,
    prefill=prefill,
    evidence=("power_throttled_ratio", "clock_ratio", "power_watts", "power_limit_watts"),
    remedies=(
        "Raise the power limit if the platform allows (nvidia-smi -pl), or remove a cap.",
        "FP8: more arithmetic a joule.",
    ),
    wont_help=(
        "More memory bandwidth or KV cache.",
        "A higher clock request: the power limit takes it back.",
    ),
    cases=(
        Case(
            "clocks held a fifth down all the time, in prefill, bind",
            {
                "power_throttled_ratio": 1.0,
                "clock_loss_ratio": 1.0,
                "engine_compute_elasticity_ratio": 0.9,
            },
            score=0.378,
        ),
        Case(
            "98 % of the limit with clocks near full does not bind",
            {
                "power_throttled_ratio": 0.85,
                "clock_loss_ratio": 0.14,
                "engine_compute_elasticity_ratio": 0.95,
            },
            score=0.113,
            trap=True,
        ),
    ),
    alert=Alert(
        after="15m",
        severity="warning",
        summary="is held down by its power limit",
        pain="prefill is slower than the GPU could be",
    ),
    panel=Panel(shows=("power_throttled_ratio", "clock_ratio")),
)
