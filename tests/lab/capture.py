"""Writes what a sidecar beside the simulated server would have recorded."""

import gzip
import json
from pathlib import Path

from trial import Trial

from boundby.app.demo.engine import Engine
from boundby.app.demo.engine_pages import engine_page
from boundby.app.demo.gpu_pages import Reading, gpu_page, uuid

SECONDS, BEAT = 60.0, 2.0


def header(trial: Trial) -> dict[str, object]:
    """Give the recording's first line."""
    model, machine, settings = trial.model, trial.machine, trial.settings
    return {
        "format": "boundby-capture",
        "version": 1,
        "engine": {"kind": "sglang" if trial.dialect == "sglang" else "vllm"},
        "model": {
            "id": model.id,
            "config": dict(model.config),
            "weights_dtype": model.weights_dtype,
            "kv_cache_dtype": model.kv_dtype,
        },
        "parallelism": {"tensor": machine.tensor},
        "limits": {
            "max_num_seqs": settings.max_num_seqs,
            "max_num_batched_tokens": settings.max_num_batched_tokens,
        },
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


def record(trial: Trial, engine: Engine, file: Path) -> None:
    """Advance the warmed engine and write what its pages show at every beat."""
    begin = engine.now
    since = engine.gpu_now()
    with gzip.open(file, "wt", compresslevel=6) as out:
        out.write(json.dumps(header(trial)) + "\n")
        for beat in range(round(SECONDS / BEAT) + 1):
            t = begin + (beat + 1) * BEAT
            engine.advance(t)
            page = engine_page(engine, trial.model, trial.dialect, 1.0)
            out.write(json.dumps({"t": t, "source": "engine", "body": page}) + "\n")
            total = engine.gpu_now()
            reading = Reading(
                machine=trial.machine,
                clocks=engine.clocks,
                interval=total.plus(since, -1.0),
                total=total,
                memory_used_bytes=trial.settings.memory_utilization
                * trial.machine.gpu.memory_bytes,
                cycle_counters=trial.cycle_counters,
                noise_ratio=trial.noise_ratio,
                seed=trial.seed + beat,
            )
            since = total
            page = gpu_page(reading, profiling=trial.profiling)
            source = "dcgm" if trial.profiling else "nvml"
            out.write(json.dumps({"t": t, "source": source, "body": page}) + "\n")
