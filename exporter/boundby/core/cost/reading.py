"""A Hugging Face config mapping, read as a model's shape.

`read_shape` never guesses: a family nobody listed is read as a plain decoder only while every
field that could change a size is one we know; the first that is not is named in the error.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from boundby.core.cost import classic, hybrid
from boundby.core.cost.decoder import read_decoder
from boundby.core.cost.families import ALIASES, FAMILIES, Traits
from boundby.core.cost.fields import ConfigError, Fields
from boundby.core.cost.shape import ModelShape

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where multimodal configs keep the language model's fields."""

_DEEPEST = 4
"""Nesting of one text config in another that any real file has."""

_READERS: Mapping[str, Callable[[Fields], ModelShape]] = {
    "jamba": hybrid.read_jamba,
    "nemotron_h": hybrid.read_nemotron_h,
    "falcon": classic.read_falcon,
    "mpt": classic.read_mpt,
    "gpt2": classic.read_gpt2,
    "gpt_bigcode": classic.read_gpt2,
    "gpt_neox": classic.read_gpt_neox,
    "opt": classic.read_opt,
}
"""Families with field names or layers of their own."""

_SIZE_LIKE = re.compile(
    r"(hidden|intermediate|embed\w*|proj|latent|expert\w*|moe\w*|mlp|ffn|attn|attention|mamba|ssm"
    r"|linear|conv|state|head|q|k|v|kv|qk|o|lora|index|per_layer|altup|laurel|vision|block)"
    r"\w*_?(size|dim|dims|rank|heads|layers|num|width|ratio|experts|kernel|expand|inner|repeat)s?$"
    r"|^(num|n)_\w*(heads|layers|experts|blocks|groups|kv)\w*$"
)
"""What the name of a field that changes sizes looks like."""

_HARMLESS = frozenset({
    "attention_head_size", "block_size", "chunk_size", "embd_pdrop", "hidden_act",
    "max_position_embeddings", "n_ctx", "n_group", "n_groups", "num_labels", "num_beams",
    "num_beam_groups", "num_return_sequences", "norm_topk_prob", "topk_group", "moe_router_topk",
    "num_logits_to_keep", "mamba_chunk_size", "max_window_layers", "moe_layers", "head_dim",
    "moe_router_topk_scaling_factor", "first_k_dense_replace", "num_experts_per_tok",
    "num_nextn_predict_layers", "ep_size", "num_mtp_modules", "mtp_num_hidden_layers",
    "partial_rotary_factor", "rope_dim", "rotary_dim", "no_rope_layer_interval",
    "residual_in_fp32", "use_mamba_kernels", "mamba_ssm_dtype", "no_rope_layers",
    "attention_dropout", "hidden_dropout", "hidden_dropout_prob", "moe_dropout",
    "num_ln_in_parallel_attn", "query_pre_attn_scalar", "num_kv_shared_layers_unused",
    "n_positions", "word_embed_proj_dim", "qk_head_dim", "num_experts_per_token",
})  # fmt: skip
"""Fields whose names look like sizes but that change none we count."""


def language(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the language model's fields, with what only the outer config says kept beneath."""
    for _ in range(_DEEPEST):
        inner = next((config[n] for n in _NESTED if isinstance(config.get(n), Mapping)), None)
        if inner is None:
            return config
        kept = (
            "tie_word_embeddings", "quantization_config", "model_type", "vocab_size",
            "torch_dtype", "dtype",
        )  # fmt: skip
        outer = {name: config[name] for name in kept if config.get(name) is not None}
        config = {**outer, **inner}
    raise ConfigError(field="text_config", why=f"is nested more than {_DEEPEST} deep")


def read_shape(config: Mapping[str, Any]) -> ModelShape:
    """Read a config.json's sizes; `ConfigError` names the field that prevents it."""
    if not isinstance(config, Mapping):
        raise ConfigError(field="config.json", why="must hold an object")
    fields = Fields(language(config))
    word = fields.word("model_type")
    if word is None:
        raise ConfigError(
            field="model_type", why="is missing; it says which family the fields belong to"
        )
    family = ALIASES.get(word, word)
    reader = _READERS.get(family)
    traits = FAMILIES.get(family)
    shape = reader(fields) if reader else read_decoder(family, traits or Traits(), fields)
    _question(fields, family, known=reader is not None or traits is not None)
    return shape


def _question(fields: Fields, family: str, *, known: bool) -> None:
    """Refuse a field that looks like a size, holds one, and was not read."""
    for name in fields.names():
        if name in fields.read or name in _HARMLESS or not _SIZE_LIKE.search(name):
            continue
        value = fields.raw(name)
        sized = isinstance(value, (int, float)) and not isinstance(value, bool) and value
        if sized or (isinstance(value, (list, tuple)) and value and not known):
            raise ConfigError(
                field=name, why=f"may change sizes, and family {family!r:.40} does not use it"
            )
