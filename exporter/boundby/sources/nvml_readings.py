"""What plain NVML is asked of a GPU: each reading's facts and the ways to them, best first. Data.

Numbers stand for nvml.h's constants, since older bindings lack some of the names. A way that
says it is not supported is left for the next one; the last one's answer is the reason. Units
are those of nvml.h: MHz, mW, mJ, kB/s, KiB and nanoseconds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, float]
Take = Callable[[Any], Values]

MEMORY_V2 = 0x02000028
"""nvmlMemory_v2_t: its version 2 and its size of 40 bytes."""

ALL_LINKS = 0xFFFFFFFF
"""As the scope of an NVLink field: the sum over all links."""

PERCENT = 100
MEGA = 1e6
MILLI = 1e-3
NANO = 1e-9
KIBI = 1024.0
KILO = 1e3


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the binding, its arguments after the handle, and what to take of its answer.

    `waits` marks one that sleeps in the driver: 20 ms for a PCIe sample.
    """

    function: str
    arguments: tuple[int, ...]
    take: Take
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field value, read together with all the other ones of its GPU."""

    number: int
    take: Take
    scope: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """Facts that come together. `slow` ones are read every few seconds only."""

    facts: tuple[str, ...]
    ways: tuple[Call | Field, ...]
    slow: bool = False


def _as(fact: str, scale: float = 1.0) -> Take:
    return lambda value: {fact: value * scale}


def _utilization(value: Any) -> Values:
    return {
        "gpu_busy_ratio": value.gpu / PERCENT,
        "memory_copy_busy_ratio": value.memory / PERCENT,
    }


def _memory(value: Any) -> Values:
    return {
        "memory_used_bytes": float(value.used),
        "memory_free_bytes": float(value.free),
        "memory_total_bytes": float(value.total),
    }


def _violation(fact: str) -> Take:
    return lambda value: {fact: value.violationTime * NANO}


NVLINK_SENT = "nvlink sent bytes"
NVLINK_RECEIVED = "nvlink received bytes"
PCIE_SENT = "pcie sent bytes"
PCIE_RECEIVED = "pcie received bytes"
RAW = (NVLINK_SENT, NVLINK_RECEIVED, PCIE_SENT, PCIE_RECEIVED)
"""Counters that become rates between two reads; they are no facts themselves."""

MEMORY = Reading(
    ("memory_used_bytes", "memory_free_bytes", "memory_total_bytes"),
    (
        Call("nvmlDeviceGetMemoryInfo", (MEMORY_V2,), _memory),
        Call("nvmlDeviceGetMemoryInfo", (), _memory),  # its `used` holds the driver's share too
    ),
)

READINGS = (
    MEMORY,
    Reading(
        ("gpu_busy_ratio", "memory_copy_busy_ratio"),
        (Call("nvmlDeviceGetUtilizationRates", (), _utilization),),
    ),
    Reading(
        ("sm_clock_hertz",),
        (Call("nvmlDeviceGetClockInfo", (1,), _as("sm_clock_hertz", MEGA)),),
    ),
    Reading(
        ("memory_clock_hertz",),
        (Call("nvmlDeviceGetClockInfo", (2,), _as("memory_clock_hertz", MEGA)),),
    ),
    Reading(
        ("max_sm_clock_hertz",),
        (Call("nvmlDeviceGetMaxClockInfo", (1,), _as("max_sm_clock_hertz", MEGA)),),
        slow=True,
    ),
    Reading(
        ("max_memory_clock_hertz",),
        (Call("nvmlDeviceGetMaxClockInfo", (2,), _as("max_memory_clock_hertz", MEGA)),),
        slow=True,
    ),
    Reading(("power_watts",), (Call("nvmlDeviceGetPowerUsage", (), _as("power_watts", MILLI)),)),
    Reading(
        ("power_limit_watts",),
        (Call("nvmlDeviceGetEnforcedPowerLimit", (), _as("power_limit_watts", MILLI)),),
        slow=True,
    ),
    Reading(
        ("temperature_celsius",),
        (
            Call("nvmlDeviceGetTemperature", (0,), _as("temperature_celsius")),
            Call("nvmlDeviceGetTemperatureV", (0,), _as("temperature_celsius")),
        ),
    ),
    Reading(
        ("clock_event_reasons_count",),
        (
            Call("nvmlDeviceGetCurrentClocksEventReasons", (), _as("clock_event_reasons_count")),
            Call(
                "nvmlDeviceGetCurrentClocksThrottleReasons", (), _as("clock_event_reasons_count")
            ),
        ),
    ),
    Reading(
        ("power_violation_seconds_total",),
        (
            Call(
                "nvmlDeviceGetViolationStatus", (0,), _violation("power_violation_seconds_total")
            ),
            Field(74, _as("power_violation_seconds_total", NANO)),
        ),
    ),
    Reading(
        ("thermal_violation_seconds_total",),
        (
            Call(
                "nvmlDeviceGetViolationStatus", (1,), _violation("thermal_violation_seconds_total")
            ),
            Field(75, _as("thermal_violation_seconds_total", NANO)),
        ),
    ),
    Reading(
        ("board_violation_seconds_total",),
        (
            Call(
                "nvmlDeviceGetViolationStatus", (3,), _violation("board_violation_seconds_total")
            ),
            Field(77, _as("board_violation_seconds_total", NANO)),
        ),
    ),
    Reading(("memory_temperature_celsius",), (Field(82, _as("memory_temperature_celsius")),)),
    Reading(
        ("energy_joules_total",),
        (
            Field(83, _as("energy_joules_total", MILLI)),
            Call("nvmlDeviceGetTotalEnergyConsumption", (), _as("energy_joules_total", MILLI)),
        ),
    ),
    Reading(
        ("ecc_uncorrected_errors_total",),
        (
            Field(4, _as("ecc_uncorrected_errors_total")),
            Call("nvmlDeviceGetTotalEccErrors", (1, 0), _as("ecc_uncorrected_errors_total")),
        ),
    ),
    Reading(
        ("pcie_replays_total",),
        (
            Field(94, _as("pcie_replays_total")),
            Call("nvmlDeviceGetPcieReplayCounter", (), _as("pcie_replays_total")),
        ),
    ),
    Reading(
        ("nvlink_tx_bytes_per_second", "nvlink_bytes_total"),
        (
            Field(138, _as(NVLINK_SENT, KIBI), ALL_LINKS),
            Field(202, _as(NVLINK_SENT), ALL_LINKS),
        ),
    ),
    Reading(
        ("nvlink_rx_bytes_per_second", "nvlink_bytes_total"),
        (
            Field(139, _as(NVLINK_RECEIVED, KIBI), ALL_LINKS),
            Field(204, _as(NVLINK_RECEIVED), ALL_LINKS),
        ),
    ),
    Reading(
        ("pcie_tx_bytes_per_second",),
        (
            Field(197, _as(PCIE_SENT)),
            Call(
                "nvmlDeviceGetPcieThroughput",
                (0,),
                _as("pcie_tx_bytes_per_second", KILO),
                waits=True,
            ),
        ),
    ),
    Reading(
        ("pcie_rx_bytes_per_second",),
        (
            Field(198, _as(PCIE_RECEIVED)),
            Call(
                "nvmlDeviceGetPcieThroughput",
                (1,),
                _as("pcie_rx_bytes_per_second", KILO),
                waits=True,
            ),
        ),
    ),
    Reading(
        ("pcie_link_width_count",),
        (Call("nvmlDeviceGetCurrPcieLinkWidth", (), _as("pcie_link_width_count")),),
        slow=True,
    ),
    Reading(
        ("pcie_link_generation_count",),
        (Call("nvmlDeviceGetCurrPcieLinkGeneration", (), _as("pcie_link_generation_count")),),
        slow=True,
    ),
)
"""Everything asked of a GPU beside its identity, in the order asked."""

BOARD = (
    "sm_clock_hertz",
    "memory_clock_hertz",
    "max_sm_clock_hertz",
    "max_memory_clock_hertz",
    "power_watts",
    "power_limit_watts",
    "temperature_celsius",
    "memory_temperature_celsius",
    "clock_event_reasons_count",
    "power_violation_seconds_total",
    "thermal_violation_seconds_total",
    "board_violation_seconds_total",
)
"""Facts of a board that hold for each MIG instance on it: one clock, one supply of power."""

INSTANCE_READINGS = (MEMORY,)
"""What a MIG instance's own handle answers."""
