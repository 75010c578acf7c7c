"""LoRA: two narrow matrices beside each adapted one, per adapter in the batch."""

from dataclasses import dataclass

from boundby.core.cost.shape import ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Adapters of one rank on attention and dense matrices; experts are rarely adapted."""

    rank: int
    in_batch: int
    """Different adapters that a step's sequences use."""
    bytes_per_element: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCost:
    """What adapters add to a step of the whole model; divide by `tensor` for a GPU."""

    flops: float
    bytes: float
    kernels: int
    """Shrink and expand for each mixer and feed-forward, as the engine launches them."""


def adapter_elements(shape: ModelShape, rank: int) -> int:
    """Elements of one adapter: `rank` times the sum of both edges of every adapted matrix."""
    edges = sum(
        group.count
        * (
            (group.mixer.edges if group.mixer else 0)
            + (group.feed_forward.edges if group.feed_forward else 0)
        )
        for group in shape.groups
    )
    return rank * edges


def adapter_cost(shape: ModelShape, adapters: Adapters, tokens: float) -> AdapterCost:
    """Return what a step over `tokens`, all of adapted sequences, does on top."""
    elements = adapter_elements(shape, adapters.rank)
    blocks = sum(group.count * group.blocks for group in shape.groups)
    return AdapterCost(
        flops=2.0 * elements * tokens,
        bytes=elements * adapters.bytes_per_element * min(adapters.in_batch, tokens),
        kernels=2 * blocks,
    )
