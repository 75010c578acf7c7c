"""One trial: a server, a load, and what of it is recorded."""

from dataclasses import dataclass, replace

from boundby.app.demo.engine import Engine
from boundby.app.demo.engine_pages import Dialect
from boundby.app.demo.load import Arrivals, Load
from boundby.app.demo.machine import FIFTH, MACHINE_RESOURCES, Machine, improved
from boundby.app.demo.model import Model
from boundby.app.demo.settings import Settings
from boundby.app.demo.tally import BOUNDS, SGLANG_BOUNDS, EngineTally


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A scenario of the bench. Everything that could be drawn has been drawn."""

    kind: str
    name: str
    gpu: str
    """Short name."""
    model: Model
    machine: Machine
    settings: Settings
    load: Load
    seed: int
    dialect: Dialect = "vllm-v1"
    profiling: bool = True
    cycle_counters: bool = True
    noise_ratio: float = 0.0
    warm_seconds: float = 60.0
    truth_seconds: float = 600.0

    def engine(self) -> Engine:
        """Start it at time 0."""
        engine = Engine(
            self.model,
            self.machine,
            self.settings,
            Arrivals(self.load, self.seed),
            seed=self.seed + 7,
            prefix_tokens=self.load.prefix_tokens,
            prefixes=self.load.prefixes,
        )
        engine.tally = EngineTally(SGLANG_BOUNDS if self.dialect == "sglang" else BOUNDS)
        return engine

    def resources(self) -> tuple[str, ...]:
        """What can be improved in it, load apart."""
        cool = self.machine.board.thermal_clock_ratio == 1.0
        machine = tuple(r for r in MACHINE_RESOURCES if not (r == "thermal" and cool))
        return ("batch_slots", "kv_capacity", *machine)

    def improved(self, resource: str) -> tuple["Trial", float]:
        """Give the same trial with one resource a fifth better, and the factor it really grew."""
        settings = self.settings
        if resource == "demand":
            load, factor = self.load.more()
            return replace(self, load=load), factor
        if resource == "kv_capacity":
            blocks = round(settings.kv_blocks * FIFTH)
            return replace(self, settings=replace(settings, kv_blocks=blocks)), FIFTH
        if resource == "batch_slots":
            slots = max(settings.max_num_seqs + 1, round(settings.max_num_seqs * FIFTH))
            budget = round(settings.max_num_batched_tokens * FIFTH)
            wider = replace(settings, max_num_seqs=slots, max_num_batched_tokens=budget)
            return replace(self, settings=wider), slots / settings.max_num_seqs
        return replace(self, machine=improved(self.machine, resource)), FIFTH
