import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from capture import Recorder
from changes import CHANGES, changes
from draw import KINDS, Draw, trials
from rough import Rough


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_can_be_drawn_and_serves(kind: object) -> None:
    trial = kind(Draw(3))  # type: ignore[operator]  # a drawing function
    engine = trial.engine()
    engine.advance(20.0)

    assert engine.tally.progress_requests > 0
    assert engine.tally.aborted == 0


def test_the_same_seed_draws_the_same_trials() -> None:
    assert trials(18, 4) == trials(18, 4)


def test_another_seed_draws_others() -> None:
    assert trials(3, 4) != trials(3, 5)


@pytest.mark.parametrize("kind", CHANGES, ids=lambda kind: kind.__name__)
def test_every_change_leaves_the_server_what_it_is(kind: object) -> None:
    before, after = kind(Draw(3))  # type: ignore[operator]  # a drawing function

    assert (before.model, before.settings) == (after.model, after.settings)


def test_changes_come_in_turn() -> None:
    names = [name for name, _ in changes(8, 1)]

    assert names[0] == "load_doubles-000"
    assert names[7] == "load_doubles-007"


def test_a_folder_has_a_recording_and_a_truth_for_each_trial(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).parent), str(tmp_path), "--count", "2"]
    subprocess.run(program, check=True, capture_output=True)  # noqa: S603 - our own program
    truth = json.loads((tmp_path / "truth.json").read_text())
    with gzip.open(tmp_path / "light-000.jsonl.gz", "rt") as file:
        lines = [json.loads(line) for line in file]

    assert set(truth) == {"light-000", "single-001"}
    assert truth["light-000"]["verdict"]["engine"]["accept"] == ["demand"]
    assert lines[0]["format"] == "boundby-capture"
    assert [line["source"] for line in lines[1:3]] == ["engine", lines[2]["source"]]
    assert len(lines) == 1 + 2 * 31


def test_a_rough_recording_says_what_it_lacks(tmp_path: Path) -> None:
    trial = trials(1, 4)[0]
    how = Rough(fails_share=0.5, tells_limits=False, collect_seconds=30.0)
    engine = trial.engine()
    recorder = Recorder(trial, engine, tmp_path / "rough.jsonl.gz", how)
    recorder.run(trial, 40.0)
    recorder.close()
    with gzip.open(tmp_path / "rough.jsonl.gz", "rt") as file:
        head, *lines = [json.loads(line) for line in file]
    gpu_pages = {line["body"] for line in lines if line["source"] == "dcgm" and "body" in line}

    assert "limits" not in head
    assert any("error" in line for line in lines)
    assert 1 <= len(gpu_pages) <= 2
