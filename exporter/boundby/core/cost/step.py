"""What one engine step costs one GPU: FLOPs, bytes and collectives, by part.

Sequences of a batch are taken as alike: sums go in, and what depends on a single context
(windows, sparse reach) uses the mean. A few dozen multiplications, some microseconds.
"""

from dataclasses import dataclass

from boundby.core.cost.coefficients import Coefficients, coefficients
from boundby.core.cost.parallel import Parallel

__all__ = ["Coefficients", "Parallel", "StepBatch", "StepCost", "coefficients", "step_cost"]


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
