"""What LoRA adapters add."""

import json
from pathlib import Path

from boundby.core.cost import read_shape
from boundby.core.cost.adapters import Adapters, adapter_cost, adapter_elements

ROOT = Path(__file__).parents[3]
CONFIGS = json.loads((ROOT / "exporter/boundby/core/cost/models.json").read_text())
LLAMA = read_shape(CONFIGS["meta-llama/Llama-3.1-8B"])


def test_an_adapter_of_rank_16_has_its_published_size() -> None:
    # q, k, v, o, gate, up and down of 32 layers: 41,943,040 trainable elements
    assert adapter_elements(LLAMA, 16) == 41_943_040


def test_each_adapter_in_the_batch_is_read_once() -> None:
    one = adapter_cost(LLAMA, Adapters(rank=16, in_batch=1), tokens=64)
    four = adapter_cost(LLAMA, Adapters(rank=16, in_batch=4), tokens=64)

    assert (four.bytes, four.flops) == (4 * one.bytes, one.flops)


def test_no_more_adapters_are_read_than_tokens_use_them() -> None:
    few = adapter_cost(LLAMA, Adapters(rank=16, in_batch=100), tokens=2)

    assert few.bytes == 2 * 2 * 41_943_040
