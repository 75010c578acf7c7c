"""The counters of the simulated server: what its pages are written from.

They are plain running sums. A server that is restarted by the demo goes on with the same tally,
so that its page stays one continuous page.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping
from types import MappingProxyType

from boundby.app.demo.load import Request

TTFT_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
TOKEN_GAP_BOUNDS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
REQUEST_BOUNDS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
STEP_BOUNDS = tuple(
    float(bound) for bound in (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
)
LENGTH_BOUNDS = tuple(
    float(bound)
    for bound in (
        *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
        *(10000, 20000, 50000, 100000),
    )
)
PREEMPTION_BOUNDS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)

BOUNDS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "step_tokens": STEP_BOUNDS,
        "ttft": TTFT_BOUNDS,
        "token_gap": TOKEN_GAP_BOUNDS,
        "mean_token_gap": TOKEN_GAP_BOUNDS,
        "request": REQUEST_BOUNDS,
        "queue": REQUEST_BOUNDS,
        "inference": REQUEST_BOUNDS,
        "prefill": REQUEST_BOUNDS,
        "decode": REQUEST_BOUNDS,
        "prompt_tokens": LENGTH_BOUNDS,
        "generation_tokens": LENGTH_BOUNDS,
        "computed_tokens": LENGTH_BOUNDS,
        "preemptions": PREEMPTION_BOUNDS,
    }
)
"""Upper bounds of vLLM's own buckets (0.6 to 0.33), as its pages show them."""


SGLANG_BOUNDS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        **BOUNDS,
        "ttft": (
            *(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0),
            *(10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0, 400.0),
        ),
        "token_gap": (
            *(0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04),
            *(0.06, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0),
        ),
        "request": (
            *(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0),
            *(10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0, 400.0, 800.0),
        ),
    }
)
"""SGLang's (0.4 to 0.5) where they differ."""


class Histogram:
    """Counts by bucket, not cumulative; the last bucket has no upper bound."""

    __slots__ = ("bounds", "count", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0.0] * (len(bounds) + 1)
        self.sum = 0.0
        self.count = 0.0

    def observe(self, value: float, times: float = 1.0) -> None:
        """Count one value, or the same value several times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times
        self.count += times

    def cumulative(self) -> list[tuple[float, float]]:
        """Upper bounds, infinity last, and how many values were at most that."""
        total, rows = 0.0, []
        for bound, count in zip((*self.bounds, math.inf), self.counts, strict=True):
            total += count
            rows.append((bound, total))
        return rows


class EngineTally:
    """What the engine has done since its page began."""

    def __init__(self, bounds: Mapping[str, tuple[float, ...]] = BOUNDS) -> None:
        self.prompt_tokens = 0.0
        self.prompt_cached_tokens = 0.0
        self.generation_tokens = 0.0
        self.preemptions = 0.0
        self.finished = 0.0
        self.aborted = 0.0
        self.prefix_queries = 0.0
        self.prefix_hits = 0.0
        self.steps = 0.0
        self.progress_requests = 0.0
        """Useful work in whole requests: half for the prompt, half for the output."""
        self.server_cpu_seconds = 0.0
        self.histograms = {name: Histogram(edges) for name, edges in bounds.items()}

    def answer(self, request: Request, now: float, cached_tokens: int) -> None:
        """Count a request that got its last token now."""
        self.finished += 1
        decode = now - request.first_token
        for name, value in (
            ("request", now - request.arrived),
            ("queue", request.first_scheduled - request.arrived),
            ("inference", now - request.first_scheduled),
            ("prefill", request.first_token - request.first_scheduled),
            ("decode", decode),
            ("mean_token_gap", decode / max(1, request.output - 1)),
            ("prompt_tokens", request.prompt),
            ("generation_tokens", request.output),
            ("computed_tokens", max(1, request.prompt - cached_tokens)),
            ("preemptions", request.preempted),
        ):
            self.histograms[name].observe(value)


class GpuTally:
    """What each of the GPUs has done; all peers of a tensor-parallel group do the same."""

    __slots__ = (
        "busy_seconds",
        "clock_seconds",
        "dram_bytes",
        "energy_joules",
        "link_bytes",
        "power_held_seconds",
        "tensor_seconds",
        "thermal_held_seconds",
        "wall_seconds",
    )

    def __init__(self) -> None:
        self.wall_seconds = 0.0
        self.busy_seconds = 0.0
        self.tensor_seconds = 0.0
        """Operations over the peak rate at full clock."""
        self.clock_seconds = 0.0
        """Clock over the highest clock, summed over time."""
        self.dram_bytes = 0.0
        self.link_bytes = 0.0
        self.energy_joules = 0.0
        self.power_held_seconds = 0.0
        self.thermal_held_seconds = 0.0

    def plus(self, other: "GpuTally", share: float = 1.0) -> "GpuTally":
        """Give a new tally: this one and `share` of another."""
        total = GpuTally()
        for name in self.__slots__:
            setattr(total, name, getattr(self, name) + share * getattr(other, name))
        return total
