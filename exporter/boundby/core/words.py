"""Numbers as a person reads them: a name in words, a value with its unit."""

from collections.abc import Callable

LABELS = {
    "kv_used_ratio": "KV",
    "waiting_requests": "waiting",
    "running_requests": "running",
    "batch_sequences": "batch",
    "batch_slots_sequences": "slots",
    "slots_used_ratio": "slots used",
    "preemptions_per_second": "preemptions",
    "host_gap_ratio": "GPU waits for the host",
    "host_gap_seconds_per_step": "gap a step",
    "mbu_ratio": "MBU",
    "mfu_ratio": "MFU",
    "dram_active_ratio": "DRAM active",
    "tensor_active_ratio": "tensor active",
    "sm_active_ratio": "SM active",
    "engine_active_ratio": "GPU active",
    "gpu_busy_ratio": "GPU busy",
    "power_throttled_ratio": "power-throttled",
    "thermal_throttled_ratio": "heat-throttled",
    "clock_ratio": "SM clock",
    "weight_bytes_ratio": "weights' share of bytes",
    "no_work_ratio": "no work",
    "batch_elasticity_ratio": "gain of a larger batch",
    "still_seconds": "no progress for",
    "running_last_requests": "running",
    "interconnect_time_ratio": "time in collectives",
    "memory_time_ratio": "time on memory",
    "compute_time_ratio": "time on arithmetic",
    "kernel_latency_time_ratio": "fixed kernel time",
    "context_tokens_per_sequence": "context",
    "waiting_share_ratio": "time with work waiting",
    "prefill_step_tokens": "tokens a prefill step",
    "token_budget_tokens": "token budget",
    "pcie_tx_bytes_per_second": "PCIe sent",
    "nvlink_tx_bytes_per_second": "NVLink sent",
    "prompt_tokens_transferred_per_second": "prompt tokens fetched",
    "gpu_working_ratio": "GPU working",
    "peer_loss_ratio": "lost to slower peers",
    "clock_lowest_ratio": "lowest SM clock",
    "busy_lowest_ratio": "least busy GPU",
    "busy_highest_ratio": "busiest GPU",
    "decode_lost_to_prefill_ratio": "decode time lost to prefills",
    "waiting_deferred_requests": "waiting for something else",
    "engine_core_busiest_thread_ratio": "engine core's busiest thread",
    "cpu_throttled_ratio": "cgroup throttled",
    "decode_step_seconds": "decode step",
    "decode_arithmetic_intensity_flops_per_byte": "decode intensity",
    "prefill_arithmetic_intensity_flops_per_byte": "prefill intensity",
    "ridge_point_flops_per_byte": "ridge point",
    "recomputed_ratio": "recomputed",
}
"""Short names of what stands in evidence."""


def seconds(value: float) -> str:
    """A length of time in the unit that fits."""
    if value == 0:
        return "0 s"
    for limit, scale, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms"), (120.0, 1.0, "s")):
        if abs(value) < limit:
            return f"{value * scale:.3g} {unit}"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"  # noqa: PLR2004


def percent(share: float) -> str:
    """A share in per cent."""
    return f"{share * 100:.0f} %"


def amount(value: float) -> str:
    """A number with the prefix that fits."""
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= scale:
            factor = 1e3 if prefix == "k" else scale
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"  # noqa: PLR2004  no exponents


UNITS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_ratio", percent),
    ("_seconds", seconds),
    ("_seconds_per_step", seconds),
    ("_flops_per_byte", lambda number: f"{number:.3g} FLOP/byte"),
    ("_bytes_per_second", lambda number: f"{amount(number)}B/s"),
    ("_per_second", lambda number: f"{amount(number)}/s"),
    ("_hertz", lambda number: f"{number / 1e6:.0f} MHz"),
    ("_watts", lambda number: f"{number:.0f} W"),
    ("_bytes", lambda number: f"{amount(number)}B"),
    ("_celsius", lambda number: f"{number:.0f} °C"),
)
"""How a number is written, by how its name ends; the first that fits."""


def value(name: str, number: float) -> str:
    """A number with the unit that its name carries."""
    write = next((write for ending, write in UNITS if name.endswith(ending)), amount)
    return write(number)


def phrase(name: str, number: float) -> str:
    """`KV 99 %`, `12 waiting`, `0.4/s preemptions`."""
    label = LABELS.get(name, name.rsplit("_", 1)[0].replace("_", " "))
    text = value(name, number)
    if name.endswith("_requests"):
        return f"{text} {label}"
    if name == "preemptions_per_second":
        return f"{amount(number)} preemptions/s"
    return f"{label} {text}"
