"""Prefills in the same steps hold up other users' decoding.

A long prompt's chunk shares its step with every decoding sequence: their next token waits for it.
ITL spreads out with the prompt tokens; the median stays good and the tail does not.
"""

from boundby.core.limit import Case, Limit, Panel


def decode(decode_lost_to_prefill_ratio: float) -> float:
    """Share of decode time that plain steps would not have taken."""
    return decode_lost_to_prefill_ratio


LIMIT = Limit(
    name="prefill_interference",
    title="prefills in the same steps",
    group="none",
    page=__doc__,
    decode=decode,
    evidence=("decode_lost_to_prefill_ratio", "prefill_step_tokens", "decode_step_seconds"),
    remedies=(
        "Lower --max-num-batched-tokens: smaller chunks hold a step up for less long.",
        "Prefill on workers of their own (disaggregation).",
        "Cache prefixes: fewer tokens to compute.",
    ),
    wont_help=("A larger token budget: longer chunks, longer stalls.", "More KV cache."),
    cases=(
        Case(
            "steps twice as long for prompts half of the time are read as they are",
            {"decode_lost_to_prefill_ratio": 0.4},
            score=0.4,
            scope="decode",
        ),
        Case(
            "no prompts, no loss", {"decode_lost_to_prefill_ratio": 0.0}, score=0.0, scope="decode"
        ),
    ),
    panel=Panel(shows=("decode_lost_to_prefill_ratio",)),
)
