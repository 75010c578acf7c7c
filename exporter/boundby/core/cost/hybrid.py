"""Hybrids of state spaces and attention: Jamba and Nemotron-H, read from a config."""

from boundby.core.cost.attention import Heads, grouped
from boundby.core.cost.decoder import Layer, expert_layers, group, head_width
from boundby.core.cost.feedforward import dense, experts
from boundby.core.cost.fields import MOST_LAYERS, ConfigError, Fields
from boundby.core.cost.recurrent import mamba, mamba2
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


def read_nemotron_h(fields: Fields) -> ModelShape:
    """Read Nemotron-H's shape: one letter a layer (M Mamba-2, * attention, - dense, E experts)."""
    hidden = fields.count("hidden_size")
    layers = fields.count("num_hidden_layers", most=MOST_LAYERS)
    vocab = fields.count("vocab_size")
    pattern = fields.word("hybrid_override_pattern")
    if pattern is None:
        raise ConfigError(
            field="hybrid_override_pattern", why="is missing; it says what each layer is"
        )
    if len(pattern) != layers:
        raise ConfigError(
            field="hybrid_override_pattern", why=f"has {len(pattern)} letters for {layers}"
        )
    parts: dict[str, tuple[Mixer | None, FeedForward | None]] = {}
    for letter in set(pattern):
        match letter:
            case "M":
                parts[letter] = (_mamba2(fields, hidden), None)
            case "*":
                parts[letter] = (grouped(_heads(fields, hidden)), None)
            case "-":
                inner = fields.count("intermediate_size")
                parts[letter] = (None, dense(hidden=hidden, inner=inner, gated=False))
            case "E":
                parts[letter] = (None, _nemotron_experts(fields, hidden))
            case _:
                raise ConfigError(
                    field="hybrid_override_pattern", why=f"{letter!r} is no layer we know"
                )
    fields.raw("intermediate_size")
    return ModelShape(
        family="nemotron_h",
        hidden_size=hidden,
        vocab_size=vocab,
        groups=group((*parts[letter], hidden) for letter in pattern),
        embedding=hidden * vocab,
        tied=fields.flag("tie_word_embeddings"),
        vectors=hidden,
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
