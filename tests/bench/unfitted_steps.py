"""Decode steps that no constant was fitted to: decode workers apart, and static batches.

Both give the batch, so that a step is compared with a step.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from serving_rows import GPUS, MODELS, RANDOM_LENGTHS, SAME_AS, formats_of

from boundby.core.cost import (
    Formats,
    Parallel,
    StepBatch,
    coefficients,
    read_shape,
    step_cost,
    uniform,
)
from boundby.core.cost.duration import rates, step_time
from boundby.core.cost.pace import attainable
from boundby.core.cost.shape import ModelShape
from boundby.core.hardware import find

STATIC = {
    "llama2-7b": "meta-llama/Llama-2-7b-hf",
    "llama2-70b": "meta-llama/Llama-2-70b-hf",
}
"""Models of static_steps.csv whose configs we ship."""

STATIC_GPUS = {"a100_sxm": "a100-sxm4-80", "a100_pcie": "a100-pcie-80", "a10g": "a10g"}


def _seconds(
    name: str,
    engine: str,
    shape: ModelShape,
    formats: Formats,
    parallel: Parallel,
    batch: float,
    context: float,
) -> float:
    gpu = find(name)
    if gpu is None:
        raise KeyError(name)
    c = coefficients(shape, formats, parallel)
    step = StepBatch(decode_sequences=batch, decode_context_tokens=batch * context)
    return step_time(step_cost(c, step), rates(gpu, c, attainable(gpu, engine))).seconds


def workers(folder: Path) -> Iterator[tuple[str, float]]:
    """Yield group and relative error of decode workers whose batch is known."""
    shapes = {name: read_shape(config) for name, config in json.loads(MODELS.read_text()).items()}
    with (folder / "serving_disaggregated.csv").open() as file:
        for cells in csv.DictReader(file):
            name = SAME_AS.get(cells["model"], cells["model"])
            if not cells["decode_batch"] or name not in shapes:
                continue
            tensor, ranks, expert = (
                max(1, int(float(cells[key] or 1)))
                for key in ("decode_tp", "decode_attn_dp", "decode_ep")
            )
            if ranks > 1:
                tensor = max(1, tensor // ranks)
            prompt, output = (float(cells[key]) for key in ("isl", "osl"))
            share = 0.9 if {prompt, output} <= RANDOM_LENGTHS else 1.0
            seconds = _seconds(
                GPUS[cells["gpu"]],
                cells["engine"],
                shapes[name],
                formats_of(name, shapes[name], cells["precision"]),
                Parallel(tensor=tensor, expert=expert),
                float(cells["decode_batch"]),
                share * (prompt + output / 2),
            )
            kind = "attention in ranks" if ranks > 1 else "tensor parallel"
            group = f"{cells['gpu']}, {cells['engine']}, {kind}"
            yield group, seconds / (float(cells["tpot_ms"]) / 1e3) - 1


def static(folder: Path) -> Iterator[tuple[str, float]]:
    """Yield group and relative error of static decode batches, in 16 bits, of older engines."""
    shapes = {name: read_shape(config) for name, config in json.loads(MODELS.read_text()).items()}
    with (folder / "static_steps.csv").open() as file:
        for cells in csv.DictReader(file):
            name = STATIC.get(cells["model"])
            known = name and cells["gpu"] in STATIC_GPUS and cells["phase"] == "decode"
            if not name or not known or cells["kv_limited"] == "1" or cells["dtype"] != "fp16":
                continue
            seconds = _seconds(
                STATIC_GPUS[cells["gpu"]],
                "trtllm",
                shapes[name],
                uniform("fp16"),
                Parallel(tensor=int(cells["tp"])),
                float(cells["batch"]),
                float(cells["prompt_tokens"]) + float(cells["output_tokens"] or 0) / 2,
            )
            group = f"{cells['gpu']}, {cells['engine']}"
            yield group, seconds / (float(cells["measured_ms"]) / 1e3) - 1


def page(folder: Path) -> Iterator[str]:
    """Yield the report, in Markdown."""
    for title, rows in (("decode worker", workers(folder)), ("static batch", static(folder))):
        groups: dict[str, list[float]] = {}
        for group, error in rows:
            groups.setdefault(group, []).append(error)
        yield f"| {title} | rows | median | bias |"
        yield "| --- | ---: | ---: | ---: |"
        for group, errors in sorted(groups.items()):
            size = median(abs(error) for error in errors)
            yield f"| {group} | {len(errors)} | {size:.1%} | {median(errors):+.1%} |"
        yield ""
