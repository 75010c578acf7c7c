"""Which adapter reads which engine's page."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from boundby.sources import sglang, vllm
from boundby.sources.engine_page import Parsed
from boundby.sources.looks import SERVER_ONLY, WrongPageError, looks_like

ADAPTERS: Mapping[str, Callable[[str], Parsed]] = MappingProxyType(
    {vllm.KIND: vllm.parse, sglang.KIND: sglang.parse}
)
"""Each engine's parser by its kind; `auto` stands for whichever the page is."""

KINDS = ("auto", *ADAPTERS)

_MARKS = tuple((kind, re.compile(rf"^{kind}:", re.MULTILINE)) for kind in ADAPTERS)


def detect(text: str) -> str | None:
    """Return the kind of engine whose rows come first on the page, or None."""
    found = [(mark.start(), kind) for kind, line in _MARKS if (mark := line.search(text))]
    return min(found)[1] if found else None


def parse(text: str, kind: str = "auto") -> Parsed:
    """Read the page of an engine of `kind`; `WrongPageError` says what it looks like instead."""
    if kind == "auto":
        kind = detect(text) or ""
    if not kind:
        looks = looks_like(text)
        if looks == SERVER_ONLY:
            return vllm.parse(text)  # its message tells of --disable-log-stats
        problem = f"no engine's page; it looks like {looks}"
        hint = f"Known engines: {', '.join(ADAPTERS)}. Is the path /metrics?"
        raise WrongPageError(problem, hint)
    adapter = ADAPTERS.get(kind)
    if adapter is None:
        problem = f"no adapter for an engine of kind {kind!r}"
        raise WrongPageError(problem, hint=f"Known: {', '.join(KINDS)}.")
    return adapter(text)
