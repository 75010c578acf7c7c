"""Sizes of KV pools, as engines tell them, and as real logs show them."""

import json
from pathlib import Path

import pytest

from boundby.core.cost import Parallel, coefficients, kv_bytes_per_token, read_shape, uniform
from boundby.core.cost.pool import pool_tokens

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
LLAMA = read_shape(CONFIGS["meta-llama/Llama-3.1-8B"])
GPT_OSS = read_shape(CONFIGS["openai/gpt-oss-120b"])

LOGGED = [
    ("Qwen/Qwen2.5-1.5B", 0.56 * 2**30 / 20992),
    ("Qwen/Qwen2.5-1.5B", 2.36 * 2**30 / 88304),
    ("meta-llama/Llama-3.1-8B", 19.92 * 2**30 / 163168),
    ("openai/gpt-oss-120b", 5.38 * 2**30 / 78384),
]
"""Bytes a token that vLLM's start-up log implies: room, printed to 0.01 GiB, over tokens."""


@pytest.mark.parametrize(("name", "logged"), LOGGED)
def test_bytes_per_token_are_those_of_the_engines_log(name: str, logged: float) -> None:
    assert kv_bytes_per_token(read_shape(CONFIGS[name]), uniform()) == pytest.approx(
        logged, rel=0.01
    )


def test_a_latent_cache_is_held_whole_by_every_gpu() -> None:
    shape = read_shape(CONFIGS["deepseek-ai/DeepSeek-V2-Lite"])

    c = coefficients(shape, uniform(), Parallel(tensor=8))

    assert c.kv_bytes_per_token == 31_104


def test_heads_are_copied_where_there_are_more_gpus() -> None:
    shares = [
        coefficients(LLAMA, uniform(), Parallel(tensor=tensor)).kv_bytes_per_token
        for tensor in (1, 8, 16)
    ]

    assert shares == [131_072, 16_384, 16_384]


def test_the_engines_own_count_comes_first() -> None:
    pool = pool_tokens(LLAMA, capacity_tokens=163_168, blocks=10, block_tokens=16)

    assert pool is not None
    assert (pool.tokens, pool.exact) == (163_168, True)


def test_one_block_is_kept_empty() -> None:
    pool = pool_tokens(LLAMA, blocks=5519, block_tokens=16)

    assert pool is not None
    assert pool.tokens == 5518 * 16


def test_a_hybrids_pool_is_no_exact_count_of_tokens() -> None:
    pool = pool_tokens(GPT_OSS, capacity_tokens=78_384)

    assert pool is not None
    assert not pool.exact
    assert "window" in pool.why


def test_an_engine_that_says_nothing_has_no_pool() -> None:
    assert pool_tokens(LLAMA, blocks=0, block_tokens=16) is None
