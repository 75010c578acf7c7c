"""Mixers with a state of fixed size in place of a cache: linear attention and state spaces.

Sources: Yang 2024 (gated delta rule), Gu & Dao 2023 (Mamba), Dao & Gu 2024 (Mamba-2). The state
is held in 32 bits and is read and written for each sequence and step; 6 FLOPs an element.
"""

from boundby.core.cost.shape import Mixer

_STATE_FLOPS = 6
"""Decay, outer product and read-out: a multiply-add each, per state element and token."""

_KERNELS = 14
"""Norm, projections, convolution, gates, the state's own few, norm, projection out."""

_CONVOLUTION_KERNELS = 6
"""Norm, projection in, gates (2), convolution, projection out."""


def gated_delta(
    *, hidden: int, key_heads: int, value_heads: int, key: int, value: int, kernel: int
) -> Mixer:
    """One layer of gated delta attention (Qwen3-Next)."""
    keys, values = key_heads * key, value_heads * value
    state = value_heads * key * value
    channels = 2 * keys + values
    return Mixer(
        kind="linear",
        matrices=hidden * (2 * keys + 2 * values + 2 * value_heads) + values * hidden,
        vectors=channels * kernel + 2 * value_heads + value,
        state_elements=state,
        convolution_elements=channels * kernel,
        state_flops=_STATE_FLOPS * state,
        activations=2 * hidden + 2 * channels + 2 * values,
        kernels=_KERNELS,
    )


def delta_by_channel(*, hidden: int, heads: int, width: int, kernel: int) -> Mixer:
    """One layer of delta attention whose gates differ by channel (Kimi Linear)."""
    inner = heads * width
    state = heads * width * width
    gates = 2 * (hidden * width + width * inner)
    return Mixer(
        kind="linear",
        matrices=hidden * 3 * inner + gates + hidden * heads + inner * hidden,
        vectors=3 * inner * kernel + inner + heads + width,
        state_elements=state,
        convolution_elements=3 * inner * kernel,
        state_flops=_STATE_FLOPS * state,
        activations=2 * hidden + 8 * inner,
        kernels=_KERNELS,
    )


def short_convolution(*, hidden: int, kernel: int, bias: bool) -> Mixer:
    """One layer of gated short convolution (LFM2): its state is the last few tokens."""
    return Mixer(
        kind="ssm",
        matrices=hidden * 3 * hidden + hidden * hidden,
        vectors=hidden * kernel + 5 * hidden * bias,
        convolution_elements=hidden * kernel,
        activations=6 * hidden,
        kernels=_CONVOLUTION_KERNELS,
    )


def mamba(*, hidden: int, inner: int, state: int, rank: int, kernel: int, norms: bool) -> Mixer:
    """One layer of the first Mamba; `norms` are those Jamba adds inside."""
    size = inner * state
    return Mixer(
        kind="ssm",
        matrices=hidden * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner * hidden,
        vectors=inner * (kernel + 1) + inner + size + inner + (rank + 2 * state) * norms,
        state_elements=size,
        convolution_elements=inner * kernel,
        state_flops=_STATE_FLOPS * size,
        activations=2 * hidden + 6 * inner,
        kernels=_KERNELS,
    )


def mamba2(*, hidden: int, heads: int, width: int, state: int, groups: int, kernel: int) -> Mixer:
    """One layer of Mamba-2 (Nemotron-H)."""
    inner = heads * width
    channels = inner + 2 * groups * state
    size = inner * state
    return Mixer(
        kind="ssm",
        matrices=hidden * (inner + channels + heads) + inner * hidden,
        vectors=channels * (kernel + 1) + 3 * heads + inner,
        state_elements=size,
        convolution_elements=channels * kernel,
        state_flops=_STATE_FLOPS * size,
        activations=2 * hidden + 2 * channels + 2 * inner,
        kernels=_KERNELS,
    )
