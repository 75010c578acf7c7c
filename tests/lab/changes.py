"""Trials whose load or machine changes half way: what bound before and what binds after."""

from collections.abc import Callable
from dataclasses import replace

from draw import Draw, admission, any_server, host_sync, light, mixed, prefill
from trial import Trial

from boundby.app.demo.load import Load

BEFORE_SECONDS, AFTER_SECONDS = 90.0, 120.0

Change = tuple[Trial, Trial]


def _settled(trial: Trial) -> Trial:
    return replace(trial, dialect="vllm-v1", truth_seconds=400.0)


def load_doubles(d: Draw) -> Change:
    """A server with slots to spare gets more requests than it has slots."""
    before = _settled(admission(d))
    slots = before.settings.max_num_seqs
    calm = replace(before.load, clients=max(1, round(slots * d.between(0.3, 0.6))))
    busy = replace(calm, clients=round(slots * d.between(2.0, 4.0)), ramp_seconds=2.0)
    return replace(before, load=calm), replace(before, load=busy)


def rush(d: Draw) -> Change:
    """Light traffic becomes twelve times as heavy."""
    before = _settled(light(d))
    rate = (before.load.requests_per_second or 1.0) * 12
    return before, replace(before, load=replace(before.load, requests_per_second=rate))


def prompts_grow(d: Draw) -> Change:
    """Chat becomes the reading of documents."""
    before = _settled(admission(d))
    # A short queue, or the old prompts in it would be served long after the change.
    clients = before.settings.max_num_seqs + 4
    before = replace(before, load=replace(before.load, clients=clients))
    prompt = replace(before.load.prompt, mean=d.between(5000, 9000), high=20_000)
    output = replace(before.load.output, mean=6.0, low=1, high=20)
    return before, replace(before, load=replace(before.load, prompt=prompt, output=output))


def heat(d: Draw) -> Change:
    """A fan fails while documents are read."""
    before = _settled(prefill(d))
    board = replace(before.machine.board, thermal_clock_ratio=d.between(0.4, 0.65))
    return before, replace(before, machine=replace(before.machine, board=board))


def cap(d: Draw) -> Change:
    """Someone lowers the power limit while documents are read."""
    before = _settled(prefill(d))
    watts = before.machine.gpu.power_watts * d.between(0.35, 0.5)
    board = replace(before.machine.board, power_limit_watts=watts)
    return before, replace(before, machine=replace(before.machine, board=board))


def slow_host(d: Draw) -> Change:
    """A neighbour takes the CPU."""
    slow = replace(_settled(host_sync(d)), name="")
    host = slow.machine.host
    quick = replace(host, step_seconds=3e-4, sequence_seconds=3e-6)
    return replace(slow, machine=replace(slow.machine, host=quick)), slow


def same(d: Draw) -> Change:
    """Nothing changes: whatever changes in the verdict is a flap."""
    trial = _settled(mixed(d) if d.chance(0.5) else _steady(d))
    return trial, trial


def _steady(d: Draw) -> Trial:
    load = Load(prompt=d.lengths(200, 1500), output=d.lengths(100, 500), clients=d.whole(8, 64))
    return d.trial("same", any_server(d), load)


CHANGES: tuple[Callable[[Draw], Change], ...] = (
    load_doubles,
    rush,
    prompts_grow,
    heat,
    cap,
    slow_host,
    same,
)


def changes(count: int, seed: int) -> list[tuple[str, Change]]:
    """Give `count` changes, the kinds in turn."""
    found = []
    for index in range(count):
        kind = CHANGES[index % len(CHANGES)]
        found.append((f"{kind.__name__}-{index:03d}", kind(Draw(seed * 10_007 + index))))
    return found
