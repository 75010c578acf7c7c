"""What dcgm-exporter would show of the simulated GPUs, or the part of it that NVML can give.

Names, label order and units follow dcgm-exporter before 4.9 (MHz, W, MiB, nanoseconds of
violation); rates are means over the collect interval, as its PROF rows are. Values are simulated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from boundby.app.demo.board import Clocks
from boundby.app.demo.machine import MIB, Machine
from boundby.app.demo.tally import GpuTally

REASON_IDLE = 0x1
REASON_POWER_CAP = 0x4
REASON_SOFTWARE_THERMAL = 0x20

CLOCK_STEP_MHZ = 15
"""SM clocks move in steps of this size."""

SM_SHARE_OF_BUSY = 0.93
"""Kernels rarely have a warp on every SM all the time they run."""

COPY_SHARE_OF_DRAM = 0.92
"""NVML's memory utilisation sits a little under DCGM's DRAM activity."""

IDLE_CELSIUS, CELSIUS_AT_FULL_POWER, HOT_CELSIUS = 34.0, 68.0, 88.0
PCIE_IDLE_BYTES_PER_SECOND = 2.0e7


def uuid(index: int) -> str:
    """Give the UUID of a simulated GPU."""
    return f"GPU-d3300000-51b0-4000-8000-{index:012d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One collect interval of one machine's GPUs."""

    machine: Machine
    clocks: Clocks
    interval: GpuTally
    """What was done since the last collection."""
    total: GpuTally
    memory_used_bytes: float
    cycle_counters: bool = True
    """Tensor activity is a share of clock cycles; else of what full clock would give."""
    noise_ratio: float = 0.01
    seed: int = 0


def gpu_page(reading: Reading, *, profiling: bool = True) -> str:
    """Give the page; without `profiling`, only what NVML gives."""
    machine, names = reading.machine, []
    columns: dict[str, tuple[str, list[str]]] = {}
    for index in range(machine.tensor):
        random = Random(reading.seed * 64 + index)  # noqa: S311 - a simulation, nothing secret
        for name, kind, value in _rows(reading, random, profiling=profiling):
            columns.setdefault(name, (kind, []))[1].append(value)
        names.append(
            f'gpu="{index}",UUID="{uuid(index)}",pci_bus_id="00000000:{index + 1:02X}:00.0",'
            f'device="nvidia{index}",modelName="{machine.gpu.name}",Hostname="simulated-node"'
        )
    lines = []
    for name, (kind, values) in columns.items():
        lines += [f"# HELP {name} {name} (simulated)", f"# TYPE {name} {kind}"]
        lines += [
            f"{name}{{{labels}}} {value}" for labels, value in zip(names, values, strict=True)
        ]
    return "\n".join(lines) + "\n"


def _rows(reading: Reading, random: Random, *, profiling: bool) -> Iterator[tuple[str, str, str]]:
    machine, clocks, interval, total = (
        reading.machine,
        reading.clocks,
        reading.interval,
        reading.total,
    )
    seconds = max(interval.wall_seconds, 1e-9)

    def near(value: float) -> float:
        return value * max(0.0, 1.0 + random.gauss(0.0, reading.noise_ratio))

    busy = min(1.0, interval.busy_seconds / seconds)
    dram = min(1.0, near(interval.dram_bytes / seconds / machine.peak_bandwidth))
    watts = near(interval.energy_joules / seconds)
    used = reading.memory_used_bytes / MIB
    megahertz = machine.gpu.clock_hertz * clocks.ratio / 1e6
    hot = clocks.held_by_heat
    warmth = (CELSIUS_AT_FULL_POWER - IDLE_CELSIUS) * watts / machine.gpu.power_watts
    reasons = (
        REASON_POWER_CAP
        if clocks.held_by_power
        else REASON_SOFTWARE_THERMAL
        if hot
        else REASON_IDLE
        if busy == 0.0
        else 0
    )
    limit = f"{machine.board.power_limit_watts:.6f}"
    yield "DCGM_FI_DEV_SM_CLOCK", "gauge", f"{CLOCK_STEP_MHZ * round(megahertz / CLOCK_STEP_MHZ)}"
    celsius = HOT_CELSIUS if hot else IDLE_CELSIUS + warmth
    yield "DCGM_FI_DEV_GPU_TEMP", "gauge", f"{celsius:.0f}"
    yield "DCGM_FI_DEV_POWER_USAGE", "gauge", f"{watts:.6f}"
    millijoules = total.energy_joules * 1e3
    yield "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", f"{millijoules:.0f}"
    yield "DCGM_FI_DEV_GPU_UTIL", "gauge", f"{100 * busy:.0f}"
    yield "DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", f"{100 * COPY_SHARE_OF_DRAM * dram:.0f}"
    yield "DCGM_FI_DEV_FB_USED", "gauge", f"{used:.0f}"
    yield "DCGM_FI_DEV_FB_FREE", "gauge", f"{machine.gpu.memory_bytes / MIB - used:.0f}"
    yield "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "gauge", f"{reasons}"
    yield "DCGM_FI_DEV_POWER_MGMT_LIMIT", "gauge", limit
    yield "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", limit
    yield "DCGM_FI_DEV_POWER_VIOLATION", "counter", f"{total.power_held_seconds * 1e9:.0f}"
    yield "DCGM_FI_DEV_THERMAL_VIOLATION", "counter", f"{total.thermal_held_seconds * 1e9:.0f}"
    if not profiling:
        return
    cycles = interval.clock_seconds if reading.cycle_counters else seconds
    tensor = min(1.0, near(interval.tensor_seconds / max(cycles, 1e-9)))
    link = near(interval.link_bytes / seconds)
    over_nvlink = machine.link == "nvlink"
    pcie = near(PCIE_IDLE_BYTES_PER_SECOND * busy) + (0.0 if over_nvlink else link)
    yield "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", f"{min(1.0, near(busy)):.6f}"
    yield "DCGM_FI_PROF_SM_ACTIVE", "gauge", f"{min(1.0, near(SM_SHARE_OF_BUSY * busy)):.6f}"
    yield "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", f"{tensor:.6f}"
    yield "DCGM_FI_PROF_DRAM_ACTIVE", "gauge", f"{dram:.6f}"
    yield "DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", f"{pcie:.0f}"
    yield "DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", f"{pcie:.0f}"
    if machine.gpu.link == "nvlink":
        nvlink = link if over_nvlink else 0.0
        yield "DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", f"{nvlink:.0f}"
        yield "DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", f"{nvlink:.0f}"
