"""Configs that cannot be read as sizes: each is refused, with its field named."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boundby.core.cost import ConfigError, kv_bytes_per_token, read_shape, uniform

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
BUILT = json.loads((ROOT / "tests/fixtures/models/implementations.json").read_text())
LLAMA: dict[str, Any] = CONFIGS["meta-llama/Llama-3.1-8B"]
MIXTURE: dict[str, Any] = CONFIGS["Qwen/Qwen3-30B-A3B"]
OPT: dict[str, Any] = BUILT["opt"]["config"]
GRANITE: dict[str, Any] = BUILT["granitemoehybrid"]["config"]
KIMI: dict[str, Any] = BUILT["kimi_linear"]["config"]
LFM2: dict[str, Any] = BUILT["lfm2"]["config"]
NEMOTRON: dict[str, Any] = CONFIGS["nvidia/Nemotron-H-8B-Base-8K"]


def nested(depth: int) -> dict[str, Any]:
    config: dict[str, Any] = dict(LLAMA)
    for _ in range(depth):
        config = {"model_type": "llava", "text_config": config}
    return config


BAD = [
    ("hidden_size", {**LLAMA, "hidden_size": 10**30}),
    ("hidden_size", {**LLAMA, "hidden_size": -4096}),
    ("hidden_size", {**LLAMA, "hidden_size": "4096"}),
    ("hidden_size", {**LLAMA, "hidden_size": 4096.5}),
    ("hidden_size", {**LLAMA, "hidden_size": True}),
    ("hidden_size", {**LLAMA, "hidden_size": {"a": {"b": 1}}}),
    ("hidden_size", {**LLAMA, "hidden_size": float("nan")}),
    ("hidden_size", {**LLAMA, "hidden_size": float("inf")}),
    ("hidden_size", {k: v for k, v in LLAMA.items() if k != "hidden_size"}),
    ("num_hidden_layers", {**LLAMA, "num_hidden_layers": 5_000_000}),
    ("num_hidden_layers", {**LLAMA, "num_hidden_layers": 0}),
    ("num_key_value_heads", {**LLAMA, "num_key_value_heads": 5}),
    ("head_dim", {**LLAMA, "num_attention_heads": 24}),
    ("tie_word_embeddings", {**LLAMA, "tie_word_embeddings": "yes"}),
    ("layer_types", {**LLAMA, "layer_types": ["full_attention"]}),
    ("layer_types", {**LLAMA, "layer_types": ["full_attention"] * 31 + ["mystery"]}),
    ("layer_types", {**LLAMA, "layer_types": "full"}),
    ("model_type", {k: v for k, v in LLAMA.items() if k != "model_type"}),
    ("model_type", {**LLAMA, "model_type": ["llama"]}),
    ("model_type", {**LLAMA, "model_type": "newcomer"}),
    ("model_type", {**LLAMA, "model_type": "newcomer", "architectures": ["NewcomerForCausalLM"]}),
    ("mlp_layer_types", {**MIXTURE, "mlp_layer_types": ["thick"] * 48}),
    ("layers_block_type", {**NEMOTRON, "layers_block_type": ["mamba", "mystery"]}),
    ("num_experts_per_tok", {**CONFIGS["Qwen/Qwen3-30B-A3B"], "num_experts_per_tok": 129}),
    ("hybrid_override_pattern", {**NEMOTRON, "num_hidden_layers": 9}),
    ("text_config", nested(9)),
    ("full_attn_layers", {**KIMI, "linear_attn_config": {"full_attn_layers": "all"}}),
    ("layer_types", {**LFM2, "layer_types": ["mystery"] * 32}),
    ("block_ffn_dim_multiplier", {**LFM2, "block_ffn_dim_multiplier": 1.5}),
    ("config.json", [LLAMA]),
    ("mlp_only_layers", {**MIXTURE, "mlp_only_layers": "none"}),
    ("mlp_only_layers", {**MIXTURE, "mlp_only_layers": [1.5]}),
    ("hidden_size", {**CONFIGS["tiiuae/falcon-7b"], "hidden_size": 4545}),
    ("word_embed_proj_dim", {**OPT, "word_embed_proj_dim": 512}),
    ("hybrid_override_pattern", {**NEMOTRON, "hybrid_override_pattern": "M" * 51 + "X"}),
    ("hybrid_override_pattern", {**NEMOTRON, "hybrid_override_pattern": None}),
    ("layers_block_type", {**NEMOTRON, "layers_block_type": "mamba"}),
    ("layer_types", {**GRANITE, "layer_types": ["mamba"] * 31 + ["mystery"]}),
    ("extra_expert_size", {**LLAMA, "extra_expert_size": 128}),
    ("num_memory_heads", {**LLAMA, "num_memory_heads": 4}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "config"), BAD, ids=[f"{field} {n}" for n, (field, _) in enumerate(BAD)]
)
def test_a_bad_config_is_refused_by_the_name_of_its_field(field: str, config: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        read_shape(config)

    assert refused.value.field == field
    assert len(str(refused.value)) < 400


values = st.sampled_from(
    [None, True, False, -1, 0, 1, 7, 10**9, 10**40, 0.5, 1e300, "8", "", [], [0], {}, {"a": [1]}]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(sorted(CONFIGS)),
    change=st.dictionaries(
        st.sampled_from(sorted({key for config in CONFIGS.values() for key in config})),
        values,
        max_size=4,
    ),
)
def test_a_config_with_anything_in_it_is_read_or_refused(
    name: str, change: dict[str, Any]
) -> None:
    try:
        shape = read_shape({**CONFIGS[name], **change})
    except ConfigError:
        return

    assert shape.parameters > 0


def test_a_whole_number_written_as_a_float_is_one() -> None:
    assert read_shape({**LLAMA, "hidden_size": 4096.0}) == read_shape(LLAMA)


def test_one_head_of_keys_may_be_said_in_a_config_of_its_own() -> None:
    mpt = CONFIGS["mosaicml/mpt-7b"]

    shape = read_shape({**mpt, "attn_config": {"attn_type": "multiquery_attention"}})

    assert kv_bytes_per_token(shape, uniform()) == 32 * 2 * 128 * 2


def test_granite_without_experts_has_its_dense_network() -> None:
    shape = read_shape({**GRANITE, "num_local_experts": 0})

    assert {g.feed_forward.experts for g in shape.groups if g.feed_forward} == {0}


def test_lfm2_convolves_where_it_does_not_attend() -> None:
    places = {**LFM2, "layer_types": None, "full_attn_idxs": [2, 5, 8]}

    kinds = {g.mixer.kind: g.count for g in read_shape(places).groups if g.mixer}

    assert kinds == {"full": 3, "ssm": 29}


def test_bamba_says_which_layers_attend() -> None:
    bamba = {**BUILT["bamba"]["config"], "attn_layer_indices": [9, 18, 27]}

    assert sum(g.count for g in read_shape(bamba).groups if g.mixer and g.mixer.kv_elements) == 3


def test_kimi_linears_nested_layers_are_laid_open() -> None:
    flat = dict(BUILT["kimi_linear"]["config"])
    nested = {k: v for k, v in flat.items() if k not in {"layer_types", "mlp_layer_types"}}
    whole = [i + 1 for i, word in enumerate(flat["layer_types"]) if word == "full_attention"]
    nested["linear_attn_config"] = {
        "full_attn_layers": whole,
        "head_dim": nested.pop("linear_head_dim"),
        "num_heads": nested.pop("linear_num_heads"),
        "short_conv_kernel_size": nested.pop("linear_conv_kernel_dim"),
    }
    nested["first_k_dense_replace"] = 1

    assert read_shape(nested) == read_shape(flat)


def test_a_text_config_is_read_where_a_model_sees_pictures_too() -> None:
    assert read_shape(nested(1)) == read_shape(LLAMA)


def test_a_new_model_type_is_read_by_the_class_it_says_it_is() -> None:
    shape = read_shape({**LLAMA, "model_type": "newcomer", "architectures": ["LlamaForCausalLM"]})

    assert shape == read_shape(LLAMA)


def test_newer_words_for_layers_are_read_as_the_letters_they_replace() -> None:
    words = {"M": "mamba", "*": "full_attention", "-": "mlp"}
    newer = {k: v for k, v in NEMOTRON.items() if k != "hybrid_override_pattern"}
    newer["layers_block_type"] = [words[c] for c in NEMOTRON["hybrid_override_pattern"]]

    assert read_shape(newer) == read_shape(NEMOTRON)
