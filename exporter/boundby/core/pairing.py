"""Which GPUs are the engine's.

A stranger's GPU gives a verdict that is wrong and looks right. So what was set wins, then what
is certain; two answers that contradict each other, or none, give no GPU and the reason.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from boundby.core.parts import GpuPart
from boundby.core.setup import GpuIdentity

How = Literal["settings", "pid", "visible_devices", "pod", "only_one", "all_needed", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The engine's GPUs and how they were told; without any, `ambiguous_reason` says why."""

    gpus: tuple[GpuPart, ...] = ()
    how: How = "none"
    ambiguous_reason: str = ""


NAME_THEM = "name them with gpu.devices, by UUID or index"
"""The remedy for every ambiguity."""


def pair(
    gpus: Sequence[GpuPart],
    *,
    settings: Sequence[GpuIdentity] = (),
    pids_by_gpu: Mapping[str, Collection[int]] | None = None,
    engine_pids: Collection[int] = (),
    visible: Mapping[str, str] | None = None,
    tensor: int | None = None,
    pod: str | None = None,
) -> Pairing:
    """Choose the engine's GPUs among `gpus`.

    `pids_by_gpu` has the processes on each GPU by `GpuPart.gpu`; `visible` the engine's own
    CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES; `tensor` the GPUs it is spread over, of
    which its processes may hold a multiple (replicas); `pod` its pod's name.
    """
    if not gpus:
        return Pairing(ambiguous_reason="no GPU is visible")
    named = [one for one in settings if one.uuid or one.index is not None]
    if named:
        return _by_settings(gpus, named)
    pids = frozenset(engine_pids)
    by_pid = tuple(gpu for gpu in gpus if pids & set((pids_by_gpu or {}).get(gpu.gpu, ())))
    by_device = _by_visible(gpus, visible or {})
    by_pod = tuple(gpu for gpu in gpus if pod and gpu.pod == pod)
    ways: list[tuple[How, tuple[GpuPart, ...]]] = [
        ("pid", by_pid),
        ("visible_devices", by_device or ()),
        ("pod", by_pod),
    ]
    if told := [(how, ours) for how, ours in ways if ours]:
        return _agreed(told, tensor)
    if reason := _denied(gpus, pids, pids_by_gpu or {}, by_device, pod):
        return Pairing(ambiguous_reason=f"{reason}; {NAME_THEM}")
    return _by_count(gpus, tensor)


def _denied(
    gpus: Sequence[GpuPart],
    pids: frozenset[int],
    pids_by_gpu: Mapping[str, Collection[int]],
    by_device: tuple[GpuPart, ...] | None,
    pod: str | None,
) -> str:
    """Say what speaks against taking a GPU only because it is there."""
    if by_device is not None:
        return "the engine is given no GPU of these"
    if pids and any(pids_by_gpu.values()):
        return (
            "processes run on the GPUs and none of them is the engine's, as seen from this "
            "process namespace"
        )
    if pod and any(gpu.pod for gpu in gpus):
        return f"no GPU here is pod {pod}'s"
    return ""


def _by_settings(gpus: Sequence[GpuPart], named: Sequence[GpuIdentity]) -> Pairing:
    ours: list[GpuPart] = []
    for one in named:
        found = [gpu for gpu in gpus if _is(gpu, one)]
        what = one.uuid or f"of index {one.index}"
        if not found:
            return Pairing(ambiguous_reason=f"GPU {what}, which gpu.devices names, is not here")
        if one.uuid is None and len({gpu.uuid for gpu in found}) > 1:
            return Pairing(ambiguous_reason=f"there is more than one GPU {what}; name it by UUID")
        ours += [gpu for gpu in found if gpu not in ours]
    return Pairing(gpus=tuple(ours), how="settings")


def _is(gpu: GpuPart, one: GpuIdentity) -> bool:
    if one.uuid:
        return one.uuid.lower() in (str(gpu.uuid).lower(), gpu.gpu.lower())
    return gpu.index == one.index


