"""Every limit's worked cases, and what holds for any limit there will ever be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundby.core.formula import Book, FormulaError, Unknown
from boundby.core.judge import judge
from boundby.core.limit import Case, Limit
from boundby.core.signals import SIGNALS
from boundby.core.verdict import Evidence, decide
from boundby_rules import LIMITS
from strategies import NEEDS, books, facts

CASES = [
    pytest.param(limit, case, id=f"{limit.name}: {case.says}")
    for limit in LIMITS
    for case in limit.cases
]
JUDGED = [limit for limit in LIMITS if limit.scores]
NAMES = {limit.name for limit in LIMITS}
BY_NAME = {limit.name: limit for limit in LIMITS}


def name(limit: Limit) -> str:
    return limit.name


@pytest.mark.parametrize(("limit", "case"), CASES)
def test_each_worked_case_scores_as_written(limit: Limit, case: Case) -> None:
    finding = judge(limit, Book(case.given, SIGNALS))

    assert finding.score(case.scope) == pytest.approx(case.score, abs=5e-4)


@pytest.mark.parametrize("limit", JUDGED, ids=name)
def test_each_limit_shows_a_case_that_binds_and_one_that_does_not(limit: Limit) -> None:
    assert {case.score >= limit.binds_at for case in limit.cases} == {True, False}


def test_the_limits_are_those_of_the_contract() -> None:
    assert {
        "demand", "kv_capacity", "batch_slots", "token_budget", "cpu_scheduling", "interconnect",
        "memory_bandwidth", "compute", "power", "thermal", "kernel_latency",
        "prefill_interference", "kv_transfer", "imbalance", "stalled", "unknown",
    } == NAMES  # fmt: skip


@pytest.mark.parametrize("limit", LIMITS, ids=name)
def test_each_limit_says_what_helps_and_what_does_not(limit: Limit) -> None:
    assert limit.page.strip()
    assert limit.remedies
    assert limit.wont_help


@given(books)
def test_a_score_is_a_share_or_says_why_not(book: Book) -> None:
    for limit in LIMITS:
        for value in judge(limit, book).scores.values():
            if isinstance(value, Unknown):
                assert value.why
            else:
                assert 0.0 <= value <= 1.0


@given(facts(), st.permutations(LIMITS), st.sampled_from(["engine", "decode", "prefill"]))
def test_the_verdict_does_not_depend_on_the_order_of_rules(
    given_facts: dict[str, float | Unknown], shuffled: list[Limit], scope: str
) -> None:
    evidence = Evidence(tier="counters", spread={})

    ours, theirs = (
        decide([judge(limit, Book(given_facts, SIGNALS)) for limit in order], scope, evidence)
        for order in (LIMITS, shuffled)
    )

    if ours is not None and theirs is not None and ours.limit == "unknown":
        assert set(ours.ties) == set(theirs.ties)
    else:
        assert ours == theirs


@given(facts(missing=0.0), st.sets(st.sampled_from(NEEDS), max_size=8))
def test_removing_inputs_adds_unknowns_and_no_scores(
    whole: dict[str, float | Unknown], removed: set[str]
) -> None:
    less = {key: value for key, value in whole.items() if key not in removed}

    for limit in LIMITS:
        before = judge(limit, Book(whole, SIGNALS))
        after = judge(limit, Book(less, SIGNALS))
        for scope, value in after.scores.items():
            if not isinstance(value, Unknown) and not removed & set(SIGNALS):
                assert value == before.scores[scope]


PRESSURES = [
    ("kv_capacity", "engine", "kv_blocked_ratio"),
    ("batch_slots", "engine", "slots_blocked_ratio"),
    ("demand", "engine", "no_work_ratio"),
    ("power", "engine", "power_throttled_ratio"),
    ("power", "decode", "clock_loss_ratio"),
    ("thermal", "engine", "thermal_throttled_ratio"),
    ("token_budget", "engine", "budget_blocked_ratio"),
    ("cpu_scheduling", "engine", "engine_cpu_scheduling_elasticity_ratio"),
    ("memory_bandwidth", "decode", "decode_memory_bandwidth_elasticity_ratio"),
    ("compute", "prefill", "prefill_compute_elasticity_ratio"),
    ("interconnect", "engine", "engine_interconnect_elasticity_ratio"),
    ("kernel_latency", "decode", "decode_kernel_latency_elasticity_ratio"),
]


@pytest.mark.parametrize(("limit", "scope", "pressure"), PRESSURES)
@given(whole=facts(missing=0.0), more=st.floats(0.0, 1.0))
def test_more_pressure_never_lowers_a_score(
    limit: str, scope: str, pressure: str, whole: dict[str, float | Unknown], more: float
) -> None:
    now = float(whole[pressure])  # type: ignore[arg-type]  # nothing is missing here
    worse = {**whole, pressure: now + (1.0 - now) * more}

    before = judge(BY_NAME[limit], Book(whole, SIGNALS)).score(scope)
    after = judge(BY_NAME[limit], Book(worse, SIGNALS)).score(scope)

    assert before is not None
    assert after is not None
    assert after >= before - 1e-12


def test_a_knob_turns_a_score() -> None:
    case = {"kv_blocked_ratio": 1.0, "batch_elasticity_ratio": 0.1, "recomputed_ratio": 0.55}

    finding = judge(BY_NAME["kv_capacity"], Book(case, SIGNALS), {"avoidable": 1.0})

    assert finding.score("engine") == pytest.approx(0.5)


def test_a_knob_that_no_score_has_is_refused_by_name() -> None:
    formula = BY_NAME["kv_capacity"].scores["engine"]

    with pytest.raises(FormulaError, match=r"no such knob 'full'; kv_capacity.engine has: churn"):
        formula.tuned({"full": 1.0})
