"""Serving at a steady concurrency: what a decoding sequence waits for between its tokens."""

from dataclasses import dataclass, replace

from boundby.core.cost.coefficients import Coefficients
from boundby.core.cost.duration import Rates, StepTime, step_time
from boundby.core.cost.step import StepBatch, step_cost

ROUNDS = 8
"""Halvings of the distance to the sequences that run: within 1 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A steady load: sequences in flight, and their mean prompt and output lengths."""

    concurrency: float
    prompt_tokens: float
    output_tokens: float

    @property
    def prefills_per_step(self) -> float:
        """Prompts of other sequences that come in while one token is decoded."""
        return max(0.0, self.concurrency - 1.0) / self.output_tokens

    @property
    def decode(self) -> StepBatch:
        """A step in which every sequence decodes, half way through its output."""
        context = self.prompt_tokens + self.output_tokens / 2
        return StepBatch(
            decode_sequences=self.concurrency,
            decode_context_tokens=self.concurrency * context,
        )

    @property
    def mixed(self) -> StepBatch:
        """The same step with one whole prompt in it."""
        decode = self.decode
        return StepBatch(
            decode_sequences=decode.decode_sequences,
            decode_context_tokens=decode.decode_context_tokens,
            prefill_tokens=self.prompt_tokens,
        )


def tpot(c: Coefficients, r: Rates, load: Load) -> StepTime:
    """Return the mean time per output token by part: a step, and its share of others' prefills.

    Prefills ride in decode steps (chunked or whole), so each costs what it adds to one. Nothing
    queues: with more sequences than fit, give the number that runs.
    """
    decode = step_time(step_cost(c, load.decode), r)
    mixed = step_time(step_cost(c, load.mixed), r)
    share = load.prefills_per_step
    return StepTime(
        compute_seconds=decode.compute_seconds
        + share * (mixed.compute_seconds - decode.compute_seconds),
        memory_seconds=decode.memory_seconds
        + share * (mixed.memory_seconds - decode.memory_seconds),
        interconnect_seconds=decode.interconnect_seconds
        + share * (mixed.interconnect_seconds - decode.interconnect_seconds),
        kernel_latency_seconds=decode.kernel_latency_seconds,
    )


def running(c: Coefficients, r: Rates, load: Load, ttft_seconds: float) -> Load:
    """Return the load with the sequences that decode at once, by Little's law.

    Of the time a request is in flight it decodes all but its time to first token.
    """
    seconds = tpot(c, r, load).seconds
    decoding = load
    for _ in range(ROUNDS):
        spent = load.output_tokens * seconds
        share = spent / (spent + ttft_seconds)
        decoding = replace(load, concurrency=max(1.0, load.concurrency * share))
        seconds = (seconds + tpot(c, r, decoding).seconds) / 2
    return decoding
