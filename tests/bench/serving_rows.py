"""Published serving measurements as deployments and loads of the cost model.

What a row leaves unsaid is decided here, once, for every row alike: which parts a precision
quantises, the dtype of its KV cache, and mean lengths where a benchmark draws them at random.
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from boundby.core.cost import Coefficients, Formats, Parallel, coefficients, read_shape, uniform
from boundby.core.cost.formats import BF16, FP8, MXFP4, NVFP4
from boundby.core.cost.shape import ModelShape
from boundby.core.cost.steady import Load
from boundby.core.hardware import Gpu, find

MODELS = Path(__file__).parents[2] / "exporter/boundby/core/cost/models.json"

SAME_AS = {
    "deepseek-ai/DeepSeek-R1": "deepseek-ai/DeepSeek-V3",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-ai/DeepSeek-V3",
    "nvidia/DeepSeek-V3.1-NVFP4": "deepseek-ai/DeepSeek-V3",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Llama-3.1-8B",
    "nvidia/Qwen3-32B-NVFP4": "Qwen/Qwen3-32B",
}
"""Models of the same sizes."""

GPUS = {
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "b300_sxm": "b300",
    "gb200": "gb200",
    "gb300": "gb300",
    "a100_sxm": "a100-sxm4-80",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtxpro6000-server",
}
"""The file's names of GPUs, by the keys of our table."""

RANDOM_LENGTHS = {1024, 8192}
"""Nominal lengths of which one benchmark draws 0.8 to 1.0 at random; the mean is 0.9."""

QUEUED_SHARE = 0.35
"""A first token later than this share of the whole decode has waited in a queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement. `apart` says why it is not among the rows that the constants come from."""

    gpu_name: str
    gpu: Gpu
    engine: str
    version: str
    model: str
    precision: str
    shape_name: str
    tensor: int
    expert: int
    load: Load
    tpot_seconds: float
    ttft_seconds: float
    c: Coefficients = field(repr=False)
    apart: str | None

    @property
    def deployment(self) -> tuple[str | int, ...]:
        """What one calibration would be learnt on."""
        return (
            self.gpu_name, self.engine, self.version, self.model, self.precision, self.tensor,
            self.expert,
        )  # fmt: skip


def formats_of(shape_name: str, shape: ModelShape, precision: str) -> Formats:
    """Return the formats that a row's precision stands for, with its KV cache."""
    if shape_name.startswith("openai/gpt-oss"):
        formats = uniform()
        return replace(formats, parts={**formats.parts, "experts": MXFP4})
    whole = {"fp8": FP8, "fp4": NVFP4}.get(precision, BF16)
    parts = {**dict.fromkeys(uniform().parts, whole), "head": BF16, "router": BF16}
    if precision == "fp4" and any(g.feed_forward and g.feed_forward.experts for g in shape.groups):
        attention = FP8 if "MiniMax" in shape_name else BF16
        parts["attention"] = parts["recurrent"] = attention
    narrow_cache = precision in {"fp8", "fp4"} and "Qwen3.5" not in shape_name
    return Formats(parts=parts, kv_bytes_per_element=1.0 if narrow_cache else 2.0)


def read_rows(folder: Path) -> Iterator[Row]:
    """Read serving_aggregated.csv."""
    shapes = {name: read_shape(config) for name, config in json.loads(MODELS.read_text()).items()}
    with (folder / "serving_aggregated.csv").open() as file:
        for cells in csv.DictReader(file):
            yield _row(cells, shapes)


def _row(cells: dict[str, str], shapes: dict[str, ModelShape]) -> Row:
    shape_name = SAME_AS.get(cells["model"], cells["model"])
    shape = shapes[shape_name]
    gpu = find(GPUS[cells["gpu"]])
    if gpu is None:
        raise KeyError(cells["gpu"])
    tensor, expert, ranks = _parallel(cells)
    prompt, output = float(cells["isl"]), float(cells["osl"])
    if prompt in RANDOM_LENGTHS and output in RANDOM_LENGTHS:
        prompt, output = 0.9 * prompt, 0.9 * output
    tpot, ttft = float(cells["tpot_ms"]) / 1e3, float(cells["ttft_ms"]) / 1e3
    load = Load(
        concurrency=float(cells["concurrency"]) / ranks,
        prompt_tokens=prompt,
        output_tokens=output,
    )
    return Row(
        gpu_name=cells["gpu"],
        gpu=gpu,
        engine=cells["engine"],
        version=cells["engine_version"],
        model=cells["model"],
        precision=cells["precision"] or "bf16",
        shape_name=shape_name,
        tensor=tensor,
        expert=expert,
        load=load,
        tpot_seconds=tpot,
        ttft_seconds=ttft,
        c=coefficients(
            shape,
            formats_of(shape_name, shape, cells["precision"]),
            Parallel(tensor=tensor, expert=expert),
        ),
        apart=_apart(cells, tensor, ttft / (tpot * output)),
    )


def _parallel(cells: dict[str, str]) -> tuple[int, int, int]:
    """Return tensor size, expert size and engine ranks; the source multiplies sizes set together.

    So 64 x 8 is 8 GPUs of both kinds, and with attention in ranks each rank is one GPU.
    """
    tensor, expert = int(cells["tp"]), int(cells["ep"] or 0) or 1
    if int(cells["attn_dp"] or 0) > 1:
        gpus = tensor if tensor > 1 else expert
        return 1, gpus, gpus
    if tensor == expert * expert:
        tensor = expert
    return tensor, expert, 1


def _apart(cells: dict[str, str], tensor: int, waited: float) -> str | None:
    """Return why a row is not what its columns say, or not what the model covers."""
    engine, model = cells["engine"], cells["model"]
    reasons = (
        (cells["wip"] != "0", "work in progress by its source"),
        (int(cells["attn_dp"] or 0) > 1, "attention data parallel: how is said ambiguously"),
        (tensor > 8, "more than one node: GPUs of several roles"),
        (waited >= QUEUED_SHARE, "queued: how many ran is only deduced"),
        ("DeepSeek-R1" in model and engine == "trtllm", "drafts tokens: twice the pace of V3"),
        (cells["gpu"] == "gb200", "several replicas behind one concurrency"),
        (model.startswith("nvidia/"), "requests arrive at a rate; concurrency is nominal"),
    )
    return next((why for is_so, why in reasons if is_so), None)
