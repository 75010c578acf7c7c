"""One step's time on the wall: the forward pass, and what the host adds to it."""

import math
from random import Random
from typing import NamedTuple

from boundby.app.demo.load import Request
from boundby.app.demo.machine import Host
from boundby.app.demo.pace import Pace, Pass, Work
from boundby.app.demo.tally import GpuTally

KERNEL_JITTER = 0.01


class Step(NamedTuple):
    """What is told of every group of equal steps to who wants to know."""

    work: Work
    steps: int
    decoding: int
    prefill_tokens: int
    sequences: int
    clock: float
    held_by_power: bool
    held_by_heat: bool


class Plan(NamedTuple):
    """A group of steps under way: when it ends, what it computes, what the GPU does in it."""

    begin: float
    end: float
    step: Step
    chunks: list[tuple[Request, int]]
    did: GpuTally


def wall(pace: Pace, host: Host, work: Work, sequences: int, clock: float) -> float:
    """Give the seconds of one step without jitter."""
    return _wall(pace, host, pace.forward(work, clock), work.tokens, _host(host, sequences))


def _host(host: Host, sequences: int) -> float:
    return host.step_seconds + host.sequence_seconds * sequences


def _wall(pace: Pace, host: Host, did: Pass, tokens: float, host_seconds: float) -> float:
    span = did.seconds
    if host.eager or tokens > host.graph_tokens:
        span = max(span, pace.kernels * host.launch_seconds)
    return max(span, host_seconds) if host.overlaps else span + host_seconds


class Timer:
    """Times steps with the jitter of kernels and host; the mean of several jitters less."""

    def __init__(self, pace: Pace, host: Host, seed: int) -> None:
        self._pace, self._host = pace, host
        self._gauss = Random(seed).gauss  # noqa: S311 - a simulation, nothing secret

    def time(self, work: Work, sequences: int, clock: float, steps: int) -> tuple[float, GpuTally]:
        """Give the mean seconds of `steps` steps, and what the GPU does in all of them."""
        did = self._pace.forward(work, clock)
        root = math.sqrt(steps)
        busy = did.seconds * max(0.5, 1.0 + KERNEL_JITTER * self._gauss(0.0, 1.0) / root)
        noise = math.exp(self._host.jitter_ratio * self._gauss(0.0, 1.0) / root)
        spent = _host(self._host, sequences) * noise
        each = _wall(self._pace, self._host, did._replace(seconds=busy), work.tokens, spent)
        tally = GpuTally()
        tally.busy_seconds = busy * steps
        tally.tensor_seconds = did.tensor_seconds * steps
        tally.dram_bytes = did.dram_bytes * steps
        tally.link_bytes = did.link_bytes * steps
        return each, tally
