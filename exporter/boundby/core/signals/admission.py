"""What keeps a waiting request out of the batch, and how much room there is for more."""

import math

LOG_FIFTH = math.log(1.2)
"""A fifth more, as a logarithm: the step in which elasticities are taken."""


def _ramp(value: float, low: float, high: float) -> float:
    """0 up to `low`, 1 from `high`, straight between."""
    return min(1.0, max(0.0, (value - low) / (high - low)))


def slots_blocked_ratio(
    slots_used_ratio: float,
    waiting_share_ratio: float,
    kv_upper_ratio: float,
    preemptions_per_second: float,
    *,
    low: float = 0.93,
    high: float = 0.98,
    thrashing: float = 0.95,
) -> float:
    """How surely the cap on the batch keeps work waiting: full slots while work waits.

    Sequences that are preempted from a full cache would not stay in further slots either.
    """
    if preemptions_per_second > 0 and kv_upper_ratio >= thrashing:
        return 0.0
    return _ramp(slots_used_ratio, low, high) * waiting_share_ratio


def kv_plateau_ratio(
    kv_upper_ratio: float,
    free_for_next_ratio: float,
    preemptions_per_second: float,
    *,
    low: float = 0.85,
    high: float = 0.92,
) -> float:
    """How surely the cache is as full as it gets: by its level, by the next prompt not fitting.

    A watermark or a long next prompt can hold the level well below 1.
    """
    full = _ramp(kv_upper_ratio, low, high)
    if preemptions_per_second > 0:
        full = max(full, _ramp(kv_upper_ratio, 0.7, 0.85))
    return max(full, 1.0 - _ramp(free_for_next_ratio, 1.0, 1.5))


def kv_blocked_ratio(
    kv_plateau_ratio: float, slots_blocked_ratio: float, waiting_share_ratio: float
) -> float:
    """How surely the cache keeps work waiting, and not the cap on the batch."""
    return kv_plateau_ratio * (1.0 - slots_blocked_ratio) * waiting_share_ratio


def admission_room_ratio(slots_used_ratio: float, kv_used_ratio: float) -> float:
    """Room for a fifth more sequences, 0 to 1: what slots and cache would still admit of it."""
    slots = -math.log(slots_used_ratio) if 0 < slots_used_ratio < 1 else 0.0
    cache = -math.log(kv_used_ratio) if 0 < kv_used_ratio < 1 else 0.0
    room = min(
        slots if slots_used_ratio > 0 else math.inf, cache if kv_used_ratio > 0 else math.inf
    )
    return min(1.0, room / LOG_FIFTH)


def open_load_elasticity_ratio(
    batch_elasticity_ratio: float, slots_used_ratio: float, kv_upper_ratio: float
) -> float:
    """What a fifth more independent arrivals would give: all of it while the batch can grow to it.

    With a share m of each step's time growing with the batch, x times the arrivals need a batch
    larger by x (1 - m) / (1 - x m); slots and cache say how large that may be.
    """
    grows = 1.0 - batch_elasticity_ratio
    full = max(slots_used_ratio, kv_upper_ratio)
    room = 1.0 / full if full > 0 else math.inf
    if room <= 1.0:
        return 0.0
    if math.isinf(room):
        most = 1.0 / grows if grows > 0 else math.inf
    else:
        most = room / (1.0 - grows + room * grows)
    return 1.0 if math.isinf(most) else min(1.0, max(0.0, math.log(most) / LOG_FIFTH))


def budget_blocked_ratio(
    prefill_step_tokens: float,
    token_budget_tokens: float,
    waiting_share_ratio: float,
    *,
    low: float = 0.85,
    high: float = 0.97,
) -> float:
    """How surely steps with prompts are as large as the token budget lets them be."""
    return _ramp(prefill_step_tokens / token_budget_tokens, low, high) * waiting_share_ratio


def recomputed_ratio(
    preemptions_per_second: float,
    context_tokens_per_sequence: float,
    generation_tokens_per_second: float,
    prompt_tokens_computed_per_second: float,
) -> float:
    """Share of computed tokens that preemptions threw away and had computed again."""
    again = preemptions_per_second * context_tokens_per_sequence
    return again / (again + generation_tokens_per_second + prompt_tokens_computed_per_second)
