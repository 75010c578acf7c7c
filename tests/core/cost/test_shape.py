"""Shapes of 47 published models against their published sizes."""

import csv
import json
from pathlib import Path

import pytest

from boundby.core.cost import (
    Parallel,
    coefficients,
    kv_bytes_per_token,
    read_shape,
    uniform,
)

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
with (ROOT / "tests/fixtures/models/facts.csv").open() as file:
    FACTS = {row["model"]: row for row in csv.DictReader(file)}

BUILT = json.loads((ROOT / "tests/fixtures/models/implementations.json").read_text())

NAMES = sorted(FACTS)
OURS = {"meta-llama/Llama-4-Scout-17B-16E": -12_288}
"""Elements by which we differ: Llama 4's query-key norm has no weights."""


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_element_is_counted(name: str) -> None:
    shape = read_shape(CONFIGS[name])

    assert shape.parameters == int(FACTS[name]["computed_total"]) + OURS.get(name, 0)


@pytest.mark.parametrize("tensor", [1, 4])
@pytest.mark.parametrize("name", NAMES)
def test_the_weights_that_gpus_hold_are_all_there_are(name: str, tensor: int) -> None:
    shape = read_shape(CONFIGS[name])

    c = coefficients(shape, uniform(), Parallel(tensor=tensor))

    routers = sum(g.count * g.feed_forward.router for g in shape.groups if g.feed_forward)
    norms = shape.vectors + sum(g.count * g.vectors for g in shape.groups)
    copies = (tensor - 1) * (routers + norms)
    assert tensor * c.weight_bytes_per_gpu == pytest.approx(2 * (shape.parameters + copies))


@pytest.mark.parametrize("name", NAMES)
def test_only_the_experts_a_token_takes_are_active(name: str) -> None:
    shape = read_shape(CONFIGS[name])

    expected = int(FACTS[name]["computed_active_incl_embeddings"]) + OURS.get(name, 0)
    assert shape.active_parameters == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_cached_token_takes_the_published_bytes(name: str) -> None:
    shape = read_shape(CONFIGS[name])

    row = FACTS[name]
    assert kv_bytes_per_token(shape, uniform()) == int(row["kv_bytes_per_token_full_16bit"]) + int(
        row["kv_bytes_per_token_window_16bit"]
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_recurrent_state_is_as_large_as_published(name: str) -> None:
    shape = read_shape(CONFIGS[name])

    state = sum(g.count * g.mixer.state_elements for g in shape.groups if g.mixer)
    assert state == int(FACTS[name]["state_elements_per_request"])


def test_counts_are_near_the_published_ones_for_most_models() -> None:
    errors = []
    for name, row in FACTS.items():
        published = float(row["published_exact"] or 1e9 * float(row["published_total_B"]))
        errors.append(abs(read_shape(CONFIGS[name]).parameters / published - 1))

    assert sum(error <= 0.002 for error in errors) >= 31
    assert sum(error <= 0.01 for error in errors) >= 42


@pytest.mark.parametrize("family", sorted(BUILT))
def test_a_family_is_as_large_as_its_implementation(family: str) -> None:
    shape = read_shape(BUILT[family]["config"])

    # buffers that checkpoints store and the implementation does not count are some thousands
    assert shape.parameters == pytest.approx(BUILT[family]["parameters"], rel=1e-6, abs=1000)
