"""CUDA graphs: a decode batch runs at the next captured size, so more is executed than is used.

Sizes are those vLLM captures by default: 1, 2, 4, then each multiple of 8 to 256 and of 16 on.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from boundby.core.cost.step import StepBatch

LARGEST = 512
"""vLLM's largest captured batch unless set otherwise."""


def captured_sizes(largest: int = LARGEST) -> tuple[int, ...]:
    """Return the batch sizes that have a graph, ascending, up to `largest`."""
    sizes = (1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16))
    return tuple(size for size in sizes if size <= largest)


def executed_tokens(tokens: float, sizes: Sequence[int]) -> float:
    """Return the tokens a decode step computes: those of its graph, or its own beyond the last."""
    place = bisect_left(sizes, tokens)
    return float(sizes[place]) if place < len(sizes) else tokens


def executed(batch: StepBatch, sizes: Sequence[int]) -> StepBatch:
    """Return the batch whose cost is executed: matrices at the graph's size, the cache as it is.

    Steps with a prefill in them run without a whole graph and are not padded.
    """
    if batch.prefill_tokens > 0 or batch.decode_sequences <= 0:
        return batch
    tokens = batch.decode_sequences if batch.decode_tokens is None else batch.decode_tokens
    return replace(batch, decode_tokens=max(tokens, executed_tokens(tokens, sizes)))
