"""Feed-forward networks: dense, gated or not, and mixtures of experts.

Sources: Shazeer 2020 (gated), Fedus 2021 and Jiang 2024 (experts), DeepSeekMoE 2024 (shared).
"""

from boundby.core.cost.shape import FeedForward

DENSE_KERNELS = 4
"""Norm, matrix in, activation, matrix out."""

EXPERT_KERNELS = 9
"""Norm, router, choice, sorting (2), matrix in, activation, matrix out, sum."""

SHARED_KERNELS = 3
"""Matrix in, activation, matrix out of the shared expert."""


def dense(*, hidden: int, inner: int, gated: bool = True, bias: bool = False) -> FeedForward:
    """One dense network of `inner` width; a gated one has a third matrix."""
    ways = 2 if gated else 1
    return FeedForward(
        dense=hidden * inner * (ways + 1),
        vectors=(inner * ways + hidden) * bias,
        activations=2 * hidden + inner * 2 * ways,
        edges=(ways + 1) * (hidden + inner),
        kernels=DENSE_KERNELS,
    )


def experts(
    *,
    hidden: int,
    count: int,
    active: int,
    inner: int,
    shared_inner: int = 0,
    shared_gate: bool = False,
    gated: bool = True,
    bias: bool = False,
    router_vectors: int = 0,
    latent: int | None = None,
) -> FeedForward:
    """Build `count` experts of which a token takes `active`, and what every token passes.

    With `latent` the experts work in a narrower space, entered and left by two matrices.
    """
    ways = 2 if gated else 1
    width = latent or hidden
    return FeedForward(
        shared=hidden * shared_inner * (ways + 1) + (2 * hidden * latent if latent else 0),
        router=hidden * count + hidden * shared_gate,
        experts=count,
        active=active,
        expert=width * inner * (ways + 1),
        expert_vectors=(inner * ways + hidden) * bias,
        vectors=router_vectors + count * bias,
        activations=2 * hidden + active * (2 * width + inner * 2 * ways) + shared_inner * 2 * ways,
    )


def distinct(count: int, active: int, tokens: float) -> float:
    """Experts that at least one of `tokens` picks, on average, if all are as likely.

    Real routing is skewed, so this is a little high for few tokens.
    """
    if tokens <= 0 or count <= 0:
        return 0.0
    missed: float = (1.0 - active / count) ** tokens
    return count * (1.0 - missed)
