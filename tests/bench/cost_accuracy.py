"""The cost model against measured serving: prints its errors, good and bad rows alike.

    python tests/bench/cost_accuracy.py DATA_FOLDER [--write docs/accuracy-cost.md]

DATA_FOLDER holds serving_aggregated.csv (measurements of others; see the page it writes).
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

from serving_rows import Row, read_rows

from boundby.core.cost.calibration import fresh, learn
from boundby.core.cost.duration import StepTime, rates, step_time
from boundby.core.cost.pace import attainable
from boundby.core.cost.steady import running, tpot
from boundby.core.cost.step import step_cost

FEWEST = 6
"""Rows of one deployment from which half are enough to learn from."""


def estimate(row: Row) -> StepTime:
    """Return the uncalibrated time per output token, at the sequences that run."""
    r = rates(row.gpu, row.c, attainable(row.gpu, row.engine))
    return tpot(row.c, r, running(row.c, r, row.load, row.ttft_seconds))


def calibrated(judged: Sequence[tuple[Row, StepTime]]) -> Iterator[tuple[Row, float]]:
    """Learn each deployment on every other row, and give the errors of the rows between."""
    deployments: defaultdict[Hashable, list[tuple[Row, StepTime]]] = defaultdict(list)
    for row, time in judged:
        deployments[row.deployment].append((row, time))
    for deployment, points in deployments.items():
        if len(points) < FEWEST:
            continue
        for start in (0, 1):
            known = fresh(deployment, 0.0)
            for row, time in points[start::2]:
                known = learn(known, deployment, 0.0, time, row.tpot_seconds)
            for row, time in points[1 - start :: 2]:
                yield row, known.correct(time).seconds / row.tpot_seconds - 1


def floor_seconds(row: Row) -> float:
    """Return the ideal time of a decode step of the sequences that run: a bound from below."""
    real = rates(row.gpu, row.c, attainable(row.gpu, row.engine))
    load = running(row.c, real, row.load, row.ttft_seconds)
    return step_time(step_cost(row.c, load.decode), rates(row.gpu, row.c)).seconds


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile by linear interpolation."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def summary(errors: Sequence[float]) -> tuple[str, str, str, str]:
    """Return count, median and 90th percentile of the size, and the median with its sign."""
    sizes = [abs(error) for error in errors]
    return (
        f"{len(errors):,}",
        f"{median(sizes):.1%}",
        f"{quantile(sizes, 0.9):.1%}",
        f"{median(errors):+.1%}",
    )


def table(title: str, rows: Iterable[tuple[Row, float]], key: Callable[[Row], str]) -> list[str]:
    """Return one table of errors, a line for each value of `key`."""
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for row, error in rows:
        groups[key(row)].append(error)
    head = (
        "| " + title + " | rows | median | p90 | bias |",
        "| --- | ---: | ---: | ---: | ---: |",
    )
    lines = [f"| {name} | {' | '.join(summary(groups[name]))} |" for name in sorted(groups)]
    return [*head, *lines, ""]


def _phase(row: Row) -> str:
    share = row.load.prefills_per_step * row.load.prompt_tokens / row.load.concurrency
    return (
        "prefill-heavy (over 2 prompt tokens an output token)" if share > 2 else "decode"
    )  # a heading


def _concurrency(row: Row) -> str:
    for most in (8, 64, 256):
        if row.load.concurrency <= most:
            return f"up to {most:3}"
    return "more"


def page(rows: Sequence[Row]) -> list[str]:
    """Return the report, in Markdown."""
    times = [(row, estimate(row)) for row in rows]
    judged = [(row, time.seconds / row.tpot_seconds - 1) for row, time in times]
    kept = [(row, error) for row, error in judged if row.apart is None]
    apart = [(row, error) for row, error in judged if row.apart is not None]
    learnt = list(calibrated([(row, time) for row, time in times if row.apart is None]))
    below = [row for row in rows if floor_seconds(row) > row.tpot_seconds]
    below_kept = [row for row in below if row.apart is None]
    lines = [
        "| set | rows | median | p90 | bias |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {' | '.join(summary([error for _, error in some]))} |"
            for name, some in (
                ("uncalibrated, every row", judged),
                ("uncalibrated, rows that are what their columns say", kept),
                ("learnt on half of a deployment's rows, tried on the other", learnt),
            )
        ),
        "",
        f"The ideal decode step is a bound from below on {1 - len(below) / len(judged):.2%} of "
        f"all rows, and on {1 - len(below_kept) / len(kept):.2%} of those that are what their "
        "columns say.",
        "",
    ]
    for title, key in (
        ("GPU", lambda row: row.gpu_name),
        ("engine", lambda row: row.engine),
        ("model", lambda row: row.shape_name),
        ("precision", lambda row: row.precision),
        ("phase", _phase),
        ("sequences", _concurrency),
        ("tensor x expert", lambda row: f"{row.tensor} x {row.expert}"),
    ):
        lines += table(title, kept, key)
    lines += ["Rows apart, with the same constants:", ""]
    lines += table("why apart", apart, lambda row: row.apart or "")
    return lines


def main() -> int:
    """Print the report, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    text = "\n".join(page(list(read_rows(args.folder))))
    sys.stdout.write(text + "\n")
    if args.write:
        args.write.write_text(text + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
