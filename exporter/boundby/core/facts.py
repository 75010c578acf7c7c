"""Every name a source may give, with its kind, unit and meaning. Data, and nothing else.

Adapters fill parts with these names only; a test holds them to it. A name carries its unit.
A counter's name ends in `_total`; windows turn counters into `..._per_second` rates.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram", "info"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One name a source may give."""

    name: str
    kind: Kind
    says: str


def _table(*facts: Fact) -> dict[str, Fact]:
    return {fact.name: fact for fact in facts}


ENGINE_FACTS = _table(
    Fact("running_requests", "gauge", "Requests in the running batch."),
    Fact("waiting_requests", "gauge", "Requests waiting to be scheduled, for any reason."),
    Fact("waiting_capacity_requests", "gauge", "Requests waiting because capacity is short."),
    Fact(
        "waiting_deferred_requests", "gauge", "Requests waiting on something else (KV, grammar)."
    ),
    Fact("swapped_requests", "gauge", "Requests swapped out to host memory (vLLM V0)."),
    Fact("kv_used_ratio", "gauge", "KV cache in use over all of it, 0 to 1."),
    Fact("kv_used_tokens", "gauge", "Tokens held in the KV cache, where the engine says."),
    Fact("kv_capacity_tokens", "gauge", "Tokens the KV cache can hold, where the engine says."),
    Fact("kv_blocks", "gauge", "Blocks in the KV cache."),
    Fact("kv_block_tokens", "gauge", "Tokens in one KV block."),
    Fact("batch_slots_sequences", "gauge", "Most sequences a step may hold, where exported."),
    Fact("token_budget_tokens", "gauge", "Most tokens a step may schedule, where exported."),
    Fact("engine_asleep_count", "gauge", "1 while the engine is in a sleep level above 0."),
    Fact("process_start_seconds", "gauge", "Unix time the engine's page process started."),
    Fact("open_files_count", "gauge", "Open files of the page's process: a hint at connections."),
    Fact("reported_generation_tokens_per_second", "gauge", "The engine's own decode rate gauge."),
    Fact("decode_context_tokens", "gauge", "Sum of the lengths of the decoding sequences."),
    Fact("prompt_tokens_total", "counter", "Prompt tokens processed, cached ones included."),
    Fact("prompt_tokens_computed_total", "counter", "Prompt tokens really computed."),
    Fact("prompt_tokens_cached_total", "counter", "Prompt tokens served by the prefix cache."),
    Fact("prompt_tokens_transferred_total", "counter", "Prompt tokens whose KV was fetched."),
    Fact("generation_tokens_total", "counter", "Tokens generated."),
    Fact("preemptions_total", "counter", "Running sequences that lost their KV blocks."),
    Fact("prefix_queries_tokens_total", "counter", "Prompt tokens looked up in the prefix cache."),
    Fact("prefix_hits_tokens_total", "counter", "Prompt tokens found in the prefix cache."),
    Fact("requests_finished_total", "counter", "Requests that ended, however they ended."),
    Fact("requests_aborted_total", "counter", "Requests that the client gave up."),
    Fact("estimated_flops_total", "counter", "The engine's own estimate of FLOPs per GPU."),
    Fact("estimated_read_bytes_total", "counter", "Its estimate of bytes read per GPU."),
    Fact("estimated_write_bytes_total", "counter", "Its estimate of bytes written per GPU."),
    Fact("spec_drafts_total", "counter", "Speculative drafts made."),
    Fact("spec_draft_tokens_total", "counter", "Tokens drafted."),
    Fact("spec_accepted_tokens_total", "counter", "Drafted tokens accepted."),
    Fact("engine_cpu_seconds_total", "counter", "CPU seconds of the page's own process."),
    Fact("steps_total", "counter", "Forward passes made, where the engine counts them."),
    Fact("forward_seconds_total", "counter", "Time in forward passes, as the engine times them."),
    Fact("scheduler_idle_seconds_total", "counter", "Time the scheduler had nothing to do."),
    Fact("step_tokens", "histogram", "Tokens in a step; vLLM's count may be outputs, not steps."),
    Fact("ttft_seconds", "histogram", "Time to first token, queueing included."),
    Fact("itl_seconds", "histogram", "Gap between successive tokens of one sequence."),
    Fact("tpot_seconds", "histogram", "Mean time per output token, one observation a request."),
    Fact("request_seconds", "histogram", "Arrival to last token."),
    Fact("queue_seconds", "histogram", "Arrival to first scheduling."),
    Fact("prefill_seconds", "histogram", "First scheduling to first token."),
    Fact("decode_seconds", "histogram", "First token to last token."),
    Fact("request_prompt_tokens", "histogram", "Prompt tokens of finished requests."),
    Fact("request_generation_tokens", "histogram", "Generated tokens of finished requests."),
    Fact("version", "info", "The engine's version, where the page says."),
    Fact("cache_dtype", "info", "Data type of the KV cache as configured ('auto' included)."),
    Fact("gpu_memory_utilization_ratio", "info", "Share of GPU memory the engine may take."),
    Fact("lora_running", "info", "LoRA adapters with running requests, as the engine lists them."),
    Fact("lora_waiting", "info", "LoRA adapters with waiting requests."),
    Fact("lora_slots", "info", "Most LoRA adapters that a batch may hold."),
    Fact("prefix_caching", "info", "Whether prefix caching is on, as the engine words it."),
)
"""What an engine's page may give."""

