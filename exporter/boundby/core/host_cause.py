"""Why the GPU waits for the host: the second level of `cpu_scheduling`.

Asked only where that limit binds. A quota comes first, since it makes everything behind it look
busy; then too few cores, then others on the same cores, then the one thread that is full.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from boundby.core.formula import Book

Cause = Literal[
    "cgroup_quota",
    "too_few_cores",
    "noisy_neighbour",
    "engine_core",
    "api_server",
    "unknown",
]

THROTTLED = 0.05
"""Share of enforcement periods from which a quota counts: each costs up to 0.1 s at once."""

WAITING = 0.1
"""Share of time that a thread may wait for a CPU before that is the matter."""

CORES_USED = 0.85
"""Share of the cores there are that our own processes keep busy when these are too few."""

THREAD_FULL = 0.85
"""Busy share from which one thread is saturated; the rest goes to waking and switching."""

SIGNALS = (
    "cpu_throttled_ratio",
    "engine_core_run_queue_ratio",
    "api_server_run_queue_ratio",
    "engine_core_busiest_thread_ratio",
    "api_server_busy_ratio",
)
"""What the cause is read from; with none of them there is nothing to say."""


def cause(book: Book) -> tuple[Cause, str] | None:
    """Name the cause with a sentence of evidence; None where the host was not seen at all."""
    seen = {name: value for name in SIGNALS if (value := book.number(name)) is not None}
    if not seen:
        return None
    for test in TESTS:
        if sentence := test.says(book):
            return test.cause, sentence
    listed = ", ".join(f"{WORDS[name]} {value:.0%}" for name, value in seen.items())
    return "unknown", (
        f"no thread is full and nothing holds them back ({listed}): the gap is waiting between "
        "processes, or launches that nothing overlaps"
    )


WORDS = {
    "cpu_throttled_ratio": "throttled",
    "engine_core_run_queue_ratio": "engine core waiting for a CPU",
    "api_server_run_queue_ratio": "API server waiting for a CPU",
    "engine_core_busiest_thread_ratio": "engine core's busiest thread",
    "api_server_busy_ratio": "API server's busiest thread",
}


@dataclass(frozen=True, slots=True)
class _Test:
    cause: Cause
    says: Callable[[Book], str]


def _quota(book: Book) -> str:
    throttled = book.number("cpu_throttled_ratio")
    if throttled is None or throttled < THROTTLED:
        return ""
    quota = book.number("cpu_quota_cores_count")
    limit = "its CPU limit" if quota is None else f"its CPU limit of {quota:g} cores"
    return f"the container ran into {limit} in {throttled:.0%} of periods"


def _waiting(book: Book) -> float:
    """Return the longer of the two waits for a CPU, as a share of time."""
    return max(
        book.number("engine_core_run_queue_ratio") or 0.0,
        book.number("api_server_run_queue_ratio") or 0.0,
    )


def _used(book: Book) -> tuple[float, float] | None:
    used, cores = book.number("engine_cores_used_count"), book.number("cpu_cores_count")
    if used is None or not cores:
        return None
    return used + (book.number("worker_cpu_seconds_per_second") or 0.0), cores


def _too_few(book: Book) -> str:
    waiting, used = _waiting(book), _used(book)
    if used is None or waiting < WAITING or used[0] < CORES_USED * used[1]:
        return ""
    return (
        f"the engine keeps {used[0]:.1f} of its {used[1]:g} cores busy, and its busiest thread "
        f"waits for one {waiting:.0%} of the time"
    )


def _neighbour(book: Book) -> str:
    waiting, used = _waiting(book), _used(book)
    if used is None or waiting < WAITING:
        return ""
    return (
        f"the engine's busiest thread waits for a CPU {waiting:.0%} of the time though the engine "
        f"keeps only {used[0]:.1f} of {used[1]:g} cores busy: others run on them"
    )


def _core(book: Book) -> str:
    core = book.number("engine_core_busiest_thread_ratio")
    if core is None or core < THREAD_FULL or core < (book.number("api_server_busy_ratio") or 0.0):
        return ""
    return f"one thread of the engine core is busy {core:.0%} of the time"


def _server(book: Book) -> str:
    server = book.number("api_server_busy_ratio")
    if server is None or server < THREAD_FULL:
        return ""
    return (
        f"one thread of the API server is busy {server:.0%} of the time: parsing, tokenising and "
        "streaming take that long"
    )


TESTS = (
    _Test("cgroup_quota", _quota),
    _Test("too_few_cores", _too_few),
    _Test("noisy_neighbour", _neighbour),
    _Test("engine_core", _core),
    _Test("api_server", _server),
)
"""Each cause with what shows it, in the order in which one hides the next."""
