"""A model as sizes: layers of a mixer and a feed-forward, and what each holds and does.

Everything is per layer and for the whole model (no parallelism), in elements and FLOPs; bytes
come with the formats, shares of a GPU with the parallelism. A multiply-add is 2 FLOPs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

MixerKind = Literal["full", "window", "chunk", "latent", "sparse", "linear", "ssm"]

Part = Literal["attention", "recurrent", "dense", "experts", "shared", "router", "head"]
"""The groups of matrices that a quantised model treats apart."""

PARTS: tuple[Part, ...] = (
    "attention", "recurrent", "dense", "experts", "shared", "router", "head",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """What lets tokens see each other in one layer.

    `matrices` are multiplied with every token; `vectors` (norms, biases, convolutions) only count
    as parameters. KV is divided over at most `kv_heads` GPUs; with 0 each GPU holds all of it.
    A pair is one query token with one token it attends to, of which there are at most `reach`.
    """

    kind: MixerKind
    matrices: int
    vectors: int = 0
    kv_elements: int = 0
    kv_heads: int = 0
    index_elements: int = 0
    decode_pair_flops: int = 0
    prefill_pair_flops: int = 0
    index_pair_flops: int = 0
    expand_flops: int = 0
    """FLOPs to bring one already cached token back to full keys and values in a prefill."""
    reach: int | None = None
    state_elements: int = 0
    convolution_elements: int = 0
    state_flops: int = 0
    activations: int = 0
    """Elements that one token's matrix products read and write."""
    edges: int = 0
    """Rows and columns of its matrices, summed: what an adapter of rank 1 would hold."""
    kernels: int = 6
    """Kernels that a serving engine launches for it, as a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """What follows the mixer: a dense network, or experts of which each token takes some."""

    dense: int = 0
    shared: int = 0
    router: int = 0
    experts: int = 0
    active: int = 0
    expert: int = 0
    """Matrix elements of one expert."""
    expert_vectors: int = 0
    """Its biases."""
    vectors: int = 0
    activations: int = 0
    edges: int = 0
    kernels: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Layers that are alike. `vectors` are the norms between the parts."""

    count: int
    mixer: Mixer | None
    feed_forward: FeedForward | None
    vectors: int

    @property
    def parameters(self) -> int:
        """Elements of one layer."""
        mixer, ff = self.mixer, self.feed_forward
        total = self.vectors + (mixer.matrices + mixer.vectors if mixer else 0)
        if ff:
            total += ff.dense + ff.shared + ff.router + ff.vectors
            total += ff.experts * (ff.expert + ff.expert_vectors)
        return total

    @property
    def active_parameters(self) -> int:
        """Elements of one layer that one token meets."""
        ff = self.feed_forward
        idle = (ff.experts - ff.active) * (ff.expert + ff.expert_vectors) if ff else 0
        return self.parameters - idle

    @property
    def blocks(self) -> int:
        """Mixers and feed-forwards in one layer: each ends in an all-reduce under TP."""
        return (self.mixer is not None) + (self.feed_forward is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """One model. `embedding` counts input tables; `head` is the output matrix, tied or not."""

    family: str
    hidden_size: int
    vocab_size: int
    groups: tuple[LayerGroup, ...]
    embedding: int
    tied: bool
    vectors: int = 0
    mtp_parameters: int = 0
    """Elements of the draft layers for multi-token prediction; not in `parameters`."""
    mtp_layers: int = 0

    @property
    def layers(self) -> int:
        """Layers in all."""
        return sum(group.count for group in self.groups)

    @property
    def head(self) -> int:
        """Elements of the matrix that gives logits."""
        return self.hidden_size * self.vocab_size

    @property
    def parameters(self) -> int:
        """Every element that is stored once."""
        layers = sum(group.count * group.parameters for group in self.groups)
        return layers + self.vectors + self.embedding + (0 if self.tied else self.head)

    @property
    def active_parameters(self) -> int:
        """Elements that one token meets, the input embedding included."""
        idle = sum(g.count * (g.parameters - g.active_parameters) for g in self.groups)
        return self.parameters - idle

    def matrices(self) -> Mapping[Part, int]:
        """Matrix elements of the whole model by part."""
        total: dict[Part, int] = dict.fromkeys(PARTS, 0)
        for group in self.groups:
            if mixer := group.mixer:
                part: Part = "recurrent" if mixer.kind in {"linear", "ssm"} else "attention"
                total[part] += group.count * mixer.matrices
            if ff := group.feed_forward:
                total["dense"] += group.count * ff.dense
                total["shared"] += group.count * ff.shared
                total["router"] += group.count * ff.router
                total["experts"] += group.count * ff.experts * ff.expert
        total["head"] = self.head
        return total
