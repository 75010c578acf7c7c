"""Draws trials: for each kind of server and load, everything that may vary varies.

Efficiencies, kernel and host times, power and link figures are drawn anew for each trial from
ranges that public measurements span; nothing that reads the recordings is told which.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from trial import Trial

from boundby.app.demo.batch import BLOCK
from boundby.app.demo.engine_pages import Dialect
from boundby.app.demo.load import Lengths, Load
from boundby.app.demo.machine import GPUS, Board, Host, Machine
from boundby.app.demo.model import Model
from boundby.app.demo.settings import Settings, kv_blocks

SMALL = ("llama3-1b", "qwen3-0.6b")
MIDDLE = ("llama3-8b", "qwen2.5-7b", "llama2-7b")
LARGE = ("llama3-70b", "qwen2.5-72b")
EXPERTS = ("mixtral", "qwen3-30b-a3b")

DIALECTS: tuple[Dialect, ...] = (
    "vllm-v1",
    "vllm-v1",
    "vllm-v1",
    "vllm-v1-early",
    "vllm-v0",
    "sglang",
)
ROOM_FOR_CACHE = 1.12
"""Least memory of a server over its weights, for a cache worth having."""

LONGEST_SHARE = 0.4
"""Longest prompt, and longest output, over the cache: no request is refused for its length."""


class Draw:
    """The random choices of one trial."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - a simulation, nothing secret
        self.seed = seed

    def between(self, low: float, high: float) -> float:
        return self.random.uniform(low, high)

    def scaled(self, low: float, high: float) -> float:
        """Between the two, evenly in the logarithm."""
        return float(low * (high / low) ** self.random.random())

    def whole(self, low: float, high: float) -> int:
        return round(self.scaled(low, high))

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def lengths(self, low: float, high: float, spread: float = 0.35) -> Lengths:
        return Lengths(mean=self.scaled(low, high), spread=self.between(0.1, 2 * spread))

    def host(self, *, overlaps: bool | None = None) -> Host:
        return Host(
            step_seconds=self.scaled(1.5e-4, 1.2e-3),
            sequence_seconds=self.scaled(1e-6, 8e-6),
            launch_seconds=self.scaled(3e-6, 7e-6),
            overlaps=self.chance(0.4) if overlaps is None else overlaps,
            jitter_ratio=self.between(0.03, 0.25),
            graph_tokens=self.random.choice((256, 512, 1024)),
        )

    def machine(self, gpu: str, tensor: int, host: Host | None = None) -> Machine:
        kind = GPUS[gpu]
        over_pcie = kind.link == "pcie"
        return Machine(
            gpu=kind,
            tensor=tensor,
            host=host or self.host(),
            board=Board(
                power_limit_watts=kind.power_watts,
                idle_share=self.between(0.09, 0.17),
                busy_share=self.between(0.05, 0.15),
                tensor_share=self.between(0.7, 1.05),
                dram_share=self.between(0.3, 0.5),
            ),
            matmul_flops_ratio=self.between(0.6, 0.82),
            matmul_bandwidth_ratio=self.between(0.74, 0.92),
            attention_flops_ratio=self.between(0.35, 0.65),
            attention_bandwidth_ratio=self.between(0.55, 0.88),
            overlap_power=self.between(2.0, 5.0),
            tile_tokens=self.between(8.0, 40.0),
            kernel_seconds=self.scaled(2e-6, 6e-6),
            kernels_per_layer=self.between(8.0, 14.0),
            link_ratio=self.between(0.25, 0.5) if over_pcie else self.between(0.6, 0.85),
            collective_seconds=(
                self.scaled(1.5e-5, 4e-5) if over_pcie else self.scaled(5e-6, 1.4e-5)
            ),
            in_switch=kind.name.startswith(("NVIDIA H", "NVIDIA B")) and self.chance(0.5),
        )

    def server(
        self,
        gpus: tuple[str, ...],
        models: tuple[str, ...],
        tensors: tuple[int, ...] = (1,),
        weights: tuple[str, ...] = ("bf16",),
        host: Host | None = None,
    ) -> tuple[str, Model, Machine]:
        """Draw until the model fits."""
        while True:
            gpu, dtype = self.one(*gpus), self.one(*weights)
            kv = self.one("bf16", "fp8") if dtype != "bf16" else "bf16"
            model = Model(key=self.one(*models), weights_dtype=dtype, kv_dtype=kv)
            tensor = self.random.choice(tensors)
            heads = model.config["num_attention_heads"]
            room = 0.88 * GPUS[gpu].memory_bytes * tensor
            if heads % tensor == 0 and model.weight_bytes * ROOM_FOR_CACHE < room:
                return gpu, model, self.machine(gpu, tensor, host)

    def trial(
        self,
        kind: str,
        server: tuple[str, Model, Machine],
        load: Load,
        slots: int = 256,
        blocks: int | None = None,
        **more: float,
    ) -> Trial:
        gpu, model, machine = server
        utilization = self.random.choice((0.85, 0.9, 0.9, 0.92, 0.95))
        fits = blocks or kv_blocks(model, machine, utilization)
        longest = int(LONGEST_SHARE * fits * BLOCK)
        load = replace(
            load,
            prompt=replace(load.prompt, high=min(load.prompt.high, longest)),
            output=replace(load.output, high=min(load.output.high, longest)),
        )
        return Trial(
            kind=kind,
            name=kind,
            gpu=gpu,
            model=model,
            machine=machine,
            settings=Settings(
                max_num_seqs=slots,
                max_num_batched_tokens=self.random.choice((2048, 4096, 8192, 8192, 16384)),
                kv_blocks=fits,
                watermark=self.random.choice((0.0, 0.0, 0.01)),
                memory_utilization=utilization,
            ),
            load=load,
            seed=self.seed,
            dialect=self.random.choice(DIALECTS),
            profiling=self.chance(0.85),
            cycle_counters=self.chance(0.5),
            noise_ratio=self.random.choice((0.0, 0.005, 0.02)),
            **more,
        )