def _agreed(told: Sequence[tuple[How, tuple[GpuPart, ...]]], tensor: int | None) -> Pairing:
    """Take the surest way if the others allow it; an engine may leave visible GPUs unused."""
    how, ours = told[0]
    for other, theirs in told[1:]:
        if not {gpu.gpu for gpu in ours} <= {gpu.gpu for gpu in theirs}:
            return Pairing(
                ambiguous_reason=(
                    f"{WORDS[how]} says {_list(ours)}, {WORDS[other]} says {_list(theirs)}; "
                    f"{NAME_THEM}"
                )
            )
    if tensor and how != "pid" and len(ours) > tensor:
        return Pairing(
            ambiguous_reason=(
                f"{WORDS[how]} says {_list(ours)}, of which the engine uses {tensor} or a "
                f"multiple; {NAME_THEM}"
            )
        )
    if tensor and len(ours) % tensor:
        return Pairing(
            ambiguous_reason=(
                f"{WORDS[how]} says {_list(ours)}, but the engine is spread over {tensor}; "
                f"{NAME_THEM}"
            )
        )
    return Pairing(gpus=ours, how=how)


WORDS: Mapping[How, str] = {
    "pid": "the driver's list of processes",
    "visible_devices": "the engine's list of visible devices",
    "pod": "the pod on the GPUs' rows",
}


def _by_count(gpus: Sequence[GpuPart], tensor: int | None) -> Pairing:
    if len(gpus) == 1 and tensor in (None, 1):
        return Pairing(gpus=tuple(gpus), how="only_one")
    if tensor == len(gpus):
        return Pairing(gpus=tuple(gpus), how="all_needed")
    count = f"{len(gpus)} GPU{'' if len(gpus) == 1 else 's'}"
    uses = "" if tensor is None else f", of which the engine uses {tensor}"
    reason = f"{count} here{uses}, and nothing tells which are the engine's; {NAME_THEM}"
    return Pairing(ambiguous_reason=reason)


def _list(gpus: Sequence[GpuPart]) -> str:
    return "GPU " + ", ".join(str(gpu.index) if gpu.index is not None else gpu.gpu for gpu in gpus)


def _by_visible(gpus: Sequence[GpuPart], visible: Mapping[str, str]) -> tuple[GpuPart, ...] | None:
    """Work out what the two variables leave; None where they do not say.

    NVIDIA_VISIBLE_DEVICES is what the container runtime let in; CUDA_VISIBLE_DEVICES counts
    within that. CUDA's own order is not the driver's where models differ, so that its numbers
    tell something only among equal GPUs.
    """
    let_in: tuple[GpuPart, ...] | None = None
    runtime = visible.get("NVIDIA_VISIBLE_DEVICES", "").strip()
    if runtime not in ("", "all", "void", "none"):
        let_in = _chosen(gpus, runtime)
    cuda = visible.get("CUDA_VISIBLE_DEVICES")
    if cuda is None or not cuda.strip():
        return let_in
    words = [word.strip() for word in cuda.split(",")]
    if all(word.isdecimal() for word in words):
        if runtime == "void" or len({gpu.name for gpu in gpus}) > 1:
            return let_in
        among = sorted(
            gpus if let_in is None else let_in, key=lambda gpu: (gpu.index is None, gpu.index)
        )
        numbers = [int(word) for word in words]
        if any(gpu.index is None for gpu in among) or max(numbers) >= len(among):
            return let_in
        return tuple(among[number] for number in dict.fromkeys(numbers))
    return _chosen(gpus if let_in is None else let_in, cuda)


def _chosen(gpus: Sequence[GpuPart], listed: str) -> tuple[GpuPart, ...]:
    """GPUs by index or by UUID, which may be cut short as long as one GPU alone begins so."""
    ours: list[GpuPart] = []
    for word in filter(None, (word.strip() for word in listed.split(","))):
        if word.isdecimal():
            found = [gpu for gpu in gpus if gpu.index == int(word)]
        else:
            found = [
                gpu
                for gpu in gpus
                if any(name.lower().startswith(word.lower()) for name in (gpu.gpu, gpu.uuid or ""))
            ]
        if len({gpu.gpu for gpu in found}) != 1:
            return ()
        ours += [gpu for gpu in found if gpu not in ours]
    return tuple(ours)
