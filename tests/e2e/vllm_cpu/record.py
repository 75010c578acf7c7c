"""Short recordings of a real vLLM under known loads, for the fast tests to replay.

    record.py FOLDER [NAME ...]

Each is what `boundby record` saw for 12 s once the load had settled. It is told nothing of the
engine, so the recordings have no caps in their headers.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from e2e.stack import BOUNDBY, until
from e2e.vllm_cpu import model
from e2e.vllm_cpu.conftest import SETTINGS
from e2e.vllm_cpu.engine import Engine, start


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """An engine's settings, its load, whether it is stopped meanwhile, seconds between reads."""

    engine: str = "roomy"
    load: dict[str, float] = field(default_factory=dict)
    frozen: bool = False
    beat: int = 2


KEPT = 25_000
"""Bytes of a recording with about four reads."""

SETTINGS_HERE = {**SETTINGS, "roomy": ("--max-num-seqs", "128")}

CROWD = {"concurrency": 12, "prompt": 32, "output": 100}

REGIMES = {
    "one-client": Regime(load={"concurrency": 1, "prompt": 32, "output": 200}),
    "long-prefill": Regime(load={"concurrency": 2, "prompt": 1200, "output": 4}),
    "aborts": Regime(load={"concurrency": 12, "prompt": 32, "output": 300, "give_up": 1.5}),
    "batch-cap": Regime(engine="capped", load=CROWD, beat=1),
    "stall": Regime(engine="capped", load=CROWD, beat=1, frozen=True),
}


def record(engine: Engine, regime: Regime, file: Path) -> None:
    """Put the engine under the regime and keep what it says."""
    beats = {**os.environ, "BOUNDBY_WATCH_BEAT_SECONDS": str(regime.beat)}
    command = [*BOUNDBY, "record", "--engine", engine.url, "--seconds", "12", "--out", str(file)]
    clients = regime.load.get("concurrency", 0)
    with ExitStack() as held:
        if regime.load:
            held.enter_context(engine.load(**regime.load))  # type: ignore[arg-type]  # whole where it must be
            until("it is loaded", lambda: engine.running() + engine.waiting() >= 0.7 * clients, 60)
        if regime.frozen:
            run = subprocess.Popen(command, env=beats)  # noqa: S603  our own command
            until("some reads are kept", lambda: file.exists() and file.stat().st_size > KEPT, 60)
            held.enter_context(engine.frozen())
            run.wait(60)
        else:
            subprocess.run(command, check=True, timeout=120, env=beats)  # noqa: S603  our own command


def main(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wanted = names or tuple(REGIMES)
    with tempfile.TemporaryDirectory() as scratch:
        weightless = model.write(Path(scratch) / "model")
        for settings in sorted({REGIMES[name].engine for name in wanted}):
            engine = start(
                Path(scratch), weightless, "--max-model-len", "2048", *SETTINGS_HERE[settings]
            )
            try:
                for name in (n for n in wanted if REGIMES[n].engine == settings):
                    record(engine, REGIMES[name], folder / f"{name}.jsonl.gz")
                    engine.rest()
            finally:
                engine.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
