"""Hybrids of state spaces and attention: Jamba, Nemotron-H, Bamba, read from a config."""

from collections.abc import Callable
from dataclasses import replace

from boundby.core.cost.attention import Heads, grouped
from boundby.core.cost.decoder import Layer, expert_layers, group, head_width
from boundby.core.cost.feedforward import dense, experts
from boundby.core.cost.fields import MOST_LAYERS, ConfigError, Fields
from boundby.core.cost.recurrent import mamba, mamba2, short_convolution
from boundby.core.cost.shape import FeedForward, Mixer, ModelShape


def _heads(fields: Fields, hidden: int) -> Heads:
    queries = fields.count("num_attention_heads")
    return Heads(
        hidden=hidden,
        queries=queries,
        kv=fields.count("num_key_value_heads", default=queries),
        width=head_width(fields, hidden, queries),
        qkv_bias=fields.flag("attention_bias"),
        output_bias=fields.flag("attention_bias"),
    )


def read_jamba(fields: Fields) -> ModelShape:
    """Read Jamba's shape: Mamba but for one attention layer in a period; experts in some."""
    hidden = fields.count("hidden_size")
    layers = fields.count("num_hidden_layers", most=MOST_LAYERS)
    vocab = fields.count("vocab_size")
    attention = grouped(_heads(fields, hidden))
    state_space = mamba(
        hidden=hidden,
        inner=fields.count("mamba_expand", default=2) * hidden,
        state=fields.count("mamba_d_state", default=16),
        rank=fields.optional("mamba_dt_rank") or -(-hidden // 16),
        kernel=fields.count("mamba_d_conv", default=4),
        norms=True,
    )
    inner = fields.count("intermediate_size")
    routed = experts(
        hidden=hidden,
        count=fields.count("num_experts"),
        active=fields.count("num_experts_per_tok"),
        inner=inner,
    )
    plain = dense(hidden=hidden, inner=inner)
    period = fields.count("attn_layer_period")
    offset = fields.count("attn_layer_offset", least=0)
    made: list[Layer] = [
        (
            attention if i % period == offset else state_space,
            routed if place else plain,
            2 * hidden,
        )
        for i, place in enumerate(expert_layers(fields, layers))
    ]
    return ModelShape(
        family="jamba",
        hidden_size=hidden,
        vocab_size=vocab,
        groups=group(made),
        embedding=hidden * vocab,
        tied=fields.flag("tie_word_embeddings"),
        vectors=hidden,
    )


_LETTERS = {
    "mamba": "M", "linear_attention": "M", "attention": "*", "full_attention": "*",
    "mlp": "-", "moe": "E",
}  # fmt: skip
"""Nemotron-H's newer words for its layers, as the letters of its older pattern."""


def _pattern(fields: Fields) -> str:
    """Return what each layer is, one letter a layer."""
    words = fields.raw("layers_block_type")
    if words is None:
        pattern = fields.word("hybrid_override_pattern")
        if pattern is None:
            raise ConfigError(
                field="hybrid_override_pattern", why="is missing; it says what each layer is"
            )
        layers = fields.count("num_hidden_layers", default=len(pattern), most=MOST_LAYERS)
        if len(pattern) != layers:
            raise ConfigError(
                field="hybrid_override_pattern", why=f"has {len(pattern)} letters for {layers}"
            )
        return pattern
    if not isinstance(words, (list, tuple)) or not 0 < len(words) <= MOST_LAYERS:
        raise ConfigError(field="layers_block_type", why="must be a list of layers' kinds")
    if not all(isinstance(word, str) and word in _LETTERS for word in words):
        raise ConfigError(field="layers_block_type", why="holds a kind of layer we do not know")
    fields.raw("num_hidden_layers")
    return "".join(_LETTERS[word] for word in words)


def read_nemotron_h(fields: Fields) -> ModelShape:
    """Read Nemotron-H's shape: one letter a layer (M Mamba-2, * attention, - dense, E experts)."""
    hidden = fields.count("hidden_size")
    vocab = fields.count("vocab_size")
    pattern = _pattern(fields)
    makers: dict[str, Callable[[], tuple[Mixer | None, FeedForward | None]]] = {
        "M": lambda: (_mamba2(fields, hidden), None),
        "*": lambda: (grouped(_heads(fields, hidden)), None),
        "-": lambda: (None, _plain(fields, hidden)),
        "E": lambda: (None, _nemotron_experts(fields, hidden)),
    }
    parts: dict[str, tuple[Mixer | None, FeedForward | None]] = {}
    for letter in sorted(set(pattern)):
        if letter not in makers:
            raise ConfigError(
                field="hybrid_override_pattern", why=f"{letter!r} is no layer we know"
            )
        parts[letter] = makers[letter]()
    for unused in _NEMOTRON_FIELDS:
        fields.raw(unused)
    return ModelShape(
        family="nemotron_h",
        hidden_size=hidden,
        vocab_size=vocab,
        groups=group((*parts[letter], hidden) for letter in pattern),
        embedding=hidden * vocab,
        tied=fields.flag("tie_word_embeddings"),
        vectors=hidden,
    )


_NEMOTRON_FIELDS = (
    "intermediate_size", "moe_intermediate_size", "moe_shared_expert_intermediate_size",
    "moe_latent_size", "n_routed_experts", "n_shared_experts", "mamba_num_heads",
    "mamba_head_dim", "ssm_state_size", "conv_kernel", "expand", "num_attention_heads",
    "num_key_value_heads", "head_dim",
)  # fmt: skip
"""Fields that a config may hold for kinds of layers that its pattern does not use."""


def _plain(fields: Fields, hidden: int) -> FeedForward:
    return dense(hidden=hidden, inner=fields.count("intermediate_size"), gated=False)


def read_bamba(fields: Fields) -> ModelShape:
    """Read Bamba's and Granite 4's shapes: Mamba-2 or attention, then dense or experts."""
    hidden = fields.count("hidden_size")
    layers = fields.count("num_hidden_layers", most=MOST_LAYERS)
    vocab = fields.count("vocab_size")
    types = fields.per_layer("layer_types", layers)
    indices = fields.indices("attn_layer_indices", layers)
    if types is None:
        attends = [i in indices for i in range(layers)]
    else:
        known = {"attention": True, "full_attention": True}
        known |= {"mamba": False, "linear_attention": False}
        if not all(isinstance(word, str) and word in known for word in types):
            raise ConfigError(field="layer_types", why="holds a kind of layer we do not know")
        attends = [known[word] for word in types]
    state_space = mamba2(
        hidden=hidden,
        heads=fields.count("mamba_n_heads"),
        width=fields.count("mamba_d_head"),
        state=fields.count("mamba_d_state"),
        groups=fields.count("mamba_n_groups", default=1),
        kernel=fields.count("mamba_d_conv", default=4),
    )
    fields.raw("mamba_expand")
    attention = grouped(_heads(fields, hidden))
    network = _granite_network(fields, hidden)
    made: list[Layer] = [
        (attention if attend else state_space, network, 2 * hidden) for attend in attends
    ]
    return ModelShape(
        family="bamba",
        hidden_size=hidden,
        vocab_size=vocab,
        groups=group(made),
        embedding=hidden * vocab,
        tied=fields.flag("tie_word_embeddings"),
        vectors=hidden,
    )


def read_lfm2(fields: Fields) -> ModelShape:
    """Read LFM2's shape: short convolutions, and attention in some layers."""
    hidden = fields.count("hidden_size")
    layers = fields.count("num_hidden_layers", most=MOST_LAYERS)
    vocab = fields.count("vocab_size")
    attends = _lfm2_attends(fields, layers)
    inner = fields.count("intermediate_size", "block_ff_dim")
    multiple = fields.count("block_multiple_of", default=256)
    scaled = fields.raw("block_ffn_dim_multiplier")
    if scaled is not None and scaled != 1:
        raise ConfigError(field="block_ffn_dim_multiplier", why="is known at 1 only")
    if fields.flag("block_auto_adjust_ff_dim", default=True):
        inner = -(-(2 * inner // 3) // multiple) * multiple
    convolution = short_convolution(
        hidden=hidden,
        kernel=fields.count("conv_L_cache", default=3),
        bias=fields.flag("conv_bias"),
    )
    heads = replace(_heads(fields, hidden), qk_norm="head")
    network = dense(hidden=hidden, inner=inner)
    made: list[Layer] = [
        (grouped(heads) if attend else convolution, network, 2 * hidden) for attend in attends
    ]
    return ModelShape(
        family="lfm2",
        hidden_size=hidden,
        vocab_size=vocab,
        groups=group(made),
        embedding=hidden * vocab,
        tied=fields.flag(
            "tie_word_embeddings", default=fields.flag("tie_embedding", default=True)
        ),
        vectors=hidden,
    )


def _lfm2_attends(fields: Fields, layers: int) -> list[bool]:
    types = fields.per_layer("layer_types", layers)
    if types is None:
        places = fields.indices("full_attn_idxs", layers)
        return [not places or i in places for i in range(layers)]
    fields.raw("full_attn_idxs")
    if not all(isinstance(word, str) and word in {"conv", "full_attention"} for word in types):
        raise ConfigError(field="layer_types", why="holds a kind of layer we do not know")
    return [word == "full_attention" for word in types]


def _granite_network(fields: Fields, hidden: int) -> FeedForward:
    """Return experts beside a dense network, or the dense network alone."""
    count = fields.optional("num_local_experts", least=0)
    shared = fields.optional("shared_intermediate_size", least=0) or 0
    inner = fields.count("intermediate_size")
    if not count:
        return dense(hidden=hidden, inner=shared or inner)
    return experts(
        hidden=hidden,
        count=count,
        active=fields.count("num_experts_per_tok"),
        inner=inner,
        shared_inner=shared,
    )


def _mamba2(fields: Fields, hidden: int) -> Mixer:
    fields.raw("expand")
    return mamba2(
        hidden=hidden,
        heads=fields.count("mamba_num_heads"),
        width=fields.count("mamba_head_dim"),
        state=fields.count("ssm_state_size"),
        groups=fields.count("n_groups", "mamba_n_groups"),
        kernel=fields.count("conv_kernel", default=4),
    )


def _nemotron_experts(fields: Fields, hidden: int) -> FeedForward:
    count = fields.count("n_routed_experts")
    inner = fields.count("moe_intermediate_size")
    copies = fields.count("n_shared_experts", default=0, least=0)
    return experts(
        hidden=hidden,
        count=count,
        active=fields.count("num_experts_per_tok"),
        inner=inner,
        shared_inner=copies * fields.count("moe_shared_expert_intermediate_size", default=inner),
        gated=False,
        router_vectors=count,
        latent=fields.optional("moe_latent_size"),
    )
