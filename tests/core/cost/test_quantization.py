"""How checkpoints say that they are quantised, and what that makes a byte of."""

import json
from pathlib import Path
from typing import Any

import pytest

from boundby.core.cost import ConfigError, read_formats, read_shape
from boundby.core.cost.shape import Part

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
LLAMA: dict[str, Any] = {**CONFIGS["meta-llama/Llama-3.1-8B"], "torch_dtype": "bfloat16"}
MIXTURE: dict[str, Any] = CONFIGS["Qwen/Qwen3-30B-A3B"]
SPARSE: dict[str, Any] = CONFIGS["zai-org/GLM-5"]


def compressed(
    weights: dict[str, Any], activations: dict[str, Any] | None, ignore: list[str]
) -> dict[str, Any]:
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": weights,
                "input_activations": activations,
            }
        },
        "ignore": ignore,
    }


CHECKPOINTS: list[tuple[str, dict[str, Any], Part, float, str]] = [
    ("fp8 by tensor", {"quant_method": "fp8"}, "dense", 1.0, "fp8"),
    (
        "fp8 by block",
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        "dense",
        1 + 4 / 16384,
        "fp8",
    ),
    (
        "GPTQ, symmetric",
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True},
        "dense",
        0.5 + 2 / 128,
        "bf16",
    ),
    (
        "GPTQ of 8 bits by channel",
        {"quant_method": "gptq", "bits": 8, "group_size": -1},
        "dense",
        1.0,
        "bf16",
    ),
    (
        "AWQ with zero points",
        {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
        "dense",
        0.5 + 2.5 / 128,
        "bf16",
    ),
    (
        "compressed-tensors, w8a8 integers",
        compressed({"num_bits": 8, "type": "int"}, {"num_bits": 8, "type": "int"}, ["lm_head"]),
        "dense",
        1.0,
        "int8",
    ),
    (
        "compressed-tensors, fp8 both",
        compressed(
            {"num_bits": 8, "type": "float"}, {"num_bits": 8, "type": "float"}, ["lm_head"]
        ),
        "attention",
        1.0,
        "fp8",
    ),
    (
        "compressed-tensors, w4a16",
        compressed({"num_bits": 4, "type": "int", "group_size": 128, "symmetric": True}, None, []),
        "dense",
        0.5 + 2 / 128,
        "bf16",
    ),
    (
        "compressed-tensors, nvfp4 both",
        compressed(
            {"num_bits": 4, "type": "float", "group_size": 16},
            {"num_bits": 4, "type": "float"},
            ["lm_head"],
        ),
        "dense",
        0.5625,
        "fp4",
    ),
    (
        "compressed-tensors, mxfp4 weights only",
        compressed({"num_bits": 4, "type": "float", "group_size": 32}, None, []),
        "dense",
        0.53125,
        "bf16",
    ),
    ("ModelOpt fp8", {"quant_method": "modelopt", "quant_algo": "FP8"}, "dense", 1.0, "fp8"),
    (
        "ModelOpt nvfp4, as its own file nests it",
        {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4", "group_size": 16}},
        "dense",
        0.5625,
        "fp4",
    ),
    (
        "ModelOpt w4a8",
        {"quant_algo": "W4A8_AWQ", "group_size": 128},
        "dense",
        0.5 + 2.5 / 128,
        "fp8",
    ),
    (
        "bitsandbytes nf4",
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        "dense",
        0.5625,
        "bf16",
    ),
    (
        "bitsandbytes 8 bits",
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        "dense",
        1.0,
        "bf16",
    ),
    (
        "Quark fp8",
        {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}},
        "dense",
        1.0,
        "fp8",
    ),
]


@pytest.mark.parametrize(
    ("quantised", "part", "size", "arithmetic"),
    [checkpoint[1:] for checkpoint in CHECKPOINTS],
    ids=[checkpoint[0] for checkpoint in CHECKPOINTS],
)
def test_a_checkpoints_scheme_is_read(
    quantised: dict[str, Any], part: Part, size: float, arithmetic: str
) -> None:
    config = {**LLAMA, "quantization_config": quantised}

    scheme = read_formats(config, read_shape(config)).parts[part]

    assert scheme.bytes_per_element == pytest.approx(size)
    assert scheme.arithmetic == arithmetic


FP8 = {"quant_method": "fp8"}
IGNORED: list[tuple[str, str, Any, dict[Part, float]]] = [
    ("the head is left alone without a word", "ignore", [], {"head": 2.0, "dense": 1.0}),
    (
        "a part by a glob",
        "modules_to_not_convert",
        ["model.layers.*.self_attn"],
        {"attention": 2.0, "experts": 1.0},
    ),
    ("a part by a glob with an end", "ignore", ["*self_attn*"], {"attention": 2.0}),
    ("a part by its word", "ignored_layers", ["self_attn"], {"attention": 2.0, "experts": 1.0}),
    ("a word is a whole word", "ignore", ["gate"], {"experts": 1.0}),
    (
        "a part by an expression",
        "ignore",
        ["re:.*self_attn.*", "re:.*mlp[.]gate$"],
        {"attention": 2.0, "experts": 1.0},
    ),
    (
        "half of the layers by name",
        "exclude_modules",
        [f"model.layers.{i}.self_attn" for i in range(24)],
        {"attention": 1.5, "experts": 1.0},
    ),
]


