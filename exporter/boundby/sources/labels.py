"""The labels of a metrics line: text between braces to names and values, and back.

Reading is remembered, as the same texts come back with every beat.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

Labels = Mapping[str, str]

LABEL_SETS_KEPT = 8192
"""Texts remembered: three times those of a page of 8 vLLM engines, about 8 MB."""

_LABEL = re.compile(
    r'\s*([a-zA-Z_][a-zA-Z0-9_]*|"(?:[^"\\]|\\.)*")\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|$)', re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED = {"n": "\n", '"': '"', "\\": "\\"}


class LineError(ValueError):
    """A line, or a part of one, that does not follow the format."""


class LabelSet(NamedTuple):
    """Labels read: `key` is their one fixed spelling, whatever order the page has.

    `bucket_key` is that of the labels without `le`, and `bound` what `le` says, NaN where it
    says nothing: they place a histogram's bucket.
    """

    key: str
    labels: Labels
    bucket_key: str
    bound: float


@lru_cache(maxsize=LABEL_SETS_KEPT)
def read_labels(text: str) -> LabelSet:
    """Read what stands between the braces; `LineError` where that is no list of labels."""
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            if text[at:].strip():
                msg = f"labels cannot be read from {short(text[at:])}"
                raise LineError(msg)
            break
        name = found[1]
        if name[0] == '"':
            name = _unescape(name[1:-1])
        if name in labels:
            msg = f"label {name} is there twice"
            raise LineError(msg)
        labels[name] = _unescape(found[2])
        at = found.end()
    key = _spell(labels)
    if "le" not in labels:
        return LabelSet(key, MappingProxyType(labels), key, math.nan)
    try:
        bound = float(labels["le"])
    except ValueError:
        bound = math.nan
    rest = {name: value for name, value in labels.items() if name != "le"}
    return LabelSet(key, MappingProxyType(labels), _spell(rest), bound)


def labels_of(key: str) -> Labels:
    """Return the labels that a key spells."""
    return read_labels(key).labels


def short(text: str) -> str:
    """Quote a text for a message, cut to what fits on a line."""
    return repr(text if len(text) <= 60 else text[:57] + "...")  # noqa: PLR2004  # one line


def _unescape(text: str) -> str:
    """Undo the format's three escapes; a backslash before anything else is kept."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _UNESCAPED.get(found[1], found[0]), text)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _spell(labels: Labels) -> str:
    return ",".join(
        f'{_spell_name(name)}="{_escape(value)}"' for name, value in sorted(labels.items())
    )


def _spell_name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else f'"{_escape(name)}"'
