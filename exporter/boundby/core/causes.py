"""The second level of an answer: what is behind the limit, where the evidence goes that far."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from boundby.core import host_cause
from boundby.core.formula import Book
from boundby.core.words import percent

MOSTLY = 0.6
"""Share of the bytes from which one kind is what is read."""

THRASH = 0.15
"""Share of work done twice from which preemptions are thrashing."""

CACHE_FULL = 0.92
"""Level of the cache from which it is full, and not held below by what does not fit."""

LAUNCHING = 0.15
"""Host gap, as a share of time, from which launches that nothing overlaps are likely."""


def cause(limit: str, book: Book) -> str | None:
    """Say in a sentence what is behind `limit`, or None where nothing tells."""
    say = CAUSES.get(limit)
    return say(book) if say else None


def _memory(book: Book) -> str | None:
    share = book.number("weight_bytes_ratio")
    if share is None:
        return None
    if share >= MOSTLY:
        return f"{percent(share)} of the bytes are weights: a larger batch shares them"
    if share <= 1 - MOSTLY:
        return (
            f"{percent(1 - share)} of the bytes are KV: each sequence brings its own, so a larger "
            "batch helps little"
        )
    return f"weights and KV share the bytes ({percent(share)} weights)"


def _kv(book: Book) -> str | None:
    twice = book.number("recomputed_ratio")
    if twice is not None and twice >= THRASH:
        return f"preemption thrash: about {percent(twice)} of the work is done again"
    level, fits = book.number("kv_upper_ratio"), book.number("free_for_next_ratio")
    if level is not None and fits is not None and level < CACHE_FULL and fits < 1:
        return f"the next prompt does not fit in what is free (KV at {percent(level)})"
    context = book.number("context_tokens_per_sequence")
    fitting = book.number("kv_fitting_sequences")
    if context and fitting:
        return f"{fitting:.0f} sequences fit at {context:.0f} tokens each"
    return None


def _demand(book: Book) -> str | None:
    idle = book.number("no_work_ratio") or 0.0
    if idle >= 1:
        return "no request came in the window"
    traffic = book.number("open_traffic_ratio")
    batch = book.number("batch_sequences")
    if traffic is None or not batch:
        return None
    if traffic < 0.5:  # noqa: PLR2004  the number of requests hardly varies
        return f"about {batch:.0f} callers keep it busy, each waiting for its answer"
    return "requests come of their own accord, and all are served"


def _host(book: Book) -> str | None:
    found = host_cause.cause(book)
    if found is not None:
        return found[1]
    gap = book.number("host_gap_ratio")
    if gap is not None and gap >= LAUNCHING:
        return "why is not seen: share the engine's process namespace with boundby to tell"
    return None


CAUSES: Mapping[str, Callable[[Book], str | None]] = MappingProxyType(
    {
        "memory_bandwidth": _memory,
        "kv_capacity": _kv,
        "demand": _demand,
        "cpu_scheduling": _host,
    }
)
"""Limits that have a second level."""
