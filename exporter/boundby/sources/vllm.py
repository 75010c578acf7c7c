"""vLLM's own /metrics page, from 0.6.6 (V0) to 0.33 (V1), Python or Rust front end.

Names moved over the years; each older name is a row below its newer one.

What the page does not say, so that nobody reads it in: `iteration_tokens_total` has one
observation for each step *that gave an output to this API server*, which is not each step;
`num_requests_waiting_by_reason{reason="capacity"}` counts all that wait to be scheduled, for
slots as for KV blocks; the `estimated_*_per_gpu` counters are exported, at zero, also where
their estimator is off. Gauges are written when a step ends: a stalled engine's stay as they were.
"""

import math
from collections.abc import Iterable

from boundby.sources.engine_page import (
    Draft,
    Parsed,
    Row,
    Table,
    lacking,
    parts,
)
from boundby.sources.exposition import Page
from boundby.sources.exposition import parse as parse_page
from boundby.sources.labels import Labels
from boundby.sources.looks import SERVER_ONLY, WrongPageError, looks_like

KIND = "vllm"

TABLE = Table.of(
    (
        Row("running_requests", "vllm:num_requests_running"),
        Row("waiting_requests", "vllm:num_requests_waiting"),
        Row(
            "waiting_capacity_requests",
            "vllm:num_requests_waiting_by_reason",
            ("reason", "capacity"),
        ),
        Row(
            "waiting_deferred_requests",
            "vllm:num_requests_waiting_by_reason",
            ("reason", "deferred"),
        ),
        Row("swapped_requests", "vllm:num_requests_swapped"),  # V0
        Row("kv_used_ratio", "vllm:kv_cache_usage_perc"),
        Row("kv_used_ratio", "vllm:gpu_cache_usage_perc"),  # before 0.10
        Row(
            "reported_generation_tokens_per_second", "vllm:avg_generation_throughput_toks_per_s"
        ),  # V0
        Row("prompt_tokens_total", "vllm:prompt_tokens"),
        Row(
            "prompt_tokens_computed_total",
            "vllm:prompt_tokens_by_source",
            ("source", "local_compute"),
        ),
        Row(
            "prompt_tokens_cached_total",
            "vllm:prompt_tokens_by_source",
            ("source", "local_cache_hit"),
        ),
        Row("prompt_tokens_cached_total", "vllm:prompt_tokens_cached"),
        Row(
            "prompt_tokens_transferred_total",
            "vllm:prompt_tokens_by_source",
            ("source", "external_kv_transfer"),
        ),
        Row("generation_tokens_total", "vllm:generation_tokens"),
        Row("preemptions_total", "vllm:num_preemptions"),
        Row("prefix_queries_tokens_total", "vllm:prefix_cache_queries"),
        Row("prefix_queries_tokens_total", "vllm:gpu_prefix_cache_queries"),  # before 0.10
        Row("prefix_hits_tokens_total", "vllm:prefix_cache_hits"),
        Row("prefix_hits_tokens_total", "vllm:gpu_prefix_cache_hits"),  # before 0.10
        Row("requests_finished_total", "vllm:request_success"),
        Row("requests_aborted_total", "vllm:request_success", ("finished_reason", "abort")),
        Row("estimated_flops_total", "vllm:estimated_flops_per_gpu"),
        Row("estimated_read_bytes_total", "vllm:estimated_read_bytes_per_gpu"),
        Row("estimated_write_bytes_total", "vllm:estimated_write_bytes_per_gpu"),
        Row("spec_drafts_total", "vllm:spec_decode_num_drafts"),
        Row("spec_draft_tokens_total", "vllm:spec_decode_num_draft_tokens"),
        Row("spec_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens"),
        Row("step_tokens", "vllm:iteration_tokens_total"),
        Row("ttft_seconds", "vllm:time_to_first_token_seconds"),
        Row("itl_seconds", "vllm:inter_token_latency_seconds"),
        # Before 0.11 the gap between tokens had the name of the mean over a request.
        Row("itl_seconds", "vllm:time_per_output_token_seconds"),
        Row("tpot_seconds", "vllm:request_time_per_output_token_seconds"),
        Row("request_seconds", "vllm:e2e_request_latency_seconds"),
        Row("queue_seconds", "vllm:request_queue_time_seconds"),
        Row("queue_seconds", "vllm:time_in_queue_requests"),  # V0, in seconds all the same
        Row("prefill_seconds", "vllm:request_prefill_time_seconds"),
        Row("decode_seconds", "vllm:request_decode_time_seconds"),
        Row("request_prompt_tokens", "vllm:request_prompt_tokens"),
        Row("request_generation_tokens", "vllm:request_generation_tokens"),
    ),
    also=(
        "vllm:engine_sleep_state",
        "vllm:cache_config_info",
        "vllm:lora_requests_info",
        "process_start_time_seconds",
        "process_cpu_seconds",
        "process_open_fds",
    ),
)

EXPECTED = (
    "running_requests",
    "waiting_requests",
    "kv_used_ratio",
    "kv_capacity_tokens",
    "prompt_tokens_total",
    "generation_tokens_total",
    "preemptions_total",
    "step_tokens",
    "ttft_seconds",
    "itl_seconds",
)
"""What every vLLM page of these versions has, unless something is switched off."""


def _identity(labels: Labels) -> tuple[str, str]:
    return labels.get("engine", "0"), labels.get("model_name", "")


