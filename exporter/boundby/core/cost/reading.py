"""A Hugging Face config mapping, read as a model's shape.

`read_shape` never guesses: a family nobody listed is refused by its name, and so is a field that
looks as if it changed a size and that the family does not use.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from boundby.core.cost import classic, hybrid
from boundby.core.cost.decoder import read_decoder
from boundby.core.cost.families import ALIASES, FAMILIES
from boundby.core.cost.fields import MOST_LAYERS, ConfigError, Fields
from boundby.core.cost.shape import ModelShape

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where multimodal configs keep the language model's fields."""

_DEEPEST = 4
"""Nesting of one text config in another that any real file has."""

_READERS: Mapping[str, Callable[[Fields], ModelShape]] = {
    "jamba": hybrid.read_jamba,
    "nemotron_h": hybrid.read_nemotron_h,
    "bamba": hybrid.read_bamba,
    "granitemoehybrid": hybrid.read_bamba,
    "lfm2": hybrid.read_lfm2,
    "falcon": classic.read_falcon,
    "mpt": classic.read_mpt,
    "gpt2": classic.read_gpt2,
    "gpt_bigcode": classic.read_gpt2,
    "gpt_neox": classic.read_gpt_neox,
    "opt": classic.read_opt,
}
"""Families with field names or layers of their own."""

_SIZE_LIKE = re.compile(
    r"(^|_)(hidden|intermediate|embed\w*|proj\w*|latent|experts?|moe|mlp|ffn|attn|attention|mamba"
    r"|ssm|linear|conv|state|heads?|kv|lora|index|altup|laurel|block|global|per_layer|[qkvo](?=_))"
    r"(_\w+)?_(size|dim|rank|heads|layers|num|width|ratio|experts|kernel|expand|inner|repeat)s?$"
    r"|^(num|n)_\w*(heads|layers|experts|blocks|groups|kv)\w*$"
)
"""What the name of a field that changes sizes looks like."""

_HARMLESS = frozenset({
    "attention_head_size", "block_size", "head_dim", "mamba_chunk_size", "moe_layers",
    "mtp_num_hidden_layers", "n_groups", "num_beam_groups", "num_experts_per_tok",
    "num_experts_per_token", "num_nextn_predict_layers", "qk_head_dim",
    "use_mamba_kernels", "word_embed_proj_dim",
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
    fields = Fields(_unpacked(language(config)))
    family = _family(fields)
    reader = _READERS.get(family)
    shape = reader(fields) if reader else read_decoder(family, FAMILIES[family], fields)
    _question(fields, family)
    return shape


def _unpacked(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the config with Kimi Linear's nested description of its layers laid open."""
    nested = config.get("linear_attn_config")
    if not isinstance(nested, Mapping):
        return config
    fields = Fields(config)
    layers = fields.count("num_hidden_layers", most=MOST_LAYERS)
    whole = nested.get("full_attn_layers")
    if not isinstance(whole, (list, tuple)) or len(whole) > layers:
        raise ConfigError(field="full_attn_layers", why="must be a list of layer numbers")
    return {
        **config,
        "layer_types": [
            "full_attention" if i + 1 in whole else "linear_attention" for i in range(layers)
        ],
        "linear_num_heads": nested.get("num_heads"),
        "linear_head_dim": nested.get("head_dim"),
        "linear_conv_kernel_dim": nested.get("short_conv_kernel_size"),
    }


def _family(fields: Fields) -> str:
    """Return the family by `model_type`, else by the class that `architectures` names."""
    word = fields.word("model_type")
    if word is not None and (family := _known(word)):
        return family
    classes = fields.raw("architectures")
    for name in classes if isinstance(classes, (list, tuple)) else ():
        if isinstance(name, str) and (family := _BY_CLASS.get(_CLASS_END.sub("", name).lower())):
            return family
    why = (
        "is missing; it says which family the fields belong to"
        if word is None
        else f"{word!r:.40} is a family we do not know; its sizes would be a guess"
    )
    raise ConfigError(field="model_type", why=why)


def _known(word: str) -> str | None:
    family = ALIASES.get(word, word)
    return family if family in FAMILIES or family in _READERS else None


_CLASS_END = re.compile(r"(ForCausalLM|ForConditionalGeneration|LMHeadModel)$")

_BY_CLASS = {name.removesuffix("_text").replace("_", ""): name for name in (*FAMILIES, *_READERS)}
"""Families by the name of their class, as `architectures` holds it (less its ending)."""


def _question(fields: Fields, family: str) -> None:
    """Refuse a field that looks like a size, holds one, and was not read."""
    for name in fields.names():
        if name in fields.read or name in _HARMLESS or not _SIZE_LIKE.search(name):
            continue
        value = fields.raw(name)
        sized = isinstance(value, (int, float)) and not isinstance(value, bool) and value
        if sized:
            raise ConfigError(
                field=name, why=f"may change sizes, and family {family!r:.40} does not use it"
            )
