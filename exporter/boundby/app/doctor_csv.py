"""The rows that dcgm-exporter needs beside its own, as a file that it takes.

Field names are those of releases before 4.9. Each is on the page only if the GPU has it: PROF rows
need a data-centre GPU from Volta on, and nothing else that profiles it at the same time.
"""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row of the file, and the fact that it gives."""

    field: str
    kind: str
    says: str
    fact: str
    needed: bool = False


ROWS = (
    CsvRow("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Share of time the engine was active.",
           "engine_active_ratio", needed=True),
    CsvRow("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Share of cycles the memory moved data.",
           "dram_active_ratio", needed=True),
    CsvRow("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Share of cycles the tensor pipes ran.",
           "tensor_active_ratio", needed=True),
    CsvRow("DCGM_FI_PROF_SM_ACTIVE", "gauge", "Share of cycles an SM held a warp.",
           "sm_active_ratio"),
    CsvRow("DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "Resident warps over the most there may be.",
           "sm_occupancy_ratio"),
    CsvRow("DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", "NVLink bytes sent per second.",
           "nvlink_tx_bytes_per_second"),
    CsvRow("DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", "NVLink bytes received per second.",
           "nvlink_rx_bytes_per_second"),
    CsvRow("DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "PCIe bytes sent per second.",
           "pcie_tx_bytes_per_second"),
    CsvRow("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "PCIe bytes received per second.",
           "pcie_rx_bytes_per_second"),
    CsvRow("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilisation in percent.", "gpu_busy_ratio"),
    CsvRow("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock in MHz.", "sm_clock_hertz"),
    CsvRow("DCGM_FI_DEV_MAX_SM_CLOCK", "gauge", "Highest SM clock in MHz.", "max_sm_clock_hertz"),
    CsvRow("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock in MHz.", "memory_clock_hertz"),
    CsvRow("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw in W.", "power_watts"),
    CsvRow("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", "Power limit in W.",
           "power_limit_watts"),
    CsvRow("DCGM_FI_DEV_GPU_TEMP", "gauge", "Temperature in C.", "temperature_celsius"),
    CsvRow("DCGM_FI_DEV_POWER_VIOLATION", "counter", "Time held down by power in ns.",
           "power_violation_seconds_total"),
    CsvRow("DCGM_FI_DEV_THERMAL_VIOLATION", "counter", "Time held down by heat in ns.",
           "thermal_violation_seconds_total"),
    CsvRow("DCGM_FI_DEV_FB_USED", "gauge", "Memory in use in MiB.", "memory_used_bytes"),
    CsvRow("DCGM_FI_DEV_FB_FREE", "gauge", "Memory free in MiB.", "memory_free_bytes"),
    CsvRow("DCGM_FI_DEV_XID_ERRORS", "gauge", "The last XID error.", "xid_last_count"),
)  # fmt: skip
"""What boundby takes from a page, the most useful first."""


HEAD = """\
# Rows that boundby reads from dcgm-exporter: field, type, help.
# `dcgm-exporter -f FILE` takes this file in place of its own; append the rows to keep others.
"""


def csv(present: Collection[str] | None = None) -> str:
    """Return the whole file, or the rows alone whose fact is not among `present`."""
    rows = [row for row in ROWS if present is None or row.fact not in present]
    return HEAD + "".join(f"{row.field}, {row.kind}, {row.says}\n" for row in rows)


def fields_for(facts: Collection[str]) -> tuple[str, ...]:
    """Return the fields that would give these facts."""
    return tuple(row.field for row in ROWS if row.fact in facts)
