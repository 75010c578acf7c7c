"""The engine's own FLOP counter beside ours."""

import json
from pathlib import Path

import pytest

from boundby.core.cost import Parallel, StepBatch, coefficients, read_shape, step_cost, uniform
from boundby.core.cost.engine_estimate import crosscheck, flops_their_way

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
LLAMA = coefficients(read_shape(CONFIGS["meta-llama/Llama-3.1-8B"]), uniform(), Parallel())
PREFILL = StepBatch(prefill_tokens=8192)
DECODE = StepBatch(decode_sequences=8, decode_context_tokens=8 * 4096)


def test_a_prompt_in_one_chunk_is_counted_as_a_full_square() -> None:
    ours = step_cost(LLAMA, PREFILL)

    extra = flops_their_way(LLAMA, PREFILL) - ours.flops
    assert extra == pytest.approx(ours.attention_flops, rel=0.001)


def test_a_decode_step_is_counted_alike() -> None:
    assert flops_their_way(LLAMA, DECODE) == step_cost(LLAMA, DECODE).flops


def test_a_count_with_known_differences_agrees_and_is_corrected() -> None:
    check = crosscheck(LLAMA, PREFILL, flops_their_way(LLAMA, PREFILL))

    assert check.agrees
    assert check.corrected == pytest.approx(check.ours)


def test_another_count_is_shown_as_a_disagreement() -> None:
    check = crosscheck(LLAMA, DECODE, 3 * flops_their_way(LLAMA, DECODE))

    assert not check.agrees
    assert "3.00 times" in check.says


def test_a_counter_at_zero_counts_nothing() -> None:
    check = crosscheck(LLAMA, DECODE, 0.0)

    assert check.corrected is None
    assert "0" in check.says