def parse(text: str) -> Parsed:
    """Read a page: one part for each engine and model; `WrongPageError` if it is another's."""
    page = parse_page(text, TABLE.wanted)
    drafts = TABLE.gather(page, _identity)
    if not drafts:
        raise _refusal(text)
    engines_count = len({engine for engine, _ in drafts})
    for (engine, _), draft in drafts.items():
        _add_sleep(page, engine, draft)
        _add_cache_config(page, engine, engines_count, draft)
        _add_loras(page, engine, draft)
        _add_process(page, draft)
        _drop_idle_estimates(draft)
    _count_blocks_as_tokens(text, drafts.values())
    engines = parts(KIND, drafts)
    return Parsed(
        kind=KIND,
        engines=engines,
        problems=page.problems,
        missing=lacking(engines, EXPECTED),
        dialect="vLLM",
    )


def _add_sleep(page: Page, engine: str, draft: Draft) -> None:
    for labels, value in page.rows("vllm:engine_sleep_state"):
        if labels.get("sleep_state") == "awake" and labels.get("engine", "0") == engine:
            draft.gauges["engine_asleep_count"] = 0.0 if value else 1.0


def _number(text: str | None) -> float | None:
    """Read a label's number; 'None' and other words are no number."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _add_cache_config(page: Page, engine: str, engines: int, draft: Draft) -> None:
    """Read the labels of the cache's info row; one without an engine holds for all.

    `num_gpu_blocks` is the sum over all data-parallel engines of the page, on each one's row
    (0.32: 2 engines of 8192 blocks show 16384); `kv_cache_size_tokens` is one engine's.
    """
    for labels, _ in page.rows("vllm:cache_config_info"):
        if labels.get("engine", engine) != engine:
            continue
        blocks, tokens = _number(labels.get("num_gpu_blocks")), _number(labels.get("block_size"))
        if blocks is not None:
            blocks /= engines
        capacity = _number(labels.get("kv_cache_size_tokens"))
        if capacity is None and blocks is not None and tokens is not None:
            capacity = blocks * tokens
        for name, value in (
            ("kv_blocks", blocks),
            ("kv_block_tokens", tokens),
            ("kv_capacity_tokens", capacity),
        ):
            if value is not None:
                draft.gauges[name] = value
        for name, label in (
            ("cache_dtype", "cache_dtype"),
            ("gpu_memory_utilization_ratio", "gpu_memory_utilization"),
            ("prefix_caching", "enable_prefix_caching"),
        ):
            if label in labels:
                draft.infos[name] = labels[label]


def _add_loras(page: Page, engine: str, draft: Draft) -> None:
    """Read the newest row on LoRA adapters: its value is the time at which it held."""
    rows = [
        (time, labels)
        for labels, time in page.rows("vllm:lora_requests_info")
        if labels.get("engine", engine) == engine
    ]
    if rows:
        _, newest = max(rows, key=lambda row: row[0])
        for name, label in (
            ("lora_running", "running_lora_adapters"),
            ("lora_waiting", "waiting_lora_adapters"),
            ("lora_slots", "max_lora"),
        ):
            if label in newest:
                draft.infos[name] = newest[label]


def _add_process(page: Page, draft: Draft) -> None:
    """Give every engine its page's process; in multi-process mode there are no such rows."""
    for _, value in page.rows("process_start_time_seconds"):
        draft.gauges["process_start_seconds"] = value
    for _, value in page.rows("process_open_fds"):
        draft.gauges["open_files_count"] = value
    for _, value in page.rows("process_cpu_seconds"):
        draft.counters["engine_cpu_seconds_total"] = value


def _drop_idle_estimates(draft: Draft) -> None:
    """Leave out FLOP and byte estimates that stay at zero while tokens were made.

    The counters are there, at zero, unless vLLM runs with --enable-mfu-metrics.
    """
    tokens = draft.counters.get("generation_tokens_total", 0.0)
    if tokens > 0 and not draft.counters.get("estimated_flops_total"):
        for name in (
            "estimated_flops_total",
            "estimated_read_bytes_total",
            "estimated_write_bytes_total",
        ):
            draft.counters.pop(name, None)


def _count_blocks_as_tokens(text: str, drafts: Iterable[Draft]) -> None:
    """Before 0.9 the prefix cache counted blocks, which its help line says."""
    help_line = text.partition("# HELP vllm:gpu_prefix_cache_queries")[2].partition("\n")[0]
    if "blocks" not in help_line:
        return
    for draft in drafts:
        tokens = draft.gauges.get("kv_block_tokens")
        for name in ("prefix_queries_tokens_total", "prefix_hits_tokens_total"):
            if name in draft.counters:
                blocks = draft.counters.pop(name)
                if tokens is not None:
                    draft.counters[name] = blocks * tokens


def _refusal(text: str) -> WrongPageError:
    found = looks_like(text)
    problem = f"not a vLLM page; it looks like {found}"
    hint = "Is this the address of vLLM's API server, and its path /metrics?"
    if found == "vLLM":
        problem = "the page has vLLM's rows but none for an engine"
        hint = "Is it still loading its model? V0 shows no rows before its first request."
    elif found == SERVER_ONLY:
        problem = "the page has a server's own rows but no vllm: ones"
        hint = "If this is vLLM, it runs with --disable-log-stats; start it without."
    return WrongPageError(problem, hint)
