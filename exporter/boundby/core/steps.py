"""Which steps an engine ran in a span, told from what its page shows.

A step is one forward pass. Engines export no step log, so the mix is inferred: how many steps only
decoded, how many carried prompt tokens and how many. Three ways, best first: the histogram of
tokens a step (vLLM), the rate of tokens and requests with the typical gap between tokens.

vLLM's histogram observes a step only when it put something out, and counts a whole prompt in the
step that finished it: chunks before the last are invisible or look like steps that only decoded.
The mix puts them back.
"""

import math
from dataclasses import dataclass, replace

from boundby.core.parts import Histogram

PARTS = 3
"""Pieces into which a bucket of the step histogram is cut, on a logarithmic scale."""

ONE_PROMPT = (0.6, 1.4)
"""Steps with prompt tokens per request within which each such step is taken to hold one prompt."""

SPREAD = 0.5
"""Standard deviation of the logarithm of prompt lengths where no histogram of them is served."""

QUANTILES = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95)
WEIGHTS = (0.1, 0.1, 0.2, 0.2, 0.2, 0.1, 0.1)
"""Where a distribution of prompt lengths is sampled, and the weight of each sample."""

NORMAL_DEVIATES = (-1.645, -1.036, -0.524, 0.0, 0.524, 1.036, 1.645)
"""The standard normal distribution at QUANTILES."""


