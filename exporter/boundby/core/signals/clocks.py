"""What held-down clocks cost: the speed that full clocks would give back."""

import math

LOG_FIFTH = math.log(1.2)
"""A fifth more, as a logarithm."""


def clock_loss_ratio(clock_ratio: float) -> float:
    """Elasticity that clocks alone leave to be had: 1 when a fifth or more is lost."""
    return min(1.0, max(0.0, -math.log(clock_ratio)) / LOG_FIFTH)
