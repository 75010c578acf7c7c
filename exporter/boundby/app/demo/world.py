"""The demo's server as one thing in time: scenarios in a circle behind two continuous pages.

A `World` knows no clock. It is advanced to a time and asked for what its pages show then; the
same seed and the same times give the same pages. Each scenario's engine has run unseen for a
while before it is shown, a little at a time, so that no single advance costs much.
"""

from collections.abc import Callable, Sequence
from typing import Self

from boundby.app.demo.engine import Engine
from boundby.app.demo.engine_pages import engine_page
from boundby.app.demo.gpu_pages import Reading, gpu_page, uuid
from boundby.app.demo.load import Arrivals
from boundby.app.demo.scenarios import SCENARIOS, Scenario
from boundby.app.demo.tally import EngineTally, GpuTally
from boundby.core.parts import EnginePart, GpuPart, Snapshot
from boundby.core.setup import GpuIdentity, Setup

COLLECT_SECONDS = 1.0
"""How often the simulated dcgm-exporter collects; its gauges are means over this."""


class World:
    """A simulated server that walks through scenarios for ever, from time 0 on."""

    def __init__(
        self, scenarios: Sequence[Scenario] = SCENARIOS, seed: int = 0, started: float = 0.0
    ) -> None:
        """Begin; the page gives `started`, in unix seconds, as the server's start."""
        self._scenarios = tuple(scenarios)
        self._seed, self._started = seed, started
        self._turn = 0
        self._begin = 0.0
        self._tally, self._gpu = EngineTally(), GpuTally()
        self._interval = GpuTally()
        self._collected, self._collections = 0.0, 0
        self._engine = self._warming(0, 0.0)
        self._engine.advance(0.0)
        self._show()

    @property
    def scenario(self) -> Scenario:
        """What is shown now."""
        return self._scenarios[self._turn % len(self._scenarios)]

    @property
    def scenario_ends(self) -> float:
        """When the next scenario begins."""
        return self._begin + self.scenario.seconds

    def _warming(self, turn: int, begin: float) -> Engine:
        """Give a scenario's engine, which starts ahead of its scenario."""
        scenario = self._scenarios[turn % len(self._scenarios)]
        since = begin - scenario.warm_seconds
        seed = self._seed * 1_000_003 + turn * 101
        return Engine(
            scenario.model,
            scenario.machine,
            scenario.settings,
            Arrivals(scenario.load, seed, since),
            seed=seed + 7,
            begin=since,
            prefix_tokens=scenario.load.prefix_tokens,
            prefixes=scenario.load.prefixes,
        )

    def _show(self) -> None:
        """Put the warmed engine behind the pages; what it counted unseen is dropped."""
        self._engine.tally, self._engine.gpu = self._tally, self._gpu
        self._since = self._engine.gpu_now()
        self._next = self._warming(self._turn + 1, self.scenario_ends)

    def advance(self, to: float) -> None:
        """Move the world to `to` seconds; going back is ignored."""
        while self.scenario_ends <= to:
            self._advance_within(self.scenario_ends)
            self._gpu = self._engine.gpu_now()
            ends = self.scenario_ends
            self._turn, self._begin = self._turn + 1, ends
            self._engine = self._next
            self._engine.advance(ends)
            self._show()
        self._advance_within(to)

    def _advance_within(self, to: float) -> None:
        while self._collected + COLLECT_SECONDS <= to:
            self._collected += COLLECT_SECONDS
            self._engine.advance(self._collected)
            self._collect()
            warmed = (self._collected - self._begin) / self.scenario.seconds
            ahead = self._scenarios[(self._turn + 1) % len(self._scenarios)].warm_seconds
            self._next.advance(self.scenario_ends - ahead * (1.0 - warmed))
        self._engine.advance(to)

    def _collect(self) -> None:
        now = self._engine.gpu_now()
        self._interval = now.plus(self._since, -1.0)
        self._since = now
        self._collections += 1

    def engine_page(self) -> str:
        """Give what the engine's /metrics shows now."""
        return engine_page(self._engine, self.scenario.model, "vllm-v1", self._started)

    def dcgm_page(self) -> str:
        """Give what dcgm-exporter shows now: its last collection."""
        machine, settings = self.scenario.machine, self.scenario.settings
        return gpu_page(
            Reading(
                machine=machine,
                clocks=self._engine.clocks,
                interval=self._interval,
                total=self._since,
                memory_used_bytes=settings.memory_utilization * machine.gpu.memory_bytes,
                seed=self._seed * 1_000_003 + self._collections,
            )
        )

    def setup(self) -> Setup:
        """Give what an operator's settings would say of this server; it holds throughout."""
        scenario = self.scenario
        model, machine, settings = scenario.model, scenario.machine, scenario.settings
        names = ("model_id", "model_config", "weights_dtype", "kv_cache_dtype", "tensor")
        caps = ("max_num_seqs", "max_num_batched_tokens", "gpus")
        return Setup(
            kind="vllm",
            model_id=model.id,
            model_config=model.config,
            weights_dtype=model.weights_dtype,
            kv_cache_dtype=model.kv_dtype,
            tensor=machine.tensor,
            pipeline=1,
            data=1,
            max_num_seqs=settings.max_num_seqs,
            max_num_batched_tokens=settings.max_num_batched_tokens,
            gpus=tuple(
                GpuIdentity(
                    index=index,
                    uuid=uuid(index),
                    name=machine.gpu.name,
                    memory_bytes=machine.gpu.memory_bytes,
                )
                for index in range(machine.tensor)
            ),
            origins=dict.fromkeys((*names, *caps), "the simulated server's settings"),
        )

    def snapshot(
        self,
        t: float,
        parse_engine: Callable[[str], Sequence[EnginePart]],
        parse_gpus: Callable[[str], Sequence[GpuPart]],
    ) -> Snapshot:
        """Advance to `t` and read both pages with the given parsers."""
        self.advance(t)
        return Snapshot(
            t=t,
            engines=tuple(parse_engine(self.engine_page())),
            gpus=tuple(parse_gpus(self.dcgm_page())),
            gpu_source="dcgm",
        )

    @classmethod
    def of(cls, scenario: Scenario, seed: int = 0) -> Self:
        """Give a world that stays in one scenario."""
        return cls((scenario,), seed)