GPU_FACTS = _table(
    Fact("gpu_busy_ratio", "gauge", "Share of time any kernel ran (GPU utilisation)."),
    Fact(
        "engine_active_ratio", "gauge", "Share of cycles the graphics/compute engine was active."
    ),
    Fact("sm_active_ratio", "gauge", "Share of cycles an SM held at least one warp, SM average."),
    Fact("sm_occupancy_ratio", "gauge", "Resident warps over the most an SM may hold."),
    Fact("tensor_active_ratio", "gauge", "Share of cycles the tensor pipes were active."),
    Fact("fp32_active_ratio", "gauge", "Share of cycles the FP32 pipe was active."),
    Fact("fp16_active_ratio", "gauge", "Share of cycles the FP16 pipe was active."),
    Fact("fp64_active_ratio", "gauge", "Share of cycles the FP64 pipe was active."),
    Fact("dram_active_ratio", "gauge", "Share of cycles the memory interface moved data."),
    Fact(
        "memory_copy_busy_ratio",
        "gauge",
        "NVML memory utilisation: share of time reading/writing.",
    ),
    Fact("sm_clock_hertz", "gauge", "SM clock now."),
    Fact("memory_clock_hertz", "gauge", "Memory clock now."),
    Fact("max_sm_clock_hertz", "gauge", "Highest SM clock the device allows."),
    Fact("max_memory_clock_hertz", "gauge", "Highest memory clock the device allows."),
    Fact("power_watts", "gauge", "Board power draw."),
    Fact("power_limit_watts", "gauge", "Enforced board power limit."),
    Fact("temperature_celsius", "gauge", "GPU temperature."),
    Fact("memory_temperature_celsius", "gauge", "Memory temperature."),
    Fact("memory_used_bytes", "gauge", "Device memory in use."),
    Fact("memory_free_bytes", "gauge", "Device memory free."),
    Fact("memory_total_bytes", "gauge", "Device memory in all."),
    Fact("clock_event_reasons_count", "gauge", "Bit mask of the clock event (throttle) reasons."),
    Fact("power_throttled_ratio", "gauge", "Share of recent time clocks were held by power."),
    Fact("thermal_throttled_ratio", "gauge", "Share of recent time clocks were held by heat."),
    Fact("nvlink_tx_bytes_per_second", "gauge", "NVLink bytes sent, all links."),
    Fact("nvlink_rx_bytes_per_second", "gauge", "NVLink bytes received, all links."),
    Fact("nvlink_bytes_per_second", "gauge", "NVLink bytes both ways, all links."),
    Fact("pcie_tx_bytes_per_second", "gauge", "PCIe bytes sent by the GPU."),
    Fact("pcie_rx_bytes_per_second", "gauge", "PCIe bytes received by the GPU."),
    Fact("pcie_link_width_count", "gauge", "PCIe lanes in use."),
    Fact("pcie_link_generation_count", "gauge", "PCIe generation in use."),
    Fact("power_violation_seconds_total", "counter", "Time clocks were held down by power."),
    Fact("thermal_violation_seconds_total", "counter", "Time clocks were held down by heat."),
    Fact("board_violation_seconds_total", "counter", "Time held down by board limits."),
    Fact("energy_joules_total", "counter", "Energy drawn."),
    Fact("nvlink_bytes_total", "counter", "NVLink (xGMI) bytes, both ways, all links."),
    Fact("pcie_replays_total", "counter", "PCIe packets sent again."),
    Fact("ecc_uncorrected_errors_total", "counter", "Uncorrected memory errors."),
    Fact("xid_last_count", "gauge", "The last XID error code, where one was seen."),
    Fact("driver_version", "info", "The driver's version."),
    Fact("compute_capability", "info", "CUDA compute capability, 'major.minor'."),
)
"""What a GPU source may give."""

HOST_FACTS = _table(
    Fact("cpu_quota_cores_count", "gauge", "CPU quota of the cgroup, in cores; absent = none."),
    Fact("cpu_usable_cores_count", "gauge", "Cores the cpuset or affinity allows."),
    Fact("cpu_cores_count", "gauge", "Cores it may use at once: the lesser of quota and cpuset."),
    Fact("cpu_pressure_ratio", "gauge", "PSI: share of time some task waited for a CPU, 10 s."),
    Fact("memory_pressure_ratio", "gauge", "PSI: share of time some task waited for memory."),
    Fact("cpu_throttled_seconds_total", "counter", "Time the cgroup was throttled."),
    Fact("cpu_throttled_periods_total", "counter", "Periods in which it was throttled."),
    Fact("cpu_periods_total", "counter", "Enforcement periods."),
    Fact("engine_core_cpu_seconds_total", "counter", "CPU seconds of the engine core process."),
    Fact("engine_core_busiest_thread_cpu_seconds_total", "counter", "Of its busiest thread."),
    Fact("api_server_cpu_seconds_total", "counter", "CPU seconds of the API server process."),
    Fact("api_server_busiest_thread_cpu_seconds_total", "counter", "Of its busiest thread."),
    Fact("worker_cpu_seconds_total", "counter", "CPU seconds of the workers together."),
    Fact(
        "engine_core_run_queue_seconds_total", "counter", "Time it was runnable but not running."
    ),
    Fact("api_server_run_queue_seconds_total", "counter", "The same of the API server."),
    Fact("context_switches_total", "counter", "Involuntary context switches of the engine core."),
    Fact("engine_command", "info", "The engine's command line, secrets removed."),
)
"""What the host may give."""
