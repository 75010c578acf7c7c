"""How much fits: KV bytes a token, sequences a pool holds, and where decode changes its roof."""

import math
from dataclasses import dataclass

from boundby.core.cost.coefficients import Coefficients
from boundby.core.cost.formats import Formats
from boundby.core.cost.shape import ModelShape


def kv_bytes_per_token(shape: ModelShape, formats: Formats) -> float:
    """Bytes that one token's keys and values take in the whole model, each stored once.

    Layers that see a window count too: a token is cached there until the window has passed.
    """
    return sum(
        group.count
        * (
            group.mixer.kv_elements * formats.kv_bytes_per_element
            + group.mixer.index_elements * formats.index_bytes_per_element
        )
        for group in shape.groups
        if group.mixer
    )


def kv_bytes_per_sequence(c: Coefficients, context: float) -> float:
    """Bytes of cache and state that one sequence of `context` tokens keeps on one GPU."""
    kept = 0.0
    for r in c.reaches:
        dropped = r.reach is not None and r.index_bytes_per_token == 0
        tokens = min(context, float(r.reach)) if dropped and r.reach is not None else context
        kept += tokens * (r.kv_bytes_per_token + r.index_bytes_per_token)
    return kept + c.state_bytes_per_sequence / 2


def sequences_that_fit(c: Coefficients, context: float, free_bytes_per_gpu: float) -> int:
    """Sequences of `context` tokens whose cache fits in a GPU's free memory."""
    each = kv_bytes_per_sequence(c, context)
    return max(0, math.floor(free_bytes_per_gpu / each)) if each > 0 else 0


def fitting_sequences(capacity_tokens: float, mean_context_tokens: float) -> float:
    """Sequences that a pool of `capacity_tokens` holds at today's mean context."""
    return capacity_tokens / mean_context_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Batch sizes at which decode changes what it waits for; None is "never at this context"."""

    weights_stop_dominating: float | None
    """Where the batch's KV is read for as long as the weights."""
    compute_binds: float | None
    """Where arithmetic takes as long as memory does."""


def crossings(c: Coefficients, context: float, ridge_flops_per_byte: float) -> Crossing:
    """Find where decode at `context` tokens changes its roof, experts taken as all read."""
    fixed = c.weight_bytes(math.inf) + c.head_weight_bytes
    bytes_each = c.kv_bytes_per_token + c.logit_bytes_per_sequence + c.state_bytes_per_sequence
    flops_each = c.flops_per_token + c.head_flops_per_sequence + c.state_flops_per_token
    for r in c.reaches:
        seen = r.seen(context)
        bytes_each += seen * r.kv_bytes_per_token + context * r.index_bytes_per_token
        flops_each += seen * r.decode_pair_flops + context * r.index_pair_flops
    gained = flops_each - ridge_flops_per_byte * bytes_each
    return Crossing(
        weights_stop_dominating=fixed / bytes_each if bytes_each > 0 else None,
        compute_binds=ridge_flops_per_byte * fixed / gained if gained > 0 else None,
    )
