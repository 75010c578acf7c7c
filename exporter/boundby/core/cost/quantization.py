"""A config's `quantization_config`, read as how each part of the weights is stored.

Method names and fields are those that Transformers and vLLM read. A method nobody listed is
refused by name: a wrong width would be a wrong number.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from boundby.core.cost.fields import ConfigError, Fields
from boundby.core.cost.formats import (
    FP8,
    INT8,
    MXFP4,
    NF4,
    NVFP4,
    Scheme,
    fp8_block,
    grouped_integer,
)
from boundby.core.cost.shape import ModelShape, Part

_MODULES: Mapping[Part, tuple[str, ...]] = {
    "attention": ("self_attn.q_proj", "self_attn.o_proj"),
    "recurrent": ("linear_attn.in_proj_qkvz", "linear_attn.out_proj"),
    "dense": ("mlp.gate_proj", "mlp.down_proj"),
    "experts": ("mlp.experts.0.gate_proj", "mlp.experts.0.down_proj"),
    "shared": ("mlp.shared_experts.gate_proj", "mlp.shared_experts.down_proj"),
}
"""Modules that stand for each part when an ignore list is read."""

_LATENT = ("self_attn.q_b_proj", "self_attn.kv_b_proj", "self_attn.o_proj")
"""The same of latent attention."""

_MOST_PATTERNS = 20_000
_LONGEST_PATTERN = 300
_NESTED = re.compile(r"\([^)]*[+*][^)]*\)\s*[+*{]|[+*]{2}|\\\d")
"""A repeated group that repeats inside: such an expression may never end."""

_IGNORE_FIELDS = (
    "ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules", "exclude",
    "llm_int8_skip_modules",
)  # fmt: skip


def read_schemes(
    config: Mapping[str, Any], shape: ModelShape
) -> Mapping[Part, tuple[Scheme, float]]:
    """Return the scheme of each quantised part, and the share of its layers that have it."""
    quantised = config.get("quantization_config")
    if quantised is None:
        return {}
    if not isinstance(quantised, Mapping):
        raise ConfigError(field="quantization_config", why="must be an object")
    inner = quantised.get("quantization")
    if isinstance(inner, Mapping):
        quantised = {**quantised, **inner}
    scheme = _scheme(quantised)
    ignored = _Ignored(_patterns(quantised))
    found: dict[Part, tuple[Scheme, float]] = {}
    latent = any(g.mixer and g.mixer.kind in {"latent", "sparse"} for g in shape.groups)
    for part, modules in _MODULES.items():
        named = _LATENT if latent and part == "attention" else modules
        share = ignored.share(named, max(1, shape.layers))
        if share < 1.0:
            found[part] = (scheme, 1.0 - share)
    return found


def kv_word(config: Mapping[str, Any]) -> str | None:
    """Return the dtype that a checkpoint asks for its KV cache, where it asks."""
    quantised = config.get("quantization_config")
    if not isinstance(quantised, Mapping):
        return None
    inner = quantised.get("quantization")
    word = inner.get("kv_cache_quant_algo") if isinstance(inner, Mapping) else None
    word = word or quantised.get("kv_cache_quant_algo")
    if isinstance(word, str) and word.lower() in {"fp8", "nvfp4", "int8"}:
        return word.lower()
    asked = quantised.get("kv_cache_scheme")
    if isinstance(asked, Mapping) and asked.get("num_bits") == 8:  # noqa: PLR2004  # a byte
        return "fp8" if asked.get("type") == "float" else "int8"
    return None


def _scheme(quantised: Mapping[str, Any]) -> Scheme:
    fields = Fields(quantised)
    method = (fields.word("quant_method") or "").lower().replace("_", "-")
    if not method and fields.raw("quant_algo"):
        method = "modelopt"
    reader = _READERS.get(method)
    if reader is None:
        raise ConfigError(
            field="quantization_config.quant_method",
            why=f"{method!r:.40} is not known; give the weights' dtype instead",
        )
    return reader(fields)


def _fp8(fields: Fields) -> Scheme:
    block = fields.raw("weight_block_size")
    if block is None:
        return FP8
    sizes = isinstance(block, (list, tuple)) and len(block) == 2  # noqa: PLR2004  # rows, columns
    if not sizes or not all(isinstance(n, int) and 1 <= n <= 2**16 for n in block):
        raise ConfigError(field="weight_block_size", why="must be two sizes")
    return fp8_block(block[0], block[1])


def _integers(fields: Fields) -> Scheme:
    bits = fields.count("bits", "w_bit", default=4, most=16)
    group = fields.optional("group_size", "q_group_size", least=-1) or -1
    symmetric = fields.raw("sym") is True
    return grouped_integer(bits, group, zeros=not symmetric)


def _compressed(fields: Fields) -> Scheme:
    """Read the first group that quantises weights; llm-compressor writes one or two."""
    groups = fields.raw("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise ConfigError(field="quantization_config.config_groups", why="is missing")
    for group in groups.values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            activations = group.get("input_activations")
            return _described(weights, activations if isinstance(activations, Mapping) else None)
    raise ConfigError(field="quantization_config.config_groups", why="quantises no weights")


def _described(weights: Mapping[str, Any], activations: Mapping[str, Any] | None) -> Scheme:
    fields = Fields(weights)
    bits = fields.count("num_bits", default=8, most=16)
    group = fields.optional("group_size", least=-1) or -1
    floating = fields.word("type") == "float"
    wide = activations is None or Fields(activations).count("num_bits", default=16, most=16) > 8  # noqa: PLR2004  # a byte
    if floating and bits == 4:  # noqa: PLR2004  # FP4
        scheme = MXFP4 if group == 32 else NVFP4  # noqa: PLR2004  # the OCP block
        return Scheme(scheme.bytes_per_element, "bf16" if wide else "fp4")
    if floating:
        block = fields.raw("block_structure")
        stored = fp8_block(128, 128) if block is not None else FP8
        return Scheme(stored.bytes_per_element, "bf16" if wide else "fp8")
    stored = grouped_integer(bits, group, zeros=fields.raw("symmetric") is False)
    if wide:
        return stored
    return Scheme(stored.bytes_per_element, "int8")


def _modelopt(fields: Fields) -> Scheme:
    four = "4" in (fields.word("quant_method") or "")
    word = (fields.word("quant_algo") or ("NVFP4" if four else "")).upper()
    group = fields.optional("group_size", least=-1)
    known = {
        "FP8": FP8,
        "FP8_PB_WO": fp8_block(128, 128),
        "FP8_PER_CHANNEL_PER_TOKEN": FP8,
        "NVFP4": NVFP4,
        "NVFP4_AWQ": NVFP4,
        "W4A16_NVFP4": Scheme(NVFP4.bytes_per_element, "bf16"),
        "W4A16_AWQ": grouped_integer(4, group or 128),
        "W4A8_AWQ": Scheme(grouped_integer(4, group or 128).bytes_per_element, "fp8"),
        "W8A8_SQ_PER_CHANNEL": INT8,
        "W8A16": Scheme(1.0, "bf16"),
        "MXFP8": Scheme(1.0 + 1.0 / 32, "fp8"),
        "MIXED_PRECISION": NVFP4,
    }
    if word not in known:
        raise ConfigError(field="quant_algo", why=f"{word!r:.40} is not known")
    return known[word]


def _bitsandbytes(fields: Fields) -> Scheme:
    if fields.flag("load_in_8bit"):
        return Scheme(1.0, "bf16")
    twice = fields.flag("bnb_4bit_use_double_quant")
    return Scheme(0.5 + 1.0 / 64, "bf16") if twice else NF4


def _quark(fields: Fields) -> Scheme:
    whole = fields.raw("global_quant_config")
    weight = whole.get("weight") if isinstance(whole, Mapping) else None
    weight = weight[0] if isinstance(weight, list) and weight else weight
    dtype = weight.get("dtype") if isinstance(weight, Mapping) else None
    known = {"fp8_e4m3": FP8, "fp4": MXFP4, "int8": INT8, "int4": grouped_integer(4, 128)}
    if not isinstance(dtype, str) or dtype not in known:
        raise ConfigError(field="global_quant_config.weight.dtype", why="is missing or not known")
    return known[dtype]


_READERS: Mapping[str, Callable[[Fields], Scheme]] = {
    **dict.fromkeys(("fp8", "fbgemm-fp8", "ptpc-fp8"), _fp8),
    **dict.fromkeys(("gptq", "awq", "gptq-marlin", "awq-marlin", "auto-round"), _integers),
    "compressed-tensors": _compressed,
    **dict.fromkeys(("mxfp4", "gpt-oss-mxfp4"), lambda _: MXFP4),
    **dict.fromkeys(("modelopt", "modelopt-fp4", "nvfp4"), _modelopt),
    "bitsandbytes": _bitsandbytes,
    "quark": _quark,
    **dict.fromkeys(("experts-int8", "int8"), lambda _: INT8),
}
"""How each `quant_method` is read."""


def _patterns(quantised: Mapping[str, Any]) -> Sequence[str]:
    for name in _IGNORE_FIELDS:
        value = quantised.get(name)
        if value is None:
            continue
        if not isinstance(value, (list, tuple)) or len(value) > _MOST_PATTERNS:
            raise ConfigError(field=name, why="must be a list of module names")
        if not all(isinstance(v, str) and len(v) <= _LONGEST_PATTERN for v in value):
            raise ConfigError(field=name, why="must hold module names only")
        return value
    return ()


class _Ignored:
    """An ignore list: module names, parts of them, globs, and `re:` expressions."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._pieces: list[str] = []
        self._expressions: list[re.Pattern[str]] = []
        for pattern in patterns:
            self._add(pattern)

    def _add(self, pattern: str) -> None:
        if pattern.startswith("re:"):
            self._expressions.append(_expression(pattern.removeprefix("re:")))
        elif any(mark in pattern for mark in "*?["):
            for whole in (pattern, f"{pattern}.*"):  # a module, and what is in it
                self._expressions.append(re.compile(fnmatch.translate(whole)))
        elif re.search(r"layers\.\d+", pattern):
            self._names.add(re.sub(r"^.*?(?=layers\.)", "", pattern))
        else:
            self._pieces.append(pattern)

    def _matches(self, module: str) -> bool:
        words = module.split(".")
        if any(".".join(words[:n]) in self._names for n in range(2, len(words) + 1)):
            return True
        path = f"model.{module}"
        return any(_within(piece, path) for piece in self._pieces) or any(
            expression.match(path) for expression in self._expressions
        )

    def share(self, modules: Sequence[str], layers: int) -> float:
        """Return the share of `modules`, over all layers, that the list leaves alone."""
        if not (self._names or self._pieces or self._expressions):
            return 0.0
        paths = [f"layers.{i}.{module}" for i in range(layers) for module in modules]
        return sum(self._matches(path) for path in paths) / len(paths)


def _within(piece: str, path: str) -> bool:
    """Whether whole words of `path` are `piece` (`gate` is not in `gate_proj`)."""
    return f".{piece}." in f".{path}."


def _expression(text: str) -> re.Pattern[str]:
    if _NESTED.search(text):
        raise ConfigError(field="ignore", why=f"expression {text!r:.60} may never end")
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(field="ignore", why=f"{text!r:.60}: {error}") from error
