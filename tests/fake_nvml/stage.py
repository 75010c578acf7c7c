"""Plays scripts against the fake library, each in a process of its own that has it loaded.

A play is a list of steps in words: `read`, `settled` (a read that waits for GPM), `clock
SECONDS`, `script WORDS`, `calls FUNCTION`, `functions`, `samples`, `threads`, `settle` (wait
until a hung call is back), `recover` (read until it works), `tried` (read until GPM's child has
ended), `install FILE` (a new driver's library takes the place of the loaded one), `readers COUNT`
(so many threads, each with a source of its own), `binding` (the file it was loaded from) and
`close`. Steps that see something leave it in the answer.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LIBRARY = "libnvidia-ml.so.1"


def build(folder: Path, hidden: Iterable[str] = ()) -> Path:
    """Compile the fake into a folder, without the hidden symbols; skips where nothing compiles."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) to build the fake NVML with")
    folder.mkdir(parents=True, exist_ok=True)
    symbols = folder / "symbols.map"
    local = "".join(f"{name};" for name in hidden)
    symbols.write_text(f"{{ global: nvml*; fake_*; local: {local} unused; }};")
    subprocess.run(  # noqa: S603  the compiler that was found
        [
            compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror",
            f"-Wl,-soname,{LIBRARY}", f"-Wl,--version-script={symbols}",
            "-o", str(folder / LIBRARY), str(HERE / "nvml.c"), "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What is scripted at the start, how the source is made, and what is then done."""

    steps: tuple[str, ...]
    script: str = ""
    gpm: str = "off"
    deadline_seconds: float = 5.0


def play_all(
    folder: Path, plays: Mapping[str, Play], *, binding: Path | None = None
) -> dict[str, list[Any]]:
    """Play several plays in one process; the answers of each, by its name."""
    paths = [ROOT / "exporter", ROOT / "rules", ROOT / "tests"]
    if binding is not None:
        paths.insert(0, binding)
    asked = {
        name: {
            "steps": play.steps,
            "script": play.script,
            "gpm": play.gpm,
            "deadline_seconds": play.deadline_seconds,
        }
        for name, play in plays.items()
    }
    first = next(iter(plays.values()))
    done = subprocess.run(  # noqa: S603  our own player
        [sys.executable, "-m", "fake_nvml.player"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            **os.environ,
            "LD_LIBRARY_PATH": str(folder),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "FAKE_NVML": first.script,
        },
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, list[Any]] = json.loads(done.stdout)
    return answers


def play(
    folder: Path,
    *steps: str,
    script: str = "",
    gpm: str = "off",
    deadline_seconds: float = 5.0,
    binding: Path | None = None,
) -> list[Any]:
    """Play one play."""
    one = Play(steps=steps, script=script, gpm=gpm, deadline_seconds=deadline_seconds)
    return play_all(folder, {"play": one}, binding=binding)["play"]
