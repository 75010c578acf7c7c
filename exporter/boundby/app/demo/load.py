"""Who sends what, when: arrival processes and length distributions.

Lengths, think times and gaps come from their own streams of random numbers, one draw a request,
so that two runs with the same seed meet the same requests in the same order whatever the server
did meanwhile. That is what makes a counterfactual comparison quiet.
"""

import heapq
import math
from dataclasses import dataclass, replace
from random import Random

from boundby.app.demo.machine import FIFTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """A log-normal length in tokens, cut at both ends."""

    mean: float
    spread: float = 0.3
    """Standard deviation of the logarithm."""
    low: int = 1
    high: int = 120_000

    def draw(self, random: Random) -> int:
        """Give one length."""
        centre = math.log(self.mean) - self.spread**2 / 2
        return max(self.low, min(self.high, round(math.exp(random.gauss(centre, self.spread)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A steady load: open (Poisson at a rate) or closed (clients that wait for their answer).

    `prefix_tokens` of each prompt are one of `prefixes` shared beginnings, kept in the cache.
    """

    prompt: Lengths
    output: Lengths
    requests_per_second: float | None = None
    clients: int = 0
    think_seconds: float = 0.0
    prefix_tokens: int = 0
    prefixes: int = 1
    ramp_seconds: float = 4.0
    """Closed loop: the span over which the clients come."""

    def more(self) -> tuple["Load", float]:
        """Give a fifth more load, and by what factor it really grew (clients are whole)."""
        if self.requests_per_second is not None:
            return replace(self, requests_per_second=self.requests_per_second * FIFTH), FIFTH
        clients = max(self.clients + 1, round(self.clients * FIFTH))
        return replace(self, clients=clients), clients / self.clients


class Request:
    """One request and what became of it. Times are simulated seconds."""

    __slots__ = (
        "arrived",
        "done",
        "finish",
        "first_scheduled",
        "first_token",
        "generated",
        "joined",
        "output",
        "preempted",
        "prompt",
        "target",
    )

    def __init__(self, arrived: float, prompt: int, output: int) -> None:
        self.arrived = arrived
        self.prompt = prompt
        self.output = output
        self.generated = 0
        self.done = 0
        """Tokens of `target` whose KV is computed."""
        self.target = prompt
        """Tokens to compute before decoding (again): the prompt and what was generated."""
        self.joined = 0
        """The engine's decode step at which it last began to decode."""
        self.finish = -1
        """The decode step at which it ends; -1 while it does not decode."""
        self.preempted = 0
        self.first_scheduled = -1.0
        self.first_token = -1.0


class Arrivals:
    """The stream of requests that a load makes; closed loops hear of every finish."""

    def __init__(self, load: Load, seed: int, begin: float = 0.0) -> None:
        self._load = load
        self._lengths = Random(seed)  # noqa: S311 - a simulation, nothing secret
        self._gaps = Random(seed + 1)  # noqa: S311 - a simulation, nothing secret
        self._times: list[float] = []
        self._retiring = 0
        self._open = load.requests_per_second is not None
        if self._open:
            self._times.append(begin + self._gap())
        else:
            for _ in range(load.clients):
                heapq.heappush(self._times, begin + self._gaps.random() * load.ramp_seconds)

    def _gap(self) -> float:
        return self._gaps.expovariate(self._load.requests_per_second or 1.0)

    @property
    def next_at(self) -> float:
        """When the next request comes; infinite while every client waits for an answer."""
        return self._times[0] if self._times else math.inf

    def take(self) -> Request:
        """Give the next request."""
        at = heapq.heappop(self._times)
        if self._open:
            self._times.append(at + self._gap())
        load = self._load
        prompt = load.prompt.draw(self._lengths) + load.prefix_tokens
        return Request(at, prompt, load.output.draw(self._lengths))

    def change(self, load: Load, at: float) -> None:
        """Go on as `load` from `at`; a closed loop may not become open, nor the other way."""
        if self._open:
            self._load = load
            self._times[0] = at + self._gap()
            return
        self._retiring += max(0, self._load.clients - load.clients)
        for _ in range(load.clients - self._load.clients):
            heapq.heappush(self._times, at + self._gaps.random() * load.ramp_seconds)
        self._load = load

    def finished(self, at: float) -> None:
        """Tell the stream that one request was answered."""
        if self._retiring:
            self._retiring -= 1
        elif not self._open:
            think = self._load.think_seconds
            heapq.heappush(self._times, at + (self._gaps.expovariate(1 / think) if think else 0.0))
