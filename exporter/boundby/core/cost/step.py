"""What one engine step costs one GPU: FLOPs, bytes and collectives, by part.

`Coefficients` are worked out once for a model, its formats and its parallelism; `step_cost` is
then a few dozen multiplications. Sequences of a batch are taken as alike: sums go in, and what
depends on a single context (windows, sparse reach) uses the mean.
"""

from dataclasses import dataclass

from boundby.core.cost.feedforward import distinct
from boundby.core.cost.formats import Formats, quantising_kernels
from boundby.core.cost.shape import ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """How a model is spread. `tensor` GPUs share each layer, `pipeline` stages share the layers.

    `expert` GPUs hold whole experts each (1: experts are sliced over `tensor` like the rest).
    With more of them than `tensor`, the tokens of that many engine ranks meet in the experts.
    """

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1

    @property
    def gpus(self) -> int:
        """GPUs that one engine rank uses."""
        return self.tensor * self.pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """One step's work, summed over the sequences of one engine rank.

    A context counts the tokens computed in this step. `decode_tokens` is more than
    `decode_sequences` under speculation. `prefill_context_tokens` are the tokens before the
    chunks that are computed now, cached already.
    """

    decode_sequences: float = 0.0
    decode_context_tokens: float = 0.0
    prefill_tokens: float = 0.0
    prefill_context_tokens: float = 0.0
    prefill_sequences: float = 1.0
    decode_tokens: float | None = None
    logit_sequences: float | None = None
    """Sequences that give logits; all that decode and all chunks where not said."""


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
class StepCost:
    """One step's work on one GPU, by part. All bytes are to and from its own memory."""

    tokens: float
    weight_flops: float
    """Of the layers' matrices, experts included."""
    expert_flops: float
    attention_flops: float
    head_flops: float
    weight_bytes: float
    """Of the layers, experts included."""
    expert_bytes: float
    head_bytes: float
    kv_read_bytes: float
    kv_write_bytes: float
    state_bytes: float
    activation_bytes: float
    collective_bytes: float
    collective_count: float
    layers: float
    blocks: float
    """Mixers and feed-forwards: each is a short chain of kernels."""
    kernels: float
    sequences: float

    @property
    def flops(self) -> float:
        """All arithmetic."""
        return self.weight_flops + self.attention_flops + self.head_flops

    @property
    def bytes(self) -> float:
        """Bytes that no cache can save: weights, KV, state; activations are left out."""
        return (
            self.weight_bytes
            + self.head_bytes
            + self.kv_read_bytes
            + self.kv_write_bytes
            + self.state_bytes
        )

    @property
    def intensity(self) -> float:
        """FLOPs a byte; 0 for an empty step."""
        return self.flops / self.bytes if self.bytes else 0.0


