"""Our GPUs' spans as facts: busy, active, clocks, power and why clocks were held down.

Ratios are means over the GPUs that are ours; `lowest` and `highest` ones show a straggler.
"""

import math
from collections.abc import Mapping, Sequence

from boundby.core.hardware import Gpu, find
from boundby.core.parts import GpuPart
from boundby.core.report import GpuReport
from boundby.core.setup import Setup
from boundby.core.window import Span

POWER_REASONS = 0x4 | 0x8 | 0x80
"""NVML clock event reasons: software power cap, hardware slowdown, hardware power brake."""

THERMAL_REASONS = 0x20 | 0x40
"""NVML clock event reasons: software and hardware thermal slowdown."""

RATIOS = (
    "engine_active_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "gpu_busy_ratio",
    "memory_copy_busy_ratio",
)
LEVELS = (
    "power_watts",
    "power_limit_watts",
    "sm_clock_hertz",
    "temperature_celsius",
    "nvlink_tx_bytes_per_second",
    "nvlink_rx_bytes_per_second",
    "pcie_tx_bytes_per_second",
    "pcie_rx_bytes_per_second",
    "memory_used_bytes",
)


def gpu_facts(spans: Mapping[str, Span], gpu: Gpu | None) -> dict[str, float]:
    """Facts over our GPUs; empty when none has two reads in the window."""
    if not spans:
        return {}
    facts: dict[str, float] = {"gpus_count": float(len(spans))}
    for name in (*RATIOS, *LEVELS):
        values = [span.mean[name] for span in spans.values() if name in span.mean]
        if values:
            facts[name] = math.fsum(values) / len(values)
    busy = [v for span in spans.values() if (v := _busy(span)) is not None]
    if len(busy) > 1:
        facts["busy_lowest_ratio"], facts["busy_highest_ratio"] = min(busy), max(busy)
    _clocks(list(spans.values()), gpu, facts)
    return facts


def gpu_report(part: GpuPart, span: Span, setup: Setup) -> GpuReport:
    """What is concluded of one GPU: its activity, its ridge point and its operational intensity.

    Operational intensity is the FLOPs that the tensor pipes' activity stands for over the bytes
    that the memory interface's stands for, both at the clocks of the span.
    """
    signals = {name: value for name, value in span.mean.items() if name in RATIOS}
    kind = find(part.name, part.gauges.get("memory_total_bytes")) if part.name else None
    if kind is not None:
        clock = span.mean.get("sm_clock_hertz")
        top = span.last.get("max_sm_clock_hertz") or kind.max_sm_clock_hertz
        scale = min(1.0, clock / top) if clock and top else 1.0
        peak = kind.best_peak_flops(setup.weights_dtype or "bf16") * scale
        ridge = peak / kind.memory_bytes_per_second
        signals["ridge_point_flops_per_byte"] = ridge
        tensor, dram = span.mean.get("tensor_active_ratio"), span.mean.get("dram_active_ratio")
        if tensor is not None and dram:
            signals["operational_intensity_flops_per_byte"] = ridge * tensor / dram
    finite = {name: number for name, number in signals.items() if math.isfinite(number)}
    return GpuReport(gpu=part.gpu, name=part.name, index=part.index, signals=finite)


def _busy(span: Span) -> float | None:
    return span.mean.get("engine_active_ratio", span.mean.get("gpu_busy_ratio"))


def _clocks(spans: Sequence[Span], gpu: Gpu | None, facts: dict[str, float]) -> None:
    # A clock of 0 is a GPU that sleeps or is lost, and says nothing of what a throttle costs.
    clocks = [hertz for span in spans if (hertz := span.mean.get("sm_clock_hertz", 0.0)) > 0]
    if clocks:
        tops = [span.last.get("max_sm_clock_hertz", 0.0) for span in spans]
        listed = gpu.max_sm_clock_hertz if gpu and gpu.max_sm_clock_hertz else 0.0
        seen = max(span.high["sm_clock_hertz"] for span in spans if "sm_clock_hertz" in span.high)
        top = max(*tops, listed, seen)
        facts["max_sm_clock_hertz"] = top
        facts["clock_ratio"] = min(1.0, math.fsum(clocks) / len(clocks) / top) if top else 1.0
        facts["clock_lowest_ratio"] = min(clocks) / top if top else 1.0
    power = [_share(span, POWER_REASONS, "power_violation_seconds_total") for span in spans]
    thermal = [_share(span, THERMAL_REASONS, "thermal_violation_seconds_total") for span in spans]
    for name, found in (("power_throttled_ratio", power), ("thermal_throttled_ratio", thermal)):
        known = [share for share in found if share is not None]
        if known:
            facts[name] = max(known)


def _share(span: Span, bits: int, counter: str) -> float | None:
    """Share of time that clocks were held down for one reason, by its counter or by its bits."""
    masks = span.series.get("clock_event_reasons_count", ())
    by_bits = sum(1 for mask in masks if int(mask) & bits) / len(masks) if masks else None
    rate = span.rate(counter)
    if rate is None:
        return by_bits
    by_time = min(1.0, max(0.0, rate))
    # Some drivers let one counter run for any throttling; the bits say which kind it was.
    if by_bits is not None and by_bits == 0.0 and any(int(mask) for mask in masks):
        return 0.0
    return by_time
