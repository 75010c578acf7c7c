"""Fits the constants of boundby.core.cost.pace to measured serving, and leaves models out.

    python tests/bench/fit_pace.py DATA_FOLDER

Needs numpy and scipy, which the program itself does not. Least squares on the logarithm of the
time per output token, robust, with priors from single kernels; each model left out in turn says
how the constants fare on a model they have not seen. The constants are then rounded into
`pace.py` by hand.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from serving_rows import Row, read_rows

from boundby.core.cost import StepBatch, step_cost
from boundby.core.cost.generation import generation

Array = npt.NDArray[np.float64]

ENGINES = ("vllm", "sglang", "trtllm")
GENERATIONS = ("hopper", "blackwell")

KERNEL_RATIOS = {
    ("hopper", "bf16"): (0.80, 0.87),
    ("hopper", "fp8"): (0.58, 0.82),
    ("blackwell", "bf16"): (0.71, 0.87),
    ("blackwell", "fp8"): (0.44, 0.78),
    ("blackwell", "fp4"): (0.43, 0.88),
}
"""Compute and memory shares of matrix products, from single kernels; memory is scaled once."""

STRENGTH = 5.0
"""Weight of the priors: with less, models left out fare worse."""

ROBUST = 0.12
"""Relative error beyond which a row counts less."""

PER_GENERATION = {
    "expert memory": (0.8, 1.0),
    "attention memory": (0.85, 1.0),
    "attention compute": (0.45, 1.0),
    "expert compute": (0.5, 0.5),
    "link": (0.75, 1.0),
    "collective seconds": (5e-6, 0.5),
    "ramp": (1.0, 0.5),
    "dense memory scale": (1.0, 1.0),
    **{f"kernel seconds, {engine}": (4e-6, 0.5) for engine in ENGINES},
}
PER_ENGINE = {"step seconds": (5e-4, 0.3), "sequence seconds": (5e-6, 0.3)}
"""Each constant's prior and how firmly it is held."""

NAMES = [f"{g}: {name}" for g in GENERATIONS for name in PER_GENERATION] + [
    f"{e}: {name}" for e in ENGINES for name in PER_ENGINE
]
PRIOR = np.log(
    [v for _ in GENERATIONS for v, _ in PER_GENERATION.values()]
    + [v for _ in ENGINES for v, _ in PER_ENGINE.values()]
)
HELD = STRENGTH * np.array(
    [w for _ in GENERATIONS for _, w in PER_GENERATION.values()]
    + [w for _ in ENGINES for _, w in PER_ENGINE.values()]
)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as arrays: ideal seconds of each group of kernels, for a decode and a mixed step."""

    decode: Array
    mixed: Array
    kernels: Array
    sequences: Array
    prefills: Array
    measured: Array
    generation: npt.NDArray[np.str_]
    engine: npt.NDArray[np.str_]
    ratios: Array

    def some(self, mask: npt.NDArray[np.bool_]) -> "Rows":
        """Return the rows of a mask."""
        return Rows(*(getattr(self, name)[mask] for name in self.__slots__))


def _ideal(row: Row, batch: StepBatch) -> list[float]:
    cost, c, gpu = step_cost(row.c, batch), row.c, row.gpu
    moved, wide = gpu.memory_bytes_per_second, gpu.best_peak_flops("bf16")
    return [
        (cost.weight_flops - cost.expert_flops) / gpu.best_peak_flops(c.arithmetic),
        (cost.weight_bytes - cost.expert_bytes) / moved,
        cost.expert_flops / gpu.best_peak_flops(c.expert_arithmetic),
        cost.expert_bytes / moved,
        cost.attention_flops / wide,
        (cost.kv_read_bytes + cost.kv_write_bytes + cost.state_bytes) / moved,
        cost.head_flops / wide,
        cost.head_bytes / moved,
        cost.collective_bytes / gpu.link_bytes_per_second,
        cost.collective_count,
        cost.activation_bytes / moved,
    ]


def _running(row: Row) -> Row:
    """Return the row with the sequences that decode at once, by Little's law."""
    decoding = row.load.output_tokens * row.tpot_seconds
    share = decoding / (decoding + row.ttft_seconds)
    running = max(1.0, row.load.concurrency * share)
    return replace(row, load=replace(row.load, concurrency=running))


