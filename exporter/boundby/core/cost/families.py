"""The families of models: what their configs leave unsaid. Data; a new family is a new row.

Most decoders differ in a few traits only. What a config field says always wins over a trait.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is true of a family unless its config says otherwise."""

    tied: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: Literal["none", "head", "full", "field"] = "none"
    """`field`: per head where `use_qk_norm` is true."""
    norms: int = 2
    norm_elements: int = 1
    """2 where a norm has a bias too."""
    gated: bool = True
    head_width: int | None = None
    """Width of a head where the config does not say; None: a share of the hidden size."""
    head_bias: bool = False
    """A bias for each word of the vocabulary."""
    output_gate: bool = False
    sinks: bool = False
    window: Literal["none", "all", "switch", "even", "pattern", "types", "chunk"] = "none"
    """`switch`: only if `use_sliding_window`; `even`: every second layer; `pattern`: all but one
    in `sliding_window_pattern`; `chunk`: all but every fourth layer see their chunk only."""
    pattern: int = 6
    router_bias: bool = False
    """A correction for each expert beside the router's matrix."""
    shared_gate: bool = False
    shared_expert: bool = False
    """One shared expert as wide as a routed one, without a field that says so."""


FAMILIES: dict[str, Traits] = {
    "llama": Traits(),
    "mistral": Traits(window="all"),
    "ministral": Traits(window="types"),
    "mixtral": Traits(window="all"),
    "qwen2": Traits(qkv_bias=True, window="switch"),
    "qwen2_moe": Traits(qkv_bias=True, window="switch", shared_gate=True),
    "qwen3": Traits(qk_norm="head", window="switch", head_width=128),
    "qwen3_moe": Traits(qk_norm="head", window="switch"),
    "qwen3_next": Traits(qk_norm="head", output_gate=True, shared_gate=True),
    "qwen3_5_text": Traits(qk_norm="head", output_gate=True),
    "qwen3_5_moe_text": Traits(qk_norm="head", output_gate=True, shared_gate=True),
    "gemma": Traits(tied=True, head_width=256),
    "gemma2": Traits(tied=True, norms=4, window="even", head_width=256),
    "gemma3_text": Traits(
        tied=True, norms=4, qk_norm="head", window="pattern", head_width=256
    ),
    "vaultgemma": Traits(tied=True, window="types", head_width=256),
    "phi": Traits(
        qkv_bias=True, output_bias=True, mlp_bias=True, norms=1, norm_elements=2, gated=False,
        head_bias=True,
    ),
    "phi3": Traits(window="all"),
    "deepseek_v2": Traits(),
    "deepseek_v3": Traits(router_bias=True),
    "deepseek_v32": Traits(router_bias=True),
    "kimi_k2": Traits(router_bias=True),
    "glm_moe_dsa": Traits(router_bias=True),
    "glm4_moe_lite": Traits(router_bias=True),
    "gpt_oss": Traits(output_bias=True, qkv_bias=True, mlp_bias=True, sinks=True, window="types"),
    "glm4": Traits(norms=4, qkv_bias=True),
    "glm4_moe": Traits(qk_norm="field", router_bias=True),
    "minimax_m2": Traits(qk_norm="full", router_bias=True),
    "olmo2": Traits(qk_norm="full"),
    "olmo3": Traits(qk_norm="full", window="types"),
    "olmoe": Traits(qk_norm="full"),
    "cohere": Traits(tied=True, norms=1),
    "cohere2": Traits(tied=True, norms=1, window="pattern", pattern=4),
    "granite": Traits(),
    "internlm2": Traits(),
    "starcoder2": Traits(
        tied=True, qkv_bias=True, output_bias=True, mlp_bias=True, norm_elements=2, gated=False,
        window="all",
    ),
    "stablelm": Traits(norm_elements=2),
    "llama4_text": Traits(window="chunk", shared_expert=True),
    "nemotron": Traits(gated=False, norm_elements=2),
    "apertus": Traits(gated=False, qk_norm="head"),
    "arcee": Traits(gated=False),
    "cwm": Traits(window="types"),
    "dots1": Traits(qk_norm="head", router_bias=True, window="types"),
    "ernie4_5": Traits(tied=True),
    "ernie4_5_moe": Traits(tied=True, router_bias=True),
    "kimi_linear": Traits(router_bias=True),
    "mistral4": Traits(),
    "exaone4": Traits(qk_norm="head", window="types"),
    "flex_olmo": Traits(qk_norm="full"),
    "granitemoe": Traits(),
    "helium": Traits(),
    "hunyuan_v1_dense": Traits(qk_norm="head"),
    "hunyuan_v1_moe": Traits(qk_norm="head"),
    "ministral3": Traits(window="types"),
    "olmo": Traits(norms=0, norm_elements=0),
    "phimoe": Traits(norm_elements=2, head_bias=True, window="all"),
    "seed_oss": Traits(qkv_bias=True),
    "smollm3": Traits(tied=True),
    "solar_open": Traits(),
}  # fmt: skip
"""Decoders of attention and feed-forward layers, by `model_type`."""

ALIASES = {
    "deepseek_r1": "deepseek_v3",
    "deepseek": "deepseek_v2",
    "gemma3": "gemma3_text",
    "llama4": "llama4_text",
    "kimi_k25": "kimi_k2",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen2_5_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_vl": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
    "mistral3": "mistral",
    "aquila": "llama",
    "yi": "llama",
    "RefinedWeb": "falcon",
    "RefinedWebModel": "falcon",
    "minimax_m2_5": "minimax_m2",
}
"""Other names that the same sizes go by."""
