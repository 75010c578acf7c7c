"""Decoders of attention and feed-forward layers, dense or with experts, read from a config."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Literal

from boundby.core.cost.attention import Heads, Indexer, Latent, grouped, latent
from boundby.core.cost.families import Traits
from boundby.core.cost.feedforward import dense, experts
from boundby.core.cost.fields import MOST_LAYERS, ConfigError, Fields
from boundby.core.cost.recurrent import delta_by_channel, gated_delta
from boundby.core.cost.shape import FeedForward, LayerGroup, Mixer, ModelShape

Layer = tuple[Mixer | None, FeedForward | None, int]

Reach = Literal["full", "window", "chunk", "linear"]

_CHUNKED_EVERY = 4
"""Llama 4: each fourth layer sees everything (its `no_rope_layers` default)."""


def read_decoder(family: str, traits: Traits, fields: Fields) -> ModelShape:
    """Read one decoder's shape."""
    hidden = fields.count("hidden_size")
    layers = fields.count("num_hidden_layers", most=MOST_LAYERS)
    vocab = fields.count("vocab_size")
    norm = hidden * traits.norm_elements
    mixers = _mixers(traits, fields, hidden, layers)
    networks = _networks(traits, fields, hidden, layers)
    tied = fields.flag("tie_word_embeddings", default=traits.tied)
    return ModelShape(
        family=family,
        hidden_size=hidden,
        vocab_size=vocab,
        groups=group(
            (mixer, network, traits.norms * norm)
            for mixer, network in zip(mixers, networks, strict=True)
        ),
        embedding=hidden * vocab,
        tied=tied,
        vectors=norm + vocab * traits.head_bias,
        mtp_layers=(mtp := fields.optional("num_nextn_predict_layers", least=0) or 0),
        mtp_parameters=mtp * _mtp_parameters(hidden, mixers[-1], networks[-1], norm),
    )


def _mtp_parameters(hidden: int, mixer: Mixer, network: FeedForward, norm: int) -> int:
    """Elements of one draft layer: a layer like the last, and a matrix that joins two inputs."""
    layer = LayerGroup(count=1, mixer=mixer, feed_forward=network, vectors=4 * norm)
    return layer.parameters + 2 * hidden * hidden


def group(layers: Iterable[Layer]) -> tuple[LayerGroup, ...]:
    """Gather layers that are alike, in the order in which they first appear."""
    return tuple(
        LayerGroup(count=count, mixer=mixer, feed_forward=network, vectors=vectors)
        for (mixer, network, vectors), count in Counter(layers).items()
    )


def head_width(fields: Fields, hidden: int, queries: int, default: int | None = None) -> int:
    """Return the width of one head: its field, the family's own, or a share of the hidden size."""
    width = fields.optional("head_dim", "attention_head_dim") or default
    if width is not None:
        return width
    if hidden % queries:
        raise ConfigError(
            field="head_dim", why=f"is missing, and {hidden} does not divide by {queries}"
        )
    return hidden // queries


def _heads(traits: Traits, fields: Fields, hidden: int) -> Heads:
    queries = fields.count("num_attention_heads")
    kv = fields.count("num_key_value_heads", default=queries)
    if queries % kv:
        raise ConfigError(
            field="num_key_value_heads", why=f"{queries} heads do not share {kv} evenly"
        )
    norm = traits.qk_norm
    if norm == "field":
        norm = "head" if fields.flag("use_qk_norm") else "none"
    bias = fields.raw("attention_bias")
    biased = traits.qkv_bias if bias is None else fields.flag("attention_bias")
    return Heads(
        hidden=hidden,
        queries=queries,
        kv=kv,
        width=head_width(fields, hidden, queries, traits.head_width),
        output_gate=fields.flag("attn_output_gate", default=traits.output_gate),
        qkv_bias=biased or fields.flag("qkv_bias"),
        output_bias=traits.output_bias and biased,
        qk_norm=norm,
        sinks=traits.sinks,
    )


def _latent(fields: Fields, hidden: int) -> Mixer:
    sizes = Latent(
        hidden=hidden,
        heads=fields.count("num_attention_heads"),
        query_rank=fields.optional("q_lora_rank"),
        kv_rank=fields.count("kv_lora_rank"),
        nope=fields.count("qk_nope_head_dim"),
        rope=fields.count("qk_rope_head_dim"),
        value=fields.count("v_head_dim"),
    )
    fields.optional("num_key_value_heads", "head_dim", "qk_head_dim")
    for unused in ("num_key_value_heads", "head_dim", "qk_head_dim"):
        fields.raw(unused)
    top = fields.optional("index_topk")
    if top is None:
        return latent(sizes)
    indexer = Indexer(
        heads=fields.count("index_n_heads"), width=fields.count("index_head_dim"), top=top
    )
    return latent(sizes, indexer)


def _linear(fields: Fields, hidden: int) -> Mixer:
    heads = fields.optional("linear_num_heads")
    if heads is not None:
        return delta_by_channel(
            hidden=hidden,
            heads=heads,
            width=fields.count("linear_head_dim"),
            kernel=fields.count("linear_conv_kernel_dim", default=4),
        )
    return gated_delta(
        hidden=hidden,
        key_heads=fields.count("linear_num_key_heads"),
        value_heads=fields.count("linear_num_value_heads"),
        key=fields.count("linear_key_head_dim"),
        value=fields.count("linear_value_head_dim"),
        kernel=fields.count("linear_conv_kernel_dim", default=4),
    )


