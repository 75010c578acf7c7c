"""An engine's span as facts: what ran, waited, filled and moved, under names with units.

Every fact is a number or absent; `reasons` says for each absent one why, and what would supply it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from boundby.core.setup import Setup
from boundby.core.steps import Load
from boundby.core.window import Span

DEFAULT_TOKEN_BUDGET = 8192.0
"""vLLM's max_num_batched_tokens for the API server on large GPUs, and SGLang's chunk size."""

WAITING_HIGH = 0.8
"""Share of reads with work waiting from which a flat batch is taken for a cap."""

FLAT = 0.97
"""Lowest over highest batch in a span that counts as flat."""

AT_CAP = 0.6
"""Share of reads beside a queue that must be at the highest batch seen, for it to be the cap."""

SHARED_PREFIX = 0.2
"""Prefix hits from which sequences are taken to share blocks."""

SHARED_CONTEXT = 1.3
"""Whole prompts over the blocks held for each sequence from which blocks must be shared."""

OPEN_DISPERSION = (0.05, 0.25)
"""Variance over mean of the requests held: none below is open traffic, all above. A Poisson count
has 1, less within a window that is short beside a request's life."""

FEWEST = 5
"""Reads below which no plateau is spoken of."""

KV_PLATEAU = 0.9
"""KV use from which a flat batch is put down to the cache and not to a cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """Numbers by name, where inferred ones came from, why others are missing, and the load."""

    facts: Mapping[str, float]
    origins: Mapping[str, str]
    reasons: Mapping[str, str] = field(default_factory=dict)
    load: Load | None = None
    prompt_mean_tokens: float = 0.0
    prefill_spread: float = 0.7


def engine_facts(span: Span, setup: Setup) -> EngineFacts:
    """Work out the facts of one engine's span."""
    facts: dict[str, float] = {}
    origins: dict[str, str] = {}
    reasons: dict[str, str] = {}
    _queue(span, facts)
    _rates(span, facts)
    _cache(span, facts)
    _caps(span, setup, facts, origins, reasons)
    _latency(span, facts)
    if "running_requests" not in facts:
        reasons["running_requests"] = (
            "the page has no request gauges; is the engine started with its stats disabled "
            "(vLLM: --disable-log-stats)?"
        )
        return EngineFacts(facts=facts, origins=origins, reasons=reasons)
    computed, spread = _computed(span)
    load, mean = _load(span, facts, computed)
    return EngineFacts(
        facts=facts,
        origins=origins,
        reasons=reasons,
        load=load,
        prompt_mean_tokens=mean,
        prefill_spread=spread,
    )


def _queue(span: Span, facts: dict[str, float]) -> None:
    running = span.series.get("running_requests", ())
    waiting = span.series.get("waiting_requests", ())
    for name in ("running_requests", "waiting_requests", "waiting_deferred_requests"):
        if name in span.mean:
            facts[name] = span.mean[name]
    if running:
        busy = [value for value in running if value > 0]
        facts["batch_sequences"] = math.fsum(busy) / len(busy) if busy else 0.0
        facts["running_high_requests"] = max(running)
        facts["running_low_requests"] = min(running)
        idle = sum(
            1
            for index, value in enumerate(running)
            if value <= 0 and (index >= len(waiting) or waiting[index] <= 0)
        )
        facts["no_work_ratio"] = idle / len(running)
        facts["running_upper_requests"] = upper(running)
    if running and waiting:
        facts["open_traffic_ratio"] = open_traffic(
            [r + w for r, w in zip(running, waiting, strict=False)]
        )
    if waiting:
        facts["waiting_share_ratio"] = sum(1 for value in waiting if value > 0) / len(waiting)
        facts["waiting_last_requests"] = waiting[-1]


