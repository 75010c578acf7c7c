"""How soon a verdict follows a change.

    python tests/lab/follow.py FOLDER [--window 30] [--dwell 10]

FOLDER is one that `tests/lab --change` wrote. For each recording: the verdict when the change
came, the seconds until one is shown that is right afterwards, and the changes of verdict that
nothing in the recording explains (flips).
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "exporter"), str(ROOT / "rules")]

from boundby.core.watch import Options, Watch  # noqa: E402 - the path comes first
from boundby.sources.recording import open_recording  # noqa: E402 - the path comes first
from boundby_rules import LIMITS  # noqa: E402 - the path comes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What one recording showed in the engine scope."""

    before: str
    after: str
    right_before: bool
    right_after: bool
    seconds: float | None
    """From the change to the first verdict that is right after it; None if none came."""
    flips: int


def follow(file: Path, truth: dict[str, object], options: Options) -> Followed:
    """Watch a recording beat by beat."""
    recording = open_recording(file)
    watch = Watch(recording.setup, LIMITS, options)
    switch = float(truth["switch"])  # type: ignore[arg-type]  # a number, in our own file
    accepted = [
        truth[half]["verdict"]["engine"]["accept"]  # type: ignore[index]  # our own file
        for half in ("before", "after")
    ]
    shown: list[tuple[float, str]] = []
    last = ""
    for snapshot in recording.snapshots:
        report = watch.observe(snapshot)
        if report.engines and "engine" in report.engines[0].verdict:
            last = report.engines[0].verdict["engine"].limit
            if not shown or shown[-1][1] != last:
                shown.append((snapshot.t, last))
    halves = [
        [limit for t, limit in shown if t <= switch],
        [limit for t, limit in shown if t > switch],
    ]
    before = halves[0][-1] if halves[0] else "none"
    at_once = before in accepted[1]
    first = next((t for t, limit in shown if t > switch and limit in accepted[1]), None)
    needed = 0 if at_once else 1
    return Followed(
        before=before,
        after=last,
        right_before=before in accepted[0],
        right_after=last in accepted[1],
        seconds=0.0 if at_once else None if first is None else first - switch,
        flips=max(0, len(halves[0]) - 1) + max(0, len(halves[1]) - needed),
    )


def main() -> int:
    """Print a line a recording."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("folder", type=Path)
    ask.add_argument("--window", type=float, default=30.0)
    ask.add_argument("--dwell", type=float, default=10.0)
    given = ask.parse_args()
    options = Options(window_seconds=given.window, dwell_seconds=given.dwell)
    truth = json.loads((given.folder / "truth.json").read_text())
    for name in sorted(truth):
        seen = follow(given.folder / f"{name}.jsonl.gz", truth[name], options)
        late = "never" if seen.seconds is None else f"{seen.seconds:5.1f} s"
        sys.stdout.write(
            f"{name:18} {seen.before:17}{'ok ' if seen.right_before else '-- '} -> "
            f"{seen.after:17}{'ok ' if seen.right_after else '-- '} after {late:8} "
            f"flips {seen.flips}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
