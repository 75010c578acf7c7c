"""AMD's device-metrics-exporter page. Tried on made-up pages only, never on a real one.

Names and units are those of its documented list of metrics (1.4, 2026). A partition of a GPU
(CPX, DPX) is a part of its own, as a MIG instance is; its board power reads 0 and is left out.
The exporter may be told to put a prefix before every name.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from boundby.sources.exposition import Page, Wanted
from boundby.sources.exposition import parse as parse_page
from boundby.sources.gpu_page import Draft, Parsed, freeze
from boundby.sources.labels import Labels
from boundby.sources.looks import WrongPageError, looks_like

PERCENT = 0.01
MEGA = 1e6
MEBI = 1024.0**2
KIBI = 1024.0
MICRO = 1e-6


class _Row(NamedTuple):
    """One fact and the family that gives it; several series of one GPU are put together."""

    fact: str
    family: str
    scale: float = 1.0
    where: tuple[str, str] | None = None
    together: str = "mean"


ROWS = (
    _Row("gpu_busy_ratio", "gpu_gfx_activity", PERCENT),
    _Row("memory_copy_busy_ratio", "gpu_umc_activity", PERCENT),
    _Row("engine_active_ratio", "gpu_prof_gui_util_percent", PERCENT),
    _Row("tensor_active_ratio", "gpu_prof_tensor_active_percent", PERCENT),
    _Row("sm_occupancy_ratio", "gpu_prof_occupancy_percent", PERCENT),
    _Row("power_watts", "gpu_package_power"),
    _Row("power_watts", "gpu_power_usage"),
    _Row("power_watts", "gpu_average_package_power"),
    _Row("energy_joules_total", "gpu_energy_consumed", MICRO),
    _Row("temperature_celsius", "gpu_junction_temperature"),
    _Row("temperature_celsius", "gpu_edge_temperature"),
    _Row("memory_temperature_celsius", "gpu_memory_temperature"),
    _Row("sm_clock_hertz", "gpu_clock", MEGA, ("clock_type", "system")),
    _Row("memory_clock_hertz", "gpu_clock", MEGA, ("clock_type", "memory")),
    _Row("max_sm_clock_hertz", "gpu_max_clock", MEGA, ("clock_type", "system")),
    _Row("max_memory_clock_hertz", "gpu_max_clock", MEGA, ("clock_type", "memory")),
    _Row("memory_total_bytes", "gpu_total_vram", MEBI),
    _Row("memory_used_bytes", "gpu_used_vram", MEBI),
    _Row("memory_free_bytes", "gpu_free_vram", MEBI),
    _Row("power_throttled_ratio", "gpu_violation_ppt_residency_percentage", PERCENT),
    _Row("thermal_throttled_ratio", "gpu_violation_socket_thermal_residency_percentage", PERCENT),
    _Row("nvlink_bytes_total", "gpu_xgmi_link_rx", KIBI, together="sum"),
    _Row("nvlink_bytes_total", "gpu_xgmi_link_tx", KIBI, together="sum"),
    _Row("pcie_replays_total", "pcie_replay_count"),
    _Row("ecc_uncorrected_errors_total", "gpu_ecc_uncorrect", together="sum"),
)

ADDED = frozenset({"nvlink_bytes_total"})
"""Facts that are the sum of their families."""

NOT_BELOW_THE_BOARD = frozenset({"power_watts", "gpu_busy_ratio", "memory_copy_busy_ratio"})
"""Facts that only a GPU's first partition has; the others show 0."""

NO_PARTITION = frozenset({"", "0", "NA", "4294967295"})
"""Partition ids of a whole GPU; virtual functions show the largest 32-bit number."""

_MARK = re.compile(r"^(\w*?)(?:gpu_gfx_activity|gpu_total_vram|gpu_nodes_total)\b", re.MULTILINE)


@lru_cache(maxsize=8)
def _wanted(prefix: str) -> Wanted:
    return Wanted(f"{prefix}{row.family}" for row in ROWS)


def parse(text: str, now: float | None = None) -> Parsed:
    """Read a page; `now` (unix seconds) would date values with timestamps, which it has not."""
    mark = _MARK.search(text)
    if mark is None:
        problem = f"not a device-metrics-exporter page; it looks like {looks_like(text)}"
        raise WrongPageError(problem, hint="Is this the exporter's port (5000) and /metrics?")
    prefix = mark[1]
    page = parse_page(text, _wanted(prefix))
    drafts: dict[str, Draft] = {}
    for row in ROWS:
        for key, values in _series(page, f"{prefix}{row.family}", row.where, drafts).items():
            draft = drafts[key]
            if draft.mig_instance and row.fact in NOT_BELOW_THE_BOARD:
                continue
            value = sum(values) * row.scale
            if row.together == "mean":
                value /= len(values)
            if row.fact in ADDED:
                value += draft.counters.pop(row.fact, 0.0)
            draft.give(row.fact, value)
    return freeze(drafts, page.problems, now, profiled_by="tensor_active_ratio")


def _series(
    page: Page, family: str, where: tuple[str, str] | None, drafts: dict[str, Draft]
) -> dict[str, list[float]]:
    """Give all values of a family for each GPU or partition."""
    values: dict[str, list[float]] = {}
    for labels, value in page.rows(family):
        if where and labels.get(where[0], "").lower() != where[1]:
            continue
        base = _uuid(labels) or labels.get("gpu_id")
        if not base or value < 0:
            continue
        partition = labels.get("gpu_partition_id", "0")
        key = base if partition in NO_PARTITION else f"{base}/{partition}"
        if key not in drafts:
            drafts[key] = _new(labels, partition if "/" in key else None)
        drafts[key].note_pod(labels)
        values.setdefault(key, []).append(value)
    return values


def _new(labels: Labels, partition: str | None) -> Draft:
    index = labels.get("gpu_id", "")
    return Draft(
        index=int(index) if index.isdecimal() else None,
        uuid=_uuid(labels),
        mig_instance=partition,
        name=labels.get("card_series") or labels.get("card_model") or None,
    )


def _uuid(labels: Labels) -> str | None:
    """Give what tells a GPU from all others; virtual functions share a UUID of zeros."""
    given = (labels.get("gpu_uuid", ""), labels.get("serial_number", ""))
    return next((text for text in given if text.strip("0-")), None)
