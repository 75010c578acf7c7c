"""Settings: a TOML file, then BOUNDBY_* variables, then flags; all mistakes are shown at once.

Every key is known; a key that is not gets the nearest one suggested. `Settings.setup` gives what
they say about the engine, with where each value came from.

Errors: `SettingsError` < `ValueError`, one message with a line for each mistake.
"""

import difflib
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from boundby.core.limit import Limit
from boundby.core.setup import GpuIdentity, Setup

LISTEN = "127.0.0.1:9877"
"""Where we listen: loopback, on a port that no listed exporter has."""

PLACE = "the settings"
"""What a mistake is in when no file is named."""

PREFIX = "BOUNDBY_"

SERVICE = re.compile(
    r"(?:_|^)(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)$"
)
"""Variables that Kubernetes gives a pod for each Service: one called boundby is no setting."""

LARGEST_CONFIG = 4 * 2**20
"""Bytes of a model's config.json beyond which it is not one."""


class SettingsError(ValueError):
    """All that is wrong with the settings."""

    def __init__(self, place: str, mistakes: Sequence[tuple[str, str]]) -> None:
        self.mistakes = tuple(mistakes)
        count = f"{len(mistakes)} mistake{'' if len(mistakes) == 1 else 's'}"
        width = max(len(key) for key, _ in mistakes)
        lines = [f"  {key:<{width}}  {what}" for key, what in mistakes]
        super().__init__("\n".join([f"{count} in {place}", *lines]))


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _url(value: Any) -> Any:
    if value is None or not isinstance(value, str):
        return value
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        guess = value.split("://")[-1].rstrip("/")
        guess = guess if "/" in guess else f"{guess}/metrics"
        msg = f'"{value}" has no http or https scheme; did you mean http://{guess}?'
        raise ValueError(msg)
    _ = parts.port  # raises ValueError for one that is no port
    return parts._replace(path="/metrics").geturl() if parts.path in ("", "/") else value


