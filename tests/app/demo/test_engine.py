from dataclasses import replace

import pytest

from boundby.app.demo.engine import Engine
from boundby.app.demo.load import Arrivals, Lengths, Load
from boundby.app.demo.machine import GPUS, Board, Host, Machine
from boundby.app.demo.model import Model
from boundby.app.demo.settings import Settings, kv_blocks
from boundby.app.demo.step import Step
from boundby.app.demo.tally import GpuTally

MODEL = Model(key="llama3-8b")
MACHINE = Machine(
    gpu=GPUS["H100"],
    tensor=1,
    board=Board(power_limit_watts=700.0),
    host=Host(step_seconds=5e-4, sequence_seconds=5e-6, launch_seconds=5e-6, overlaps=False),
)
SETTINGS = Settings(max_num_seqs=32, kv_blocks=kv_blocks(MODEL, MACHINE, 0.9))
LOAD = Load(prompt=Lengths(mean=300), output=Lengths(mean=200), clients=64)


def engine_of(
    machine: Machine = MACHINE, settings: Settings = SETTINGS, load: Load = LOAD, seed: int = 1
) -> Engine:
    return Engine(
        MODEL,
        machine,
        settings,
        Arrivals(load, seed),
        seed=seed,
        prefix_tokens=load.prefix_tokens,
        prefixes=load.prefixes,
    )


def done(machine: Machine = MACHINE, settings: Settings = SETTINGS, load: Load = LOAD) -> float:
    engine = engine_of(machine, settings, load)
    engine.advance(30.0)
    return engine.tally.progress_requests


def test_no_more_sequences_run_than_there_are_slots() -> None:
    engine = engine_of()
    engine.advance(20.0)

    assert (engine.running, engine.waiting) == (32, 32)


def test_every_request_is_running_waiting_or_answered() -> None:
    load = replace(LOAD, clients=0, requests_per_second=5.0)
    engine = engine_of(load=load)
    engine.advance(60.0)
    arrivals = Arrivals(load, 1)
    came = 0
    while arrivals.next_at <= 60.0:
        arrivals.take()
        came += 1

    assert engine.running + engine.waiting + engine.tally.finished == came


def test_one_slow_read_sees_what_many_quick_reads_see_within_a_hundredth() -> None:
    once, often = engine_of(), engine_of()
    once.advance(30.0)
    for tenth in range(1, 301):
        often.advance(tenth / 10)

    assert often.tally.generation_tokens == pytest.approx(once.tally.generation_tokens, rel=0.01)


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = engine_of(), engine_of()
    first.advance(10.0)
    second.advance(10.0)

    assert first.tally.histograms["ttft"].sum == second.tally.histograms["ttft"].sum


def test_a_cache_too_small_for_the_load_preempts_and_keeps_its_books() -> None:
    engine = engine_of(settings=replace(SETTINGS, kv_blocks=500))
    engine.advance(60.0)

    assert engine.tally.preemptions > 0
    assert 0.8 < engine.kv_used_ratio <= 1.0


def test_a_drained_engine_holds_no_blocks() -> None:
    load = replace(LOAD, think_seconds=1e6)
    engine = engine_of(settings=replace(SETTINGS, kv_blocks=500), load=load)
    engine.advance(200.0)

    assert (engine.running, engine.waiting, engine.kv_used_ratio) == (0, 0, 0.0)


def test_a_prompt_longer_than_the_cache_is_refused() -> None:
    engine = engine_of(settings=replace(SETTINGS, kv_blocks=8))
    engine.advance(10.0)

    assert engine.tally.aborted > 0


def test_idle_time_is_wall_time_without_busy_time() -> None:
    engine = engine_of(load=replace(LOAD, clients=0, requests_per_second=1e-9))
    engine.advance(10.0)

    assert engine.gpu.wall_seconds == pytest.approx(10.0)
    assert engine.gpu.busy_seconds == 0.0


def test_the_gpu_is_accounted_for_to_the_moment_of_reading() -> None:
    engine = engine_of()
    engine.advance(12.345)

    assert engine.gpu_now().wall_seconds == pytest.approx(12.345)


