"""dcgm-exporter's page: NVIDIA GPU counters of every release, PROF rows or not, MIG or not.

What the page leaves to be known: TYPE lines lie (NVLink "bandwidth total" is a rate, not a
counter); a blank value is a huge sentinel number; device-level fields repeat on each MIG
instance's row, so that they must not be added up; a GPU shared by pods has its rows once for
each pod; values are as old as the exporter's collect interval (30 s by default), and only a
page with timestamps says how old.
"""

import re
from collections.abc import Mapping

from boundby.sources.dcgm_names import RESERVED, ROWS, WANTED
from boundby.sources.exposition import Page
from boundby.sources.exposition import parse as parse_page
from boundby.sources.gpu_page import Choice, Draft, Parsed, choose, freeze
from boundby.sources.labels import Labels, labels_of
from boundby.sources.looks import WrongPageError, looks_like

__all__ = ["Choice", "Parsed", "choose", "parse"]

BLANKS = frozenset(
    float(base + step)
    for base in (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 140737488355328)
    for step in range(4)
)
"""DCGM's blank, not found, not supported and not permitted, of int32, int64 and float."""

LARGE = 9.2e18
"""Beyond this every value is an int64 blank that lost its last digits to a float."""


_MARK = re.compile(r"^(?:DCGM_FI_|DCGM_EXP_|dcgm_)", re.MULTILINE)


def parse(text: str, now: float | None = None) -> Parsed:
    """Read a page; `now` (unix seconds) dates values that carry a timestamp."""
    page = parse_page(text, WANTED)
    if not page and not _MARK.search(text):
        problem = f"not a dcgm-exporter page; it looks like {looks_like(text)}"
        raise WrongPageError(problem, hint="Is this dcgm-exporter's port (9400) and /metrics?")
    drafts: dict[str, Draft] = {}
    for row in ROWS:
        given: dict[str, float] = {}
        for family in row.families:
            scale = _ratio_scale(page, family) if family.endswith("_RATIO") else row.scale
            for key, value in _values(page, family, drafts).items():
                given[key] = given.get(key, 0.0) + value * scale
        for key, value in given.items():
            drafts[key].give(row.fact, value)
    _add_totals(page, drafts)
    _date(page, drafts)
    for draft in drafts.values():
        if draft.gauges.get("xid_last_count") == 0:
            del draft.gauges["xid_last_count"]  # 0 is "no error", not the error numbered 0
    return freeze(drafts, page.problems, now, profiled_by="dram_active_ratio")


def _add_totals(page: Page, drafts: dict[str, Draft]) -> None:
    """Make a GPU's total memory of its parts where it has no row; MIG rows lack one part."""
    for family, scale in RESERVED:
        for key, value in _values(page, family, drafts).items():
            gauges = drafts[key].gauges
            used, free = gauges.get("memory_used_bytes"), gauges.get("memory_free_bytes")
            if used is not None and free is not None:
                drafts[key].give("memory_total_bytes", used + free + value * scale)


def _date(page: Page, drafts: Mapping[str, Draft]) -> None:
    """Give each GPU the oldest timestamp of its rows."""
    for (_, spelling), stamp in page.stamps.items():
        draft = drafts.get(_key(labels_of(spelling)) or "")
        if draft is not None:
            draft.stamp = min(stamp, draft.stamp or stamp)


def _ratio_scale(page: Page, family: str) -> float:
    """1, or a hundredth: DCGM 4.6 renamed field 203 to a ratio and went on giving percent."""
    return 0.01 if any(1.0 < value <= 100.0 for _, value in page.rows(family)) else 1.0  # noqa: PLR2004  # percent


def _key(labels: Labels) -> str | None:
    """Return the identity of a row's GPU; None for rows of links, switches and CPUs."""
    if "nvlink" in labels or "nvswitch" in labels or "cpu" in labels:
        return None
    base = labels.get("UUID") or labels.get("uuid") or labels.get("gpu")
    if not base:
        return None
    instance = labels.get("GPU_I_ID")
    return f"{base}/{instance}" if instance else base


def _values(page: Page, family: str, drafts: dict[str, Draft]) -> dict[str, float]:
    """Give a family's value for each GPU; a GPU's row for a second pod only tells of the pod."""
    values: dict[str, float] = {}
    for labels, value in page.rows(family):
        key = _key(labels)
        if key is None or value in BLANKS or not 0 <= value < LARGE:
            continue
        draft = drafts.get(key)
        if draft is None:
            draft = drafts[key] = _new(labels)
        draft.note_pod(labels)
        values.setdefault(key, value)
    return values


def _new(labels: Labels) -> Draft:
    index = labels.get("gpu", "")
    draft = Draft(
        index=int(index) if index.isdecimal() else None,
        uuid=labels.get("UUID") or labels.get("uuid"),
        mig_instance=labels.get("GPU_I_ID") or None,
        name=labels.get("modelName") or None,
    )
    for label in ("DCGM_FI_SYSTEM_DRIVER_VERSION", "DCGM_FI_DRIVER_VERSION"):
        if label in labels:
            draft.infos["driver_version"] = labels[label]
            break
    return draft