Url = Annotated[str | None, BeforeValidator(_url)]
Beat = Annotated[float, Field(ge=0.1, le=3600, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class EngineSettings(_Section):
    """The engine whose page is read."""

    url: Url = Field(None, description="The engine's metrics page.")
    kind: Literal["auto", "vllm", "sglang"] = Field("auto", description="Which engine it is.")
    timeout_seconds: Seconds = Field(2.0, description="Deadline of one read.")
    token_file: Path | None = Field(None, description="File with a bearer token for the page.")
    ca_file: Path | None = Field(None, description="CA bundle for an https page.")


class GpuSettings(_Section):
    """Where GPU counters come from, and which GPUs are the engine's."""

    url: Url = Field(None, description="dcgm-exporter's page; without it NVML is tried.")
    source: Literal["auto", "dcgm", "nvml", "none"] = Field("auto", description="Which source.")
    gpm: Literal["auto", "on", "off"] = Field("auto", description="Hopper's counters by NVML.")
    devices: tuple[str | int, ...] = Field((), description="UUIDs or indices of our GPUs.")
    name: str | None = Field(None, description="The GPU's name, where no source gives it.")
    timeout_seconds: Seconds = Field(2.0, description="Deadline of one read.")


class ModelSettings(_Section):
    """The model, for the cost model."""

    config: Path | None = Field(None, description="Path of its config.json, or of its folder.")
    id: str | None = Field(None, description="Its name, for the report.")
    weights_dtype: str | None = Field(None, description="How weights are stored: bf16, fp8, ...")
    kv_cache_dtype: str | None = Field(None, description="How the KV cache is stored.")


class ParallelSettings(_Section):
    """How the model is spread."""

    tensor: int | None = Field(None, ge=1, le=1024, description="Tensor-parallel GPUs.")
    pipeline: int | None = Field(None, ge=1, le=1024, description="Pipeline stages.")
    data: int | None = Field(None, ge=1, le=4096, description="Data-parallel ranks.")


class WatchSettings(_Section):
    """How to watch."""

    beat_seconds: Beat = Field(1.0, description="Time between reads.")
    window_seconds: Seconds = Field(30.0, description="Span that a verdict is made from.")
    dwell_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        10.0, description="How long a new answer must hold before it shows."
    )
    stale_after_seconds: Seconds = Field(15.0, description="Age beyond which nothing is served.")


class HostSettings(_Section):
    """The host's own evidence."""

    enabled: bool = Field(default=True, description="Read /proc and the cgroup.")
    root: Path = Field(Path("/"), description="Root under which /proc and /sys are found.")


class Settings(_Section):
    """All settings."""

    listen: str = Field(LISTEN, description="Address and port to serve on.")
    engine: EngineSettings = EngineSettings()
    gpu: GpuSettings = GpuSettings()
    model: ModelSettings = ModelSettings()
    parallelism: ParallelSettings = ParallelSettings()
    watch: WatchSettings = WatchSettings()
    host: HostSettings = HostSettings()
    limits: dict[str, Any] = Field(
        default_factory=dict,
        description="max_num_seqs, max_num_batched_tokens, and a table of knobs for each limit.",
    )

    @property
    def knobs(self) -> dict[str, dict[str, float]]:
        """Knobs by limit."""
        return {name: table for name, table in self.limits.items() if isinstance(table, dict)}

    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

    def setup(self) -> Setup:
        """What the settings say of the engine; raises SettingsError for an unreadable config."""
        given: dict[str, Any] = {
            "kind": None if self.engine.kind == "auto" else self.engine.kind,
            "model_id": self.model.id,
            "model_config": read_config(self.model.config) if self.model.config else None,
            "weights_dtype": self.model.weights_dtype,
            "kv_cache_dtype": self.model.kv_cache_dtype,
            "tensor": self.parallelism.tensor,
            "pipeline": self.parallelism.pipeline,
            "data": self.parallelism.data,
            "max_num_seqs": self.limits.get("max_num_seqs"),
            "max_num_batched_tokens": self.limits.get("max_num_batched_tokens"),
            "gpus": tuple(
                GpuIdentity(index=device, name=self.gpu.name)
                if isinstance(device, int)
                else GpuIdentity(uuid=device, name=self.gpu.name)
                for device in self.gpu.devices
            )
            or ((GpuIdentity(name=self.gpu.name),) if self.gpu.name else ()),
        }
        known = {name: value for name, value in given.items() if value not in (None, ())}
        return Setup(**known, origins=dict.fromkeys(known, "settings"))


CAPS = ("max_num_seqs", "max_num_batched_tokens")


def read_config(path: Path) -> Mapping[str, Any]:
    """Read a model's config.json, from the file or from the folder that holds it."""
    file = path / "config.json" if path.is_dir() else path
    try:
        if file.stat().st_size > LARGEST_CONFIG:
            raise SettingsError(PLACE, [("model.config", f"{file} is too large to be one")])
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"{file} cannot be read ({error.strerror})"
        raise SettingsError(PLACE, [("model.config", problem)]) from error
    except (ValueError, RecursionError) as error:
        problem = f"{file} is not JSON ({error}); is it the model's config.json?"
        raise SettingsError(PLACE, [("model.config", problem)]) from error
    if not isinstance(config, dict):
        problem = f"{file} holds no JSON object; is it the model's config.json?"
        raise SettingsError(PLACE, [("model.config", problem)])
    return config


def _nearest(key: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    if close:
        return f"no such setting; did you mean {close[0]}?"
    return f"no such setting; there are: {', '.join(known)}"


def _fields(path: Sequence[str]) -> list[str]:
    """Known keys at a place among the settings."""
    model: Any = Settings
    for name in path:
        model = model.model_fields[name].annotation
    return list(model.model_fields)


def _mistake(problem: Mapping[str, Any]) -> tuple[str, str]:
    place = [str(part) for part in problem["loc"]]
    key = ".".join(place)
    if problem["type"] == "extra_forbidden":
        return key, _nearest(place[-1], _fields(place[:-1]))
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return key, message
    return key, f"{problem['input']!r}: {message[:1].lower()}{message[1:]}"


def _limit_mistakes(limits: Mapping[str, Any], known: Sequence[Limit]) -> list[tuple[str, str]]:
    out = []
    named = {limit.name: limit for limit in known}
    for name, value in limits.items():
        key = f"limits.{name}"
        if name in CAPS:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                out.append((key, f"{value!r} is no whole number above 0"))
        elif name not in named:
            out.append((key, _nearest(name, [*CAPS, *named])))
        elif not isinstance(value, dict):
            out.append((key, f"{value!r} is no table; knobs go under [limits.{name}]"))
        else:
            knobs = {
                knob: number
                for formula in named[name].scores.values()
                for knob, number in formula.knobs.items()
            }
            have = ", ".join(f"{knob} ({number:g})" for knob, number in knobs.items())
            for knob, number in value.items():
                if knob not in knobs:
                    said = f"{name} has: {have}" if have else f"{name} has none"
                    out.append((f"{key}.{knob}", f"no such knob; {said}"))
                elif not _is_number(number):
                    out.append((f"{key}.{knob}", f"{number!r} is no number"))
    return out


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _listen_mistakes(listen: Any) -> list[tuple[str, str]]:
    host, colon, port = str(listen).rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 <= int(port) <= 65535:  # noqa: PLR2004
        return [("listen", f'"{listen}" is no ADDRESS:PORT; say for example {LISTEN}')]
    return []


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """BOUNDBY_ENGINE_URL is engine.url, BOUNDBY_LIMITS_MAX_NUM_SEQS limits.max_num_seqs."""
    out: dict[str, Any] = {}
    sections = [name for name in Settings.model_fields if name != "listen"]
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable == f"{PREFIX}CONFIG":
            continue
        linked = variable.endswith("_PORT") and "://" in text
        if linked or SERVICE.search(variable):
            continue
        name = variable.removeprefix(PREFIX).lower()
        section = next((s for s in sections if name.startswith(f"{s}_")), None)
        if section is None:
            out[name] = text
            continue
        key = name.removeprefix(f"{section}_")
        value: Any = text
        if section == "limits" or key == "devices":
            try:
                value = json.loads(text)
            except ValueError:
                value = text
            if key == "devices" and not isinstance(value, list):
                value = [v.strip() for v in str(text).split(",")]
        out.setdefault(section, {})[key] = value
    return out


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(out.get(key), dict):
            out[key] = _merged(out[key], value)
        else:
            out[key] = value
    return out


def load(
    limits: Sequence[Limit],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Read settings from everywhere; raises SettingsError with every mistake."""
    place = str(file) if file else PLACE
    given: dict[str, Any] = {}
    if file is not None:
        try:
            given = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise SettingsError(place, [("file", f"cannot be read ({error.strerror})")]) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SettingsError(place, [("file", f"not TOML: {error}")]) from error
    given = _merged(given, from_environment(environment or {}))
    given = _merged(given, flags or {})
    mistakes: list[tuple[str, str]] = []
    table = given.get("limits", {})
    if isinstance(table, dict):
        mistakes.extend(_limit_mistakes(table, limits))
    if isinstance(given.get("listen"), str):
        mistakes.extend(_listen_mistakes(given["listen"]))
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        mistakes.extend(_mistake(problem) for problem in error.errors(include_url=False))
        raise SettingsError(place, sorted(set(mistakes))) from error
    if mistakes:
        raise SettingsError(place, sorted(set(mistakes)))
    return settings


KINDS = get_args(EngineSettings.model_fields["kind"].annotation)
"""Engines that can be asked for."""
