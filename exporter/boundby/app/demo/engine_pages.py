"""What the simulated engine's /metrics would show, in the words of four real ones.

Names, labels and bucket bounds are those of vLLM 0.6 (V0), early V1 and 0.32, and of SGLang 0.4,
as their own pages show them. Values are simulated.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from boundby.app.demo.batch import BLOCK
from boundby.app.demo.engine import Engine
from boundby.app.demo.model import Model
from boundby.app.demo.tally import Histogram

Dialect = Literal["vllm-v1", "vllm-v1-early", "vllm-v0", "sglang"]
Rows = Iterable[tuple[str, float]]

REQUEST_HISTOGRAMS = (
    ("vllm:e2e_request_latency_seconds", "request"),
    ("vllm:request_queue_time_seconds", "queue"),
    ("vllm:request_inference_time_seconds", "inference"),
    ("vllm:request_prefill_time_seconds", "prefill"),
    ("vllm:request_decode_time_seconds", "decode"),
    ("vllm:request_prompt_tokens", "prompt_tokens"),
    ("vllm:request_generation_tokens", "generation_tokens"),
)


def _family(name: str, kind: str, rows: Rows) -> Iterator[str]:
    yield f"# HELP {name} {name} (simulated)"
    yield f"# TYPE {name} {kind}"
    for labels, value in rows:
        yield f"{name}{{{labels}}} {float(value)!r}"


def _histogram(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    yield f"# HELP {name} {name} (simulated)"
    yield f"# TYPE {name} histogram"
    for bound, count in histogram.cumulative():
        edge = "+Inf" if bound == float("inf") else repr(bound)
        yield f'{name}_bucket{{le="{edge}",{labels}}} {count!r}'
    yield f"{name}_count{{{labels}}} {histogram.count!r}"
    yield f"{name}_sum{{{labels}}} {histogram.sum!r}"


def engine_page(engine: Engine, model: Model, dialect: Dialect, started: float) -> str:
    """Give the page as served now; `started` is the unix time the server began."""
    if dialect == "sglang":
        lines = _sglang(engine, model)
    elif dialect == "vllm-v0":
        lines = _v0(engine, model)
    else:
        lines = _v1(engine, model, early=dialect == "vllm-v1-early")
    return "\n".join([*lines, *_process(engine, started)]) + "\n"


def _process(engine: Engine, started: float) -> Iterator[str]:
    yield "# TYPE process_start_time_seconds gauge"
    yield f"process_start_time_seconds {started!r}"
    yield "# TYPE process_cpu_seconds_total counter"
    yield f"process_cpu_seconds_total {engine.tally.server_cpu_seconds!r}"


def _cache_info(engine: Engine, model: Model, labels: str) -> Iterator[str]:
    dtype = "auto" if model.kv_dtype == "bf16" else model.kv_dtype
    info = (
        f'{labels},block_size="{BLOCK}",cache_dtype="{dtype}",enable_prefix_caching="True",'
        f'gpu_memory_utilization="{engine.settings.memory_utilization}",'
        f'num_cpu_blocks="None",num_gpu_blocks="{engine.settings.kv_blocks}",'
        'num_gpu_blocks_override="None",sliding_window="None"'
    )
    return _family("vllm:cache_config_info", "gauge", [(info, 1.0)])


def _ends(engine: Engine, labels: str) -> Iterator[str]:
    tally = engine.tally
    rows = [
        (f'{labels},finished_reason="stop"', tally.finished),
        (f'{labels},finished_reason="length"', 0.0),
        (f'{labels},finished_reason="abort"', tally.aborted),
    ]
    return _family("vllm:request_success_total", "counter", rows)


def _v1(engine: Engine, model: Model, *, early: bool) -> Iterator[str]:
    tally, kinds = engine.tally, engine.tally.histograms
    labels = f'engine="0",model_name="{model.id}"'
    old = "gpu_" if early else ""
    kv = "gpu_cache_usage_perc" if early else "kv_cache_usage_perc"
    yield from _family("vllm:num_requests_running", "gauge", [(labels, engine.running)])
    yield from _family("vllm:num_requests_waiting", "gauge", [(labels, engine.waiting)])
    yield from _family(f"vllm:{kv}", "gauge", [(labels, engine.kv_used_ratio)])
    for name, value in (
        (f"vllm:{old}prefix_cache_queries_total", tally.prefix_queries),
        (f"vllm:{old}prefix_cache_hits_total", tally.prefix_hits),
        ("vllm:num_preemptions_total", tally.preemptions),
        ("vllm:prompt_tokens_total", tally.prompt_tokens),
        ("vllm:generation_tokens_total", tally.generation_tokens),
    ):
        yield from _family(name, "counter", [(labels, value)])
    if not early:
        yield from _newer(engine, labels)
    yield from _ends(engine, labels)
    yield from _histogram("vllm:iteration_tokens_total", labels, kinds["step_tokens"])
    yield from _histogram("vllm:time_to_first_token_seconds", labels, kinds["ttft"])
    gap = "vllm:time_per_output_token_seconds" if early else "vllm:inter_token_latency_seconds"
    yield from _histogram(gap, labels, kinds["token_gap"])
    if not early:
        name = "vllm:request_time_per_output_token_seconds"
        yield from _histogram(name, labels, kinds["mean_token_gap"])
        yield from _histogram("vllm:request_num_preemptions", labels, kinds["preemptions"])
        name = "vllm:request_prefill_kv_computed_tokens"
        yield from _histogram(name, labels, kinds["computed_tokens"])
    for name, key in REQUEST_HISTOGRAMS:
        yield from _histogram(name, labels, kinds[key])
    yield from _cache_info(engine, model, labels)


def _newer(engine: Engine, labels: str) -> Iterator[str]:
    """Families that later V1 pages added."""
    tally = engine.tally
    computed = tally.prompt_tokens - tally.prompt_cached_tokens
    rows = [
        (f'{labels},source="local_compute"', computed),
        (f'{labels},source="local_cache_hit"', tally.prompt_cached_tokens),
        (f'{labels},source="external_kv_transfer"', 0.0),
    ]
    yield from _family("vllm:prompt_tokens_by_source_total", "counter", rows)
    cached = [(labels, tally.prompt_cached_tokens)]
    yield from _family("vllm:prompt_tokens_cached_total", "counter", cached)
    reasons = [
        (f'{labels},reason="capacity"', float(engine.waiting)),
        (f'{labels},reason="deferred"', 0.0),
    ]
    yield from _family("vllm:num_requests_waiting_by_reason", "gauge", reasons)
    states = [
        (f'{labels},sleep_state="awake"', 1.0),
        (f'{labels},sleep_state="weights_offloaded"', 0.0),
        (f'{labels},sleep_state="discard_all"', 0.0),
    ]
    yield from _family("vllm:engine_sleep_state", "gauge", states)
    for what in ("flops", "read_bytes", "write_bytes"):
        # There, and zero: vLLM fills them only when asked to.
        yield from _family(f"vllm:estimated_{what}_per_gpu_total", "counter", [(labels, 0.0)])


def _v0(engine: Engine, model: Model) -> Iterator[str]:
    tally, kinds = engine.tally, engine.tally.histograms
    labels = f'model_name="{model.id}"'
    for name, value in (
        ("vllm:num_requests_running", float(engine.running)),
        ("vllm:num_requests_swapped", 0.0),
        ("vllm:num_requests_waiting", float(engine.waiting)),
        ("vllm:gpu_cache_usage_perc", engine.kv_used_ratio),
        ("vllm:cpu_cache_usage_perc", 0.0),
        ("vllm:cpu_prefix_cache_hit_rate", -1.0),
        ("vllm:gpu_prefix_cache_hit_rate", tally.prefix_hits / max(1.0, tally.prefix_queries)),
    ):
        yield from _family(name, "gauge", [(labels, value)])
    for name, value in (
        ("vllm:num_preemptions_total", tally.preemptions),
        ("vllm:prompt_tokens_total", tally.prompt_tokens),
        ("vllm:generation_tokens_total", tally.generation_tokens),
    ):
        yield from _family(name, "counter", [(labels, value)])
    yield from _ends(engine, labels)
    yield from _histogram("vllm:iteration_tokens_total", labels, kinds["step_tokens"])
    yield from _histogram("vllm:time_to_first_token_seconds", labels, kinds["ttft"])
    yield from _histogram("vllm:time_per_output_token_seconds", labels, kinds["token_gap"])
    for name, key in REQUEST_HISTOGRAMS:
        yield from _histogram(name, labels, kinds[key])
    yield from _cache_info(engine, model, labels)


def _sglang(engine: Engine, model: Model) -> Iterator[str]:
    tally, kinds = engine.tally, engine.tally.histograms
    labels = f'model_name="{model.id}"'
    gauges = f'engine_type="unified",{labels}'
    room = float(engine.settings.kv_blocks * BLOCK)
    for name, value in (
        ("sglang:num_running_reqs", float(engine.running)),
        ("sglang:num_used_tokens", room * engine.kv_used_ratio),
        ("sglang:token_usage", engine.kv_used_ratio),
        ("sglang:num_queue_reqs", float(engine.waiting)),
        ("sglang:cache_hit_rate", tally.prefix_hits / max(1.0, tally.prefix_queries)),
        ("sglang:max_total_num_tokens", room),
    ):
        yield from _family(name, "gauge", [(gauges, value)])
    for name, value in (
        ("sglang:prompt_tokens_total", tally.prompt_tokens),
        ("sglang:generation_tokens_total", tally.generation_tokens),
        ("sglang:cached_tokens_total", tally.prompt_cached_tokens),
        ("sglang:num_requests_total", tally.finished),
    ):
        yield from _family(name, "counter", [(labels, value)])
    yield from _histogram("sglang:time_to_first_token_seconds", labels, kinds["ttft"])
    yield from _histogram("sglang:inter_token_latency_seconds", labels, kinds["token_gap"])
    yield from _histogram("sglang:e2e_request_latency_seconds", labels, kinds["request"])
