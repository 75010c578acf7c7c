from dataclasses import replace

import pytest

from boundby.app.demo.machine import GPUS, MACHINE_RESOURCES, Board, Host, Machine, improved
from boundby.app.demo.model import CONFIGS, Model
from boundby.app.demo.pace import Pace, Work

HOST = Host(step_seconds=5e-4, sequence_seconds=5e-6, launch_seconds=5e-6, overlaps=False)
MACHINE = Machine(gpu=GPUS["H100"], tensor=1, board=Board(power_limit_watts=700.0), host=HOST)
ONE_TOKEN = Work(1, 1, 1000, 0, 0)
LONG_PREFILL = Work(8192, 1, 0, 8192**2 / 2, 8192)


def test_decoding_one_sequence_moves_at_least_the_weights() -> None:
    model = Model(key="llama3-8b")
    did = Pace(model, MACHINE).forward(ONE_TOKEN)
    table = model.config["vocab_size"] * model.config["hidden_size"] * 2

    assert did.dram_bytes == pytest.approx(model.weight_bytes - table, rel=0.02)
    assert did.seconds > did.dram_bytes / GPUS["H100"].bandwidth_bytes_per_second


def test_a_long_prefill_runs_near_the_share_of_peak_the_machine_reaches() -> None:
    did = Pace(Model(key="llama3-8b"), MACHINE).forward(LONG_PREFILL)

    assert did.tensor_seconds / did.seconds == pytest.approx(0.65, abs=0.1)


@pytest.mark.parametrize(
    ("work", "resource"),
    [
        pytest.param(ONE_TOKEN, "memory_bandwidth", id="one sequence decodes at memory speed"),
        pytest.param(LONG_PREFILL, "compute", id="a prompt is read at compute speed"),
    ],
)
def test_what_helps_most(work: Work, resource: str) -> None:
    model = Model(key="llama3-8b")
    times = {
        name: Pace(model, improved(MACHINE, name)).forward(work).seconds
        for name in MACHINE_RESOURCES
    }

    assert min(times, key=times.__getitem__) == resource


def test_tensor_parallelism_divides_the_bytes_and_adds_the_link() -> None:
    model = Model(key="llama3-70b")
    four = Pace(model, replace(MACHINE, tensor=4)).forward(ONE_TOKEN)
    eight = Pace(model, replace(MACHINE, tensor=8)).forward(ONE_TOKEN)

    assert four.dram_bytes == pytest.approx(2 * eight.dram_bytes, rel=0.02)
    assert four.link_bytes == 2 * 80 * 8192 * 2 * 1.5


def test_few_tokens_touch_few_experts_and_many_touch_all() -> None:
    pace = Pace(Model(key="qwen3-30b-a3b"), MACHINE)
    one, many = (pace.forward(Work(n, n, 0, 0, 0)).dram_bytes for n in (1, 512))

    assert many > 8 * one


@pytest.mark.parametrize("key", CONFIGS)
def test_every_model_has_a_pace(key: str) -> None:
    assert 0 < Pace(Model(key=key), MACHINE).forward(ONE_TOKEN).seconds < 1.0


@pytest.mark.parametrize(
    ("key", "billions"), [("llama3-8b", 8.03), ("llama3-70b", 70.6), ("qwen3-30b-a3b", 30.5)]
)
def test_weights_add_up_to_the_published_parameter_count(key: str, billions: float) -> None:
    assert Model(key=key).weight_bytes / 2e9 == pytest.approx(billions, rel=0.02)


def test_slow_clocks_slow_compute_and_kernels_but_not_memory() -> None:
    pace = Pace(Model(key="llama3-8b"), MACHINE)
    slower = {
        work: pace.forward(work, 0.5).seconds / pace.forward(work).seconds
        for work in (ONE_TOKEN, LONG_PREFILL)
    }

    assert slower[LONG_PREFILL] > 1.8
    assert slower[ONE_TOKEN] < 1.4


def test_an_unknown_resource_is_refused() -> None:
    with pytest.raises(KeyError, match="kv_capacity"):
        improved(MACHINE, "kv_capacity")
