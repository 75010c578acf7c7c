"""A plan's curves, apart from how they are printed."""

import json
from pathlib import Path

import pytest

from boundby.core.cost import Parallel, read_shape, uniform
from boundby.core.cost.feedforward import distinct
from boundby.core.cost.plan import Deployment, plan
from boundby.core.hardware import Gpu, find

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())


def h100() -> Gpu:
    found = find("NVIDIA H100 80GB HBM3")
    assert found is not None
    return found


DEPLOYMENT = Deployment(
    shape=read_shape(CONFIGS["meta-llama/Llama-3.1-70B"]),
    formats=uniform(),
    gpu=h100(),
    parallel=Parallel(tensor=4),
)
PLAN = plan(DEPLOYMENT, batches=(1, 8, 64, 512), context=4096, prompt=2000)


def test_a_larger_batch_takes_longer_and_gives_more() -> None:
    steps = [point.step_seconds for point in PLAN.decode]
    rates = [point.tokens_per_second for point in PLAN.decode]

    assert steps == sorted(steps)
    assert rates == sorted(rates)


def test_only_batches_that_fit_are_said_to() -> None:
    assert [point.fits for point in PLAN.decode] == [True, True, True, False]


def test_prefill_is_bound_by_arithmetic_and_decode_by_memory() -> None:
    assert PLAN.prefill.bound_by == "compute"
    assert {point.bound_by for point in PLAN.decode} == {"memory_bandwidth"}


def test_a_gpu_of_a_stage_works_while_the_others_wait() -> None:
    staged = Deployment(
        shape=DEPLOYMENT.shape, formats=uniform(), gpu=h100(), parallel=Parallel(pipeline=4)
    )

    point = plan(staged, batches=(8,), context=4096, prompt=2000).decode[0]

    assert point.step_seconds == pytest.approx(4 * PLAN.decode[1].step_seconds, rel=0.01)


@pytest.mark.parametrize(("tokens", "met"), [(0, 0.0), (1, 8.0), (10**6, 256.0)])
def test_more_tokens_meet_more_experts_up_to_all(tokens: int, met: float) -> None:
    assert distinct(256, 8, tokens) == pytest.approx(met)
