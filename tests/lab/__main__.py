"""A bench of labelled recordings: python tests/lab FOLDER [--count 60] [--seed 1].

Each trial's load runs on its server, then again with each resource a fifth better in turn; the
folder gets one recording a trial and truth.json with the elasticities and the accepted answers.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "exporter"))

from capture import record
from counterfactual import (
    StepShares,
    elasticities,
    engine_answer,
    step_answer,
)
from draw import trials
from trial import Trial

DIGITS = 3


def rounded(shares: dict[str, float]) -> dict[str, float]:
    """Give shares as they are written."""
    return {name: round(value, DIGITS) for name, value in sorted(shares.items())}


def bench(trial: Trial, folder: Path) -> dict[str, object]:
    """Run one trial in all its variants, write its recording, give its truth."""
    engine = trial.engine()
    engine.advance(trial.warm_seconds)
    shares = StepShares(trial)
    engine.on_step = shares
    before = engine.tally.progress_requests
    record(trial, engine, folder / f"{trial.name}.jsonl.gz")
    rate = (engine.tally.progress_requests - before) / (engine.now - trial.warm_seconds)
    run = {"running": engine.running, "waiting": engine.waiting, "tput": round(rate, DIGITS)}
    steps = shares.means()
    whole = elasticities(trial)
    verdict = {}
    limit, accepted = engine_answer(whole)
    verdict["engine"] = {"limit": limit, "accept": accepted}
    for scope in ("decode", "prefill"):
        answer = step_answer(steps[scope])
        if answer:
            verdict[scope] = {"limit": answer[0], "accept": answer[1]}
    return {
        "kind": trial.kind,
        "gpu": trial.gpu,
        "model": trial.model.key,
        "tp": trial.machine.tensor,
        "dialect": trial.dialect,
        "gpu_source": "dcgm" if trial.profiling else "nvml",
        "run": run,
        "elasticity": rounded(whole),
        "step_elasticity": {scope: rounded(values) for scope, values in steps.items()},
        "verdict": verdict,
    }


def main() -> int:
    """Make a folder of labelled recordings."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("folder", type=Path)
    ask.add_argument("--count", type=int, default=60)
    ask.add_argument("--seed", type=int, default=1)
    given = ask.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    truth = {}
    for trial in trials(given.count, given.seed):
        truth[trial.name] = bench(trial, given.folder)
        sys.stderr.write(f"{trial.name} {truth[trial.name]['verdict']}\n")
    (given.folder / "truth.json").write_text(json.dumps(truth, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
