"""How often the verdict is right: accuracy.py [NAME=]FOLDER ... [--fresh NAME] [--write PAGE].

A folder holds truth.json and a NAME.jsonl.gz for each of its keys, as `python tests/lab` makes
them. A verdict is right when it is one of the limits accepted for its scope; `unknown` and no
answer abstain. Each set is judged on all that was recorded, on what plain NVML gives, and on the
engine's page alone. Sets named by `--fresh`, never looked at before, are also counted together,
and confidence is held against them alone. `--write` makes the page of docs/ with its picture.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from boundby.core.parts import Snapshot
from boundby.core.watch import Options, Watch
from boundby.sources.recording import open_recording
from boundby_rules import LIMITS

CONFIDENT = 0.9

PROFILING = (
    "engine_active_ratio", "sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio",
    "fp32_active_ratio", "fp16_active_ratio", "fp64_active_ratio", "dram_active_ratio",
    "nvlink_tx_bytes_per_second", "nvlink_rx_bytes_per_second", "pcie_tx_bytes_per_second",
    "pcie_rx_bytes_per_second",
)  # fmt: skip
"""What only cycle counters give."""


def _plain(snapshot: Snapshot) -> Snapshot:
    gpus = tuple(
        replace(gpu, gauges={n: v for n, v in gpu.gauges.items() if n not in PROFILING})
        for gpu in snapshot.gpus
    )
    return replace(snapshot, gpus=gpus)


TIERS: Mapping[str, Callable[[Snapshot], Snapshot]] = {
    "all that was recorded": lambda snapshot: snapshot,
    "plain NVML": _plain,
    "the engine's page alone": lambda snapshot: replace(snapshot, gpus=(), gpu_source=None),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One verdict held against the truth."""

    name: str
    row: Mapping[str, Any]
    scope: str
    limit: str
    confidence: float

    @property
    def accepted(self) -> list[str]:
        """The limits that are right."""
        return list(self.row["verdict"][self.scope]["accept"])

    @property
    def outcome(self) -> str:
        """What it counts as."""
        if self.limit in self.accepted:
            return "right"
        if self.limit == "unknown":
            return "abstained"
        return "wrong and sure" if self.confidence >= CONFIDENT else "wrong"


def answers(
    name: str, path: Path, row: Mapping[str, Any], tier: Callable[[Snapshot], Snapshot]
) -> Iterator[Answer]:
    """Judge one recording as a whole."""
    recording = open_recording(path)
    watch = Watch(recording.setup, LIMITS, Options(remember=True))
    for snapshot in recording.snapshots:
        watch.take(tier(snapshot))
    engines = watch.summary().engines
    for scope in row["verdict"]:
        verdict = engines[0].verdict.get(scope) if engines else None
        yield Answer(
            name,
            row,
            scope,
            verdict.limit if verdict else "unknown",
            verdict.confidence if verdict else 0.0,
        )


OUTCOMES = ("right", "wrong", "wrong and sure", "abstained")


def counts(found: Iterable[Answer], key: Callable[[Answer], str]) -> list[tuple[str, ...]]:
    """Outcomes by some key, as rows of a table."""
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for answer in found:
        table[key(answer)][answer.outcome] += 1
    rows = []
    for name, count in sorted(table.items()):
        of = sum(count.values())
        shares = [str(count[outcome]) for outcome in OUTCOMES[1:]]
        rows.append((name, str(of), f"{count['right'] / of:.1%}", *shares))
    return rows


def confusion(found: Iterable[Answer]) -> list[tuple[str, ...]]:
    """What was said in place of what, wrong answers only."""
    pairs = Counter(
        (a.row["verdict"][a.scope].get("limit", a.accepted[0]), a.limit, a.scope)
        for a in found
        if a.outcome != "right"
    )
    return [(truth, said, scope, str(n)) for (truth, said, scope), n in pairs.most_common()]


def bands(found: Iterable[Answer]) -> list[tuple[float, int, float]]:
    """By tenth of confidence: its mean, how many answers, the share that is right."""
    by: defaultdict[int, list[Answer]] = defaultdict(list)
    for answer in found:
        if answer.limit != "unknown":
            by[min(9, int(answer.confidence * 10))].append(answer)
    return [
        (
            sum(a.confidence for a in group) / len(group),
            len(group),
            sum(a.outcome == "right" for a in group) / len(group),
        )
        for _, group in sorted(by.items())
    ]


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Write a table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def picture(points: list[tuple[float, int, float]]) -> str:
    """Draw confidence against the share that was right."""
    dots = "".join(
        f'<circle cx="{40 + 300 * said:.0f}" cy="{320 - 300 * right:.0f}" '
        f'r="{3 + n**0.5 / 2:.1f}" fill="#0072b2" fill-opacity="0.7">'
        f"<title>{n} answers: said {said:.0%}, right {right:.0%}</title></circle>"
        for said, n, right in points
    )
    marks = "".join(
        f'<text x="{40 + 300 * t:.0f}" y="338" text-anchor="middle">{t:.1f}</text>'
        f'<text x="34" y="{324 - 300 * t:.0f}" text-anchor="end">{t:.1f}</text>'
        for t in (0.0, 0.5, 1.0)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 360" width="360" height="360" '
        'font-family="sans-serif" font-size="11"><rect width="360" height="360" fill="#fff"/>'
        '<path d="M40 20V320H340" fill="none" stroke="#444"/>'
        '<path d="M40 320L340 20" stroke="#bbb" stroke-dasharray="4 4"/>'
        f'{marks}<text x="190" y="354" text-anchor="middle">confidence</text>'
        f'<text x="12" y="170" transform="rotate(-90 12 170)">share right</text>{dots}</svg>\n'
    )


