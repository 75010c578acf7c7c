"""What a deployment's own steps teach, and what they must not."""

from dataclasses import replace

import pytest

from boundby.core.cost.calibration import LEAST, MOST, Calibration, fresh, learn
from boundby.core.cost.duration import StepTime

HOME = ("llama", "h100")


def step(scale: float = 1.0, *, compute: float = 1.0) -> StepTime:
    return StepTime(
        compute_seconds=0.002 * scale * compute,
        memory_seconds=0.010 * scale,
        interconnect_seconds=0.001,
        kernel_latency_seconds=0.003,
    )


def taught(factor: float, steps: int = 40, *, known: Calibration | None = None) -> Calibration:
    known = known or fresh(HOME, 0.0)
    start = known.at_seconds
    for n in range(steps):
        estimated = step(0.5 + (n % 5) / 4)
        known = learn(known, HOME, start + n, estimated, factor * estimated.seconds)
    return known


@pytest.mark.parametrize("factor", [0.7, 0.9, 1.0, 1.2, 1.6])
def test_a_steady_error_is_learnt(factor: float) -> None:
    known = taught(factor)

    estimated = step(0.8)
    assert known.correct(estimated).seconds == pytest.approx(factor * estimated.seconds, rel=0.02)


def test_an_error_of_one_part_is_learnt_as_that_parts() -> None:
    known = fresh(HOME, 0.0)
    for n in range(200):
        estimated = step(0.2 + (n % 7) / 2, compute=1 + n % 3)
        slow_memory = replace(estimated, memory_seconds=1.4 * estimated.memory_seconds)
        known = learn(known, HOME, float(n), estimated, slow_memory.seconds)

    assert known.multipliers[1] == pytest.approx(1.4, rel=0.05)
    assert known.multipliers[3] == pytest.approx(1.0, rel=0.15)


def test_a_sudden_slowdown_is_refused_and_counted() -> None:
    known = taught(1.0)

    later = taught(1.8, known=known)

    assert later.multipliers == known.multipliers
    assert later.refused == 40


def test_one_wild_step_changes_little() -> None:
    known = taught(1.0, steps=10)

    shaken = learn(known, HOME, 100.0, step(), 40 * step().seconds)

    assert shaken.correct(step()).seconds == pytest.approx(known.correct(step()).seconds, rel=0.03)


@pytest.mark.parametrize("factor", [0.01, 100.0])
def test_what_is_learnt_stays_in_bounds(factor: float) -> None:
    known = taught(factor)

    assert all(LEAST <= multiplier <= MOST for multiplier in known.multipliers)


def test_another_deployment_starts_afresh() -> None:
    known = taught(1.5)

    other = learn(known, ("llama", "h200"), 100.0, step(), step().seconds)

    assert (other.deployment, other.weight, other.since_seconds) == (("llama", "h200"), 1.0, 100.0)


def test_age_and_residual_are_told() -> None:
    known = taught(1.0)

    assert known.age_seconds(100.0) == 100.0
    assert known.residual_ratio < 0.01
    assert known.settled


@pytest.mark.parametrize("measured", [0.0, -1.0])
def test_a_step_without_time_teaches_nothing(measured: float) -> None:
    known = taught(1.0)

    assert learn(known, HOME, 50.0, step(), measured) == known


def test_what_was_learnt_long_ago_is_forgotten() -> None:
    known = taught(1.25, steps=30)

    much_later = learn(known, HOME, 1e6, step(), 1.2 * step().seconds)

    assert much_later.weight == pytest.approx(1.0)
