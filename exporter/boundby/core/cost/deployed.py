"""A model's formats as it is deployed: settings first, then what its config asks for."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from boundby.core.cost.formats import (
    BF16,
    SCHEMES,
    Formats,
    Scheme,
    kv_bytes,
    scheme,
    uniform,
)
from boundby.core.cost.quantization import kv_word, read_schemes
from boundby.core.cost.reading import language
from boundby.core.cost.shape import ModelShape, Part

_FLOATS = frozenset({"bf16", "fp16", "fp32"})


def _own_dtype(config: Mapping[str, Any]) -> Scheme:
    """Return the dtype that the config's unquantised weights have; 16 bits where it is silent."""
    for name in ("torch_dtype", "dtype"):
        word = config.get(name)
        if isinstance(word, str):
            word = word.removeprefix("torch.").lower()
            if word in SCHEMES and SCHEMES[word].arithmetic in _FLOATS:
                return SCHEMES[word]
    return SCHEMES["bf16"]


def _mixed(narrow: Scheme, wide: Scheme, share: float) -> Scheme:
    """Average two schemes where a part's layers differ; the arithmetic is the larger share's."""
    each = share * narrow.bytes_per_element + (1.0 - share) * wide.bytes_per_element
    return Scheme(each, narrow.arithmetic if share >= 0.5 else wide.arithmetic)  # noqa: PLR2004  # half


def read_formats(
    config: Mapping[str, Any],
    shape: ModelShape,
    weights: str | None = None,
    kv: str | None = None,
) -> Formats:
    """Take the words of settings where given ("auto" is not), else the config's own fields.

    A config that says how it is quantised knows which parts are left alone; a word of settings
    that only repeats it does not take that away, nor does one of 16 bits, which names the
    dtype that the engine computes in.
    """
    config = language(config)
    wide = _own_dtype(config)
    asked = None if weights is None or weights.lower() == "auto" else scheme(weights)
    parts = read_schemes(config, shape)
    if asked and not _agrees(asked, parts):
        formats = uniform(weights or "auto", "auto")
    else:
        stored = dict.fromkeys(uniform().parts, wide)
        for part, (narrow, share) in parts.items():
            stored[part] = _mixed(narrow, wide, share)
        formats = replace(uniform(), parts=MappingProxyType(stored))
    word = kv if kv and kv.lower() != "auto" else kv_word(config)
    return replace(formats, kv_bytes_per_element=_kv_bytes(word, shape))


def _agrees(asked: Scheme, parts: Mapping[Part, tuple[Scheme, float]]) -> bool:
    """Whether settings name no more than what the config describes in detail."""
    if parts and asked.arithmetic in _FLOATS and asked.bytes_per_element >= BF16.bytes_per_element:
        return True
    return any(
        abs(asked.bytes_per_element - narrow.bytes_per_element) < 0.1  # noqa: PLR2004  # a scale's worth
        for narrow, _ in parts.values()
    )


def _kv_bytes(word: str | None, shape: ModelShape) -> float:
    """Return the bytes of a cached element; sparse latent caches have their own fp8 layout."""
    sparse = any(group.mixer and group.mixer.kind == "sparse" for group in shape.groups)
    if word and sparse and word.lower().startswith("fp8"):
        word = "fp8_ds_mla"
    return kv_bytes(word or "auto")