@pytest.mark.parametrize(
    ("better", "helps"),
    [
        pytest.param({"settings": replace(SETTINGS, max_num_seqs=64)}, True, id="slots help"),
        pytest.param({"settings": replace(SETTINGS, kv_blocks=60_000)}, False, id="blocks do not"),
        pytest.param({"load": replace(LOAD, clients=128)}, False, id="nor does more load"),
        pytest.param(
            {"machine": replace(MACHINE, bandwidth_scale=2.0)}, True, id="bandwidth does help"
        ),
    ],
)
def test_a_server_short_of_slots_gains_from(better: dict[str, object], *, helps: bool) -> None:
    gain = done(**better) / done()  # type: ignore[arg-type]  # one keyword of three

    assert (gain > 1.1) is helps


def test_prefills_that_do_not_mix_leave_decoding_out_of_their_steps() -> None:
    seen: list[Step] = []
    engine = engine_of(settings=replace(SETTINGS, mixes=False))
    engine.on_step = seen.append
    engine.advance(10.0)

    assert any(step.prefill_tokens for step in seen)
    assert not any(step.prefill_tokens and step.decoding for step in seen)


def test_no_step_exceeds_the_token_budget() -> None:
    seen: list[Step] = []
    engine = engine_of(settings=replace(SETTINGS, max_num_batched_tokens=512))
    engine.on_step = seen.append
    engine.advance(10.0)

    assert max(step.work.tokens for step in seen) == 512


def test_cached_prefixes_are_counted_as_hits_and_not_computed() -> None:
    load = replace(LOAD, prefix_tokens=1600)
    engine = engine_of(load=load)
    engine.advance(20.0)

    assert engine.tally.prefix_hits / engine.tally.prefix_queries == pytest.approx(
        1600 / 1900, abs=0.05
    )


def test_a_power_cap_lowers_the_clock_until_the_watts_fit() -> None:
    capped = replace(MACHINE, board=replace(MACHINE.board, power_limit_watts=300.0))
    engine = engine_of(
        capped, load=replace(LOAD, prompt=Lengths(mean=6000), output=Lengths(mean=2))
    )
    engine.advance(20.0)
    before = engine.gpu_now().plus(GpuTally())
    engine.advance(40.0)
    watts = (engine.gpu_now().energy_joules - before.energy_joules) / 20.0

    assert watts == pytest.approx(300.0, rel=0.05)
    assert engine.clocks.ratio < 0.95
    assert engine.clocks.held_by_power


def test_heat_holds_the_clock_and_is_not_called_power() -> None:
    hot = replace(MACHINE, board=replace(MACHINE.board, thermal_clock_ratio=0.6))
    engine = engine_of(hot)
    engine.advance(10.0)

    assert engine.clocks.ratio == pytest.approx(0.6)
    assert (engine.clocks.held_by_heat, engine.clocks.held_by_power) == (True, False)


def test_twice_the_clients_make_a_longer_queue_from_then_on() -> None:
    engine = engine_of()
    engine.advance(20.0)
    engine.change(MACHINE, replace(LOAD, clients=128))
    engine.advance(40.0)

    assert (engine.running, engine.waiting) == (32, 96)


def test_fewer_clients_leave_as_they_are_answered() -> None:
    engine = engine_of()
    engine.advance(20.0)
    engine.change(MACHINE, replace(LOAD, clients=10))
    engine.advance(60.0)

    assert engine.running + engine.waiting == 10


def test_twice_the_rate_brings_twice_the_requests() -> None:
    load = replace(LOAD, clients=0, requests_per_second=4.0)
    engine = engine_of(load=load)
    engine.advance(100.0)
    before = engine.tally.finished
    engine.change(MACHINE, replace(load, requests_per_second=8.0))
    engine.advance(200.0)

    assert engine.tally.finished - before == pytest.approx(800, rel=0.1)


def test_heat_that_comes_later_lowers_the_clock_from_then_on() -> None:
    engine = engine_of()
    engine.advance(10.0)
    before = engine.clocks.ratio
    hot = replace(MACHINE, board=replace(MACHINE.board, thermal_clock_ratio=0.6))
    engine.change(hot, LOAD)
    engine.advance(20.0)

    assert (before, engine.clocks.ratio) == (1.0, pytest.approx(0.6))
