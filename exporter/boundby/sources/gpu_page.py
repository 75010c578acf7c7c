"""What the GPU exporters' adapters share: one GPU while its page is read, and which are ours."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from boundby.core.facts import GPU_FACTS
from boundby.core.parts import GpuPart
from boundby.core.setup import GpuIdentity
from boundby.sources.labels import Labels


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


@dataclass(slots=True)
class Draft:
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

    def give(self, fact: str, value: float) -> None:
        """Take a value, unless a better row gave the fact before."""
        into = self.counters if GPU_FACTS[fact].kind == "counter" else self.gauges
        into.setdefault(fact, value)

    def note_pod(self, labels: Labels) -> None:
        """Note which pod a row belongs to."""
        pod = labels.get("pod") or labels.get("pod_name") or labels.get("exported_pod")
        if pod:
            namespace = (
                labels.get("namespace")
                or labels.get("pod_namespace")
                or labels.get("exported_namespace")
            )
            self.pods.setdefault(pod, namespace)

    def part(self, key: str, now: float | None) -> GpuPart:
        """Freeze it; a GPU that several pods share is of no one pod."""
        pod, namespace = next(iter(self.pods.items())) if len(self.pods) == 1 else (None, None)
        age = None if now is None or self.stamp is None else max(0.0, now - self.stamp)
        return GpuPart(
            gpu=key,
            index=self.index,
            uuid=self.uuid,
            name=self.name,
            pod=pod,
            namespace=namespace,
            mig_instance=self.mig_instance,
            age_seconds=age,
            gauges=self.gauges,
            counters=self.counters,
            infos=self.infos,
        )


def freeze(
    drafts: Mapping[str, Draft], problems: Iterable[str], now: float | None, profiled_by: str
) -> Parsed:
    """Make the page's result; `profiled_by` is a fact that only profiling counters give."""
    shared = {key: tuple(draft.pods) for key, draft in drafts.items() if len(draft.pods) > 1}
    told = [
        *problems,
        *(f"GPU {key} is shared by pods {', '.join(pods)}" for key, pods in shared.items()),
    ]
    if not drafts:
        told.append("no GPU has a value on this page")
    return Parsed(
        gpus=tuple(draft.part(key, now) for key, draft in _in_order(drafts)),
        problems=tuple(told),
        shared=shared,
        profiling=any(profiled_by in draft.gauges for draft in drafts.values()),
    )


def _in_order(drafts: Mapping[str, Draft]) -> Iterable[tuple[str, Draft]]:
    return sorted(
        drafts.items(),
        key=lambda item: (
            item[1].index if item[1].index is not None else 1 << 30,
            len(item[1].mig_instance or ""),
            item[0],
        ),
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
