"""Single kernels against published measurements: prints the median error of each regime.

python tests/bench/kernel_accuracy.py DATA_FOLDER [--write FILE]
"""

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import median

from serving_rows import GPUS

from boundby.core.cost.kernels import (
    Attention,
    ExpertLayer,
    NotMeasuredError,
    Product,
    allreduce_seconds,
    decode_attention_seconds,
    experts_seconds,
    gemm_seconds,
    prefill_attention_seconds,
)
from boundby.core.hardware import Gpu, find

Cells = dict[str, str]

WORDS = {"bfloat16": "bf16", "w4a16_mxfp4": "mxfp4"}
"""The files' names of dtypes, where ours differ."""

SKEW = 0.65
"""Power law of routing that fits the rows named power_law_1.2."""

BUSIEST = 1.5
"""Share of the busiest GPU over the mean where skewed experts are spread."""


def regime(value: float, bounds: tuple[tuple[float, str], ...], above: str) -> str:
    """Return the name of the first bound that `value` is within."""
    return next((name for bound, name in bounds if value <= bound), above)


def gemm(gpu: Gpu, cells: Cells) -> tuple[str, float]:
    """Time a row of kernel_gemm.csv."""
    rows = int(cells["m"])
    product = Product(rows=rows, columns=int(cells["n"]), inner=int(cells["k"]))
    word = WORDS.get(cells["gemm_dtype"], cells["gemm_dtype"])
    name = regime(rows, ((16, "up to 16 rows"), (256, "17 to 256 rows")), "over 256 rows")
    return f"{word}, {name}", gemm_seconds(gpu, product, word)


def _attention(cells: Cells, length: str) -> Attention:
    return Attention(
        sequences=int(cells["batch_size"]),
        context=int(cells[length]),
        query_heads=int(cells["num_heads"]),
        kv_heads=int(cells["num_key_value_heads"]),
        width=int(cells["head_dim"]),
    )


def decode(gpu: Gpu, cells: Cells) -> tuple[str, float]:
    """Time a row of kernel_attention_decode.csv."""
    a, word = _attention(cells, "context"), WORDS.get(cells["kv_cache_dtype"], "fp8")
    kv = 2 * a.sequences * a.context * a.kv_heads * a.width * (2 if word == "bf16" else 1)
    name = regime(kv, ((10e6, "KV to 10 MB"), (200e6, "KV to 200 MB")), "KV over 200 MB")
    return f"{word}, {name}", decode_attention_seconds(gpu, a, word)


def prefill(gpu: Gpu, cells: Cells) -> tuple[str, float]:
    """Time a row of kernel_attention_prefill.csv."""
    a, word = _attention(cells, "isl"), WORDS.get(cells["kv_cache_dtype"], "fp8")
    name = regime(a.context, ((1023, "under 1 k"), (4095, "1 k to 4 k")), "4 k and more")
    return f"{word}, {name}", prefill_attention_seconds(gpu, a, word)


@cache
def _met(count: int, active: int, tokens: int) -> float:
    """Experts that skewed routing meets, on average."""
    weights = [rank**-SKEW for rank in range(1, count + 1)]
    total = sum(weights)
    missed = [(1 - min(1.0, active * weight / total)) ** tokens for weight in weights]
    return float(count - sum(missed))


def experts(gpu: Gpu, cells: Cells) -> tuple[str, float]:
    """Time a row of kernel_moe.csv."""
    count, active, tokens = (int(cells[n]) for n in ("num_experts", "topk", "num_tokens"))
    holders, slices = int(cells["moe_ep_size"]), int(cells["moe_tp_size"])
    balanced = cells["distribution"] == "balanced"
    read = float(min(count, active * tokens)) if balanced else _met(count, active, tokens)
    layer = ExpertLayer(
        tokens=tokens if balanced or holders == 1 else int(tokens * BUSIEST + 0.5),
        hidden=int(cells["hidden_size"]),
        inner=int(cells["inter_size"]) // slices,
        count=count,
        active=active,
        holders=holders,
        read=read,
    )
    word = WORDS.get(cells["moe_dtype"], cells["moe_dtype"])
    name = regime(tokens, ((16, "up to 16 tokens"), (256, "17 to 256 tokens")), "over 256 tokens")
    return f"{word}, {name}", experts_seconds(gpu, layer, word)


def allreduce(gpu: Gpu, cells: Cells) -> tuple[str, float]:
    """Time a row of kernel_allreduce.csv; eager launches are the host's time, not the link's."""
    kinds = {"vLLM_custom_graph": "graph", "NCCL": "nccl"}
    kind = kinds.get(cells["kernel_source"])
    if kind is None or "vidur" in cells["lib"]:
        msg = "another host, or launched eagerly"
        raise NotMeasuredError(msg)
    size = float(cells["message_bytes"])
    name = regime(size, ((65535, "under 64 kB"), (2**20, "to 1 MB"), (2**24, "to 16 MB")), "more")
    word = "graph" if kind == "graph" else "nccl"
    return f"{kind}, {name}", allreduce_seconds(gpu, size, int(cells["num_gpus"]), word)  # type: ignore[arg-type]  # one of the two words


KERNELS: dict[str, tuple[str, float, Callable[[Gpu, Cells], tuple[str, float]]]] = {
    "kernel_gemm.csv": ("latency_ms", 1e-3, gemm),
    "kernel_attention_decode.csv": ("latency_ms", 1e-3, decode),
    "kernel_attention_prefill.csv": ("latency_ms", 1e-3, prefill),
    "kernel_moe.csv": ("latency_ms", 1e-3, experts),
    "kernel_allreduce.csv": ("latency_us", 1e-6, allreduce),
}


def errors(path: Path) -> Iterator[tuple[str, str, float]]:
    """Yield regime, GPU and relative error of each row that the model covers."""
    column, unit, time = KERNELS[path.name]
    with path.open() as file:
        for cells in csv.DictReader(file):
            gpu = find(GPUS.get(cells["gpu"], ""))
            if gpu is None:
                continue
            try:
                name, seconds = time(gpu, cells)
            except NotMeasuredError:
                continue
            yield name, cells["gpu"], seconds / (float(cells[column]) * unit) - 1


def page(folder: Path) -> list[str]:
    """Return the report, in Markdown: regimes over all GPUs, and the worst GPU of each."""
    lines = []
    for name in KERNELS:
        groups: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
        for group, gpu, error in errors(folder / name):
            groups[group].append((gpu, error))
        lines += [
            f"| {name} | rows | median | bias | worst GPU |",
            "| --- | ---: | ---: | ---: | --- |",
        ]
        for group, rows in sorted(groups.items()):
            sizes = [abs(error) for _, error in rows]
            each = {
                gpu: median(abs(e) for g, e in rows if g == gpu) for gpu in {g for g, _ in rows}
            }
            worst = max(each, key=lambda gpu: each[gpu])
            lines.append(
                f"| {group} | {len(rows):,} | {median(sizes):.1%} | "
                f"{median(e for _, e in rows):+.1%} | {worst} {each[worst]:.1%} |"
            )
        lines.append("")
    return lines


def main() -> int:
    """Print the report, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    text = "\n".join(page(args.folder))
    sys.stdout.write(text + "\n")
    if args.write:
        args.write.write_text(text + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
