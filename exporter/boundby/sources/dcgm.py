"""dcgm-exporter's page: NVIDIA GPU counters of every release, PROF rows or not, MIG or not.

What the page leaves to be known: TYPE lines lie (NVLink "bandwidth total" is a rate, not a
counter); a blank value is a huge sentinel number; device-level fields repeat on each MIG
instance's row, so that they must not be added up; a GPU shared by pods has its rows once for
each pod; values are as old as the exporter's collect interval (30 s by default), and only a
page with timestamps says how old.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from boundby.core.facts import GPU_FACTS
from boundby.core.parts import GpuPart
from boundby.core.setup import GpuIdentity
from boundby.sources.dcgm_names import RESERVED, ROWS, WANTED
from boundby.sources.exposition import Page
from boundby.sources.exposition import parse as parse_page
from boundby.sources.labels import Labels, labels_of
from boundby.sources.looks import WrongPageError, looks_like

BLANKS = frozenset(
    float(base + step)
    for base in (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 140737488355328)
    for step in range(4)
)
"""DCGM's blank, not found, not supported and not permitted, of int32, int64 and float."""

LARGE = 9.2e18
"""Beyond this every value is an int64 blank that lost its last digits to a float."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A GPU page read. `shared` lists the pods of a GPU that more than one has."""

    gpus: tuple[GpuPart, ...]
    problems: tuple[str, ...] = ()
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    profiling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The GPUs that are ours; `certain` where it is known and not supposed."""

    gpus: tuple[GpuPart, ...]
    certain: bool
    problems: tuple[str, ...] = ()


_MARK = re.compile(r"^(?:DCGM_FI_|DCGM_EXP_|dcgm_)", re.MULTILINE)


@dataclass(slots=True)
class _Draft:
    """One GPU or MIG instance while its page is read."""

    index: int | None
    uuid: str | None
    mig_instance: str | None
    name: str | None = None
    pods: dict[str, str | None] = field(default_factory=dict)
    stamp: float | None = None
    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    infos: dict[str, str] = field(default_factory=dict)
    reserved: float | None = None


def parse(text: str, now: float | None = None) -> Parsed:
    """Read a page; `now` (unix seconds) dates values that carry a timestamp."""
    page = parse_page(text, WANTED)
    if not page and not _MARK.search(text):
        problem = f"not a dcgm-exporter page; it looks like {looks_like(text)}"
        raise WrongPageError(problem, hint="Is this dcgm-exporter's port (9400) and /metrics?")
    drafts: dict[str, _Draft] = {}
    for row in ROWS:
        given: dict[str, float] = {}
        for family in row.families:
            scale = _ratio_scale(page, family) if family.endswith("_RATIO") else row.scale
            for key, value in _values(page, family, drafts).items():
                given[key] = given.get(key, 0.0) + value * scale
        is_counter = GPU_FACTS[row.fact].kind == "counter"
        for key, value in given.items():
            draft = drafts[key]
            (draft.counters if is_counter else draft.gauges).setdefault(row.fact, value)
    for family, scale in RESERVED:
        for key, value in _values(page, family, drafts).items():
            drafts[key].reserved = value * scale
    _date(page, drafts)
    shared = {key: tuple(draft.pods) for key, draft in drafts.items() if len(draft.pods) > 1}
    problems = [
        *page.problems,
        *(f"GPU {key} is shared by pods {', '.join(pods)}" for key, pods in shared.items()),
    ]
    if not drafts:
        problems.append("no GPU has a value on this page")
    return Parsed(
        gpus=tuple(_part(key, draft, now) for key, draft in _in_order(drafts)),
        problems=tuple(problems),
        shared=shared,
        profiling=any("dram_active_ratio" in draft.gauges for draft in drafts.values()),
    )


def _date(page: Page, drafts: Mapping[str, _Draft]) -> None:
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


def _values(page: Page, family: str, drafts: dict[str, _Draft]) -> dict[str, float]:
    """Give a family's value for each GPU; a GPU's row for a second pod only tells of the pod."""
    values: dict[str, float] = {}
    for labels, value in page.rows(family):
        key = _key(labels)
        if key is None or value in BLANKS or not 0 <= value < LARGE:
            continue
        draft = drafts.get(key)
        if draft is None:
            draft = drafts[key] = _new(labels)
        _note_pod(draft, labels)
        values.setdefault(key, value)
    return values


def _new(labels: Labels) -> _Draft:
    index = labels.get("gpu", "")
    draft = _Draft(
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


def _note_pod(draft: _Draft, labels: Labels) -> None:
    pod = labels.get("pod") or labels.get("pod_name") or labels.get("exported_pod")
    if pod:
        namespace = (
            labels.get("namespace")
            or labels.get("pod_namespace")
            or labels.get("exported_namespace")
        )
        draft.pods.setdefault(pod, namespace)


def _in_order(drafts: Mapping[str, _Draft]) -> Iterable[tuple[str, _Draft]]:
    return sorted(
        drafts.items(),
        key=lambda item: (
            item[1].index if item[1].index is not None else 1 << 30,
            len(item[1].mig_instance or ""),
            item[0],
        ),
    )


def _part(key: str, draft: _Draft, now: float | None) -> GpuPart:
    gauges = draft.gauges
    if gauges.get("xid_last_count") == 0:
        del gauges["xid_last_count"]  # 0 is "no error", not the error numbered 0
    if "memory_total_bytes" not in gauges and draft.reserved is not None:
        used, free = gauges.get("memory_used_bytes"), gauges.get("memory_free_bytes")
        if used is not None and free is not None:
            gauges["memory_total_bytes"] = used + free + draft.reserved
    pod, namespace = next(iter(draft.pods.items())) if len(draft.pods) == 1 else (None, None)
    age = None if now is None or draft.stamp is None else max(0.0, now - draft.stamp)
    return GpuPart(
        gpu=key,
        index=draft.index,
        uuid=draft.uuid,
        name=draft.name,
        pod=pod,
        namespace=namespace,
        mig_instance=draft.mig_instance,
        age_seconds=age,
        gauges=gauges,
        counters=draft.counters,
        infos=draft.infos,
    )


def choose(
    parsed: Parsed,
    identities: Sequence[GpuIdentity] | None = None,
    *,
    pod: str | None = None,
    namespace: str | None = None,
) -> Choice:
    """Keep the GPUs that are ours: by UUID, else by index, else by pod.

    With nothing to go by, all are kept and that is said, since a sidecar that judges a
    stranger's GPU is wrong in a way nobody sees.
    """
    if identities:
        return _by_identity(parsed.gpus, identities)
    if pod:
        ours = tuple(
            part
            for part in parsed.gpus
            if (part.pod == pod and (not namespace or part.namespace in (None, namespace)))
            or pod in parsed.shared.get(part.gpu, ())
        )
        if ours:
            also = [part.gpu for part in ours if part.gpu in parsed.shared]
            problems = (f"shared with other pods: {', '.join(also)}",) if also else ()
            return Choice(gpus=ours, certain=not also, problems=problems)
        return Choice(gpus=(), certain=False, problems=(f"no GPU of pod {pod} on the page",))
    if len(parsed.gpus) <= 1:
        return Choice(gpus=parsed.gpus, certain=True)
    problem = (
        f"which of the {len(parsed.gpus)} GPUs on the page are the engine's is not known; "
        "all are taken. Name them by UUID or index"
    )
    return Choice(gpus=parsed.gpus, certain=False, problems=(problem,))


def _by_identity(gpus: Sequence[GpuPart], identities: Sequence[GpuIdentity]) -> Choice:
    ours: list[GpuPart] = []
    problems: list[str] = []
    certain = True
    for identity in identities:
        if identity.uuid:
            name = identity.uuid
            found = [part for part in gpus if part.uuid and part.uuid.lower() == name.lower()]
        else:
            name = f"index {identity.index}"
            found = [part for part in gpus if part.index == identity.index]
            if len({part.uuid for part in found}) > 1:
                certain = False
                problems.append(f"{name} is there for more than one machine; none is taken")
                continue
        if not found:
            certain = False
            problems.append(f"GPU {name} is not on the page")
        instances = sum(part.mig_instance is not None for part in found)
        if instances > 1:
            certain = False
            problems.append(f"GPU {name} has {instances} MIG instances; all are taken")
        ours += [part for part in found if part not in ours]
    return Choice(gpus=tuple(ours), certain=certain, problems=tuple(problems))
