"""A bench of labelled recordings.

    python tests/lab FOLDER [--count 72] [--seed 1] [--rough | --change]

Each trial's load runs on its server, then again with each resource a fifth better in turn; the
folder gets one recording a trial and truth.json with the elasticities and the accepted answers.
With --rough, beats are uneven, reads fail, GPU rows go stale and headers leave things out. With
--change, load or machine changes half way; the truth then has the answers before and after.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "exporter"))

from capture import SECONDS, Recorder
from changes import AFTER_SECONDS, BEFORE_SECONDS, changes
from counterfactual import (
    Shares,
    StepShares,
    elasticities,
    engine_answer,
    step_answer,
)
from draw import trials
from rough import SMOOTH, rough
from trial import Trial

DIGITS = 3

MATTERS = 0.5
"""Just at its capacity a server gains from nothing: its elasticities add up to less than this."""


def rounded(shares: Shares) -> Shares:
    """Give shares as they are written."""
    return {name: round(value, DIGITS) for name, value in sorted(shares.items())}


def answers(trial: Trial, steps: dict[str, Shares]) -> dict[str, object]:
    """Give the elasticities of a trial and the answers that are right."""
    whole = elasticities(trial)
    verdict: dict[str, object] = {}
    if sum(whole.values()) >= MATTERS:
        limit, accepted = engine_answer(whole)
        verdict["engine"] = {"limit": limit, "accept": accepted}
    for scope in ("decode", "prefill"):
        answer = step_answer(steps[scope])
        if answer:
            verdict[scope] = {"limit": answer[0], "accept": answer[1]}
    return {
        "elasticity": rounded(whole),
        "step_elasticity": {scope: rounded(values) for scope, values in steps.items()},
        "verdict": verdict,
    }


def about(trial: Trial) -> dict[str, object]:
    """Give what a table of results is split by."""
    return {
        "kind": trial.kind,
        "gpu": trial.gpu,
        "model": trial.model.key,
        "tp": trial.machine.tensor,
        "dialect": trial.dialect,
        "gpu_source": "dcgm" if trial.profiling else "nvml",
    }


def bench(trial: Trial, folder: Path, *, roughly: bool) -> dict[str, object]:
    """Run one trial in all its variants, write its recording, give its truth."""
    engine = trial.engine()
    engine.advance(trial.warm_seconds)
    shares = StepShares(trial)
    engine.on_step = shares
    before = engine.tally.progress_requests
    how = rough(trial.seed) if roughly else SMOOTH
    recorder = Recorder(trial, engine, folder / f"{trial.name}.jsonl.gz", how)
    recorder.run(trial, SECONDS)
    recorder.close()
    rate = (engine.tally.progress_requests - before) / (engine.now - trial.warm_seconds)
    run = {"running": engine.running, "waiting": engine.waiting, "tput": round(rate, DIGITS)}
    return {**about(trial), "run": run, **answers(trial, shares.means())}


def bench_change(name: str, pair: tuple[Trial, Trial], folder: Path) -> dict[str, object]:
    """Record one trial becoming another, and give the truth of both."""
    engine = pair[0].engine()
    engine.advance(pair[0].warm_seconds)
    recorder = Recorder(pair[0], engine, folder / f"{name}.jsonl.gz")
    found = []
    for trial, seconds in zip(pair, (BEFORE_SECONDS, AFTER_SECONDS), strict=True):
        switch = engine.now
        if trial is pair[1] and trial != pair[0]:
            engine.change(trial.machine, trial.load, trial.seed)
        shares = StepShares(trial)
        engine.on_step = shares
        recorder.run(trial, seconds)
        found.append((switch, answers(trial, shares.means())))
    recorder.close()
    (_, first), (switch, second) = found
    return {**about(pair[0]), "switch": switch, "before": first, "after": second, "verdict": {}}


def main() -> int:
    """Make a folder of labelled recordings."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("folder", type=Path)
    ask.add_argument("--count", type=int, default=72)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--kinds", default="", help="some kinds only, with commas between")
    ask.add_argument("--rough", action="store_true")
    ask.add_argument("--change", action="store_true")
    given = ask.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    kinds = tuple(name for name in given.kinds.split(",") if name)
    truth: dict[str, object] = {}
    if given.change:
        for name, pair in changes(given.count, given.seed):
            truth[name] = bench_change(name, pair, given.folder)
            sys.stderr.write(f"{name}\n")
    else:
        for trial in trials(given.count, given.seed, kinds):
            truth[trial.name] = bench(trial, given.folder, roughly=given.rough)
            sys.stderr.write(f"{trial.name}\n")
    (given.folder / "truth.json").write_text(json.dumps(truth, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