def gather(rows: Sequence[Row]) -> Rows:
    """Turn rows into arrays."""
    ratios = []
    for row in rows:
        g = generation(row.gpu)
        dense = KERNEL_RATIOS[g, row.gpu.runs_in(row.c.arithmetic)]
        routed = KERNEL_RATIOS[g, row.gpu.runs_in(row.c.expert_arithmetic)]
        ratios.append([*dense, routed[0], *KERNEL_RATIOS[g, "bf16"]])
    running = [_running(row) for row in rows]
    return Rows(
        decode=np.array([_ideal(row, row.load.decode) for row in running]),
        mixed=np.array([_ideal(row, row.load.mixed) for row in running]),
        kernels=np.array([row.c.kernels for row in rows]),
        sequences=np.array([row.load.concurrency for row in running]),
        prefills=np.array([row.load.prefills_per_step for row in running]),
        measured=np.array([row.tpot_seconds for row in rows]),
        generation=np.array([generation(row.gpu) for row in rows]),
        engine=np.array([row.engine for row in rows]),
        ratios=np.array(ratios),
    )


def predict(constants: Array, rows: Rows) -> Array:
    """Return times per output token: the arithmetic of `duration` and `steady`, on arrays."""
    value = dict(zip(NAMES, np.exp(constants), strict=True))

    def by(choices: Sequence[str], where: npt.NDArray[np.str_], name: str) -> Array:
        return np.select(
            [where == word for word in choices], [value[f"{w}: {name}"] for w in choices]
        )

    def of(name: str) -> Array:
        return by(GENERATIONS, rows.generation, name)

    compute, memory, routed, wide, wide_memory = rows.ratios.T
    scale = np.minimum(of("dense memory scale"), 0.97 / memory)

    def roofs(t: Array) -> Array:
        return np.asarray(
            np.maximum(t[:, 0] / compute, t[:, 1] / memory / scale)
            + np.maximum(t[:, 2] / routed / of("expert compute"), t[:, 3] / of("expert memory"))
            + np.maximum(t[:, 4] / of("attention compute"), t[:, 5] / of("attention memory"))
            + np.maximum(t[:, 6] / wide, t[:, 7] / wide_memory / scale)
            + t[:, 8] / of("link")
            + t[:, 9] * of("collective seconds")
            + of("ramp") * np.sqrt(t[:, 8] * t[:, 9] * 5e-6)
            + t[:, 10]
        )

    kernel = sum(
        np.where(rows.engine == engine, of(f"kernel seconds, {engine}"), 0.0) for engine in ENGINES
    )
    decode = roofs(rows.decode)
    return np.asarray(
        decode
        + rows.kernels * kernel
        + by(ENGINES, rows.engine, "step seconds")
        + rows.sequences * by(ENGINES, rows.engine, "sequence seconds")
        + rows.prefills * (roofs(rows.mixed) - decode)
    )


def fit(rows: Rows, start: Array = PRIOR) -> Array:
    """Return the constants that fit best, as logarithms."""
    target = np.log(rows.measured)

    def residuals(constants: Array) -> Array:
        return np.concatenate(
            [np.log(predict(constants, rows)) - target, HELD * (constants - PRIOR)]
        )

    found = least_squares(residuals, start, loss="soft_l1", f_scale=ROBUST, max_nfev=80)
    return np.asarray(found.x)


def left_out(
    everything: Sequence[Row], report: Callable[[str], object]
) -> tuple[Mapping[str, float], list[float]]:
    """Fit on all but one model, try that one, for each; return all constants and the errors."""
    rows = gather(everything)
    clean = np.array([row.apart is None for row in everything])
    models = np.array([row.shape_name for row in everything])
    constants = fit(rows.some(clean))
    errors: list[float] = []
    for model in sorted(set(models)):
        seen = fit(rows.some(clean & (models != model)), constants)
        tried = rows.some(models == model)
        own = predict(seen, tried) / tried.measured - 1
        kept = own[clean[models == model]]
        report(
            f"| {model} | {len(kept):,} | {np.median(abs(kept)):.1%} | "
            f"{np.quantile(abs(kept), 0.9):.1%} | {np.median(kept):+.1%} |"
        )
        errors += list(own)
    return dict(zip(NAMES, np.exp(constants), strict=True)), errors


def page(folder: Path) -> Iterator[str]:
    """Yield the report of models left out, in Markdown, and the constants."""
    rows = [row for row in read_rows(folder) if not (row.apart or "").startswith("more than one")]
    lines: list[str] = []
    constants, errors = left_out(rows, lines.append)
    yield "| model left out | rows | median | p90 | bias |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    yield from lines
    sizes = np.abs(errors)
    yield (
        f"| all, odd rows too | {len(sizes):,} | {np.median(sizes):.1%} | "
        f"{np.quantile(sizes, 0.9):.1%} | {np.median(errors):+.1%} |"
    )
    yield ""
    for name, value in constants.items():
        yield f"    {name:36} {value:.3g}"


if __name__ == "__main__":
    for line in page(Path(sys.argv[1])):
        sys.stdout.write(line + "\n")
