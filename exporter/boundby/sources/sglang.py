"""SGLang's own /metrics page, from 0.4.0 to 0.5.23.

Its scheduler's rows carry ranks: each data-parallel rank is an engine of its own, while tensor,
pipeline and expert ranks of one engine repeat the same numbers, so that only the lowest is read
and nothing is ever added up over them. The tokenizer's rows (tokens, requests, latencies) have
no rank: they are the whole server's, and are given to an engine only where there is just one.
They move when a request ends; `realtime_tokens` (since 0.5.7) moves with the work.
"""

from collections.abc import Iterable

from boundby.sources.engine_page import (
    Draft,
    Identity,
    Parsed,
    Row,
    Table,
    lacking,
    parts,
)
from boundby.sources.exposition import Page
from boundby.sources.exposition import parse as parse_page
from boundby.sources.labels import Labels
from boundby.sources.looks import WrongPageError, looks_like

KIND = "sglang"

DEFERRED = (
    "sglang:num_grammar_queue_reqs",
    "sglang:num_prefill_bootstrap_queue_reqs",
    "sglang:num_prefill_prealloc_queue_reqs",
    "sglang:num_decode_prealloc_queue_reqs",
    "sglang:num_decode_transfer_queue_reqs",
    "sglang:num_decode_host_receive_queue_reqs",
)
"""Queues whose requests wait for a grammar, a peer or a transfer, not for capacity."""

TABLE = Table.of(
    (
        Row("running_requests", "sglang:num_running_reqs"),
        Row("waiting_capacity_requests", "sglang:num_queue_reqs"),
        Row("kv_used_ratio", "sglang:token_usage"),
        Row("kv_used_tokens", "sglang:kv_used_tokens"),
        Row("kv_used_tokens", "sglang:num_used_tokens"),
        Row("batch_slots_sequences", "sglang:max_running_requests"),
        Row("kv_capacity_tokens", "sglang:max_total_num_tokens"),
        Row("kv_block_tokens", "sglang:page_size"),
        Row("kv_blocks", "sglang:num_pages"),
        Row("decode_context_tokens", "sglang:decode_sum_seq_lens"),
        Row("reported_generation_tokens_per_second", "sglang:gen_throughput"),
        Row("prompt_tokens_computed_total", "sglang:realtime_tokens", ("mode", "prefill_compute")),
        Row("prompt_tokens_cached_total", "sglang:realtime_tokens", ("mode", "prefill_cache")),
        Row("prompt_tokens_cached_total", "sglang:cached_tokens", ("cache_source", "total")),
        Row("prompt_tokens_cached_total", "sglang:cached_tokens"),
        Row("prompt_tokens_total", "sglang:prompt_tokens"),
        Row("generation_tokens_total", "sglang:realtime_tokens", ("mode", "decode")),
        Row("generation_tokens_total", "sglang:generation_tokens"),
        Row("preemptions_total", "sglang:num_retracted_requests"),
        Row("preemptions_total", "sglang:total_retracted_reqs"),  # a gauge by type, 0.5.1
        Row("requests_finished_total", "sglang:num_requests"),
        Row("requests_aborted_total", "sglang:num_aborted_requests"),
        Row("estimated_flops_total", "sglang:estimated_flops_per_gpu"),
        Row("estimated_read_bytes_total", "sglang:estimated_read_bytes_per_gpu"),
        Row("estimated_write_bytes_total", "sglang:estimated_write_bytes_per_gpu"),
        Row("steps_total", "sglang:cuda_graph_passes"),
        Row("forward_seconds_total", "sglang:forward_execution_seconds"),
        Row("forward_seconds_total", "sglang:gpu_execution_seconds"),  # 0.5.7 to 0.5.11
        Row("engine_cpu_seconds_total", "sglang:scheduler_process_cpu_seconds"),
        Row("scheduler_idle_seconds_total", "sglang:scheduler_idle_seconds"),
        Row("ttft_seconds", "sglang:time_to_first_token_seconds"),
        Row("itl_seconds", "sglang:inter_token_latency_seconds"),
        Row("tpot_seconds", "sglang:request_time_per_output_token_seconds"),
        Row("tpot_seconds", "sglang:time_per_output_token_seconds"),  # 0.4
        Row("request_seconds", "sglang:e2e_request_latency_seconds"),
        Row("queue_seconds", "sglang:queue_time_seconds"),
        Row("request_prompt_tokens", "sglang:prompt_tokens_histogram"),
        Row("request_generation_tokens", "sglang:generation_tokens_histogram"),
    ),
    also=("sglang:cache_config_info", *DEFERRED),
)

EXPECTED = (
    "running_requests",
    "waiting_requests",
    "kv_used_ratio",
    "kv_capacity_tokens",
    "prompt_tokens_total",
    "generation_tokens_total",
    "preemptions_total",
    "ttft_seconds",
    "itl_seconds",
)
"""What a current SGLang page has; older ones lack capacity and retractions."""