DATA_CENTRE = ("H100", "A100", "H200", "B200", "H100-PCIE", "H20")
SINGLE = ("H100", "A100", "H200", "L40S", "L4", "A10G", "B200", "H100-PCIE", "RTX4090", "H20")
MANY = (2, 4, 8)


def any_server(d: Draw) -> tuple[str, Model, Machine]:
    if d.chance(0.5):
        return d.server(SINGLE, (*MIDDLE, "qwen2.5-14b", "llama2-13b"))
    return d.server(DATA_CENTRE, (*LARGE, "qwen2.5-32b"), MANY)


def _alone_seconds(d: Draw, server: tuple[str, Model, Machine], load: Load) -> float:
    """How long one request takes with the server to itself."""
    one = replace(load, clients=1, requests_per_second=None, ramp_seconds=0.1)
    trial = d.trial("pilot", server, one)
    engine = replace(trial, load=one).engine()
    assert engine.arrivals.next_at < 1.0
    engine.advance(120.0)
    return 120.0 / max(engine.tally.progress_requests, 0.01)


def light(d: Draw) -> Trial:
    server = any_server(d)
    load = Load(prompt=d.lengths(100, 1500), output=d.lengths(30, 300))
    rate = d.scaled(0.3, 4.0) / _alone_seconds(d, server, load)
    return d.trial("light", server, replace(load, requests_per_second=rate))


def single(d: Draw) -> Trial:
    load = Load(prompt=d.lengths(200, 4000), output=d.lengths(100, 1000), clients=d.whole(1, 2))
    return d.trial("single", any_server(d), load)


def decode_sat(d: Draw) -> Trial:
    slots = d.whole(64, 200)
    load = Load(
        prompt=d.lengths(80, 400),
        output=d.lengths(250, 900),
        clients=round(slots * d.between(1.3, 3.5)),
    )
    return d.trial("decode_sat", any_server(d), load, slots)


