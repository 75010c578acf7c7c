"""Speculative decoding: drafted tokens verified in one step, and what drafting costs.

A step verifies the drafts of every sequence at once: matrices and scores for all of them, the
cache read once. Draft layers that come with a model (multi-token prediction) run once a draft.
"""

from dataclasses import replace

from boundby.core.cost.shape import FeedForward, ModelShape
from boundby.core.cost.step import StepBatch


def verified(batch: StepBatch, drafted: float) -> StepBatch:
    """Return the batch with `drafted` tokens a sequence beside the one it would decode anyway."""
    tokens = batch.decode_sequences * (1.0 + drafted)
    chunks = batch.prefill_sequences if batch.prefill_tokens > 0 else 0.0
    return replace(batch, decode_tokens=tokens, logit_sequences=tokens + chunks)


def tokens_per_step(accepted_ratio: float, drafted: int) -> float:
    """Return the tokens a sequence gains in a step: drafts count up to the first refused one.

    `accepted_ratio` is the chance of each draft, given that those before it were accepted.
    """
    return 1.0 + sum(accepted_ratio**place for place in range(1, drafted + 1))


def draft_shape(shape: ModelShape) -> ModelShape | None:
    """Return the model's own draft layers as a model of their own; None where it has none.

    Its cost is that of one draft: the layers, a matrix that joins two inputs, and the head.
    """
    if not shape.mtp_layers:
        return None
    last = replace(shape.groups[-1], count=shape.mtp_layers)
    join = 2 * shape.hidden_size * shape.hidden_size
    network = last.feed_forward or FeedForward()
    layer = replace(last, feed_forward=replace(network, dense=network.dense + join))
    return replace(shape, groups=(layer,), embedding=0, tied=True, mtp_layers=0, mtp_parameters=0)