def coefficients(shape: ModelShape, formats: Formats, parallel: Parallel) -> Coefficients:
    """Work out a deployment's coefficients, once; every GPU holds the whole router."""
    tensor, stages = parallel.tensor, parallel.pipeline
    share = 1.0 / (tensor * stages)
    dense_bytes = dense_flops = kv_token = state_bytes = state_flops = activations = 0.0
    blocks = kernels = 0.0
    reaches: dict[tuple[int | None, bool], list[float]] = {}
    experts: list[Experts] = []
    stored = 0.0
    for group in shape.groups:
        blocks += group.count * group.blocks
        stored += group.count * group.vectors * formats.vector_bytes_per_element / stages
        activations += group.count * 4 * shape.hidden_size / stages
        if mixer := group.mixer:
            recurrent = mixer.kind in {"linear", "ssm"}
            scheme = formats.parts["recurrent" if recurrent else "attention"]
            kernels += group.count * (mixer.kernels + quantising_kernels(scheme))
            dense_bytes += group.count * mixer.matrices * scheme.bytes_per_element * share
            dense_flops += group.count * 2 * mixer.matrices * share
            activations += group.count * mixer.activations * share
            state_flops += group.count * mixer.state_flops * share
            state_bytes += (
                2 * group.count * share
                * (
                    mixer.state_elements * formats.state_bytes_per_element
                    + mixer.convolution_elements * formats.activation_bytes_per_element
                )
            )  # fmt: skip
            if mixer.kv_elements:
                parts = min(tensor, mixer.kv_heads) or 1
                kv = group.count * mixer.kv_elements * formats.kv_bytes_per_element
                index = group.count * mixer.index_elements * formats.index_bytes_per_element
                kv_token += (kv / parts + index) / stages
                sums = reaches.setdefault((mixer.reach, mixer.kind == "chunk"), [0.0] * 6)
                for i, amount in enumerate((
                    group.count * mixer.decode_pair_flops * share,
                    group.count * mixer.prefill_pair_flops * share,
                    kv / parts / stages,
                    group.count * mixer.index_pair_flops / stages,
                    index / stages,
                    group.count * mixer.expand_flops * share,
                )):  # fmt: skip
                    sums[i] += amount
        if ff := group.feed_forward:
            dense_flops += group.count * 2 * (ff.dense + ff.shared + ff.router * tensor) * share
            dense_bytes += (
                group.count
                * share
                * (
                    ff.dense * formats.parts["dense"].bytes_per_element
                    + ff.shared * formats.parts["shared"].bytes_per_element
                    + ff.router * tensor * formats.parts["router"].bytes_per_element
                )
            )
            activations += group.count * ff.activations * share
            inner = formats.parts["experts" if ff.experts else "dense"]
            kernels += group.count * (ff.kernels + quantising_kernels(inner))
            if ff.experts:
                routed = formats.parts["experts"]
                holders = max(parallel.expert, tensor)
                one = group.count * ff.expert * routed.bytes_per_element / (holders * stages)
                stored += ff.experts * one
                experts.append(
                    Experts(
                        count=ff.experts,
                        active=ff.active,
                        bytes_per_expert=one,
                        flops_per_token=group.count * 2 * ff.active * ff.expert * share,
                        arithmetic=routed.arithmetic,
                        ranks=max(1.0, parallel.expert / tensor),
                    )
                )
    wide = formats.activation_bytes_per_element
    head_bytes = shape.head * formats.parts["head"].bytes_per_element / tensor
    ring = 2 * (tensor - 1) / tensor
    stored += (
        dense_bytes + (shape.embedding * wide + (0 if shape.tied else head_bytes * tensor)) * share
    )
    expert_layers = sum(g.count for g in shape.groups if g.feed_forward and g.feed_forward.experts)
    crossing = parallel.expert > tensor
    active = sum(e.active for e in experts) / len(experts) if experts else 0.0
    return Coefficients(
        layers=shape.layers / stages,
        blocks=blocks / stages,
        kernels=kernels / stages,
        dense_weight_bytes=dense_bytes,
        dense_flops_per_token=dense_flops,
        arithmetic=formats.dense_arithmetic(shape),
        experts=tuple(experts),
        reaches=tuple(
            Reach(
                reach=reach,
                chunked=chunked,
                decode_pair_flops=sums[0],
                prefill_pair_flops=sums[1],
                kv_bytes_per_token=sums[2],
                index_pair_flops=sums[3],
                index_bytes_per_token=sums[4],
                expand_flops=sums[5],
            )
            for (reach, chunked), sums in reaches.items()
        ),
        kv_bytes_per_token=kv_token,
        state_bytes_per_sequence=state_bytes,
        state_flops_per_token=state_flops,
        head_weight_bytes=head_bytes / stages,
        head_flops_per_sequence=2 * shape.head / tensor / stages,
        logit_bytes_per_sequence=shape.vocab_size * wide / tensor / stages,
        activation_bytes_per_token=activations * wide,
        allreduce_bytes_per_token=blocks / stages * shape.hidden_size * wide * ring,
        allreduce_count=blocks / stages if tensor > 1 else 0.0,
        alltoall_bytes_per_token=(
            2 * expert_layers / stages * active * shape.hidden_size * wide / tensor
            if crossing
            else 0.0
        ),
        alltoall_count=2 * expert_layers / stages if crossing else 0.0,
        weight_bytes_per_gpu=stored,
        parallel=parallel,
    )


def step_cost(c: Coefficients, batch: StepBatch) -> StepCost:
    """Cost one step; an empty batch costs nothing but what an engine would still read."""
    sequences, chunks = batch.decode_sequences, batch.prefill_sequences
    queries = sequences if batch.decode_tokens is None else batch.decode_tokens
    prefill = batch.prefill_tokens
    if prefill <= 0:
        chunks = 0.0
    tokens = queries + prefill
    logits = sequences + chunks if batch.logit_sequences is None else batch.logit_sequences
    attention = c.state_flops_per_token * tokens
    kv_read = 0.0
    context = batch.decode_context_tokens / sequences if sequences else 0.0
    chunk = prefill / chunks if chunks else 0.0
    before = batch.prefill_context_tokens / chunks if chunks else 0.0
    for r in c.reaches:
        if sequences:
            seen = r.seen(context)
            attention += queries * seen * r.decode_pair_flops
            attention += queries * context * r.index_pair_flops
            kv_read += sequences * (
                seen * r.kv_bytes_per_token + context * r.index_bytes_per_token
            )
        if chunks:
            attention += chunks * r.pairs(chunk, before) * r.prefill_pair_flops
            attention += batch.prefill_context_tokens * r.expand_flops
            attention += chunks * (chunk * before + chunk * (chunk + 1) / 2) * r.index_pair_flops
            whole = before + chunk
            visible = whole if r.reach is None else min(whole, r.reach + chunk)
            kv_read += chunks * (visible * r.kv_bytes_per_token + whole * r.index_bytes_per_token)
    expert_bytes = c.expert_bytes(tokens)
    expert_flops = sum(e.flops_per_token for e in c.experts) * tokens
    return StepCost(
        tokens=tokens,
        weight_flops=c.dense_flops_per_token * tokens + expert_flops,
        expert_flops=expert_flops,
        expert_bytes=expert_bytes,
        attention_flops=attention,
        head_flops=c.head_flops_per_sequence * logits,
        weight_bytes=c.dense_weight_bytes + expert_bytes,
        head_bytes=(c.head_weight_bytes if logits else 0.0) + c.logit_bytes_per_sequence * logits,
        kv_read_bytes=kv_read,
        kv_write_bytes=c.kv_bytes_per_token * tokens,
        state_bytes=c.state_bytes_per_sequence * (sequences + chunks),
        activation_bytes=c.activation_bytes_per_token * tokens,
        collective_bytes=(c.allreduce_bytes_per_token + c.alltoall_bytes_per_token) * tokens,
        collective_count=c.allreduce_count + c.alltoall_count,
        layers=c.layers,
        blocks=c.blocks,
        kernels=c.kernels,
        sequences=sequences + chunks,
    )