@dataclass(frozen=True, slots=True)
class StepClass:
    """`count` alike steps: sequences that decoded in each, prompt tokens computed in each."""

    count: float
    decode_sequences: float
    prefill_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the engine did in a span, as totals over it.

    `decode_tokens` leaves each request's first token out; it came from a prefill.
    `context_tokens` is the mean number of tokens in the KV cache of a running sequence.
    """

    running: float
    running_high: float
    decode_tokens: float
    first_tokens: float
    prefill_tokens: float
    context_tokens: float
    token_budget: float
    step_tokens: Histogram | None = None
    prompt_tokens: Histogram | None = None
    itl_mean_seconds: float | None = None
    tokens_per_sequence_step: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMix:
    """The classes, and where they came from: "histogram" or "rates"."""

    classes: tuple[StepClass, ...]
    source: str

    @property
    def steps(self) -> float:
        """How many steps in all."""
        return math.fsum(kind.count for kind in self.classes)

    @property
    def prefill_tokens(self) -> float:
        """Prompt tokens computed in all."""
        return math.fsum(kind.count * kind.prefill_tokens for kind in self.classes)

    def scaled(self, factor: float) -> "StepMix":
        """The same steps with `factor` times the prompt tokens in each."""
        return replace(
            self,
            classes=tuple(
                replace(kind, prefill_tokens=kind.prefill_tokens * factor) for kind in self.classes
            ),
        )


def mix(load: Load) -> StepMix | None:
    """Infer the steps of a span, or None when nothing was computed in it."""
    if load.decode_tokens <= 0 and load.prefill_tokens <= 0:
        return None
    histogram = load.step_tokens
    if histogram is not None and histogram.count >= 1:
        classes = _from_histogram(load, histogram)
        source = "histogram"
    else:
        classes = _from_rates(load)
        source = "rates"
    classes = _chunked(classes, load)
    classes = _decoding(classes, load)
    return StepMix(classes=tuple(kind for kind in classes if kind.count > 0), source=source)


def _prompts(load: Load, mean: float) -> list[tuple[float, float]]:
    """Prompt lengths with their weights, scaled to `mean`."""
    histogram = load.prompt_tokens
    if histogram is not None and histogram.count >= 5:  # noqa: PLR2004  fewer say nothing of shape
        lengths = [_quantile(histogram, share) for share in QUANTILES]
    else:
        lengths = [math.exp(SPREAD * deviate) for deviate in NORMAL_DEVIATES]
    average = math.fsum(w * x for w, x in zip(WEIGHTS, lengths, strict=True))
    return [(w, mean * x / average) for w, x in zip(WEIGHTS, lengths, strict=True)]


def _quantile(histogram: Histogram, share: float) -> float:
    """The value below which `share` of the observations lie, log-interpolated in its bucket."""
    want = share * histogram.count
    low, before = 0.0, 0.0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=True):
        if count >= want and count > before:
            if not math.isfinite(bound):
                return max(low, 1.0) * 1.5
            floor = max(low, bound / 4, 1e-9)
            part = (want - before) / (count - before)
            return floor * math.exp(part * math.log(bound / floor))
        low, before = bound, count
    return max(low, 1.0)


def _from_histogram(load: Load, histogram: Histogram) -> list[StepClass]:
    running = max(load.running, 1e-9)
    only_decode = min(
        (b for b in histogram.bounds if b >= min(running * 1.02, max(load.running_high, 1.0))),
        default=math.inf,
    )
    buckets: list[tuple[float, float, float]] = []
    low, before, plain = 0.0, 0.0, 0.0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=True):
        here = count - before
        if bound <= only_decode:
            plain += here
        else:
            buckets.append(
                (max(low, running + 1), bound if math.isfinite(bound) else low * 2, here)
            )
        low, before = bound, count
    found = [
        StepClass(count, running, tokens)
        for index in range(len(buckets))
        for count, tokens in _cut(buckets, index, running)
    ]
    with_prompt = math.fsum(kind.count for kind in found)
    if load.prefill_tokens <= 0:
        return [StepClass(plain + with_prompt, running, 0.0)]
    if with_prompt <= 0:
        # Prompts too short to leave the bucket of plain decoding: at most one a step.
        with_prompt = min(plain, max(load.first_tokens, 1.0))
        plain -= with_prompt
    mean = load.prefill_tokens / with_prompt
    alone = with_prompt / load.first_tokens if load.first_tokens else 0.0
    if ONE_PROMPT[0] <= alone <= ONE_PROMPT[1] or not found:
        found = [
            StepClass(with_prompt * weight, running, tokens)
            for weight, tokens in _prompts(load, mean)
        ]
    else:
        total = math.fsum(kind.count * kind.prefill_tokens for kind in found)
        scale = load.prefill_tokens / total
        found = [replace(kind, prefill_tokens=kind.prefill_tokens * scale) for kind in found]
    return [StepClass(plain, running, 0.0), *found]


def _cut(
    buckets: list[tuple[float, float, float]], index: int, running: float
) -> list[tuple[float, float]]:
    """Cut one bucket into pieces, each weighted by where its neighbours lean."""
    low, high, count = buckets[index]
    if count <= 0 or high <= low:
        return []

    def density(at: int) -> float:
        if not 0 <= at < len(buckets):
            return 0.0
        left, right, here = buckets[at]
        return here / math.log(right / left) if right > left > 0 else 0.0

    own = density(index)
    begin = (density(index - 1) + own) / 2 if index else own
    finish = (density(index + 1) + own) / 2
    weights = [begin + (finish - begin) * (part + 0.5) / PARTS for part in range(PARTS)]
    total = math.fsum(weights)
    width = math.log(high / low)
    return [
        (
            count * weight / total,
            max(1.0, low * math.exp(width * (part + 0.5) / PARTS) - running),
        )
        for part, weight in enumerate(weights)
    ]


def _from_rates(load: Load) -> list[StepClass]:
    """Steps from tokens alone: each running sequence gains one token a step."""
    running = max(load.running, 1e-9)
    gain = running * max(load.tokens_per_sequence_step, 1e-9)
    room = max(64.0, load.token_budget - running)
    steps = max(load.decode_tokens / gain, load.prefill_tokens / room)
    if load.prefill_tokens <= 0:
        return [StepClass(steps, running, 0.0)]
    requests = max(load.first_tokens, load.prefill_tokens / room, 1e-9)
    with_prompt = requests
    if steps > 0:
        # Requests that arrive by chance share steps; a step holds at least one of them.
        with_prompt = min(requests, steps * -math.expm1(-requests / steps))
    with_prompt = max(with_prompt, load.prefill_tokens / room)
    return [
        StepClass(max(0.0, steps - with_prompt), running, 0.0),
        *(
            StepClass(with_prompt * weight, running, tokens)
            for weight, tokens in _prompts(load, load.prefill_tokens / with_prompt)
        ),
    ]


def _chunked(classes: list[StepClass], load: Load) -> list[StepClass]:
    """Split what exceeds the token budget into the chunks it must have been."""
    room = max(64.0, load.token_budget - load.running)
    plain = math.fsum(kind.count for kind in classes if kind.prefill_tokens <= 0)
    running = max(load.running, 1e-9)
    out: list[StepClass] = []
    for kind in classes:
        if kind.prefill_tokens <= 0:
            continue
        chunks = math.ceil(kind.prefill_tokens / room - 1e-9)
        if chunks <= 1:
            out.append(kind)
            continue
        hidden = kind.count * (chunks - 1)
        seen = min(hidden, plain) if load.decode_tokens > 0 else 0.0
        plain -= seen
        out.append(StepClass(kind.count + hidden, running, kind.prefill_tokens / chunks))
    return [StepClass(plain, running, 0.0), *out]


def _decoding(classes: list[StepClass], load: Load) -> list[StepClass]:
    """Give each step the sequences that decoded in it; `running` counts those in prefill too."""
    steps = math.fsum(kind.count for kind in classes)
    if steps <= 0:
        return classes
    gain = max(load.tokens_per_sequence_step, 1e-9)
    share = min(1.0, load.decode_tokens / gain / (steps * max(load.running, 1e-9)))
    return [replace(kind, decode_sequences=kind.decode_sequences * share) for kind in classes]
