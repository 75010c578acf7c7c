"""Costs of a step against vectors that were worked out apart from this code."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundby.core.cost import (
    Coefficients,
    Formats,
    Parallel,
    StepBatch,
    coefficients,
    read_shape,
    step_cost,
    uniform,
)
from boundby.core.cost.formats import BF16, Scheme
from boundby.core.cost.shape import PARTS

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
VECTORS = json.loads((ROOT / "tests/fixtures/models/step-vectors.json").read_text())["cases"]

PARTS_OF_COST = {
    "matrix_flops": "weight_flops",
    "attention_flops": "attention_flops",
    "lm_head_flops": "head_flops",
    "weight_bytes": "weight_bytes",
    "lm_head_bytes": "head_bytes",
    "kv_read_bytes": "kv_read_bytes",
    "kv_write_bytes": "kv_write_bytes",
    "state_bytes": "state_bytes",
    "allreduce_bytes_per_gpu": "collective_bytes",
}


def deployment(vector: dict[str, Any]) -> Coefficients:
    args = vector["args"]
    parts = {part: Scheme(args["wb"], "bf16") for part in PARTS}
    parts["head"] = parts["router"] = BF16
    parts["experts"] = Scheme(args.get("moe_wb", args["wb"]), "bf16")
    return coefficients(
        read_shape(CONFIGS[vector["config"]]),
        Formats(parts=parts, kv_bytes_per_element=args["kvb"]),
        Parallel(tensor=args.get("tp", 1)),
    )


def batch(vector: dict[str, Any]) -> StepBatch:
    decodes = [(n, context) for n, new, context in vector["args"]["requests"] if new == 1]
    chunks = [(n, new, whole) for n, new, whole in vector["args"]["requests"] if new > 1]
    return StepBatch(
        decode_sequences=sum(n for n, _ in decodes),
        decode_context_tokens=sum(n * context for n, context in decodes),
        prefill_tokens=sum(n * new for n, new, _ in chunks),
        prefill_context_tokens=sum(n * (whole - new) for n, new, whole in chunks),
        prefill_sequences=sum(n for n, _, _ in chunks),
    )


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["case"] for vector in VECTORS])
def test_a_step_costs_what_the_formulae_say(vector: dict[str, Any]) -> None:
    cost = step_cost(deployment(vector), batch(vector))

    got = {name: getattr(cost, part) for name, part in PARTS_OF_COST.items()}
    assert got == pytest.approx({name: vector[name] for name in PARTS_OF_COST}, rel=1e-9)


LLAMA = coefficients(read_shape(CONFIGS["meta-llama/Llama-3.1-8B"]), uniform(), Parallel())


def test_a_step_with_nothing_in_it_moves_only_weights() -> None:
    cost = step_cost(LLAMA, StepBatch())

    assert (cost.flops, cost.bytes) == (0.0, LLAMA.dense_weight_bytes)


@settings(deadline=None)
@given(
    sequences=st.integers(1, 512), context=st.integers(1, 100_000), chunk=st.integers(0, 16_384)
)
def test_more_work_never_costs_less(sequences: int, context: int, chunk: int) -> None:
    def cost(n: int, length: int, tokens: int) -> tuple[float, float]:
        step = step_cost(
            LLAMA,
            StepBatch(decode_sequences=n, decode_context_tokens=n * length, prefill_tokens=tokens),
        )
        return step.flops, step.bytes

    base = cost(sequences, context, chunk)
    for more in (
        cost(sequences + 1, context, chunk),
        cost(sequences, context + 1, chunk),
        cost(sequences, context, chunk + 1),
    ):
        assert all(math.isfinite(b) and b >= a for a, b in zip(base, more, strict=True))


def test_a_prompt_in_chunks_costs_the_same_attention_as_in_one_piece() -> None:
    whole = step_cost(LLAMA, StepBatch(prefill_tokens=4096))

    first = step_cost(LLAMA, StepBatch(prefill_tokens=2048))
    rest = step_cost(LLAMA, StepBatch(prefill_tokens=2048, prefill_context_tokens=2048))
    assert first.attention_flops + rest.attention_flops == pytest.approx(whole.attention_flops)


def test_speculation_reads_the_cache_once_for_all_its_tokens() -> None:
    plain = StepBatch(decode_sequences=8, decode_context_tokens=8 * 1000)
    drafted = StepBatch(decode_sequences=8, decode_context_tokens=8 * 1000, decode_tokens=8 * 4)

    one, four = step_cost(LLAMA, plain), step_cost(LLAMA, drafted)

    assert (four.kv_read_bytes, four.weight_flops) == (one.kv_read_bytes, 4 * one.weight_flops)


def seen(reach: int, before: int, tokens: int) -> int:
    return sum(min(reach, before + i) for i in range(1, tokens + 1))


@pytest.mark.parametrize(("before", "tokens"), [(0, 100), (0, 5000), (3000, 2000), (9000, 700)])
def test_a_window_bounds_what_each_token_of_a_chunk_sees(before: int, tokens: int) -> None:
    c = coefficients(read_shape(CONFIGS["mistralai/Mistral-7B-v0.1"]), uniform(), Parallel())

    cost = step_cost(c, StepBatch(prefill_tokens=tokens, prefill_context_tokens=before))

    each = 32 * 4 * 32 * 128
    assert cost.attention_flops == each * seen(4096, before, tokens)


def test_a_layer_that_sees_its_chunk_only_sees_half_of_it_on_average() -> None:
    scout = read_shape(CONFIGS["meta-llama/Llama-4-Scout-17B-16E"])
    c = coefficients(scout, uniform(), Parallel())

    long = step_cost(c, StepBatch(decode_sequences=1, decode_context_tokens=100_000))
    prompt = step_cost(c, StepBatch(prefill_tokens=100_000))

    each = 2 * 8 * 128 * 2
    assert long.kv_read_bytes == each * (12 * 100_000 + 36 * 4096)
    assert prompt.attention_flops == pytest.approx(
        4 * 40 * 128 * (12 * 100_000**2 / 2 + 36 * 100_000 * 4096), rel=0.001
    )


def test_a_sparse_layer_reads_its_index_whole_and_the_cache_in_part() -> None:
    c = coefficients(read_shape(CONFIGS["zai-org/GLM-5"]), uniform(), Parallel(tensor=8))

    cost = step_cost(c, StepBatch(decode_sequences=1, decode_context_tokens=50_000))

    assert cost.kv_read_bytes == 78 * (2048 * 576 * 2 + 50_000 * 128)


def test_experts_of_other_ranks_meet_the_tokens_of_all() -> None:
    shape = read_shape(CONFIGS["deepseek-ai/DeepSeek-V3"])
    one = coefficients(shape, uniform("fp8"), Parallel(tensor=1, expert=8))

    cost = step_cost(one, StepBatch(decode_sequences=4, decode_context_tokens=4000))

    met = 256 * (1 - (1 - 8 / 256) ** 32) / 8
    assert cost.expert_bytes == pytest.approx(58 * met * 3 * 7168 * 2048)
    assert cost.collective_count == 2 * 58


def test_pipeline_stages_share_the_layers() -> None:
    shape = read_shape(CONFIGS["meta-llama/Llama-3.1-8B"])
    whole, half = (coefficients(shape, uniform(), Parallel(pipeline=n)) for n in (1, 2))

    assert half.dense_weight_bytes == whole.dense_weight_bytes / 2
    assert half.kv_bytes_per_token == whole.kv_bytes_per_token / 2
