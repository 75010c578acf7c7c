import pytest

from boundby.core.formula import Book
from boundby.core.host_cause import cause
from boundby.core.signals import SIGNALS

CALM = {
    "engine_core_busiest_thread_cpu_seconds_per_second": 0.4,
    "engine_core_cpu_seconds_per_second": 0.5,
    "engine_core_run_queue_seconds_per_second": 0.01,
    "api_server_busiest_thread_cpu_seconds_per_second": 0.2,
    "api_server_cpu_seconds_per_second": 0.2,
    "api_server_run_queue_seconds_per_second": 0.01,
    "cpu_cores_count": 8.0,
}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {
                "cpu_throttled_periods_per_second": 3.4,
                "cpu_periods_per_second": 10.0,
                "cpu_quota_cores_count": 2.0,
                "engine_core_run_queue_seconds_per_second": 0.6,
                "engine_core_busiest_thread_cpu_seconds_per_second": 0.95,
            },
            ("cgroup_quota", "the container ran into its CPU limit of 2 cores in 34% of periods"),
            id="a quota comes before what it brings about",
        ),
        pytest.param(
            {
                "cpu_cores_count": 2.0,
                "engine_core_cpu_seconds_per_second": 1.2,
                "api_server_cpu_seconds_per_second": 0.7,
                "engine_core_run_queue_seconds_per_second": 0.3,
            },
            (
                "too_few_cores",
                "the engine keeps 1.9 of its 2 cores busy, and its busiest thread waits for one "
                "30% of the time",
            ),
            id="all cores busy with our own work are too few",
        ),
        pytest.param(
            {"engine_core_run_queue_seconds_per_second": 0.3},
            (
                "noisy_neighbour",
                "the engine's busiest thread waits for a CPU 30% of the time though the engine "
                "keeps only 0.7 of 8 cores busy: others run on them",
            ),
            id="waiting for cores that we do not use is someone else's doing",
        ),
        pytest.param(
            {"engine_core_busiest_thread_cpu_seconds_per_second": 0.97},
            ("engine_core", "one thread of the engine core is busy 97% of the time"),
            id="a full thread of the engine core",
        ),
        pytest.param(
            {
                "engine_core_busiest_thread_cpu_seconds_per_second": 0.9,
                "api_server_busiest_thread_cpu_seconds_per_second": 0.99,
            },
            (
                "api_server",
                "one thread of the API server is busy 99% of the time: parsing, tokenising and "
                "streaming take that long",
            ),
            id="of two full threads the fuller one",
        ),
        pytest.param(
            {},
            (
                "unknown",
                "no thread is full and nothing holds them back (engine core waiting for a CPU 1%, "
                "API server waiting for a CPU 1%, engine core's busiest thread 40%, API server's "
                "busiest thread 20%): the gap is waiting between processes, or launches that "
                "nothing overlaps",
            ),
            id="nothing stands out",
        ),
    ],
)
def test_each_cause_is_told_with_its_evidence(
    facts: dict[str, float], expected: tuple[str, str]
) -> None:
    assert cause(Book({**CALM, **facts}, SIGNALS)) == expected


def test_a_quota_that_did_not_bite_is_no_cause() -> None:
    facts = {**CALM, "cpu_throttled_periods_per_second": 0.0, "cpu_periods_per_second": 10.0}

    found = cause(Book(facts, SIGNALS))

    assert found is not None
    assert found[0] == "unknown"


def test_a_host_that_nobody_saw_has_no_cause() -> None:
    assert cause(Book({"running_requests": 5.0}, SIGNALS)) is None