RANKS = ("pp_rank", "tp_rank", "moe_ep_rank")
"""Ranks inside one engine, which repeat its numbers."""


def parse(text: str) -> Parsed:
    """Read a page: one part for each data-parallel rank; `WrongPageError` if it is another's."""
    page = parse_page(text, TABLE.wanted)
    identity, engines_count = _identities(page)
    drafts = TABLE.gather(page, identity)
    problems = list(page.problems)
    if not drafts:
        found = looks_like(text)
        problem = f"not an SGLang page; it looks like {found}"
        if found == "SGLang":
            problem = "the page has SGLang's rows but none for an engine"
        hint = "Does SGLang run with --enable-metrics, and is this its /metrics?"
        raise WrongPageError(problem, hint)
    _add_waiting(page, identity, drafts)
    _add_capacity(page, identity, drafts)
    if engines_count > 1:
        problems.append(
            "the server's own rows (requests, latencies) are not told by rank and left out"
        )
    engines = parts(KIND, drafts)
    return Parsed(
        kind=KIND,
        engines=engines,
        problems=tuple(problems),
        missing=lacking(engines, EXPECTED),
        dialect="SGLang",
    )


def _all_labels(page: Page) -> Iterable[Labels]:
    for family in page.values:
        for labels, _ in page.rows(family):
            yield labels
    for family in page.histograms:
        for labels, _ in page.histogram_rows(family):
            yield labels


def _rank(labels: Labels) -> tuple[int, ...]:
    """Return the ranks inside an engine as numbers; one that is absent or odd counts as 0."""
    return tuple(int(text) if (text := labels.get(name, "0")).isdecimal() else 0 for name in RANKS)


def _identities(page: Page) -> tuple[Identity, int]:
    """Say which row belongs to which engine, having seen all ranks of the page."""
    lowest: dict[str, tuple[int, ...]] = {}
    for labels in _all_labels(page):
        if "dp_rank" in labels or "tp_rank" in labels:
            engine = labels.get("dp_rank", "0")
            rank = _rank(labels)
            lowest[engine] = min(rank, lowest.get(engine, rank))
    only = next(iter(lowest), "0")

    def identity(labels: Labels) -> tuple[str, str] | None:
        model = labels.get("model_name", "")
        if "dp_rank" not in labels and "tp_rank" not in labels:
            return (only, model) if len(lowest) <= 1 else None
        engine = labels.get("dp_rank", "0")
        return (engine, model) if _rank(labels) == lowest[engine] else None

    return identity, max(1, len(lowest))


def _add_waiting(page: Page, identity: Identity, drafts: dict[tuple[str, str], Draft]) -> None:
    """Add up the queues that wait for something other than capacity, and all queues."""
    for family in DEFERRED:
        for labels, value in page.rows(family):
            owner = identity(labels)
            if owner in drafts:
                gauges = drafts[owner].gauges
                name = "waiting_deferred_requests"
                gauges[name] = gauges.get(name, 0.0) + value
    for draft in drafts.values():
        capacity = draft.gauges.get("waiting_capacity_requests")
        if capacity is not None:
            deferred = draft.gauges.get("waiting_deferred_requests", 0.0)
            draft.gauges["waiting_requests"] = capacity + deferred


def _add_capacity(page: Page, identity: Identity, drafts: dict[tuple[str, str], Draft]) -> None:
    """Read pages from the cache's info row (0.5.5 to 0.5.11), then tokens from pages."""
    for labels, _ in page.rows("sglang:cache_config_info"):
        owner = identity(labels) or ("", "")
        for (engine, model), draft in drafts.items():
            if engine == owner[0] and owner[1] in ("", model):
                for name, label in (("kv_blocks", "num_pages"), ("kv_block_tokens", "page_size")):
                    if labels.get(label, "").isdecimal():
                        draft.gauges.setdefault(name, float(labels[label]))
    for draft in drafts.values():
        gauges = draft.gauges
        if "kv_blocks" in gauges and "kv_block_tokens" in gauges:
            tokens = gauges["kv_blocks"] * gauges["kv_block_tokens"]
            gauges.setdefault("kv_capacity_tokens", tokens)
        counters = draft.counters
        computed = counters.get("prompt_tokens_computed_total")
        cached = counters.get("prompt_tokens_cached_total")
        if computed is not None and cached is not None:
            # Both of the scheduler; the tokenizer's own count lags until requests end.
            counters["prompt_tokens_total"] = computed + cached
        if "prompt_tokens_total" in counters and cached is not None:
            counters["prefix_queries_tokens_total"] = counters["prompt_tokens_total"]
            counters["prefix_hits_tokens_total"] = cached
