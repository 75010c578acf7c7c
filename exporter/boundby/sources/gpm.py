"""GPM: the profiling ratios that Hopper and later give through NVML, from two samples.

Needs no root and no DCGM. The samples must lie at least 100 ms apart. Each GPU keeps two sample
buffers that change places, and gives them back when it is dropped. On a GPU in MIG mode an old
driver can be left broken by it (R535 was), so there it waits for a newer one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boundby.sources.nvml_device import Ask, Device, NvmlCallError

APART_SECONDS = 0.1
"""Least time between two samples (nvml.h: the counters are refreshed no faster)."""

STALE_SECONDS = 60.0
"""A sample older than this tells of another time: a new pair is begun."""

MIG_DRIVER = 550
"""First driver branch trusted with GPM on MIG; R535 answered all later calls with errors."""

VERSION = 1
"""Version of nvmlGpmMetricsGet_t and nvmlGpmSupport_t."""

ONE_SAMPLE = "the first of two GPM samples was just taken"

PERCENT = 0.01
MEBI = 1024.0**2

METRICS = (
    (1, "engine_active_ratio", PERCENT),
    (2, "sm_active_ratio", PERCENT),
    (3, "sm_occupancy_ratio", PERCENT),
    (5, "tensor_active_ratio", PERCENT),
    (10, "dram_active_ratio", PERCENT),
    (11, "fp64_active_ratio", PERCENT),
    (12, "fp32_active_ratio", PERCENT),
    (13, "fp16_active_ratio", PERCENT),
    (20, "pcie_tx_bytes_per_second", MEBI),
    (21, "pcie_rx_bytes_per_second", MEBI),
    (60, "nvlink_rx_bytes_per_second", MEBI),
    (61, "nvlink_tx_bytes_per_second", MEBI),
)
"""NVML_GPM_METRIC_* numbers, the facts they give, and what brings them to its unit."""

FACTS = tuple(fact for _, fact, _ in METRICS)


def refused(device: Device, driver_version: str | None) -> str | None:
    """Say why this GPU is never sampled, whatever a probe would say; None where it may be."""
    if not device.mig and device.instance is None:
        return None
    branch = (driver_version or "").split(".")[0]
    if branch.isdecimal() and int(branch) >= MIG_DRIVER:
        return None
    return (
        f"GPM is not used on MIG with driver {driver_version or 'of unknown version'}: drivers "
        f"before R{MIG_DRIVER} can break NVML by it. Update the driver"
    )


def supported(ask: Ask, device: Device) -> bool:
    """Ask the driver whether the GPU has GPM."""
    owner = device.parent or device
    return bool(ask("nvmlGpmQueryDeviceSupport", owner.handle).isSupportedDevice)


def take_sample(ask: Ask, device: Device, sample: Any) -> None:
    """Sample a GPU, or the MIG instance of its parent."""
    if device.parent is None:
        ask("nvmlGpmSampleGet", device.handle, sample)
    else:
        ask("nvmlGpmMigSampleGet", device.parent.handle, device.instance, sample)


@dataclass(slots=True)
class _Pair:
    """The two buffers of one GPU: the sample taken last, and a spare."""

    last: Any
    spare: Any
    taken_at: float | None = None
    values: dict[str, float] = field(default_factory=dict)


class Gpm:
    """Reads GPM of the GPUs it was told of; one that fails is left with its reason."""

    def __init__(self, library: Any, ask: Ask) -> None:
        self._ask = ask
        self._pairs: dict[str, _Pair] = {}
        self._request: Any = None
        self._slots: list[Any] = []
        self._library = library

    def read(self, device: Device, now: float) -> Mapping[str, float]:
        """Return the facts since the sample before; nothing with the first one.

        Raises NvmlCallError; then the GPU's buffers are given back.
        """
        try:
            return self._read(device, now)
        except NvmlCallError:
            self.drop(device)
            raise

    def _read(self, device: Device, now: float) -> Mapping[str, float]:
        pair = self._pairs.get(device.key) or self._begin(device)
        age = math.inf if pair.taken_at is None else now - pair.taken_at
        if age < APART_SECONDS:
            return pair.values
        take_sample(self._ask, device, pair.spare)
        pair.last, pair.spare = pair.spare, pair.last
        pair.taken_at = now
        pair.values = {}
        if age <= STALE_SECONDS:
            pair.values = self._metrics(pair.spare, pair.last, device)
        else:
            device.gpm_reasons.update(dict.fromkeys(FACTS, ONE_SAMPLE))
        return pair.values

    def _begin(self, device: Device) -> _Pair:
        last = self._ask("nvmlGpmSampleAlloc")
        try:
            spare = self._ask("nvmlGpmSampleAlloc")
        except NvmlCallError:
            self._ask("nvmlGpmSampleFree", last)
            raise
        pair = self._pairs[device.key] = _Pair(last, spare)
        return pair

    def _metrics(self, first: Any, second: Any, device: Device) -> dict[str, float]:
        request = self._request or self._new_request()
        request.sample1, request.sample2 = first, second
        self._ask("nvmlGpmMetricsGet", request)
        values: dict[str, float] = {}
        for metric, (number, fact, scale) in zip(self._slots, METRICS, strict=True):
            code, value = metric.nvmlReturn, metric.value
            if code:
                error = NvmlCallError(code, f"nvmlGpmMetricsGet {number}")
                device.gpm_reasons[fact] = str(error)
            elif not math.isfinite(value) or value < 0:
                device.gpm_reasons[fact] = "the driver gave a blank value"
            else:
                values[fact] = value * scale
                device.gpm_reasons.pop(fact, None)
        return values

    def _new_request(self) -> Any:
        """Make the one structure that every question is asked with: the binding's are slow."""
        request = self._request = self._library.c_nvmlGpmMetricsGet_t()
        request.version = VERSION
        request.numMetrics = len(METRICS)
        self._slots = [request.metrics[slot] for slot in range(len(METRICS))]
        for metric, (number, _, _) in zip(self._slots, METRICS, strict=True):
            metric.metricId = number
        return request

    def drop(self, device: Device) -> None:
        """Give a GPU's buffers back."""
        self._free(device.key)

    def close(self) -> None:
        """Give all buffers back."""
        for key in tuple(self._pairs):
            self._free(key)

    def _free(self, key: str) -> None:
        pair = self._pairs.pop(key, None)
        if pair is None:
            return
        for sample in (pair.last, pair.spare):
            try:
                self._ask("nvmlGpmSampleFree", sample)
            except NvmlCallError:
                continue  # nothing is left to free it with
