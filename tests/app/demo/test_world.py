import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import boundby.app.demo
from boundby.app.demo.scenarios import SCENARIOS, Scenario
from boundby.app.demo.world import World
from boundby.core.parts import Snapshot

FORBIDDEN = ("boundby.core.cost", "boundby.core.hardware", "boundby.core.signals", "boundby_rules")


def imports() -> Iterator[tuple[str, str]]:
    for file in Path(boundby.app.demo.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from ((file.name, name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield file.name, node.module
                yield from ((file.name, f"{node.module}.{name.name}") for name in node.names)


def test_the_simulated_physics_is_not_the_core_s() -> None:
    assert not [(file, name) for file, name in imports() if name.startswith(FORBIDDEN)]


def test_the_simulation_reads_no_clock_and_shares_no_random_state() -> None:
    names = {name for _, name in imports()}

    assert not names & {"time", "asyncio", "os", "random.random", "numpy"}


def counters(page: str) -> dict[str, float]:
    return {
        sample.name + str(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        if family.type in ("counter", "histogram")
        for sample in family.samples
    }


def test_the_same_seed_and_times_give_the_same_pages() -> None:
    first, second = World(seed=4), World(seed=4)
    for world in (first, second):
        for t in (3.0, 25.0, 41.5):
            world.advance(t)

    assert first.engine_page() == second.engine_page()
    assert first.dcgm_page() == second.dcgm_page()


def test_another_seed_gives_another_page() -> None:
    first, second = World(seed=4), World(seed=5)
    first.advance(5.0)
    second.advance(5.0)

    assert first.engine_page() != second.engine_page()


def test_counters_go_on_over_every_change_of_scenario() -> None:
    world, before = World(), {"engine": {}, "gpu": {}}
    for t in range(0, 230, 5):
        world.advance(float(t))
        for name, page in (("engine", world.engine_page()), ("gpu", world.dcgm_page())):
            after = counters(page)
            shrunk = [key for key, value in before[name].items() if after.get(key, -1) < value]
            assert not shrunk, (t, shrunk)
            before[name] = after


def test_the_circle_closes() -> None:
    world = World(SCENARIOS)
    world.advance(sum(scenario.seconds for scenario in SCENARIOS) + 1.0)

    assert world.scenario is SCENARIOS[0]


def test_going_back_in_time_changes_nothing() -> None:
    world = World()
    world.advance(10.0)
    page = world.engine_page()
    world.advance(4.0)

    assert world.engine_page() == page


def test_the_settings_hold_in_every_scenario() -> None:
    world, seen = World(), []
    for t in range(10, 200, 20):
        world.advance(float(t))
        seen.append(world.setup())

    assert all(setup == seen[0] for setup in seen)


def test_a_snapshot_holds_what_the_given_parsers_found() -> None:
    pages: list[str] = []

    def nothing(page: str) -> tuple[()]:
        pages.append(page)
        return ()

    snapshot = World().snapshot(2.0, nothing, nothing)

    assert snapshot == Snapshot(t=2.0, gpu_source="dcgm")
    assert [page[:12] for page in pages] == ["# HELP vllm:", "# HELP DCGM_"]


def gauge(page: str, name: str) -> float:
    match = re.search(rf"^{name}{{[^}}]*}} (\S+)$", page, re.MULTILINE)
    assert match, name
    return float(match[1])


SIGNS = {
    "demand": ("vllm:num_requests_waiting", 0, 0),
    "memory_bandwidth": ("DCGM_FI_PROF_DRAM_ACTIVE", 0.55, 1),
    "kv_capacity": ("vllm:kv_cache_usage_perc", 0.9, 1),
    "batch_slots": ("vllm:num_requests_running", 64, 64),
    "compute": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.45, 1),
    "cpu_scheduling": ("DCGM_FI_DEV_GPU_UTIL", 10, 60),
    "interconnect": ("DCGM_FI_PROF_PCIE_TX_BYTES", 5e9, 2e10),
    "power": ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 4, 4),
    "thermal": ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 32, 32),
    "kernel_latency": ("DCGM_FI_PROF_DRAM_ACTIVE", 0.1, 0.4),
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.limit)
def test_each_scenario_shows_its_sign_from_the_start(scenario: Scenario) -> None:
    name, low, high = SIGNS[scenario.limit]
    world = World.of(scenario, seed=2)
    for t in (2.0, 10.0, 19.0):
        world.advance(t)

        assert low <= gauge(world.engine_page() + world.dcgm_page(), name) <= high, t
