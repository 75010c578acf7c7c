"""SGLang's own /metrics page, from 0.4.0 to 0.5.23.

Its scheduler's rows carry ranks: each data-parallel rank is an engine of its own, while tensor,
pipeline and expert ranks of one engine repeat the same numbers, so that only the lowest is read
and nothing is ever added up over them. The tokenizer's rows (tokens, requests, latencies) have
no rank: they are the whole server's, and belong to an engine only where there is just one.
"""

from collections.abc import Iterable

from boundby.sources.engine_page import (
    Draft,
    NotThisEngine,
    Parsed,
    Row,
    Table,
    lacking,
    looks_like,
    parts,
)
from boundby.sources.exposition import Labels, Page, parse as parse_page

KIND = "sglang"

TABLE = Table.of(
    (
        Row("running_requests", "sglang:num_running_reqs"),
        Row("waiting_requests", "sglang:num_queue_reqs"),
        Row("waiting_deferred_requests", "sglang:num_grammar_queue_reqs"),
        Row("kv_used_ratio", "sglang:token_usage"),
        Row("kv_used_tokens", "sglang:kv_used_tokens"),
        Row("kv_used_tokens", "sglang:num_used_tokens"),
        Row("kv_capacity_tokens", "sglang:max_total_num_tokens"),
        Row("kv_block_tokens", "sglang:page_size"),
        Row("kv_blocks", "sglang:num_pages"),
        Row("reported_generation_tokens_per_second", "sglang:gen_throughput"),
        Row("prompt_tokens_total", "sglang:prompt_tokens"),
        Row(
            "prompt_tokens_computed_total", "sglang:realtime_tokens", ("mode", "prefill_compute")
        ),
        Row("prompt_tokens_cached_total", "sglang:realtime_tokens", ("mode", "prefill_cache")),
        Row("prompt_tokens_cached_total", "sglang:cached_tokens"),
        Row("generation_tokens_total", "sglang:generation_tokens"),
        Row("preemptions_total", "sglang:num_retracted_requests"),
        Row("preemptions_total", "sglang:total_retracted_reqs"),  # a gauge, in 0.5.1 to 0.5.3
        Row("requests_finished_total", "sglang:num_requests"),
        Row("requests_aborted_total", "sglang:num_aborted_requests"),
        Row("estimated_flops_total", "sglang:estimated_flops_per_gpu"),
        Row("estimated_read_bytes_total", "sglang:estimated_read_bytes_per_gpu"),
        Row("estimated_write_bytes_total", "sglang:estimated_write_bytes_per_gpu"),
        Row("engine_cpu_seconds_total", "sglang:scheduler_process_cpu_seconds"),
        Row("ttft_seconds", "sglang:time_to_first_token_seconds"),
        Row("itl_seconds", "sglang:inter_token_latency_seconds"),
        Row("tpot_seconds", "sglang:request_time_per_output_token_seconds"),
        Row("tpot_seconds", "sglang:time_per_output_token_seconds"),
        Row("request_seconds", "sglang:e2e_request_latency_seconds"),
        Row("queue_seconds", "sglang:queue_time_seconds"),
        Row("request_prompt_tokens", "sglang:prompt_tokens_histogram"),
        Row("request_generation_tokens", "sglang:generation_tokens_histogram"),
    ),
    also=("sglang:cache_config_info",),
)
