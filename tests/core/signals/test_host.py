import pytest

from boundby.core.facts import HOST_FACTS
from boundby.core.formula import check
from boundby.core.signals import SIGNALS, host


def test_every_input_is_a_fact_of_the_host() -> None:
    rates = {
        f"{name.removesuffix('_total')}_per_second"
        for name, fact in HOST_FACTS.items()
        if fact.kind == "counter"
    }
    ours = [SIGNALS[name] for name in vars(host) if name in SIGNALS]

    check(ours, rates)


def test_a_container_that_did_not_run_was_not_throttled() -> None:
    assert host.cpu_throttled_ratio(0.0, 0.0) == 0.0


def test_throttling_is_a_share_of_periods() -> None:
    assert host.cpu_throttled_ratio(3.4, 10.0) == pytest.approx(0.34)


def test_a_clock_that_runs_ahead_does_not_make_a_share_above_one() -> None:
    assert host.engine_core_busiest_thread_ratio(1.03) == 1.0