def _mixers(traits: Traits, fields: Fields, hidden: int, layers: int) -> list[Mixer]:
    heads = None if "kv_lora_rank" in fields else _heads(traits, fields, hidden)
    whole = grouped(heads) if heads else _latent(fields, hidden)
    window = fields.optional("sliding_window", least=0)
    chunk = fields.optional("attention_chunk_size")
    made: dict[Reach, Mixer] = {"full": whole}

    def mixer(reach: Reach) -> Mixer:
        if reach not in made:
            if reach == "linear":
                made[reach] = _linear(fields, hidden)
            elif reach == "window" and window and heads:
                made[reach] = grouped(heads, kind="window", reach=window)
            elif reach == "chunk" and chunk and heads:
                made[reach] = grouped(heads, kind="chunk", reach=chunk)
            else:
                made[reach] = whole
        return made[reach]

    return [mixer(reach) for reach in _reaches(traits, fields, layers)]


_LAYER_TYPES: dict[str, Reach] = {
    "full_attention": "full",
    "attention": "full",
    "indexed_attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "chunk",
    "linear_attention": "linear",
}


def _reaches(traits: Traits, fields: Fields, layers: int) -> list[Reach]:
    """Return how far each layer sees."""
    every = fields.optional("full_attention_interval", most=MOST_LAYERS)
    windowed = _windowed(traits, fields)
    types = fields.per_layer("layer_types", layers)
    if types is not None:
        switched = fields.raw("use_sliding_window") is not False
        return [_typed(word, switched=switched) for word in types]
    if every:
        return ["linear" if (i + 1) % every else "full" for i in range(layers)]
    short: Reach = "chunk" if traits.window == "chunk" else "window"
    return [short if windowed(i) else "full" for i in range(layers)]


def _typed(word: Any, *, switched: bool) -> Reach:
    if not isinstance(word, str) or word not in _LAYER_TYPES:
        raise ConfigError(field="layer_types", why=f"{word!r:.40} is no kind of layer we know")
    reach = _LAYER_TYPES[word]
    return "full" if reach == "window" and not switched else reach


def _windowed(traits: Traits, fields: Fields) -> Callable[[int], bool]:
    """Return whether layer `i` sees a window or chunk only, where no list says."""
    pattern = fields.optional("sliding_window_pattern", most=MOST_LAYERS) or traits.pattern
    first = fields.optional("max_window_layers", least=0) or 0
    asked = fields.raw("use_sliding_window")
    rules: dict[str, Callable[[int], bool]] = {
        "all": lambda _: asked is not False,
        "switch": lambda i: asked is True and i >= first,
        "even": lambda i: i % 2 == 0,
        "pattern": lambda i: (i + 1) % pattern != 0,
        "chunk": lambda i: (i + 1) % _CHUNKED_EVERY != 0,
    }
    return rules.get(traits.window, lambda _: False)


def _networks(traits: Traits, fields: Fields, hidden: int, layers: int) -> list[FeedForward]:
    count = fields.optional(
        "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", least=0
    )
    bias = fields.flag("mlp_bias", default=traits.mlp_bias)
    if not count:
        inner = fields.count("intermediate_size")
        plain = dense(hidden=hidden, inner=inner, gated=traits.gated, bias=bias)
        return [plain] * layers
    routed = _experts(traits, fields, hidden, count, bias=bias)
    places = expert_layers(fields, layers)
    if all(places):
        fields.raw("intermediate_size")
        return [routed] * layers
    inner = fields.count("intermediate_size_mlp", "intermediate_size")
    plain = dense(hidden=hidden, inner=inner, gated=traits.gated, bias=bias)
    return [routed if place else plain for place in places]


def _experts(
    traits: Traits, fields: Fields, hidden: int, count: int, *, bias: bool
) -> FeedForward:
    active = fields.count(
        "num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "moe_k"
    )
    if active > count:
        raise ConfigError(
            field="num_experts_per_tok", why=f"{active} of {count} experts cannot be taken"
        )
    inner = fields.count("moe_intermediate_size", "intermediate_size")
    copies = fields.optional(
        "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", least=0
    )
    width = fields.optional(
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        least=0,
    )
    shared = width if width is not None else inner
    shared *= copies if copies is not None else int(width is not None or traits.shared_expert)
    return experts(
        hidden=hidden,
        count=count,
        active=active,
        inner=inner,
        shared_inner=shared,
        shared_gate=traits.shared_gate and shared > 0,
        gated=traits.gated,
        bias=bias,
        router_vectors=count * traits.router_bias,
        latent=fields.optional("moe_latent_size"),
    )


def expert_layers(fields: Fields, layers: int) -> list[bool]:
    """Whether each layer's feed-forward is made of experts."""
    first = fields.optional("first_k_dense_replace", "moe_layer_start_index", least=0) or 0
    last = fields.optional("moe_layer_end_index", least=-1)
    last = layers - 1 if last in {None, -1} else last
    every = fields.optional(
        "moe_layer_freq",
        "decoder_sparse_step",
        "interleave_moe_layer_step",
        "moe_layer_interval",
        least=0,
    )
    offset = fields.optional("expert_layer_offset", least=0)
    period = fields.optional("expert_layer_period")
    plain = fields.indices("mlp_only_layers", layers)
    types = fields.per_layer("mlp_layer_types", layers)
    if types is not None:
        if not set(map(str, types)) <= {"dense", "sparse"}:
            raise ConfigError(field="mlp_layer_types", why="may hold dense and sparse only")
        return [word == "sparse" for word in types]
    if period is not None:
        return [i % period == (offset or 0) for i in range(layers)]
    step = every or 1
    counted_from_one = "moe_layer_freq" not in fields
    return [
        first <= i <= (last or 0) and i not in plain and (i + counted_from_one) % step == 0
        for i in range(layers)
    ]
