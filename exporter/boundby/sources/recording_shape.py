"""What a recording's lines look like: the models that a file's text must pass.

Errors: `RecordingError` < `ValueError`; its text begins with file and line.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from boundby.core.setup import GpuIdentity, Setup

FORMAT = "boundby-capture"
VERSION = 1

ORIGIN = "the recording's header"


class RecordingError(ValueError):
    """A recording that cannot be read: file, line, what is wrong, what to do."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")


class _Model(BaseModel):
    """Keys that a later version adds are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class _Engine(_Model):
    kind: str | None = None
    enforce_eager: bool | None = None


class _ModelInfo(_Model):
    id: str | None = None
    config: dict[str, Any] | None = None
    weights_dtype: str | None = None
    kv_cache_dtype: str | None = None


class _Parallelism(_Model):
    tensor: int | None = Field(None, ge=1)
    pipeline: int | None = Field(None, ge=1)
    data: int | None = Field(None, ge=1)


class _Limits(_Model):
    max_num_seqs: int | None = Field(None, ge=1)
    max_num_batched_tokens: int | None = Field(None, ge=1)


class _Gpu(_Model):
    index: int | None = Field(None, ge=0)
    uuid: str | None = None
    name: str | None = None
    memory_bytes: float | None = Field(None, gt=0)


class Header(_Model):
    """The first line, its format and version checked before."""

    engine: _Engine = _Engine()
    model: _ModelInfo = _ModelInfo()
    parallelism: _Parallelism = _Parallelism()
    limits: _Limits = _Limits()
    gpus: tuple[_Gpu, ...] = ()

    def setup(self) -> Setup:
        """Return the header as the core knows it; `origins` names each field that is there."""
        known: dict[str, Any] = {
            "kind": self.engine.kind,
            "enforce_eager": self.engine.enforce_eager,
            "model_id": self.model.id,
            "model_config": self.model.config,
            "weights_dtype": self.model.weights_dtype,
            "kv_cache_dtype": self.model.kv_cache_dtype,
            "tensor": self.parallelism.tensor,
            "pipeline": self.parallelism.pipeline,
            "data": self.parallelism.data,
            "max_num_seqs": self.limits.max_num_seqs,
            "max_num_batched_tokens": self.limits.max_num_batched_tokens,
            "gpus": tuple(GpuIdentity(**gpu.model_dump()) for gpu in self.gpus),
        }
        origins = {name: ORIGIN for name, value in known.items() if value not in (None, ())}
        return Setup(**known, origins=origins)


class _GpuBody(_Model):
    gpu: str
    index: int | None = None
    uuid: str | None = None
    name: str | None = None
    pod: str | None = None
    namespace: str | None = None
    mig_instance: str | None = None
    age_seconds: float | None = None
    gauges: dict[str, float] = {}
    counters: dict[str, float] = {}
    infos: dict[str, str] = {}


class GpusBody(_Model):
    """What our own NVML reader saw, under our own names."""

    gpus: tuple[_GpuBody, ...]


class HostBody(_Model):
    """What our own host reader saw."""

    gauges: dict[str, float] = {}
    counters: dict[str, float] = {}
    infos: dict[str, str] = {}


class Line(_Model):
    """One read: a body, or the error that took its place."""

    t: float
    source: str
    body: str | dict[str, Any] | None = None
    error: str | None = None


def read_header(path: Path, line: str) -> Header:
    """Read the first line; `RecordingError` says what else it is."""
    if not line.strip():
        raise RecordingError(path, 1, "the file is empty; a recording begins with a header")
    try:
        header = json.loads(line)
    except (ValueError, RecursionError) as error:
        problem = f"the header is not JSON ({error}); is this a boundby recording?"
        raise RecordingError(path, 1, problem) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else type(header).__name__
        problem = f'not a boundby recording: format is {found!r} where "{FORMAT}" belongs'
        raise RecordingError(path, 1, problem)
    if header.get("version") != VERSION:
        problem = (
            f"recording of version {header.get('version')!r}; this boundby reads version "
            f"{VERSION}. Record again, or use the boundby that wrote it"
        )
        raise RecordingError(path, 1, problem)
    # A key that is there with null is as good as absent.
    header = {key: value for key, value in header.items() if value is not None}
    try:
        return Header.model_validate(header)
    except ValidationError as error:
        raise RecordingError(path, 1, f"header: {said(error)}") from error


def said(error: ValidationError) -> str:
    """All mistakes of one line on one line."""
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'line'}: {problem['msg']}"
        for problem in error.errors(include_url=False)
    )
