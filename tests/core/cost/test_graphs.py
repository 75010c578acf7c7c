"""Batches as CUDA graphs run them."""

import pytest

from boundby.core.cost import StepBatch
from boundby.core.cost.graphs import captured_sizes, executed

SIZES = captured_sizes()

BATCHES = [(1, 1), (3, 4), (5, 8), (8, 8), (9, 16), (250, 256), (257, 272), (512, 512), (700, 700)]


@pytest.mark.parametrize(("asked", "run"), BATCHES)
def test_a_decode_batch_runs_at_the_next_captured_size(asked: int, run: int) -> None:
    batch = executed(StepBatch(decode_sequences=asked, decode_context_tokens=100 * asked), SIZES)

    assert batch.decode_tokens == run


def test_padding_reads_no_more_of_the_cache() -> None:
    batch = executed(StepBatch(decode_sequences=9, decode_context_tokens=900), SIZES)

    assert (batch.decode_sequences, batch.decode_context_tokens) == (9, 900)


@pytest.mark.parametrize(
    "batch",
    [StepBatch(), StepBatch(decode_sequences=9, decode_context_tokens=9, prefill_tokens=100)],
    ids=["an empty step", "a step with a prefill"],
)
def test_steps_without_a_graph_are_not_padded(batch: StepBatch) -> None:
    assert executed(batch, SIZES) == batch
