"""What fits, and where decode changes what it waits for."""

import json
from pathlib import Path

import pytest

from boundby.core.cost import (
    Parallel,
    StepBatch,
    coefficients,
    crossings,
    fitting_sequences,
    kv_bytes_per_sequence,
    read_shape,
    sequences_that_fit,
    step_cost,
    uniform,
)

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
RIDGE = 295.0


LLAMA = coefficients(
    read_shape(CONFIGS["meta-llama/Llama-3.1-70B"]), uniform(), Parallel(tensor=4)
)
MISTRAL = coefficients(read_shape(CONFIGS["mistralai/Mistral-7B-v0.1"]), uniform(), Parallel())
NEMOTRON = coefficients(read_shape(CONFIGS["nvidia/Nemotron-H-8B-Base-8K"]), uniform(), Parallel())


def test_as_many_sequences_fit_as_their_caches() -> None:
    each = 4096 * 327_680 / 4

    assert sequences_that_fit(LLAMA, 4096, 100.9 * each) == 100


@pytest.mark.parametrize("free", [0.0, -1e9])
def test_nothing_fits_where_weights_leave_no_room(free: float) -> None:
    assert sequences_that_fit(LLAMA, 4096, free) == 0


def test_a_window_bounds_what_a_sequence_keeps() -> None:
    assert kv_bytes_per_sequence(MISTRAL, 100_000) == kv_bytes_per_sequence(MISTRAL, 4096)


def test_a_state_is_kept_beside_the_cache() -> None:
    state = 24 * (128 * 64 * 128 * 4 + 10_240 * 4 * 2)

    assert kv_bytes_per_sequence(NEMOTRON, 1000) == 1000 * 16_384 + state


def test_a_pool_holds_fewer_long_sequences() -> None:
    assert fitting_sequences(160_000, 1600) == 100


def test_the_cache_is_read_as_long_as_the_weights_at_the_crossing() -> None:
    batch = crossings(LLAMA, 4096, RIDGE).weights_stop_dominating

    assert batch is not None
    cost = step_cost(LLAMA, StepBatch(decode_sequences=batch, decode_context_tokens=batch * 4096))
    logits = LLAMA.logit_bytes_per_sequence * batch
    per_sequence = cost.kv_read_bytes + cost.kv_write_bytes + logits
    assert per_sequence == pytest.approx(cost.weight_bytes + LLAMA.head_weight_bytes, rel=1e-6)


def test_decode_at_a_long_context_never_waits_for_arithmetic() -> None:
    assert crossings(LLAMA, 4096, RIDGE).compute_binds is None


def test_decode_at_a_short_context_does_from_some_batch_on() -> None:
    batch = crossings(LLAMA, 64, RIDGE).compute_binds

    assert batch is not None
    cost = step_cost(LLAMA, StepBatch(decode_sequences=batch, decode_context_tokens=batch * 64))
    assert cost.intensity == pytest.approx(RIDGE, rel=1e-6)
