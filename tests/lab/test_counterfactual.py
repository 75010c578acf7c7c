import pytest
from counterfactual import elasticities, engine_answer, step_answer, step_elasticities
from trial import Trial

from boundby.app.demo.scenarios import SCENARIOS, Scenario


def shares(**given: float) -> dict[str, float]:
    names = ("batch_slots", "kv_capacity", "compute", "memory_bandwidth", "kernel_latency")
    others = ("demand", "cpu_scheduling", "interconnect", "power")
    return dict.fromkeys((*names, *others), 0.0) | given


# The figures are of the labelled simulated recordings that product.md names (captures/sim).
@pytest.mark.parametrize(
    ("given", "answer"),
    [
        pytest.param(
            shares(batch_slots=0.723, compute=0.238, memory_bandwidth=0.678),
            ("batch_slots", ["batch_slots"]),
            id="software that binds comes before hardware",
        ),
        pytest.param(
            shares(demand=0.605, memory_bandwidth=0.74, kernel_latency=0.21),
            ("demand", ["demand", "memory_bandwidth"]),
            id="near half, demand and what stands behind it are both right",
        ),
        pytest.param(
            shares(demand=0.84),
            ("demand", ["demand"]),
            id="well over half, only demand is right",
        ),
        pytest.param(
            shares(kv_capacity=0.28, compute=0.45, memory_bandwidth=0.43),
            ("kv_capacity", ["compute", "kv_capacity", "memory_bandwidth"]),
            id="a limit that hardly binds leaves the roofs right too",
        ),
        pytest.param(
            shares(kv_capacity=0.13, compute=0.47, memory_bandwidth=0.51),
            ("memory_bandwidth", ["compute", "memory_bandwidth"]),
            id="what does not bind is not an answer",
        ),
    ],
)
def test_the_engine_s_answer(given: dict[str, float], answer: tuple[str, list[str]]) -> None:
    assert engine_answer(given) == answer


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        pytest.param(
            {"compute": 0.36, "kernel_latency": 0.30, "interconnect": 0.17},
            ("compute", ["compute", "kernel_latency"]),
            id="near ties are both right",
        ),
        pytest.param(
            {"compute": 0.42, "interconnect": 0.26, "kernel_latency": 0.24},
            ("compute", ["compute"]),
            id="a clear lead is not a tie",
        ),
        pytest.param(
            {"compute": 0.88, "power": 0.89},
            ("power", ["compute", "power"]),
            id="a held clock is the cause of slow compute",
        ),
        pytest.param({}, None, id="no steps, no answer"),
    ],
)
def test_a_step_s_answer(given: dict[str, float], answer: tuple[str, list[str]] | None) -> None:
    assert step_answer(given) == answer


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.limit)
def test_each_scenario_of_the_demo_is_bound_by_what_it_says(scenario: Scenario) -> None:
    trial = Trial(
        kind=scenario.limit,
        name=scenario.limit,
        gpu="H100",
        model=scenario.model,
        machine=scenario.machine,
        settings=scenario.settings,
        load=scenario.load,
        seed=5,
        warm_seconds=scenario.warm_seconds,
        truth_seconds=2 * scenario.warm_seconds,
    )
    answer = (
        engine_answer(elasticities(trial))
        if scenario.scope == "engine"
        else step_answer(step_elasticities(trial)[scenario.scope])
    )

    assert answer is not None
    assert answer[0] == scenario.limit