HEAD = ("", "answers", "right", "wrong", "wrong and sure", "abstained")


Sets = Mapping[str, Mapping[str, list[Answer]]]
"""Answers by set and by what was seen."""


def together(sets: Sets, names: Iterable[str], tier: str) -> list[Answer]:
    """Give the answers of several sets."""
    return [answer for name in names for answer in sets[name][tier]]


def page(sets: Sets, fresh: list[str]) -> str:
    """Write all tables; confidence is held against the `fresh` sets where there are any."""
    first = next(iter(TIERS))
    out = []
    if fresh:
        rows = [
            (f"{tier}, {scope}", *rest)
            for tier in TIERS
            for scope, *rest in counts(together(sets, fresh, tier), lambda a: a.scope)
        ]
        out.append(f"## What holds elsewhere: {', '.join(fresh)} together\n\n{table(HEAD, rows)}")
    for tier in TIERS:
        rows = [
            (f"{name}, {scope}", *rest)
            for name, tiers in sets.items()
            for scope, *rest in counts(tiers[tier], lambda a: a.scope)
        ]
        out.append(f"## On {tier}\n\n{table(HEAD, rows)}")
    every = together(sets, sets, first)
    for title, key in (
        ("By GPU", "gpu"), ("By engine's dialect", "dialect"), ("By kind of load", "kind")
    ):  # fmt: skip
        rows = counts(every, lambda a, key=key: str(a.row.get(key, "-")))
        out.append(f"## {title}\n\n{table(HEAD, rows)}")
    rows = [
        (f"{m:.2f}", str(n), f"{right:.0%}")
        for m, n, right in bands(together(sets, fresh or sets, first))
    ]
    out.append(
        "## Whether confidence means what it says\n\nAnswers by tenth of confidence"
        f" ({', '.join(fresh or sets)}).\n\n"
        + table(("mean confidence", "answers", "right"), rows)
    )
    wrong = confusion(every)
    if wrong:
        out.append(
            "## What was said instead\n\n" + table(("truth", "said", "scope", "times"), wrong)
        )
    return "\n".join(out)


PREFACE = """# How often the verdict is right

Written by `tests/bench/accuracy.py`.
Every recording here is simulated: no GPU was at hand.
A label is what followed when each resource was improved by a fifth and the load was run again.
"Wrong and sure" is a wrong answer at a confidence of 0.9 or more.

![Confidence against the share that was right](accuracy.svg)

"""


def main() -> int:
    """Judge the folders; returns 1 when nothing could be judged."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("folders", nargs="+", metavar="[NAME=]FOLDER")
    ask.add_argument("--write", type=Path, metavar="PAGE", help="write this page and its picture")
    ask.add_argument("--note", type=Path, metavar="FILE", help="words that go before the tables")
    ask.add_argument("--fresh", action="append", default=[], metavar="NAME", help="untouched set")
    args = ask.parse_args()
    sets: dict[str, dict[str, list[Answer]]] = {}
    for given in args.folders:
        name, _, where = given.rpartition("=")
        folder = Path(where)
        truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        sets[name or folder.name] = {
            tier: [
                answer
                for key, row in sorted(truth.items())
                if row.get("verdict")
                for answer in answers(key, folder / f"{key}.jsonl.gz", row, change)
            ]
            for tier, change in TIERS.items()
        }
    if strange := set(args.fresh) - set(sets):
        ask.error(f"--fresh: no set is called {', '.join(sorted(strange))}")
    text = page(sets, args.fresh)
    sys.stdout.write(text)
    first = next(iter(TIERS))
    every = together(sets, sets, first)
    for answer in every:
        if answer.outcome.startswith("wrong"):
            sys.stdout.write(
                f"{answer.name} {answer.scope}: {answer.limit} ({answer.confidence:.0%}), "
                f"where {' or '.join(answer.accepted)} is right\n"
            )
    if args.write:
        note = args.note.read_text(encoding="utf-8") if args.note else ""
        args.write.write_text(PREFACE + note + text, encoding="utf-8")
        args.write.with_suffix(".svg").write_text(
            picture(bands(together(sets, args.fresh or sets, first))), encoding="utf-8"
        )
    return 0 if every else 1


if __name__ == "__main__":
    sys.exit(main())
