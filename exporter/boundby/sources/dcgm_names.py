"""DCGM's field names as dcgm-exporter prints them, release by release, and the facts they give.

Names of 4.9.0 and later come first, then those before, then those of 1.x. The units are DCGM's
own, from its sources and not from HELP lines, some of which were wrong: violation times are
nanoseconds in every release (NVML's), also where HELP said microseconds (before 4.8.0).
Lower-case names stand here without `_total`, as the page parser gives them.
"""

from dataclasses import dataclass

from boundby.sources.exposition import Wanted

MEGA = 1e6
MEBI = 1024.0**2
NANO = 1e-9
MILLI = 1e-3
PERCENT = 0.01

NVLINK_MB = 1.024e6
"""DCGM divides KiB by 1000 and calls it MB (field 449 and its tx and rx parts)."""

KILO = 1e3
"""NVML's PCIe throughput is in kB/s, over a 20 ms sample."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fact and the families that give it, added up; `scale` brings it to its unit."""

    fact: str
    families: tuple[str, ...]
    scale: float = 1.0


def _row(fact: str, families: str, scale: float = 1.0) -> Row:
    return Row(fact, tuple(families.split("+")), scale)


ROWS = (
    _row("gpu_busy_ratio", "DCGM_FI_DEV_GPU_UTIL_RATIO"),
    _row("gpu_busy_ratio", "DCGM_FI_DEV_GPU_UTIL", PERCENT),
    _row("gpu_busy_ratio", "dcgm_gpu_utilization", PERCENT),
    _row("memory_copy_busy_ratio", "DCGM_FI_DEV_MEMORY_UTIL_RATIO"),
    _row("memory_copy_busy_ratio", "DCGM_FI_DEV_MEM_COPY_UTIL", PERCENT),
    _row("memory_copy_busy_ratio", "dcgm_mem_copy_utilization", PERCENT),
    _row("engine_active_ratio", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
    _row("engine_active_ratio", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
    _row("engine_active_ratio", "dcgm_fi_prof_gr_engine_active"),
    _row("sm_active_ratio", "DCGM_FI_PROF_SM_UTIL_RATIO"),
    _row("sm_active_ratio", "DCGM_FI_PROF_SM_ACTIVE"),
    _row("sm_active_ratio", "dcgm_fi_prof_sm_active"),
    _row("sm_occupancy_ratio", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO"),
    _row("sm_occupancy_ratio", "DCGM_FI_PROF_SM_OCCUPANCY"),
    _row("sm_occupancy_ratio", "dcgm_fi_prof_sm_occupancy"),
    _row("tensor_active_ratio", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
    _row("tensor_active_ratio", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    _row("tensor_active_ratio", "dcgm_fi_prof_pipe_tensor_active"),
    _row("dram_active_ratio", "DCGM_FI_PROF_DRAM_UTIL_RATIO"),
    _row("dram_active_ratio", "DCGM_FI_PROF_DRAM_ACTIVE"),
    _row("dram_active_ratio", "dcgm_fi_prof_dram_active"),
    _row("fp64_active_ratio", "DCGM_FI_PROF_FP64_UTIL_RATIO"),
    _row("fp64_active_ratio", "DCGM_FI_PROF_PIPE_FP64_ACTIVE"),
    _row("fp32_active_ratio", "DCGM_FI_PROF_FP32_UTIL_RATIO"),
    _row("fp32_active_ratio", "DCGM_FI_PROF_PIPE_FP32_ACTIVE"),
    _row("fp16_active_ratio", "DCGM_FI_PROF_FP16_UTIL_RATIO"),
    _row("fp16_active_ratio", "DCGM_FI_PROF_PIPE_FP16_ACTIVE"),
    _row("sm_clock_hertz", "DCGM_FI_DEV_SM_CLOCK_HERTZ"),
    _row("sm_clock_hertz", "DCGM_FI_DEV_SM_CLOCK", MEGA),
    _row("sm_clock_hertz", "dcgm_sm_clock", MEGA),
    _row("memory_clock_hertz", "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ"),
    _row("memory_clock_hertz", "DCGM_FI_DEV_MEM_CLOCK", MEGA),
    _row("memory_clock_hertz", "dcgm_memory_clock", MEGA),
    _row("max_sm_clock_hertz", "DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ"),
    _row("max_sm_clock_hertz", "DCGM_FI_DEV_MAX_SM_CLOCK", MEGA),
    _row("max_memory_clock_hertz", "DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ"),
    _row("max_memory_clock_hertz", "DCGM_FI_DEV_MAX_MEM_CLOCK", MEGA),
    _row("power_watts", "DCGM_FI_DEV_BOARD_POWER_WATTS"),
    _row("power_watts", "DCGM_FI_DEV_POWER_USAGE"),
    _row("power_watts", "dcgm_power_usage"),
    _row("power_limit_watts", "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS"),
    _row("power_limit_watts", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"),
    _row("power_limit_watts", "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS"),
    _row("power_limit_watts", "DCGM_FI_DEV_POWER_MGMT_LIMIT"),
    _row("temperature_celsius", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
    _row("temperature_celsius", "DCGM_FI_DEV_GPU_TEMP"),
    _row("temperature_celsius", "dcgm_gpu_temp"),
    _row("memory_temperature_celsius", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"),
    _row("memory_temperature_celsius", "DCGM_FI_DEV_MEMORY_TEMP"),
    _row("memory_temperature_celsius", "dcgm_memory_temp"),
    _row("memory_used_bytes", "DCGM_FI_DEV_FB_USED_BYTES"),
    _row("memory_used_bytes", "DCGM_FI_DEV_FB_USED", MEBI),
    _row("memory_used_bytes", "dcgm_fb_used", MEBI),
    _row("memory_free_bytes", "DCGM_FI_DEV_FB_FREE_BYTES"),
    _row("memory_free_bytes", "DCGM_FI_DEV_FB_FREE", MEBI),
    _row("memory_free_bytes", "dcgm_fb_free", MEBI),
    _row("memory_total_bytes", "DCGM_FI_DEV_FB_CAPACITY_BYTES"),
    _row("memory_total_bytes", "DCGM_FI_DEV_FB_TOTAL", MEBI),
    _row("clock_event_reasons_count", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
    _row("clock_event_reasons_count", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"),
    _row("nvlink_tx_bytes_per_second", "DCGM_FI_PROF_NVLINK_TX_BYTES"),
    _row("nvlink_tx_bytes_per_second", "DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_TOTAL", NVLINK_MB),
    _row("nvlink_rx_bytes_per_second", "DCGM_FI_PROF_NVLINK_RX_BYTES"),
    _row("nvlink_rx_bytes_per_second", "DCGM_FI_DEV_NVLINK_RX_BANDWIDTH_TOTAL", NVLINK_MB),
    _row("nvlink_bytes_per_second", "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND"),
    _row("nvlink_bytes_per_second", "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", NVLINK_MB),
    _row("nvlink_bytes_per_second", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", NVLINK_MB),
    _row("nvlink_bytes_per_second", "dcgm_nvlink_bandwidth", NVLINK_MB),
    _row("pcie_tx_bytes_per_second", "DCGM_FI_PROF_PCIE_TX_BYTES"),
    _row("pcie_tx_bytes_per_second", "DCGM_FI_DEV_PCIE_TX_THROUGHPUT", KILO),
    _row("pcie_tx_bytes_per_second", "dcgm_fi_prof_pcie_tx_bytes"),
    _row("pcie_rx_bytes_per_second", "DCGM_FI_PROF_PCIE_RX_BYTES"),
    _row("pcie_rx_bytes_per_second", "DCGM_FI_DEV_PCIE_RX_THROUGHPUT", KILO),
    _row("pcie_rx_bytes_per_second", "dcgm_fi_prof_pcie_rx_bytes"),
    _row("pcie_link_width_count", "DCGM_FI_DEV_PCIE_LINK_WIDTH"),
    _row("pcie_link_generation_count", "DCGM_FI_DEV_PCIE_LINK_GEN"),
    _row("power_violation_seconds_total", "DCGM_FI_DEV_POWER_VIOLATION", NANO),
    _row("power_violation_seconds_total", "dcgm_power_violation", NANO),
    _row(
        "power_violation_seconds_total",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS"
        "+DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",
        NANO,
    ),
    _row("thermal_violation_seconds_total", "DCGM_FI_DEV_THERMAL_VIOLATION", NANO),
    _row("thermal_violation_seconds_total", "dcgm_thermal_violation", NANO),
    _row(
        "thermal_violation_seconds_total",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS"
        "+DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
        NANO,
    ),
    _row("board_violation_seconds_total", "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", NANO),
    _row("board_violation_seconds_total", "dcgm_board_limit_violation", NANO),
    _row("energy_joules_total", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL"),
    _row("energy_joules_total", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", MILLI),
    _row("energy_joules_total", "dcgm_total_energy_consumption", MILLI),
    _row(
        "nvlink_bytes_total", "DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL+DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL"
    ),
    _row(
        "nvlink_bytes_total",
        "DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES+DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES",
    ),
    _row("pcie_replays_total", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL"),
    _row("pcie_replays_total", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"),
    _row("pcie_replays_total", "dcgm_pcie_replay_counter"),
    _row("ecc_uncorrected_errors_total", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
    _row("ecc_uncorrected_errors_total", "dcgm_ecc_dbe_volatile"),
    _row("xid_last_count", "DCGM_FI_DEV_XID_ERROR"),
    _row("xid_last_count", "DCGM_FI_DEV_XID_ERRORS"),
    _row("xid_last_count", "dcgm_xid_errors"),
)

RESERVED = (("DCGM_FI_DEV_FB_RESERVED_BYTES", 1.0), ("DCGM_FI_DEV_FB_RESERVED", MEBI))
"""Memory the driver keeps; with used and free it makes the total where that has no row."""

WANTED = Wanted(
    [*(family for row in ROWS for family in row.families), *(family for family, _ in RESERVED)]
)
