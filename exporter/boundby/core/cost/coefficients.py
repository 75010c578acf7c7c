"""Everything a step's cost is linear in, per GPU: worked out once for a deployment."""

from collections.abc import Iterable
from dataclasses import dataclass

from boundby.core.cost.feedforward import distinct
from boundby.core.cost.formats import Formats, quantising_kernels
from boundby.core.cost.parallel import Parallel
from boundby.core.cost.shape import FeedForward, LayerGroup, Mixer, ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Attention layers that see as far: per-GPU sums over them."""

    reach: int | None
    chunked: bool
    decode_pair_flops: float
    prefill_pair_flops: float
    kv_bytes_per_token: float
    index_pair_flops: float = 0.0
    index_bytes_per_token: float = 0.0
    expand_flops: float = 0.0

    def seen(self, context: float) -> float:
        """Tokens attended to by one query at the end of `context` tokens."""
        if self.reach is None or context <= self.reach:
            return context
        return self.reach / 2 if self.chunked else float(self.reach)

    def pairs(self, tokens: float, before: float) -> float:
        """Query-key pairs of a chunk of `tokens` after `before` cached ones, causal."""
        whole = tokens * before + tokens * (tokens + 1) / 2
        if self.reach is None or before + tokens <= self.reach:
            return whole
        if self.chunked:
            return tokens * min(self.reach / 2, before + tokens / 2)
        short = max(0.0, self.reach - before)
        return short * before + short * (short + 1) / 2 + (tokens - short) * self.reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Layers of like experts: per-GPU sums over them."""

    count: int
    active: int
    bytes_per_expert: float
    """Bytes of one expert in each of these layers, a GPU's share."""
    flops_per_token: float
    arithmetic: str
    ranks: float
    """Engine ranks whose tokens meet in these experts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """One model on one kind of deployment: everything a step's cost is linear in, per GPU.

    Pipeline stages are taken as alike: a GPU's share is the whole over the stages.
    """

    layers: float
    blocks: float
    kernels: float
    """Kernels launched for the layers of one step, as a rule."""
    dense_weight_bytes: float
    dense_flops_per_token: float
    arithmetic: str
    experts: tuple[Experts, ...]
    reaches: tuple[Reach, ...]
    kv_bytes_per_token: float
    """Bytes that one token adds to the cache, in every layer."""
    state_bytes_per_sequence: float
    """Bytes of recurrent state that a step reads and writes for each sequence."""
    state_flops_per_token: float
    head_weight_bytes: float
    head_flops_per_sequence: float
    logit_bytes_per_sequence: float
    activation_bytes_per_token: float
    allreduce_bytes_per_token: float
    allreduce_count: float
    alltoall_bytes_per_token: float
    alltoall_count: float
    weight_bytes_per_gpu: float
    """Bytes of all weights that a GPU holds, embedding included."""
    parallel: Parallel

    @property
    def expert_arithmetic(self) -> str:
        """The dtype of the experts' arithmetic; the dense one's without experts."""
        return self.experts[0].arithmetic if self.experts else self.arithmetic

    @property
    def flops_per_token(self) -> float:
        """FLOPs of the layers' matrices for one token."""
        return self.dense_flops_per_token + sum(e.flops_per_token for e in self.experts)

    def expert_bytes(self, tokens: float) -> float:
        """Bytes of the experts that a step over `tokens` reads."""
        return sum(
            distinct(e.count, e.active, tokens * e.ranks) * e.bytes_per_expert
            for e in self.experts
        )

    def weight_bytes(self, tokens: float) -> float:
        """Bytes of layer weights that a step over `tokens` reads."""
        return self.dense_weight_bytes + self.expert_bytes(tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """What one part of a group's layers adds to a GPU."""

    weight_bytes: float
    stored_bytes: float
    flops_per_token: float
    kernels: float
    activations: float
    state_bytes: float = 0.0
    state_flops: float = 0.0
    reach: Reach | None = None
    experts: Experts | None = None


def _mixer(count: int, mixer: Mixer, formats: Formats, parallel: Parallel) -> _Share:
    """Return a mixer's share: heads are divided over `tensor`, and so are states."""
    share = count / parallel.gpus
    recurrent = mixer.kind in {"linear", "ssm"}
    scheme = formats.parts["recurrent" if recurrent else "attention"]
    weights = mixer.matrices * scheme.bytes_per_element * share
    state = (
        mixer.state_elements * formats.state_bytes_per_element
        + mixer.convolution_elements * formats.activation_bytes_per_element
    )
    return _Share(
        weight_bytes=weights,
        stored_bytes=weights + mixer.vectors * formats.vector_bytes_per_element * share,
        flops_per_token=2 * mixer.matrices * share,
        kernels=count * (mixer.kernels + quantising_kernels(scheme)),
        activations=mixer.activations * share,
        state_bytes=2 * state * share,
        state_flops=mixer.state_flops * share,
        reach=_reach(count, mixer, formats, parallel) if mixer.kv_elements else None,
    )


def _reach(count: int, mixer: Mixer, formats: Formats, parallel: Parallel) -> Reach:
    """Return what attention costs; GPUs beyond the KV heads hold copies, latents are whole."""
    share, layers = count / parallel.gpus, count / parallel.pipeline
    holders = min(parallel.tensor, mixer.kv_heads) or 1
    return Reach(
        reach=mixer.reach,
        chunked=mixer.kind == "chunk",
        decode_pair_flops=mixer.decode_pair_flops * share,
        prefill_pair_flops=mixer.prefill_pair_flops * share,
        kv_bytes_per_token=mixer.kv_elements * formats.kv_bytes_per_element * layers / holders,
        index_pair_flops=mixer.index_pair_flops * layers,
        index_bytes_per_token=mixer.index_elements * formats.index_bytes_per_element * layers,
        expand_flops=mixer.expand_flops * share,
    )


def _network(count: int, ff: FeedForward, formats: Formats, parallel: Parallel) -> _Share:
    """Return a feed-forward's share: every GPU holds the whole router."""
    share, tensor = count / parallel.gpus, parallel.tensor
    weights = share * (
        ff.dense * formats.parts["dense"].bytes_per_element
        + ff.shared * formats.parts["shared"].bytes_per_element
        + ff.router * tensor * formats.parts["router"].bytes_per_element
    )
    routed = _experts(count, ff, formats, parallel) if ff.experts else None
    vectors = ff.vectors + ff.experts * ff.expert_vectors
    inner = formats.parts["experts" if ff.experts else "dense"]
    return _Share(
        weight_bytes=weights,
        stored_bytes=weights
        + vectors * formats.vector_bytes_per_element * share
        + (routed.count * routed.bytes_per_expert if routed else 0.0),
        flops_per_token=2 * (ff.dense + ff.shared + ff.router * tensor) * share,
        kernels=count * (ff.kernels + quantising_kernels(inner)),
        activations=ff.activations * share,
        experts=routed,
    )


def _experts(count: int, ff: FeedForward, formats: Formats, parallel: Parallel) -> Experts:
    routed = formats.parts["experts"]
    holders = max(parallel.expert, parallel.tensor) * parallel.pipeline
    return Experts(
        count=ff.experts,
        active=ff.active,
        bytes_per_expert=count * ff.expert * routed.bytes_per_element / holders,
        flops_per_token=2 * count * ff.active * ff.expert / parallel.gpus,
        arithmetic=routed.arithmetic,
        ranks=max(1.0, parallel.expert / parallel.tensor),
    )


def _merged(reaches: Iterable[Reach]) -> tuple[Reach, ...]:
    """Add up what sees as far, so that a step has fewer terms."""
    found: dict[tuple[int | None, bool], Reach] = {}
    for r in reaches:
        key = (r.reach, r.chunked)
        o = found.get(key)
        found[key] = (
            r
            if o is None
            else Reach(
                reach=r.reach,
                chunked=r.chunked,
                decode_pair_flops=o.decode_pair_flops + r.decode_pair_flops,
                prefill_pair_flops=o.prefill_pair_flops + r.prefill_pair_flops,
                kv_bytes_per_token=o.kv_bytes_per_token + r.kv_bytes_per_token,
                index_pair_flops=o.index_pair_flops + r.index_pair_flops,
                index_bytes_per_token=o.index_bytes_per_token + r.index_bytes_per_token,
                expand_flops=o.expand_flops + r.expand_flops,
            )
        )
    return tuple(found.values())


def _shares(group: LayerGroup, formats: Formats, parallel: Parallel) -> Iterable[_Share]:
    if group.mixer:
        yield _mixer(group.count, group.mixer, formats, parallel)
    if group.feed_forward:
        yield _network(group.count, group.feed_forward, formats, parallel)


def coefficients(shape: ModelShape, formats: Formats, parallel: Parallel) -> Coefficients:
    """Work out a deployment's coefficients, once."""
    tensor, stages = parallel.tensor, parallel.pipeline
    shares = [share for group in shape.groups for share in _shares(group, formats, parallel)]
    experts = tuple(share.experts for share in shares if share.experts)
    reaches = _merged(share.reach for share in shares if share.reach)
    wide = formats.activation_bytes_per_element
    head = shape.head * formats.parts["head"].bytes_per_element
    norms = shape.vectors + sum(group.count * group.vectors for group in shape.groups)
    between = 4 * shape.hidden_size * shape.layers / stages
    blocks = sum(group.count * group.blocks for group in shape.groups) / stages
    crossings = _crossings(shape, parallel)
    active = sum(e.active for e in experts) / len(experts) if experts else 0.0
    return Coefficients(
        layers=shape.layers / stages,
        blocks=blocks,
        kernels=sum(share.kernels for share in shares) / stages,
        dense_weight_bytes=sum(share.weight_bytes for share in shares),
        dense_flops_per_token=sum(share.flops_per_token for share in shares),
        arithmetic=formats.dense_arithmetic(shape),
        experts=experts,
        reaches=reaches,
        kv_bytes_per_token=sum(r.kv_bytes_per_token + r.index_bytes_per_token for r in reaches),
        state_bytes_per_sequence=sum(share.state_bytes for share in shares),
        state_flops_per_token=sum(share.state_flops for share in shares),
        head_weight_bytes=head / parallel.gpus,
        head_flops_per_sequence=2 * shape.head / parallel.gpus,
        logit_bytes_per_sequence=shape.vocab_size * wide / parallel.gpus,
        activation_bytes_per_token=wide * (between + sum(share.activations for share in shares)),
        allreduce_bytes_per_token=(blocks * shape.hidden_size * wide * 2 * (tensor - 1) / tensor),
        allreduce_count=blocks if tensor > 1 else 0.0,
        alltoall_bytes_per_token=crossings * active * shape.hidden_size * wide / tensor,
        alltoall_count=crossings,
        weight_bytes_per_gpu=(
            sum(share.stored_bytes for share in shares)
            + norms * formats.vector_bytes_per_element / stages
            + (shape.embedding * wide + (0.0 if shape.tied else head)) / parallel.gpus
        ),
        parallel=parallel,
    )


def _crossings(shape: ModelShape, parallel: Parallel) -> float:
    """All-to-alls of a step: two for each layer of experts that other ranks hold too."""
    if parallel.expert <= parallel.tensor:
        return 0.0
    layers = sum(g.count for g in shape.groups if g.feed_forward and g.feed_forward.experts)
    return 2 * layers / parallel.pipeline