@pytest.mark.parametrize(
    ("field", "patterns", "sizes"), [i[1:] for i in IGNORED], ids=[i[0] for i in IGNORED]
)
def test_an_ignore_list_leaves_parts_alone(
    field: str, patterns: list[str], sizes: dict[Part, float]
) -> None:
    config = {**MIXTURE, "quantization_config": {**FP8, field: patterns}}

    parts = read_formats(config, read_shape(config)).parts

    assert {part: parts[part].bytes_per_element for part in sizes} == pytest.approx(sizes)


def test_latent_projections_are_known_by_their_own_names() -> None:
    config = dict(CONFIGS["deepseek-ai/DeepSeek-V3"])
    names = ("q_b_proj", "kv_b_proj", "o_proj")
    ignored = [f"model.layers.{i}.self_attn.{name}" for i in range(61) for name in names]
    config["quantization_config"] = {**FP8, "modules_to_not_convert": ignored}

    parts = read_formats(config, read_shape(config)).parts

    assert parts["attention"].bytes_per_element == 2.0


def test_gpt_oss_quantises_its_experts_only() -> None:
    config = CONFIGS["openai/gpt-oss-120b"]

    parts = read_formats(config, read_shape(config)).parts

    assert parts["experts"].bytes_per_element == 0.53125
    assert parts["attention"].bytes_per_element == 2.0


@pytest.mark.parametrize(
    ("name", "word", "size"),
    [("torch_dtype", "float32", 4.0), ("dtype", "torch.float16", 2.0), ("dtype", "int3", 2.0)],
)
def test_weights_have_the_dtype_that_the_config_names(name: str, word: str, size: float) -> None:
    config = {**CONFIGS["meta-llama/Llama-3.1-8B"], name: word}

    assert read_formats(config, read_shape(config)).parts["dense"].bytes_per_element == size


CACHES: list[tuple[str, dict[str, Any], str | None, float]] = [
    ("16 bits unless said", LLAMA, None, 2.0),
    ("a word of settings", LLAMA, "fp8_e4m3", 1.0),
    ("auto is no word", LLAMA, "auto", 2.0),
    (
        "the checkpoint's own scheme",
        {
            **LLAMA,
            "quantization_config": {
                **FP8,
                "kv_cache_scheme": {"num_bits": 8, "type": "float"},
            },
        },
        "auto",
        1.0,
    ),
    (
        "ModelOpt's word",
        {**LLAMA, "quantization_config": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}},
        None,
        1.0,
    ),
    ("a sparse latent cache has its own layout in fp8", SPARSE, "fp8", 656 / 576),
]


@pytest.mark.parametrize(
    ("config", "word", "size"), [c[1:] for c in CACHES], ids=[c[0] for c in CACHES]
)
def test_a_cached_elements_bytes(config: dict[str, Any], word: str | None, size: float) -> None:
    formats = read_formats(config, read_shape(config), kv=word)

    assert formats.kv_bytes_per_element == pytest.approx(size)


def test_settings_that_repeat_the_checkpoint_keep_its_details() -> None:
    config = CONFIGS["openai/gpt-oss-120b"]

    formats = read_formats(config, read_shape(config), weights="mxfp4")

    assert formats.parts["attention"].bytes_per_element == 2.0


def test_settings_that_differ_win() -> None:
    config = CONFIGS["openai/gpt-oss-120b"]

    formats = read_formats(config, read_shape(config), weights="fp8")

    assert formats.parts["experts"].bytes_per_element == 1.0


def test_the_dtype_an_engine_computes_in_does_not_undo_quantisation() -> None:
    config = CONFIGS["openai/gpt-oss-120b"]

    formats = read_formats(config, read_shape(config), weights="bfloat16")

    assert formats.parts["experts"].bytes_per_element == 0.53125


BAD: list[tuple[str, Any]] = [
    ("quantization_config", "fp8"),
    ("quantization_config.quant_method", {"quant_method": "mystery"}),
    ("quantization_config.quant_method", {}),
    ("quant_method", {"quant_method": 8}),
    ("weight_block_size", {"quant_method": "fp8", "weight_block_size": [0, 128]}),
    ("weight_block_size", {"quant_method": "fp8", "weight_block_size": "128"}),
    ("bits", {"quant_method": "gptq", "bits": 64}),
    ("bits", {"quant_method": "gptq", "bits": "4"}),
    ("quantization_config.config_groups", {"quant_method": "compressed-tensors"}),
    (
        "quantization_config.config_groups",
        {"quant_method": "compressed-tensors", "config_groups": {"g": [1]}},
    ),
    ("quant_algo", {"quant_method": "modelopt", "quant_algo": "FP3"}),
    ("ignore", {**FP8, "ignore": "lm_head"}),
    ("ignore", {**FP8, "ignore": [1, 2]}),
    ("ignore", {**FP8, "ignore": ["re:(a+)+$"]}),
    ("ignore", {**FP8, "ignore": ["re:("]}),
    ("ignore", {**FP8, "ignore": ["x" * 1000]}),
    ("global_quant_config.weight.dtype", {"quant_method": "quark"}),
]


@pytest.mark.parametrize(
    ("field", "quantised"), BAD, ids=[f"{field} {n}" for n, (field, _) in enumerate(BAD)]
)
def test_a_bad_description_is_refused_by_the_name_of_its_field(field: str, quantised: Any) -> None:
    config = {**LLAMA, "quantization_config": quantised}

    with pytest.raises(ConfigError) as refused:
        read_formats(config, read_shape(config))

    assert refused.value.field == field


@pytest.mark.parametrize("word", ["fp7", "bfloat32", "x" * 500])
def test_an_unknown_word_of_settings_is_refused(word: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_formats(LLAMA, read_shape(LLAMA), weights=word)

    assert refused.value.field == "weights_dtype"