def kv_full(d: Draw) -> Trial:
    server = any_server(d) if d.chance(0.4) else d.server(DATA_CENTRE, LARGE, MANY)
    prompt, output = d.scaled(300, 6000), d.scaled(150, 1200)
    context = prompt + output / 2
    most = kv_blocks(server[1], server[2], 0.9)
    blocks = min(most, round(d.scaled(12, 70) * context / BLOCK))
    fits = blocks * BLOCK / context
    load = Load(
        prompt=Lengths(mean=prompt, spread=d.between(0.1, 0.6), high=30_000),
        output=Lengths(mean=output, spread=d.between(0.1, 0.6), high=6_000),
        clients=round(min(fits, 256) * d.between(1.4, 4.0)),
        ramp_seconds=20.0,
    )
    return d.trial("kv_full", server, load, blocks=blocks, truth_seconds=1200.0)


def admission(d: Draw) -> Trial:
    slots = d.whole(8, 40)
    load = Load(
        prompt=d.lengths(150, 1500),
        output=d.lengths(100, 500),
        clients=slots + d.whole(20, 180),
    )
    return d.trial("admission", any_server(d), load, slots)


def _documents(d: Draw) -> Load:
    return Load(
        prompt=d.lengths(2500, 12_000, 0.2),
        output=Lengths(mean=d.between(1, 8), low=1, high=16),
        clients=d.whole(32, 96),
    )


def prefill(d: Draw) -> Trial:
    return d.trial("prefill", any_server(d), _documents(d))


def host_sync(d: Draw) -> Trial:
    slow = replace(
        d.host(overlaps=d.chance(0.3)),
        step_seconds=d.scaled(1e-3, 6e-3),
        sequence_seconds=d.scaled(2e-5, 1.5e-4),
    )
    server = d.server(("H100", "B200", "H200", "A100"), (*SMALL, *MIDDLE), host=slow)
    slots = int(d.one("64", "128", "256"))
    load = Load(
        prompt=d.lengths(80, 500),
        output=d.lengths(100, 500),
        clients=round(slots * d.between(0.8, 1.0)),
    )
    return d.trial("host_sync", server, load, slots)


def eager(d: Draw) -> Trial:
    slow = replace(d.host(overlaps=False), eager=True, launch_seconds=d.scaled(8e-6, 3e-5))
    server = d.server(("H100", "B200", "H200", "A100", "L40S"), (*SMALL, *MIDDLE), host=slow)
    load = Load(prompt=d.lengths(150, 700), output=d.lengths(100, 400), clients=d.whole(16, 128))
    return d.trial("eager", server, load)


def pcie(d: Draw) -> Trial:
    gpus = ("L40S", "A100-PCIE", "H100-PCIE", "L40S")
    server = d.server(gpus, (*LARGE, "qwen2.5-32b"), (4, 8))
    load = Load(prompt=d.lengths(500, 3000), output=d.lengths(80, 300), clients=d.whole(24, 128))
    return d.trial("pcie", server, load, truth_seconds=1600.0)


def power(d: Draw) -> Trial:
    gpu, model, machine = any_server(d)
    watts = GPUS[gpu].power_watts * d.between(0.4, 0.7)
    capped = replace(machine, board=replace(machine.board, power_limit_watts=watts))
    return d.trial("power", (gpu, model, capped), _documents(d))


def thermal(d: Draw) -> Trial:
    gpu, model, machine = any_server(d)
    hot = replace(machine.board, thermal_clock_ratio=d.between(0.4, 0.8))
    return d.trial("thermal", (gpu, model, replace(machine, board=hot)), _documents(d))


def moe_decode(d: Draw) -> Trial:
    server = d.server(("H100", "A100", "H200", "B200"), EXPERTS, (1, 2))
    clients = d.whole(8, 160)
    slots = clients if d.chance(0.3) else round(clients * d.between(0.5, 2.0))
    load = Load(prompt=d.lengths(200, 1000), output=d.lengths(200, 800), clients=clients)
    return d.trial("moe_decode", server, load, slots)


