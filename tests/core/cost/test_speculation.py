"""Drafted tokens: what verifying them costs, and what they bring."""

import json
from pathlib import Path

import pytest

from boundby.core.cost import Parallel, StepBatch, coefficients, read_shape, step_cost, uniform
from boundby.core.cost.speculation import draft_shape, tokens_per_step, verified

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
DEEPSEEK = read_shape(CONFIGS["deepseek-ai/DeepSeek-V3"])
BATCH = StepBatch(decode_sequences=8, decode_context_tokens=8 * 4096)


def test_drafts_add_arithmetic_and_no_reading_of_the_cache() -> None:
    c = coefficients(read_shape(CONFIGS["Qwen/Qwen3-8B"]), uniform(), Parallel())

    plain, drafted = step_cost(c, BATCH), step_cost(c, verified(BATCH, drafted=3))

    assert drafted.kv_read_bytes == plain.kv_read_bytes
    assert drafted.flops == pytest.approx(4 * plain.flops)


@pytest.mark.parametrize(
    ("ratio", "drafted", "tokens"), [(0.0, 3, 1.0), (1.0, 3, 4.0), (0.5, 2, 1.75), (0.8, 0, 1.0)]
)
def test_a_step_brings_drafts_up_to_the_first_refused(
    ratio: float, drafted: int, tokens: float
) -> None:
    assert tokens_per_step(ratio, drafted) == tokens


def test_a_models_own_draft_layer_has_its_published_size() -> None:
    # DeepSeek-V3's README: the draft module holds 11.5 billion, embedding and head shared
    draft = draft_shape(DEEPSEEK)

    assert draft is not None
    assert draft.parameters == pytest.approx(11.5e9, rel=0.02)
    assert DEEPSEEK.mtp_parameters == pytest.approx(11.5e9, rel=0.02)


def test_a_model_without_draft_layers_has_none() -> None:
    assert draft_shape(read_shape(CONFIGS["Qwen/Qwen3-8B"])) is None