def open_traffic(held: Sequence[float]) -> float:
    """How much requests in the engine vary as if they came of their own accord, 0 to 1.

    Callers who wait for an answer before they ask again keep the number of requests constant;
    independent ones make it vary as a Poisson count does, by its own mean.
    """
    mean = math.fsum(held) / len(held)
    if len(held) < FEWEST or mean <= 0:
        return 0.0
    variance = math.fsum((value - mean) ** 2 for value in held) / (len(held) - 1)
    low, high = OPEN_DISPERSION
    return min(1.0, max(0.0, (variance / mean - low) / (high - low)))


def upper(values: Sequence[float]) -> float:
    """The upper quartile."""
    return sorted(values)[(3 * len(values)) // 4 - (len(values) % 4 == 0)]


def _rates(span: Span, facts: dict[str, float]) -> None:
    for name in span.rise:
        rate = span.rate(name)
        if rate is not None:
            facts[f"{name.removesuffix('_total')}_per_second"] = rate
    facts["window_seconds"] = span.seconds
    facts["restarts_count"] = float(span.restarts)


def _cache(span: Span, facts: dict[str, float]) -> None:
    used = span.mean.get("kv_used_ratio")
    if used is not None:
        facts["kv_used_ratio"] = used
        facts["kv_upper_ratio"] = upper(span.series.get("kv_used_ratio", (used,)))
        facts["kv_used_high_ratio"] = span.high["kv_used_ratio"]
        facts["kv_used_low_ratio"] = span.low["kv_used_ratio"]
    capacity = span.last.get("kv_capacity_tokens")
    blocks, size = span.last.get("kv_blocks"), span.last.get("kv_block_tokens")
    if capacity is None and blocks and size:
        capacity = blocks * size
    if capacity:
        facts["kv_capacity_tokens"] = capacity
    running = facts.get("running_requests", 0.0)
    held = span.mean.get("kv_used_tokens")
    if held is None and capacity and used is not None:
        held = used * capacity
    if held is not None and running > 0:
        facts["context_tokens_per_sequence"] = held / running
        if capacity and held > 0:
            facts["kv_fitting_sequences"] = capacity / (held / running)
    hits, asked = (
        span.rise.get("prefix_hits_tokens_total"),
        span.rise.get("prefix_queries_tokens_total"),
    )
    if hits is not None and asked:
        facts["prefix_hit_ratio"] = min(1.0, hits / asked)


def _caps(
    span: Span,
    setup: Setup,
    facts: dict[str, float],
    origins: dict[str, str],
    reasons: dict[str, str],
) -> None:
    slots, origin = _slots(span, setup, facts)
    if slots is not None:
        facts["batch_slots_sequences"] = slots
        origins["batch_slots_sequences"] = origin
        # The upper quarter: between a sequence that ends and the next that joins the batch is
        # below its cap for a moment, which reads now and then catch.
        facts["slots_used_ratio"] = facts.get("running_upper_requests", 0.0) / slots
    else:
        reasons["batch_slots_sequences"] = (
            "vLLM does not export max_num_seqs, and the batch has not been seen at a plateau; "
            "set limits.max_num_seqs"
        )
    budget = setup.max_num_batched_tokens or span.last.get("token_budget_tokens")
    facts["token_budget_tokens"] = float(budget or DEFAULT_TOKEN_BUDGET)
    origins["token_budget_tokens"] = (
        setup.origins.get("max_num_batched_tokens", "settings")
        if setup.max_num_batched_tokens
        else "the engine's page"
        if budget
        else "assumed: the usual default"
    )


def _slots(span: Span, setup: Setup, facts: dict[str, float]) -> tuple[float | None, str]:
    if setup.max_num_seqs:
        return float(setup.max_num_seqs), setup.origins.get("max_num_seqs", "settings")
    own = span.last.get("batch_slots_sequences")
    if own:
        return own, "the engine's page"
    running = span.series.get("running_requests", ())
    waiting = span.series.get("waiting_requests", ())
    beside = [r for r, w in zip(running, waiting, strict=False) if w > 0]
    if not beside or span.samples < FEWEST:
        return None, ""
    high = max(running)
    at_cap = sum(1 for r in beside if r >= FLAT * high) / len(beside)
    kv = facts.get("kv_used_high_ratio")
    # One sequence alone is no plateau: the first chunk of a long prompt looks the same.
    if (
        high > 1
        and at_cap >= AT_CAP
        and min(beside) >= 0.8 * high - 1
        and len(beside) >= WAITING_HIGH * len(running)
        and (kv is None or kv < KV_PLATEAU)
        and not facts.get("preemptions_per_second")
    ):
        return high, f"inferred: the batch stays at {high:.0f} while work waits"
    return None, ""


def _latency(span: Span, facts: dict[str, float]) -> None:
    for name in ("ttft_seconds", "itl_seconds", "queue_seconds", "tpot_seconds"):
        grown = span.grown.get(name)
        if grown is not None and grown.count > 0 and grown.sum >= 0:
            facts[f"{name.removesuffix('_seconds')}_mean_seconds"] = grown.sum / grown.count


def _computed(span: Span) -> tuple[float, float]:
    """Prompt tokens computed in the span, and the deviation of the logarithm of that figure."""
    asked = span.rise.get("prompt_tokens_total", 0.0)
    own = span.rise.get("prompt_tokens_computed_total")
    cached = span.rise.get("prompt_tokens_cached_total")
    hits = span.rise.get("prefix_hits_tokens_total")
    if own is not None and (own > 0 or asked <= 0):
        computed, spread = own, 0.04
    elif cached is not None:
        computed, spread = asked - cached, 0.1
    elif hits is not None:
        computed, spread = asked - hits, 0.15
    else:
        computed, spread = asked, 0.7
    steps = span.grown.get("step_tokens")
    if steps is not None and "generation_tokens_total" in span.rise:
        # Whole prompts are in the histogram, those computed again after a preemption too.
        again = steps.sum - span.rise["generation_tokens_total"] - asked
        if span.rise.get("preemptions_total", 0.0) > 0 and again > 0:
            computed += again
    return max(0.0, computed), spread


def _load(span: Span, facts: dict[str, float], computed: float) -> tuple[Load | None, float]:
    made = span.rise.get("generation_tokens_total")
    if made is None:
        return None, 0.0
    first = span.grown.get("ttft_seconds")
    begun = first.count if first is not None else span.rise.get("requests_finished_total", 0.0)
    begun = min(begun, made)
    itl = facts.get("itl_mean_seconds", facts.get("tpot_mean_seconds"))
    drafts = span.rise.get("spec_drafts_total", 0.0)
    gain = 1.0
    if drafts > 0:
        gain = 1.0 + span.rise.get("spec_accepted_tokens_total", 0.0) / drafts
    context = facts.get("context_tokens_per_sequence")
    lengths = span.grown.get("request_prompt_tokens")
    mean = computed / begun if begun > 0 else 0.0
    asked = span.rise.get("prompt_tokens_total", computed)
    outputs = span.grown.get("request_generation_tokens")
    whole = (
        lengths.sum / lengths.count
        if lengths and lengths.count
        else asked / begun
        if begun > 0
        else mean
    ) + (outputs.sum / outputs.count / 2 if outputs and outputs.count else 0.0)
    if context is None:
        context = whole
    elif facts.get("prefix_hit_ratio", 0.0) >= SHARED_PREFIX or whole > SHARED_CONTEXT * context:
        # Blocks that sequences share are held once and read by each of them.
        context = max(context, whole)
    steps = span.grown.get("step_tokens")
    return (
        Load(
            running=facts.get("batch_sequences", 0.0)
            or facts.get("running_high_requests", 0.0)
            or 1.0,
            running_high=facts.get("running_high_requests", 0.0),
            decode_tokens=max(0.0, made - begun),
            first_tokens=begun,
            prefill_tokens=computed,
            context_tokens=context,
            token_budget=facts["token_budget_tokens"],
            step_tokens=steps if steps is not None and steps.count > 0 else None,
            prompt_tokens=lengths if lengths is not None and lengths.count > 0 else None,
            itl_mean_seconds=itl,
            tokens_per_sequence_step=gain,
        ),
        mean,
    )
