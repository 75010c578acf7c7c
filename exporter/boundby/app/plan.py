"""`boundby plan`: what a model on some GPUs can do, before there is anything to watch.

Exit 0; 2 with one line on stderr for anything that cannot be planned.
"""

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from boundby.app.plan_models import ModelError, load
from boundby.app.plan_picture import PictureError, draw
from boundby.app.plan_table import as_json, as_text, example_text
from boundby.core.cost.deployed import read_formats
from boundby.core.cost.duration import IDEAL
from boundby.core.cost.example import figures
from boundby.core.cost.fields import ConfigError
from boundby.core.cost.formats import Formats, uniform
from boundby.core.cost.generation import generation
from boundby.core.cost.pace import MEASURED, MEMORY_RATIO, attainable
from boundby.core.cost.parallel import Parallel
from boundby.core.cost.plan import Deployment, Plan, plan
from boundby.core.cost.reading import read_shape
from boundby.core.cost.shape import ModelShape
from boundby.core.hardware import GPUS, find

USAGE = 2

WIDTH = 80
"""Columns of a plain terminal."""

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

MOST_TOKENS = 100_000_000
MOST_BATCH = 1_000_000
MOST_GPUS = 4096


class PlanError(ValueError):
    """What was asked cannot be planned; the text says why and what to give."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--example", action="store_true", help="work the documented 70B example, nothing else"
    )
    parser.add_argument("--model", help="a config.json, a folder that holds one, or a known name")
    parser.add_argument("--gpu", help='as NVML names it, or shortly: "H100", "a100-sxm4-80"')
    parser.add_argument(
        "--tensor", type=_number(MOST_GPUS), default=1, help="tensor parallel size"
    )
    parser.add_argument("--pipeline", type=_number(MOST_GPUS), default=1, help="pipeline stages")
    parser.add_argument(
        "--expert", type=_number(MOST_GPUS), default=1, help="GPUs that experts are spread over"
    )
    parser.add_argument(
        "--batch", type=_numbers, default=BATCHES, help="batch sizes, as 1,32 (default: 1 to 256)"
    )
    parser.add_argument(
        "--context", type=_number(MOST_TOKENS), default=4096, help="tokens a sequence (4096)"
    )
    parser.add_argument(
        "--prompt", type=_number(MOST_TOKENS), default=2048, help="tokens of a prompt (2048)"
    )
    parser.add_argument("--weights", help="dtype of the weights; default: the config's own")
    parser.add_argument("--kv", help="dtype of the KV cache; default: 16 bits")
    parser.add_argument(
        "--attainable", action="store_true", help="measured efficiencies and fixed times"
    )
    parser.add_argument(
        "--engine", choices=("vllm", "sglang", "trtllm"), help="whose fixed times (default: vllm)"
    )
    parser.add_argument("--what-if", action="store_true", help="set formats and GPUs side by side")
    parser.add_argument("--picture", type=Path, help="write the roofline to FILE.svg or FILE.png")
    parser.add_argument(
        "--output", choices=("text", "json"), default="text", help="for people or for programs"
    )


def _number(most: int) -> Any:
    def parse(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0  # noqa: PLR2004  # digits
        if not 1 <= value <= most:
            msg = f"{text[:40]!r} is not a whole number from 1 to {most}"
            raise argparse.ArgumentTypeError(msg)
        return value

    return parse


def _numbers(text: str) -> tuple[int, ...]:
    one = _number(MOST_BATCH)
    return tuple(dict.fromkeys(one(word.strip()) for word in text.split(",")))


def run(args: argparse.Namespace) -> int:
    """Print the plan that was asked for."""
    try:
        print(_page(args))  # noqa: T201  # printing is what the command is for
    except (PlanError, ModelError, ConfigError, PictureError) as error:
        print(f"boundby plan: {error}", file=sys.stderr)  # noqa: T201  # the one line of a usage error
        return USAGE
    return 0


def _page(args: argparse.Namespace) -> str:
    if args.example:
        if args.output == "json":
            return json.dumps({"example": {figure.id: figure.value for figure in figures()}})
        return example_text(figures())
    name, deployment = _deployment(args)
    asked = _plan(deployment, args)
    variants = list(_variants(deployment, args)) if args.what_if else []
    if args.picture:
        draw(args.picture, f"{name} on {deployment.gpu.key}", deployment, asked)
    if args.output == "json":
        page = {
            "model": name,
            "gpu": deployment.gpu.key,
            "gpu_source": deployment.gpu.source,
            "gpu_uncertain": list(deployment.gpu.uncertain),
            "tensor": args.tensor,
            "pipeline": args.pipeline,
            "attainable": args.attainable,
        }
        return json.dumps({**page, **as_json(asked, variants)}, indent=1)
    return as_text(_title(name, deployment, args), asked, variants)


def _deployment(args: argparse.Namespace) -> tuple[str, Deployment]:
    if not args.model or not args.gpu:
        msg = "give --model and --gpu, or --example"
        raise PlanError(msg)
    gpu = find(args.gpu)
    if gpu is None:
        msg = f"{args.gpu[:60]!r} is in no row of the GPU table. Known: " + ", ".join(
            known.key for known in GPUS
        )
        raise PlanError(msg)
    name, config = load(args.model)
    shape = read_shape(config)
    return name, Deployment(
        shape=shape,
        formats=_formats(config, shape, args.weights, args.kv),
        gpu=gpu,
        parallel=Parallel(tensor=args.tensor, pipeline=args.pipeline, expert=args.expert),
        pace=attainable(gpu, args.engine) if args.attainable else IDEAL,
        memory_ratio=MEMORY_RATIO if args.attainable else 1.0,
    )


def _formats(
    config: Mapping[str, Any], shape: ModelShape, weights: str | None, kv: str | None
) -> Formats:
    """Return the formats asked for: a word for the weights is of all of them, quantised or not."""
    own = read_formats(config, shape, kv=kv)
    return replace(own, parts=uniform(weights).parts) if weights else own


def _plan(deployment: Deployment, args: argparse.Namespace) -> Plan:
    return plan(deployment, batches=args.batch, context=args.context, prompt=args.prompt)


def _variants(deployment: Deployment, args: argparse.Namespace) -> Iterator[tuple[str, Plan]]:
    """Plans with one thing changed: formats first, then GPUs."""
    _, config = load(args.model)
    for weights, kv in (
        ("bf16", None),
        ("fp8", None),
        ("int4", None),
        (None, "fp8"),
        ("fp8", "fp8"),
    ):
        formats = read_formats(config, deployment.shape, weights or args.weights, kv or args.kv)
        if formats == deployment.formats:
            continue
        words = [f"{weights} weights"] if weights else []
        words += [f"{kv} KV"] if kv else []
        yield ", ".join(words), _plan(replace(deployment, formats=formats), args)
    for key in ("a100-sxm4-80", "h100-sxm", "h200-sxm", "b200", "l40s", "mi300x"):
        gpu = find(key)
        if gpu and gpu != deployment.gpu:
            pace = attainable(gpu, args.engine) if args.attainable else IDEAL
            yield key, _plan(replace(deployment, gpu=gpu, pace=pace), args)


def _title(name: str, deployment: Deployment, args: argparse.Namespace) -> list[str]:
    gpu, gpus = deployment.gpu, deployment.parallel.gpus
    roofs = "attainable rates and fixed times" if args.attainable else "ideal roofs"
    lines = [
        f"{name} on {gpus} x {gpu.key}",
        f"weights {args.weights or 'as configured'}, KV {args.kv or 'as configured'}; {roofs}",
        f"GPU by: {gpu.source}",
    ]
    if gpu.uncertain:
        lines.append(f"uncertain of this GPU: {', '.join(gpu.uncertain)}")
    if args.attainable and generation(gpu) not in MEASURED:
        lines.append("no serving was measured on this kind of GPU: its rates are by analogy")
    return [line for text in lines for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ")]
