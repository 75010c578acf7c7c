"""How many tokens a KV pool holds, from what an engine says of itself, and how far to trust it.

Figures that look alike are not: a worker logs its own GPU's room while the engine takes the
smallest; one block is never used; a hybrid model's "cache size" in tokens counts layers that
keep only a window or a state, so bytes over tokens is no bytes per token.
"""

from dataclasses import dataclass

from boundby.core.cost.shape import ModelShape

RESERVED_BLOCKS = 1
"""vLLM keeps one block empty, to point at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Tokens that fit, and what to say beside the number."""

    tokens: float
    exact: bool
    why: str


def pool_tokens(
    shape: ModelShape | None,
    *,
    capacity_tokens: float | None = None,
    blocks: float | None = None,
    block_tokens: float | None = None,
) -> Pool | None:
    """Take the engine's own count of tokens, else its blocks; None where it gives neither."""
    if capacity_tokens is not None and capacity_tokens > 0:
        tokens, why = capacity_tokens, "the engine's own count of tokens"
    elif blocks and block_tokens and blocks > RESERVED_BLOCKS:
        tokens = (blocks - RESERVED_BLOCKS) * block_tokens
        why = f"{blocks:.0f} blocks of {block_tokens:.0f} tokens, less the one kept empty"
    else:
        return None
    if shape is not None and is_hybrid(shape):
        why += "; layers with a window or a state keep less, so longer contexts fit than it says"
        return Pool(tokens=tokens, exact=False, why=why)
    return Pool(tokens=tokens, exact=True, why=why)


def is_hybrid(shape: ModelShape) -> bool:
    """Whether layers differ in what they keep of a token."""
    kept = {(g.mixer.kv_elements > 0, g.mixer.reach) for g in shape.groups if g.mixer}
    return len(kept) > 1
