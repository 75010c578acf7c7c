"""Attention over cached keys and values: grouped heads, and the latent kind.

Sources: Vaswani 2017 (multi-head), Shazeer 2019 (multi-query), Ainslie 2023 (grouped),
DeepSeek-V2 2024 (latent, absorbed in decode), DeepSeek-V3.2 2025 (sparse indexer).
"""

from dataclasses import dataclass
from typing import Literal

from boundby.core.cost.shape import Mixer, MixerKind

GROUPED_KERNELS = 6
"""Norm, projection in, rotation, cache write, attention, projection out."""

LATENT_KERNELS = 14
"""The same with two-step projections, their norms, and the absorbed products."""

INDEXER_KERNELS = 6
"""Two projections, norm, rotation, scores, choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Plain attention heads, shared keys and values allowed."""

    hidden: int
    queries: int
    kv: int
    width: int
    output_gate: bool = False
    """A second query-sized projection that gates the output (Qwen3-Next and later)."""
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"
    sinks: bool = False
    """One learnt sink logit a head (gpt-oss)."""


def grouped(heads: Heads, *, kind: MixerKind = "full", reach: int | None = None) -> Mixer:
    """One layer of multi-head, grouped or multi-query attention; `reach` bounds what it sees."""
    query = heads.queries * heads.width
    keyed = 2 * heads.kv * heads.width
    vectors = {"none": 0, "head": 2 * heads.width, "full": query + keyed // 2}[heads.qk_norm]
    vectors += (query + keyed) * heads.qkv_bias + heads.hidden * heads.output_bias
    vectors += heads.queries * heads.sinks
    return Mixer(
        kind=kind,
        matrices=heads.hidden * (query * (2 + heads.output_gate) + keyed),
        vectors=vectors,
        kv_elements=keyed,
        kv_heads=heads.kv,
        decode_pair_flops=4 * query,
        prefill_pair_flops=4 * query,
        reach=reach,
        activations=2 * heads.hidden + 2 * query + 2 * keyed,
        edges=4 * heads.hidden + 2 * query + keyed,
        kernels=GROUPED_KERNELS + (0 if heads.qk_norm == "none" else 2),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Latent attention: one compressed vector a token stands for all keys and values."""

    hidden: int
    heads: int
    query_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """A small attention that picks the `top` tokens the large one reads."""

    heads: int
    width: int
    top: int


def latent(sizes: Latent, indexer: Indexer | None = None) -> Mixer:
    """One layer of latent attention: absorbed while decoding, expanded while prefilling."""
    key = sizes.nope + sizes.rope
    rank = sizes.query_rank
    into_query = (
        sizes.hidden * rank + rank * sizes.heads * key
        if rank
        else sizes.hidden * sizes.heads * key
    )
    expand = sizes.kv_rank * sizes.heads * (sizes.nope + sizes.value)
    matrices = (
        into_query
        + sizes.hidden * (sizes.kv_rank + sizes.rope)
        + expand
        + sizes.heads * sizes.value * sizes.hidden
    )
    vectors = sizes.kv_rank + (rank or 0)
    if indexer:
        matrices += (rank or sizes.hidden) * indexer.heads * indexer.width
        matrices += sizes.hidden * (indexer.width + indexer.heads)
        vectors += 2 * indexer.width
    return Mixer(
        kind="sparse" if indexer else "latent",
        matrices=matrices,
        vectors=vectors,
        kv_elements=sizes.kv_rank + sizes.rope,
        index_elements=indexer.width if indexer else 0,
        decode_pair_flops=2 * sizes.heads * (2 * sizes.kv_rank + sizes.rope),
        prefill_pair_flops=2 * sizes.heads * (key + sizes.value),
        index_pair_flops=2 * indexer.heads * indexer.width if indexer else 0,
        expand_flops=2 * expand,
        reach=indexer.top if indexer else None,
        activations=2 * sizes.hidden
        + 2 * (rank or 0)
        + 2 * (sizes.kv_rank + sizes.rope)
        + 2 * sizes.heads * (key + sizes.value),
        edges=2 * sizes.hidden
        + 2 * (rank or 0)
        + sizes.heads * (key + sizes.value)
        + sizes.kv_rank
        + sizes.rope,
        kernels=LATENT_KERNELS + (INDEXER_KERNELS if indexer else 0),
    )
