"""The simulated engine: continuous batching as vLLM's V1 scheduler does it, step by step.

Running sequences go first, one token each; partial prefills follow in order; then the waiting
queue is admitted first come, first served, while slots, token budget and KV blocks last. A
sequence that cannot grow its KV evicts the newest one, which starts over by recomputing. Steps
that differ only in their growing contexts are advanced several at once, and per-sequence state
changes only when a sequence joins or leaves, so a second of serving costs little.
"""

import math
from collections import deque
from collections.abc import Callable

from boundby.app.demo.batch import BLOCK, Batch
from boundby.app.demo.board import Clocks
from boundby.app.demo.load import Arrivals, Load, Request
from boundby.app.demo.machine import Machine
from boundby.app.demo.model import Model
from boundby.app.demo.pace import Pace, Work
from boundby.app.demo.settings import Settings
from boundby.app.demo.step import Plan, Step, Timer
from boundby.app.demo.tally import EngineTally, GpuTally

SERVER_SECONDS_PER_TOKEN = 6e-6
"""CPU of the API server for one output token: detokenising and streaming."""


class Engine:
    """One engine under one load. `advance` moves it; its tallies and gauges can be read then."""

    def __init__(
        self,
        model: Model,
        machine: Machine,
        settings: Settings,
        arrivals: Arrivals,
        seed: int = 0,
        begin: float = 0.0,
        prefix_tokens: int = 0,
        prefixes: int = 1,
    ) -> None:
        self.now = begin
        self.tally = EngineTally()
        self.gpu = GpuTally()
        self.on_step: Callable[[Step], None] | None = None
        self.settings = settings
        self.machine = machine
        self.clocks = Clocks(machine)
        self.arrivals = arrivals
        self._model = model
        self._timer = Timer(Pace(model, machine), machine.host, seed)
        self._prefix = prefix_tokens // BLOCK * BLOCK
        self._shared_blocks = prefixes * self._prefix // BLOCK
        self._waiting: deque[Request] = deque()
        self._prefilling: deque[Request] = deque()
        self._running: dict[Request, None] = {}
        self._batch = Batch()
        self._free = settings.kv_blocks - self._shared_blocks
        self._plan: Plan | None = None

    @property
    def running(self) -> int:
        """Requests in the running batch."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests that wait to be scheduled."""
        return len(self._waiting)

    @property
    def kv_used_ratio(self) -> float:
        """Blocks in use over all blocks."""
        return 1.0 - self._free / self.settings.kv_blocks

    def change(self, machine: Machine, load: Load, seed: int = 0) -> None:
        """Meet another machine and another load from now on; what runs goes on running."""
        self.machine = machine
        self.clocks.change(machine)
        self._timer = Timer(Pace(self._model, machine), machine.host, seed)
        self.arrivals.change(load, self.now)

    def gpu_now(self) -> GpuTally:
        """Give the GPU's tally with the step under way counted as far as it got."""
        plan = self._plan
        if plan is None or self.now <= plan.begin:
            return self.gpu
        return self.gpu.plus(plan.did, min(1.0, (self.now - plan.begin) / (plan.end - plan.begin)))

    def advance(self, to: float) -> None:
        """Simulate until `to`; a step that ends later stays under way."""
        while True:
            if self._plan is None:
                self._plan = self._schedule(to)
            plan = self._plan
            if plan is None:
                until = min(self.arrivals.next_at, to)
                self._idle(until - self.now)
                self.now = max(self.now, until)
                if self.arrivals.next_at > to:
                    return
                continue
            if plan.end > to:
                self.now = max(self.now, to)
                self._receive()
                return
            self._plan = None
            self.now = plan.end
            self._commit(plan)

    def _idle(self, seconds: float) -> None:
        if seconds > 0.0:
            did = GpuTally()
            self.clocks.spend(seconds, did)
            self.gpu = self._added(did)

    def _added(self, did: GpuTally) -> GpuTally:
        gpu = self.gpu
        for name in GpuTally.__slots__:
            setattr(gpu, name, getattr(gpu, name) + getattr(did, name))
        return gpu

    def _receive(self) -> None:
        arrivals = self.arrivals
        while arrivals.next_at <= self.now:
            request = arrivals.take()
            if self._blocks(request) > self.settings.kv_blocks - self._shared_blocks:
                self.tally.aborted += 1  # longer than the cache is large: refused at the door
                arrivals.finished(self.now)
                continue
            self._waiting.append(request)

    def _blocks(self, request: Request) -> int:
        """Blocks of its own that a request needs to be computed up to its target."""
        return -(-request.target // BLOCK) - self._prefix // BLOCK

    def _schedule(self, until: float) -> Plan | None:
        """Choose the next step, or the next several alike; None when there is nothing to run."""
        self._receive()
        settings = self.settings
        evicted = self._make_room()
        left = settings.max_num_batched_tokens - (self._batch.size if settings.mixes else 0)
        chunks: list[tuple[Request, int]] = []
        for request in self._prefilling:
            if left <= 0:
                break
            size = min(left, request.target - request.done)
            chunks.append((request, size))
            left -= size
        spare = int(settings.watermark * settings.kv_blocks) + self._batch.growth
        while self._waiting and left > 0 and not evicted and self.running < settings.max_num_seqs:
            request = self._waiting[0]
            need = self._blocks(request)
            if need > self._free - spare and self._running:
                break
            self._admit(request, need)
            size = min(left, request.target - request.done)
            chunks.append((request, size))
            left -= size
        decoding = self._batch.size if settings.mixes or not chunks else 0
        if not decoding and not chunks:
            return None
        return self._timed(decoding, chunks, until, alone=evicted)

    def _admit(self, request: Request, need: int) -> None:
        self._waiting.popleft()
        self._free -= need
        self._running[request] = None
        self._prefilling.append(request)
        self.tally.prefix_queries += request.target
        self.tally.prefix_hits += self._prefix
        request.done = min(self._prefix, request.target - 1)
        if request.first_scheduled < 0:
            request.first_scheduled = self.now
            self.tally.progress_requests += 0.5 * request.done / request.prompt

    def _timed(
        self, decoding: int, chunks: list[tuple[Request, int]], until: float, *, alone: bool
    ) -> Plan:
        steps = 1 if chunks or alone else self._batch.alike(self._free)
        pairs = reads = 0.0
        prefill = finishing = 0
        for request, size in chunks:
            pairs += size * request.done + size * size / 2
            reads += request.done + size
            prefill += size
            finishing += request.done + size == request.target
        first = self._batch.context if decoding else 0
        clock, sequences = self.clocks.ratio, self.running
        while True:
            work = Work(
                decoding + prefill,
                decoding + finishing,
                first + decoding * (steps - 1) / 2,
                pairs,
                reads,
            )
            each, did = self._timer.time(work, sequences, clock, steps)
            fits = self._steps_until(until, each, steps)
            if fits == steps:
                break
            steps = fits
        told = Step(
            work,
            steps,
            decoding,
            prefill,
            sequences,
            clock,
            self.clocks.held_by_power,
            self.clocks.held_by_heat,
        )
        self.clocks.spend(each * steps, did)
        return Plan(self.now, self.now + each * steps, told, chunks, did)

    def _steps_until(self, until: float, each: float, steps: int) -> int:
        """Cut a group of steps where an arrival could join, or where the clock stops."""
        if steps == 1:
            return 1
        horizon = until
        if not self._waiting and self.running < self.settings.max_num_seqs:
            horizon = min(horizon, self.arrivals.next_at)
        return max(1, min(steps, math.ceil((horizon - self.now) / each)))

    def _make_room(self) -> bool:
        """Evict the newest sequences until the next decode step's blocks are there."""
        evicted = False
        while self._batch.growth > self._free:
            request, _ = self._running.popitem()
            self._give_up(request)
            if self._running:
                self.tally.preemptions += 1
                request.preempted += 1
                self._waiting.appendleft(request)
            else:
                self._leave_for_good(request, aborted=True)
            evicted = True
        return evicted

    def _give_up(self, request: Request) -> None:
        """Take a running request's blocks away; what it generated is kept as text."""
        if request.finish < 0:
            self._prefilling.remove(request)
            self._free += self._blocks(request)
        else:
            self._free += self._batch.leave(request) - self._prefix // BLOCK
            request.generated += self._batch.step - request.joined
            request.target = request.prompt + request.generated
        request.done = 0

    def _commit(self, plan: Plan) -> None:
        tally, steps, decoding = self.tally, plan.step.steps, plan.step.decoding
        span = plan.end - plan.begin
        self.gpu = self._added(plan.did)
        tally.steps += steps
        outputs = decoding
        if decoding:
            self._free -= self._batch.advance(steps)
            tally.generation_tokens += decoding * steps
            tally.progress_requests += 0.5 * self._batch.progress * steps
            tally.histograms["token_gap"].observe(span / steps, decoding * steps)
        for request, size in plan.chunks:
            request.done += size
            if request.first_token < 0:
                tally.progress_requests += 0.5 * size / request.prompt
            if request.done == request.target:
                outputs += 1 + (request.prompt if request.first_token < 0 else 0)
                self._prefilling.remove(request)
                self._first_output(request)
        if outputs:
            # Like vLLM, a step that gave no output is not counted here.
            tally.histograms["step_tokens"].observe(outputs, steps)
        tally.server_cpu_seconds += SERVER_SECONDS_PER_TOKEN * decoding * steps
        if decoding:
            self._finish_due()
        if self.on_step is not None:
            self.on_step(plan.step)

    def _first_output(self, request: Request) -> None:
        """Count a prefill that is through: it gives a token and goes on to decode."""
        tally = self.tally
        tally.generation_tokens += 1
        request.generated += 1
        if request.first_token < 0:
            request.first_token = self.now
            tally.prompt_tokens += request.prompt
            tally.prompt_cached_tokens += min(self._prefix, request.prompt - 1)
            tally.progress_requests += 0.5 / request.output
            tally.histograms["ttft"].observe(self.now - request.arrived)
        if request.generated >= request.output:
            del self._running[request]
            self._free += self._blocks(request)
            self._leave_for_good(request)
        else:
            self._batch.join(request)

    def _finish_due(self) -> None:
        for request in self._batch.due():
            self._free += self._batch.leave(request) - self._prefix // BLOCK
            request.generated = request.output
            del self._running[request]
            self._leave_for_good(request)

    def _leave_for_good(self, request: Request, *, aborted: bool = False) -> None:
        self.arrivals.finished(self.now)
        if aborted:
            self.tally.aborted += 1
        else:
            self.tally.answer(request, self.now, self._prefix)