def mixed(d: Draw) -> Trial:
    load = Load(
        prompt=d.lengths(1000, 5000, 0.6),
        output=d.lengths(150, 700, 0.6),
        clients=d.whole(60, 400),
    )
    return d.trial("mixed", any_server(d), load, warm_seconds=120.0, truth_seconds=1600.0)


def quant(d: Draw) -> Trial:
    gpus = (*SINGLE, "H100")
    models = (*MIDDLE, "qwen2.5-14b", "qwen2.5-32b", "llama3-70b")
    server = d.server(gpus, models, (1, 1, 2), ("int4", "fp8"))
    slots = d.whole(24, 200)
    load = Load(
        prompt=d.lengths(100, 2000),
        output=d.lengths(100, 600),
        clients=round(slots * d.between(0.7, 2.0)),
    )
    return d.trial("quant", server, load, slots)


def long_ctx(d: Draw) -> Trial:
    load = Load(
        prompt=Lengths(mean=d.scaled(12_000, 40_000), spread=d.between(0.1, 0.4), high=80_000),
        output=d.lengths(200, 1500),
        clients=d.whole(12, 64),
    )
    server = d.server(("H100", "A100", "H200", "B200"), (*MIDDLE, *LARGE), (1, 2, 4))
    return d.trial("long_ctx", server, load, warm_seconds=200.0, truth_seconds=4000.0)


def prefix(d: Draw) -> Trial:
    load = Load(
        prompt=d.lengths(100, 1500),
        output=d.lengths(150, 600),
        clients=d.whole(32, 128),
        prefix_tokens=d.whole(1000, 12_000),
        prefixes=d.whole(1, 3),
    )
    server = d.server(("H100", "A100", "H200", "B200"), ("llama3-8b", "qwen2.5-7b"))
    return d.trial("prefix", server, load, warm_seconds=120.0)


def floor(d: Draw) -> Trial:
    server = d.server(("H100", "B200", "H200"), (*LARGE, "qwen2.5-32b"), (4, 8), ("bf16", "fp8"))
    slots = d.whole(2, 12)
    load = Load(
        prompt=d.lengths(200, 3000),
        output=d.lengths(100, 400),
        clients=slots * (2 if d.chance(0.5) else 1),
    )
    return d.trial("floor", server, load, slots if load.clients > slots or d.chance(0.15) else 256)


def open_loop(d: Draw) -> Trial:
    """Poisson traffic at a share of what the server can do: below 1 it keeps up, above it cannot.

    Open traffic that is served in full is `demand` by definition however large its batch is.
    """
    server = any_server(d)
    load = Load(prompt=d.lengths(150, 3000), output=d.lengths(60, 500), clients=400)
    full = d.trial("pilot", server, load).engine()
    full.advance(30.0)
    before = full.tally.progress_requests
    full.advance(90.0)
    # Just at capacity nothing has an elasticity: neither more load nor more of anything helps.
    share = d.between(0.4, 0.85) if d.chance(0.6) else d.between(1.2, 1.5)
    rate = (full.tally.progress_requests - before) / 60.0 * share
    steady = replace(load, clients=0, requests_per_second=max(rate, 0.02))
    return d.trial("open_loop", server, steady, warm_seconds=120.0, truth_seconds=1200.0)


KINDS: tuple[Callable[[Draw], Trial], ...] = (
    light,
    single,
    decode_sat,
    kv_full,
    admission,
    prefill,
    host_sync,
    eager,
    pcie,
    power,
    thermal,
    moe_decode,
    mixed,
    quant,
    long_ctx,
    prefix,
    floor,
    open_loop,
)


def trials(count: int, seed: int, names: tuple[str, ...] = ()) -> list[Trial]:
    """Give `count` trials, the kinds (or those of the given names) in turn."""
    kinds = [kind for kind in KINDS if not names or kind.__name__ in names]
    found = []
    for index in range(count):
        kind = kinds[index % len(kinds)]
        trial = kind(Draw(seed * 10_007 + index))
        found.append(replace(trial, name=f"{trial.kind}-{index:03d}"))
    return found
