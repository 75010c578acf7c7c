"""What does not change from read to read: model, precision, parallelism, caps, GPUs.

Each value may come from settings, a recording's header, the engine's own page or command line,
or may be inferred; `origins` says which for every one that is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIdentity:
    """One GPU that the engine runs on; `memory_bytes` is the device's total."""

    index: int | None = None
    uuid: str | None = None
    name: str | None = None
    memory_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One engine's fixed facts; None where nobody could say.

    `model_config` is the Hugging Face config.json as a mapping. Dtypes use the words of
    config.json and vLLM's flags ("bf16", "bfloat16", "fp8", "int4", "mxfp4", ...).
    `origins` maps a field's name to where it came from, in words a person reads.
    """

    kind: str | None = None
    model_id: str | None = None
    model_config: Mapping[str, Any] | None = None
    weights_dtype: str | None = None
    kv_cache_dtype: str | None = None
    tensor: int | None = None
    pipeline: int | None = None
    data: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    enforce_eager: bool | None = None
    gpus: tuple[GpuIdentity, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    def filled(self, other: "Setup") -> Self:
        """Return this with what only `other` knows added, each value with its origin."""
        more = {
            one.name: value
            for one in fields(self)
            if one.name != "origins"
            and getattr(self, one.name) in (None, ())
            and (value := getattr(other, one.name)) not in (None, ())
        }
        origins = {name: other.origins[name] for name in more if name in other.origins}
        return replace(self, **more, origins={**self.origins, **origins})
