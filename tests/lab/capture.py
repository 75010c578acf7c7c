"""Writes what a sidecar beside the simulated server would have recorded."""

import gzip
import json
from pathlib import Path
from random import Random

from rough import SMOOTH, Rough
from trial import Trial

from boundby.app.demo.engine import Engine
from boundby.app.demo.engine_pages import engine_page
from boundby.app.demo.gpu_pages import Reading, gpu_page, uuid
from boundby.app.demo.tally import GpuTally

SECONDS = 62.0


def header(trial: Trial, how: Rough) -> dict[str, object]:
    """Give the recording's first line."""
    model, machine, settings = trial.model, trial.machine, trial.settings
    told: dict[str, object] = {
        "format": "boundby-capture",
        "version": 1,
        "engine": {"kind": "sglang" if trial.dialect == "sglang" else "vllm"},
        "model": {"id": model.id},
        "parallelism": {"tensor": machine.tensor},
        "gpus": [
            {
                "index": index,
                "uuid": uuid(index),
                "name": machine.gpu.name,
                "memory_bytes": int(machine.gpu.memory_bytes),
            }
            for index in range(machine.tensor)
        ],
    }
    if how.tells_model:
        told["model"] = {
            "id": model.id,
            "config": dict(model.config),
            "weights_dtype": model.weights_dtype,
            "kv_cache_dtype": model.kv_dtype,
        }
    if how.tells_limits:
        told["limits"] = {
            "max_num_seqs": settings.max_num_seqs,
            "max_num_batched_tokens": settings.max_num_batched_tokens,
        }
    return told


class Recorder:
    """Reads a running engine's pages at every beat and writes them down."""

    def __init__(self, trial: Trial, engine: Engine, file: Path, how: Rough = SMOOTH) -> None:
        self._trial, self._engine, self._how = trial, engine, how
        self._random = Random(trial.seed)  # noqa: S311 - a simulation, nothing secret
        self._beat = engine.now
        self._since = self._copy()
        self._collected = engine.now
        self._gpu_page = ""
        self._out = gzip.open(file, "wt", compresslevel=6)  # noqa: SIM115 - closed by `close`
        self._out.write(json.dumps(header(trial, how)) + "\n")

    def close(self) -> None:
        self._out.close()

    def _copy(self) -> GpuTally:
        return self._engine.gpu_now().plus(GpuTally())

    def run(self, trial: Trial, seconds: float) -> None:
        """Record for `seconds`; the trial may have changed since the last call."""
        self._trial = trial
        end = self._engine.now + seconds
        while self._beat + self._how.beat_seconds <= end + 1e-6:
            self._beat += self._how.beat_seconds
            late = self._how.beat_jitter_seconds * self._random.random()
            self._collect_until(self._beat + late)
            self._engine.advance(self._beat + late)
            engine_text = engine_page(self._engine, self._trial.model, self._trial.dialect, 1.0)
            self._write(self._beat + late, "engine", engine_text)
            source = "dcgm" if self._trial.profiling else "nvml"
            self._write(self._beat + late, source, self._gpu_page)

    def _write(self, t: float, source: str, body: str) -> None:
        line: dict[str, object] = {"t": round(t, 3), "source": source}
        if self._random.random() < self._how.fails_share:
            line["error"] = "timed out after 1 s"
        else:
            line["body"] = body
        self._out.write(json.dumps(line) + "\n")

    def _collect_until(self, t: float) -> None:
        every = self._how.collect_seconds or t - self._collected
        while every > 0 and (self._collected + every <= t + 1e-9 or not self._gpu_page):
            self._collected += every
            self._engine.advance(min(self._collected, t))
            self._collect()

    def _collect(self) -> None:
        trial, total = self._trial, self._copy()
        reading = Reading(
            machine=self._engine.machine,
            clocks=self._engine.clocks,
            interval=total.plus(self._since, -1.0),
            total=total,
            memory_used_bytes=trial.settings.memory_utilization * trial.machine.gpu.memory_bytes,
            cycle_counters=trial.cycle_counters,
            noise_ratio=trial.noise_ratio,
            seed=trial.seed + int(self._collected * 10),
        )
        self._since = total
        self._gpu_page = gpu_page(reading, profiling=trial.profiling)
