"""Older decoders with field names of their own: Falcon, MPT, GPT-2, GPT-NeoX, OPT."""

from dataclasses import dataclass

from boundby.core.cost.attention import Heads, grouped
from boundby.core.cost.decoder import group
from boundby.core.cost.feedforward import dense
from boundby.core.cost.fields import MOST_LAYERS, ConfigError, Fields
from boundby.core.cost.shape import ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plain:
    """A stack of like layers with an ungated network."""

    family: str
    hidden: int
    layers: int
    heads: int
    kv: int
    inner: int
    vocab: int
    tied: bool
    bias: bool
    norms: int
    norm_elements: int = 2
    positions: int = 0


def _shape(plain: _Plain) -> ModelShape:
    if plain.hidden % plain.heads:
        raise ConfigError(
            field="hidden_size", why=f"{plain.hidden} does not divide by {plain.heads} heads"
        )
    heads = Heads(
        hidden=plain.hidden,
        queries=plain.heads,
        kv=plain.kv,
        width=plain.hidden // plain.heads,
        qkv_bias=plain.bias,
        output_bias=plain.bias,
    )
    network = dense(hidden=plain.hidden, inner=plain.inner, gated=False, bias=plain.bias)
    norm = plain.hidden * plain.norm_elements
    return ModelShape(
        family=plain.family,
        hidden_size=plain.hidden,
        vocab_size=plain.vocab,
        groups=group([(grouped(heads), network, plain.norms * norm)] * plain.layers),
        embedding=plain.hidden * (plain.vocab + plain.positions),
        tied=plain.tied,
        vectors=norm,
    )


def read_falcon(fields: Fields) -> ModelShape:
    """Read Falcon's shape: one KV head in the first kind, `num_kv_heads` in the second."""
    hidden = fields.count("hidden_size")
    heads = fields.count("num_attention_heads", "n_head")
    grouped_kv = fields.flag("new_decoder_architecture")
    shared = fields.flag("multi_query", default=True)
    kv = fields.count("num_kv_heads", "n_head_kv", default=heads) if grouped_kv else heads
    if shared and not grouped_kv:
        kv = 1
    parallel = fields.flag("parallel_attn", default=True)
    for unused in ("num_kv_heads", "n_head_kv"):
        fields.raw(unused)
    return _shape(
        _Plain(
            family="falcon",
            hidden=hidden,
            layers=fields.count("num_hidden_layers", "n_layer", most=MOST_LAYERS),
            heads=heads,
            kv=kv,
            inner=fields.count("ffn_hidden_size", default=4 * hidden),
            vocab=fields.count("vocab_size"),
            tied=fields.flag("tie_word_embeddings", default=True),
            bias=fields.flag("bias"),
            norms=2 if grouped_kv or not parallel else 1,
        )
    )


def read_mpt(fields: Fields) -> ModelShape:
    """Read MPT's shape."""
    hidden = fields.count("d_model")
    heads = fields.count("n_heads")
    kv = heads
    extra = fields.raw("attn_config")
    if isinstance(extra, dict):
        inner_fields = Fields(extra)
        if inner_fields.word("attn_type") == "multiquery_attention":
            kv = 1
        kv = inner_fields.count("kv_n_heads", default=kv)
    bias = not fields.flag("no_bias", default=True)
    return _shape(
        _Plain(
            family="mpt",
            hidden=hidden,
            layers=fields.count("n_layers", most=MOST_LAYERS),
            heads=heads,
            kv=kv,
            inner=fields.count("expansion_ratio", default=4) * hidden,
            vocab=fields.count("vocab_size"),
            tied=fields.flag("tie_word_embeddings", default=True),
            bias=bias,
            norms=2,
            norm_elements=2 if bias else 1,
        )
    )


def read_gpt2(fields: Fields) -> ModelShape:
    """Read GPT-2's shape."""
    hidden = fields.count("n_embd", "hidden_size")
    heads = fields.count("n_head", "num_attention_heads")
    fields.raw("num_key_value_heads")
    return _shape(
        _Plain(
            family="gpt2",
            hidden=hidden,
            layers=fields.count("n_layer", "num_hidden_layers", most=MOST_LAYERS),
            heads=heads,
            kv=1 if fields.flag("multi_query") else heads,
            inner=fields.count("n_inner", default=4 * hidden),
            vocab=fields.count("vocab_size"),
            tied=fields.flag("tie_word_embeddings", default=True),
            bias=True,
            norms=2,
            positions=fields.count("n_positions", "max_position_embeddings"),
        )
    )


def read_gpt_neox(fields: Fields) -> ModelShape:
    """Read GPT-NeoX's shape (Pythia)."""
    heads = fields.count("num_attention_heads")
    return _shape(
        _Plain(
            family="gpt_neox",
            hidden=fields.count("hidden_size"),
            layers=fields.count("num_hidden_layers", most=MOST_LAYERS),
            heads=heads,
            kv=heads,
            inner=fields.count("intermediate_size"),
            vocab=fields.count("vocab_size"),
            tied=fields.flag("tie_word_embeddings"),
            bias=fields.flag("attention_bias", default=True),
            norms=2,
        )
    )


def read_opt(fields: Fields) -> ModelShape:
    """Read OPT's shape; its positions start at 2. The 350M one projects its embedding: refused."""
    hidden = fields.count("hidden_size")
    if fields.count("word_embed_proj_dim", default=hidden) != hidden:
        raise ConfigError(
            field="word_embed_proj_dim", why=f"differs from hidden_size {hidden}: not known"
        )
    heads = fields.count("num_attention_heads")
    return _shape(
        _Plain(
            family="opt",
            hidden=hidden,
            layers=fields.count("num_hidden_layers", most=MOST_LAYERS),
            heads=heads,
            kv=heads,
            inner=fields.count("ffn_dim"),
            vocab=fields.count("vocab_size"),
            tied=fields.flag("tie_word_embeddings", default=True),
            bias=True,
            norms=2,
            positions=fields.count("max_position_embeddings") + 2,
        )
    )
