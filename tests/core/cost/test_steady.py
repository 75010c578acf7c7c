"""A steady load: how long between tokens, and how many sequences run."""

import json
from pathlib import Path

import pytest

from boundby.core.cost import Parallel, coefficients, read_shape, step_cost, uniform
from boundby.core.cost.duration import rates, step_time
from boundby.core.cost.pace import attainable
from boundby.core.cost.steady import Load, running, tpot
from boundby.core.hardware import find

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
GPU = find("NVIDIA H100 80GB HBM3")
assert GPU is not None
C = coefficients(read_shape(CONFIGS["meta-llama/Llama-3.1-8B"]), uniform(), Parallel())
R = rates(GPU, C, attainable(GPU))


def load(concurrency: float) -> Load:
    return Load(concurrency=concurrency, prompt_tokens=1000, output_tokens=500)


def test_a_sequence_alone_waits_for_its_own_steps_only() -> None:
    alone = load(1)

    assert tpot(C, R, alone).seconds == step_time(step_cost(C, alone.decode), R).seconds


def test_prefills_of_others_lengthen_the_wait() -> None:
    busy = load(64)

    decode = step_time(step_cost(C, busy.decode), R).seconds
    prefill = step_time(step_cost(C, load(1).mixed), R).compute_seconds
    assert decode < tpot(C, R, busy).seconds < decode + 63 / 500 * 2 * prefill


def test_a_late_first_token_means_that_fewer_run() -> None:
    seconds = 500 * tpot(C, R, load(64)).seconds

    decoding = running(C, R, load(64), ttft_seconds=seconds)

    assert 20 < decoding.concurrency < 40


def test_with_no_wait_all_run() -> None:
    assert running(C, R, load(64), ttft_seconds=0.0).concurrency == pytest.approx(64)
