"""What the demo walks through: one server, and ten ways to load it or to get it wrong.

The server is always the same (Llama 3.3 70B in FP8 on four H100s), so its settings are facts
that hold throughout. What changes is the load, or one thing an operator could meet: a slow host,
a lost NVLink, a lowered power cap, a failed fan, a small cache, unfused kernels.
"""

from dataclasses import dataclass, replace
from typing import Literal

from boundby.app.demo.load import Lengths, Load
from boundby.app.demo.machine import GPUS, Board, Host, Machine
from boundby.app.demo.model import Model
from boundby.app.demo.settings import Settings, kv_blocks

Scope = Literal["engine", "decode", "prefill"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One stretch of the demo, and the limit it is built to show in one scope."""

    limit: str
    title: str
    load: Load
    machine: Machine
    settings: Settings
    model: Model
    scope: Scope = "engine"
    seconds: float = 20.0
    warm_seconds: float = 120.0
    """How long the load has run, unseen, before the scenario begins."""


MODEL = Model(key="llama3-70b", weights_dtype="fp8")

MACHINE = Machine(
    gpu=GPUS["H100"],
    tensor=4,
    board=Board(power_limit_watts=GPUS["H100"].power_watts),
    host=Host(step_seconds=7e-4, sequence_seconds=6e-6, launch_seconds=5e-6, overlaps=True),
    in_switch=True,
    link_ratio=0.8,
)

SETTINGS = Settings(
    max_num_seqs=64,
    max_num_batched_tokens=8192,
    kv_blocks=kv_blocks(MODEL, MACHINE, 0.9),
)

CHAT = Load(prompt=Lengths(mean=700, spread=0.5), output=Lengths(mean=300, spread=0.4))
DOCUMENTS = Load(
    prompt=Lengths(mean=24_000, spread=0.2), output=Lengths(mean=4, low=1, high=8), clients=40
)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        limit="demand",
        title="Light chat traffic: the server could do several times as much",
        load=replace(CHAT, requests_per_second=1.2),
        machine=MACHINE,
        settings=SETTINGS,
        model=MODEL,
    ),
    Scenario(
        limit="memory_bandwidth",
        title="Long reasoning: every step reads a large KV cache and writes little",
        load=Load(
            prompt=Lengths(mean=1500, spread=0.3),
            output=Lengths(mean=14_000, spread=0.3),
            clients=60,
            ramp_seconds=350.0,
        ),
        machine=MACHINE,
        settings=SETTINGS,
        model=MODEL,
        warm_seconds=800.0,
    ),
    Scenario(
        limit="kv_capacity",
        title="The KV cache was given too little memory: requests wait for blocks",
        load=Load(
            prompt=Lengths(mean=2500, spread=0.4),
            output=Lengths(mean=1500, spread=0.3),
            clients=90,
            ramp_seconds=20.0,
        ),
        machine=MACHINE,
        settings=replace(
            SETTINGS,
            kv_blocks=kv_blocks(MODEL, MACHINE, 0.37),
            memory_utilization=0.37,
        ),
        model=MODEL,
    ),
    Scenario(
        limit="batch_slots",
        title="More chat than slots: 64 run, the rest wait, the cache is nearly empty",
        load=replace(CHAT, clients=220),
        machine=MACHINE,
        settings=SETTINGS,
        model=MODEL,
    ),
    Scenario(
        limit="compute",
        title="Documents are read, hardly a word is written: all prefill",
        load=DOCUMENTS,
        machine=MACHINE,
        settings=SETTINGS,
        model=MODEL,
    ),
    Scenario(
        limit="cpu_scheduling",
        title="The host is slow for every sequence of a step: the GPUs wait for it",
        load=replace(CHAT, clients=60),
        machine=replace(
            MACHINE, host=replace(MACHINE.host, sequence_seconds=4.5e-4, overlaps=False)
        ),
        settings=SETTINGS,
        model=MODEL,
    ),
    Scenario(
        limit="interconnect",
        title="NVLink is down: collectives go over PCIe and host memory",
        load=replace(CHAT, clients=60),
        machine=replace(MACHINE, through_host=True, collective_seconds=3.5e-5),
        settings=SETTINGS,
        model=MODEL,
    ),
    Scenario(
        limit="power",
        title="A power cap of 260 W holds the clocks down under prefill",
        load=DOCUMENTS,
        machine=replace(MACHINE, board=replace(MACHINE.board, power_limit_watts=260.0)),
        settings=SETTINGS,
        model=MODEL,
    ),
    Scenario(
        limit="thermal",
        title="A fan has failed: heat holds the clocks at half under prefill",
        load=DOCUMENTS,
        machine=replace(MACHINE, board=replace(MACHINE.board, thermal_clock_ratio=0.5)),
        settings=SETTINGS,
        model=MODEL,
    ),
    Scenario(
        limit="kernel_latency",
        title="A few streams through unfused kernels: thousands of short kernels a step",
        load=replace(CHAT, clients=5, ramp_seconds=1.0),
        machine=replace(MACHINE, kernels_per_layer=34.0),
        settings=SETTINGS,
        model=MODEL,
        scope="decode",
    ),
)
