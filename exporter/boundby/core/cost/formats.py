"""What a stored element costs in bytes, and in which dtype the arithmetic on it runs.

A scheme is how weights are stored; parts of a model that it leaves alone (the output head
always, unless said) stay in the model's own dtype. Scales and zero points are counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from boundby.core.cost.fields import ConfigError
from boundby.core.cost.shape import PARTS, ModelShape, Part


@dataclass(frozen=True, slots=True)
class Scheme:
    """Bytes an element with its share of scales, and the arithmetic's dtype."""

    bytes_per_element: float
    arithmetic: str


def quantising_kernels(scheme: Scheme) -> int:
    """Return the kernels that bring a block's activations to the weights' narrow arithmetic."""
    return 0 if scheme.arithmetic in {"bf16", "fp16", "fp32"} else 2


def grouped_integer(bits: int, group: int, *, zeros: bool = True) -> Scheme:
    """Integers with a 16-bit scale for each `group` (and a zero point), unpacked to 16 bits."""
    each = (2.0 + (bits / 8 if zeros else 0.0)) / group if group > 0 else 0.0
    return Scheme(bits / 8 + each, "bf16")


def fp8_block(rows: int, columns: int) -> Scheme:
    """8-bit floats with a 32-bit scale for each block (DeepSeek-V3's own format)."""
    return Scheme(1.0 + 4.0 / (rows * columns), "fp8")


BF16 = Scheme(2.0, "bf16")
FP8 = Scheme(1.0, "fp8")
INT8 = Scheme(1.0, "int8")
MXFP4 = Scheme(0.5 + 1.0 / 32, "bf16")
"""OCP MX: an 8-bit scale for each 32; weights only, so arithmetic stays wide."""
NVFP4 = Scheme(0.5 + 1.0 / 16, "fp4")
"""An 8-bit scale for each 16."""
NF4 = Scheme(0.5 + 4.0 / 64, "bf16")
"""bitsandbytes: a 32-bit scale for each 64."""

SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        "auto": BF16, "bf16": BF16, "bfloat16": BF16, "torch.bfloat16": BF16,
        "fp16": Scheme(2.0, "fp16"), "float16": Scheme(2.0, "fp16"), "half": Scheme(2.0, "fp16"),
        "fp32": Scheme(4.0, "fp32"), "float32": Scheme(4.0, "fp32"), "float": Scheme(4.0, "fp32"),
        "fp8": FP8, "float8": FP8, "fp8_e4m3": FP8, "fp8_e5m2": FP8, "float8_e4m3fn": FP8,
        "fp8_block": fp8_block(128, 128), "fbgemm_fp8": FP8, "ptpc_fp8": FP8,
        "mxfp8": Scheme(1 + 1 / 32, "fp8"),
        "int8": INT8, "w8a8": INT8, "w8a8_int8": INT8, "int8_weight_only": Scheme(1.0, "bf16"),
        "fp8_weight_only": Scheme(1.0, "bf16"),
        "int4": grouped_integer(4, 128), "awq": grouped_integer(4, 128),
        "gptq": grouped_integer(4, 128), "w4a16": grouped_integer(4, 128, zeros=False),
        "int4_awq": grouped_integer(4, 128), "w8a16": Scheme(1.0, "bf16"),
        "mxfp4": MXFP4, "nvfp4": NVFP4, "fp4": NVFP4, "nf4": NF4, "bnb": NF4, "bitsandbytes": NF4,
    }
)  # fmt: skip
"""Every word for a way to store weights."""

KV_BYTES: Mapping[str, float] = MappingProxyType(
    {
        "auto": 2.0, "bf16": 2.0, "bfloat16": 2.0, "fp16": 2.0, "float16": 2.0, "half": 2.0,
        "fp32": 4.0, "float32": 4.0, "fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0,
        "fp8_inc": 1.0, "float8": 1.0, "int8": 1.0, "nvfp4": 0.5625, "fp4": 0.5625, "int4": 0.5625,
        "fp8_ds_mla": 656 / 576,
    }
)  # fmt: skip
"""Bytes a cached element. `fp8_ds_mla`: 512 in fp8, 4 scales, 64 in 16 bits (vLLM)."""


def scheme(word: str) -> Scheme:
    """Return the scheme a word names; `ConfigError` when it names none."""
    try:
        return SCHEMES[word.lower()]
    except KeyError:
        known = ", ".join(sorted(SCHEMES))
        raise ConfigError(field="weights_dtype", why=f"{word!r:.40} is none of: {known}") from None


def kv_bytes(word: str) -> float:
    """Return the bytes of one cached element; `ConfigError` when the word is not known."""
    try:
        return KV_BYTES[word.lower()]
    except KeyError:
        known = ", ".join(sorted(KV_BYTES))
        raise ConfigError(
            field="kv_cache_dtype", why=f"{word!r:.40} is none of: {known}"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """How a deployment stores each part of the weights, and its KV cache."""

    parts: Mapping[Part, Scheme] = field(hash=False)
    kv_bytes_per_element: float = 2.0
    index_bytes_per_element: float = 1.0
    state_bytes_per_element: float = 4.0
    activation_bytes_per_element: float = 2.0
    vector_bytes_per_element: float = 2.0

    def dense_arithmetic(self, shape: ModelShape) -> str:
        """Return the dtype in which most of the work outside experts is done."""
        work = {part: n for part, n in shape.matrices().items() if part not in {"experts", "head"}}
        largest = max(work, key=lambda part: work[part])
        return self.parts[largest].arithmetic


def uniform(weights: str = "bf16", kv: str = "auto") -> Formats:
    """Put every matrix in one scheme but head and router, which stay in 16 bits."""
    whole = scheme(weights)
    wide = whole if whole.bytes_per_element >= BF16.bytes_per_element else BF16
    parts = dict.fromkeys(PARTS, whole)
    parts["head"] = parts["router"] = wide
    return Formats(parts=MappingProxyType(parts), kv_bytes_per_element=kv_bytes(kv))
