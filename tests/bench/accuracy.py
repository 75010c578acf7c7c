"""How often the verdict is right on a folder of labelled recordings: accuracy.py FOLDER.

FOLDER holds truth.json and a NAME.jsonl.gz for each of its keys, as `python tests/lab` makes them.
A verdict is right when it is one of the limits accepted for its scope; `unknown` abstains. Beside
the counts stands whether confidence means what it says: answers by confidence, and how many of
them were right.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from boundby.core.watch import Options, Watch
from boundby.sources.recording import open_recording
from boundby_rules import LIMITS

CONFIDENT = 0.9


@dataclass(frozen=True, slots=True)
class Answer:
    """One verdict held against the truth."""

    name: str
    scope: str
    limit: str
    confidence: float
    accepted: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether it is among the accepted."""
        return self.limit in self.accepted


def answers(name: str, path: Path, truth: dict[str, dict[str, list[str]]]) -> list[Answer]:
    """Judge one recording as a whole."""
    recording = open_recording(path)
    watch = Watch(recording.setup, LIMITS, Options(remember=True))
    for snapshot in recording.snapshots:
        watch.observe(snapshot)
    (engine, *_) = watch.summary().engines
    return [
        Answer(
            name,
            scope,
            verdict.limit if verdict else "unknown",
            verdict.confidence if verdict else 0.0,
            tuple(want["accept"]),
        )
        for scope, want in truth.items()
        for verdict in (engine.verdict.get(scope),)  # type: ignore[call-overload]  # a scope's name
    ]


def show(found: list[Answer]) -> None:
    """Print the tables and every wrong answer."""
    scopes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    bands: defaultdict[int, list[Answer]] = defaultdict(list)
    for answer in found:
        count = scopes[answer.scope]
        abstains = answer.limit == "unknown"
        count["right" if answer.right else "abstained" if abstains else "wrong"] += 1
        count["confident wrong"] += not answer.right and answer.confidence >= CONFIDENT
        bands[min(9, int(answer.confidence * 10))].append(answer)
    out = sys.stdout.write
    columns = ("right", "wrong", "abstained", "confident wrong")
    out(f"{'scope':<10}" + "".join(f"{column:>17}" for column in columns) + "\n")
    for scope, count in scopes.items():
        of = sum(count[column] for column in columns[:3])
        shares = (f"{count[column]} ({count[column] / of:.0%})" for column in columns)
        out(f"{scope:<10}" + "".join(f"{share:>17}" for share in shares) + "\n")
    out("\nconfidence     answers      right\n")
    for band in sorted(bands):
        right = sum(answer.right for answer in bands[band])
        out(f"{band / 10:.1f} to {(band + 1) / 10:.1f}{len(bands[band]):>12}"
            f"{right / len(bands[band]):>11.0%}\n")  # fmt: skip
    for answer in found:
        if not answer.right:
            out(f"\n{answer.name} {answer.scope}: {answer.limit} ({answer.confidence:.0%}), "
                f"where {' or '.join(answer.accepted)} is right")  # fmt: skip
    out("\n")


def main() -> int:
    """Judge a folder; returns 1 when nothing could be judged."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("folder", type=Path)
    folder = ask.parse_args().folder
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    found = [
        answer
        for name, row in sorted(truth.items())
        for answer in answers(name, folder / f"{name}.jsonl.gz", row["verdict"])
    ]
    show(found)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
