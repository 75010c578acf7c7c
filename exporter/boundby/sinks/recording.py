"""Reads written to a file as they come in: a header, then one JSON line a read.

Each line is pushed to the file at once, so that a killed process leaves a readable recording.
A name that ends in `.gz` is packed.
"""

import gzip
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from boundby.core.parts import GpuPart, HostPart
from boundby.core.setup import Setup

FORMAT = "boundby-capture"
VERSION = 1

Body = str | Mapping[str, Any]


def header(setup: Setup) -> dict[str, Any]:
    """Return the first line's object; what nobody knows is absent."""
    known: dict[str, dict[str, Any]] = {
        "engine": {"kind": setup.kind, "enforce_eager": setup.enforce_eager},
        "model": {
            "id": setup.model_id,
            "config": None if setup.model_config is None else dict(setup.model_config),
            "weights_dtype": setup.weights_dtype,
            "kv_cache_dtype": setup.kv_cache_dtype,
        },
        "parallelism": {
            "tensor": setup.tensor,
            "pipeline": setup.pipeline,
            "data": setup.data,
        },
        "limits": {
            "max_num_seqs": setup.max_num_seqs,
            "max_num_batched_tokens": setup.max_num_batched_tokens,
        },
    }
    sections = {name: _known(section) for name, section in known.items()}
    gpus = [
        _known(
            {
                "index": gpu.index,
                "uuid": gpu.uuid,
                "name": gpu.name,
                "memory_bytes": gpu.memory_bytes,
            }
        )
        for gpu in setup.gpus
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        **{name: section for name, section in sections.items() if section},
        **({"gpus": gpus} if gpus else {}),
    }


def _known(section: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if value is not None}


def gpu_body(gpus: Iterable[GpuPart]) -> dict[str, Any]:
    """Return the body of a read whose values have our own names already (source `nvml`)."""
    return {
        "gpus": [
            _known(
                {
                    "gpu": part.gpu,
                    "index": part.index,
                    "uuid": part.uuid,
                    "name": part.name,
                    "pod": part.pod,
                    "namespace": part.namespace,
                    "mig_instance": part.mig_instance,
                    "age_seconds": part.age_seconds,
                    "gauges": dict(part.gauges),
                    "counters": dict(part.counters),
                    "infos": dict(part.infos),
                }
            )
            for part in gpus
        ]
    }


def host_body(host: HostPart) -> dict[str, Any]:
    """Return the body of a read of the host."""
    return {
        "gauges": dict(host.gauges),
        "counters": dict(host.counters),
        "infos": dict(host.infos),
    }


class RecordingWriter:
    """A recording being written; a context manager that closes it."""

    def __init__(self, path: str | Path, setup: Setup) -> None:
        path = Path(path)
        self._raw: IO[bytes] = path.open("wb")
        self._packed = (
            gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, compresslevel=6, mtime=0)
            if path.name.endswith(".gz")
            else None
        )
        self._put(header(setup))

    def write(self, t: float, source: str, body: Body | None, *, error: str | None = None) -> None:
        """Write one read: what it gave, or why it gave nothing."""
        line: dict[str, Any] = {"t": t, "source": source}
        if error is not None:
            line["error"] = error
        else:
            line["body"] = body
        self._put(line)

    def _put(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        target: io.BufferedIOBase | IO[bytes] = self._packed or self._raw
        target.write(text.encode(errors="replace") + b"\n")
        if self._packed:
            self._packed.flush()
        self._raw.flush()

    def close(self) -> None:
        """Finish the file."""
        if self._packed:
            self._packed.close()
        self._raw.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close, whatever happened."""
        self.close()
