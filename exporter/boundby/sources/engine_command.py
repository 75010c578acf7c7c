"""An engine's command line: what it sets that the engine's page does not say.

Only what is written there is told; a default depends on the release and the GPU, and a `--config`
file is not read. What may be a secret is taken out of the line as it is shown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boundby.core.setup import Setup

ORIGINS = {"vllm": "vLLM's command line", "sglang": "SGLang's command line"}
"""Where a value came from, as a report words it."""

MOST_SHOWN = 4000
"""Characters of a command line that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a command line gave; `dtype` is the compute type, which an unquantised model stores.

    `config_file` is a file of further flags that was named, `model` the model as written.
    """

    setup: Setup
    shown: str
    model: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    download_dir: str | None = None
    config_file: str | None = None
    port: int | None = None
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None


_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def whole(text: str) -> int:
    """Read a number as vLLM does: "8192", "8k" is 8,000, "8K" is 8,192; `ValueError`."""
    scale = {**_UNITS, **_BINARY}.get(text[-1:], None)
    if scale is None:
        return int(text)
    number = float(text[:-1]) * scale
    if not 0 <= number < 2**53:
        msg = f"{text!r} is out of range"
        raise ValueError(msg)
    return int(number)


Read = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class _Flags:
    """One value and every flag that sets it; `on` and `off` are switches without a value."""

    name: str
    flags: tuple[str, ...]
    read: Read = str
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()


VLLM = (
    _Flags("model", ("--model",)),
    _Flags("tensor", ("--tensor-parallel-size", "-tp"), whole),
    _Flags("pipeline", ("--pipeline-parallel-size", "-pp"), whole),
    _Flags("data", ("--data-parallel-size", "-dp"), whole),
    _Flags("max_num_seqs", ("--max-num-seqs",), whole),
    _Flags("max_num_batched_tokens", ("--max-num-batched-tokens",), whole),
    _Flags("dtype", ("--dtype",)),
    _Flags("quantization", ("--quantization", "-q")),
    _Flags("kv_cache_dtype", ("--kv-cache-dtype",)),
    _Flags("max_model_len", ("--max-model-len",), whole),
    _Flags("gpu_memory_utilization", ("--gpu-memory-utilization",), float),
    _Flags("download_dir", ("--download-dir",)),
    _Flags("config_file", ("--config",)),
    _Flags("port", ("--port",), whole),
    _Flags("enforce_eager", (), on=("--enforce-eager",), off=("--no-enforce-eager",)),
)
SGLANG = (
    _Flags("model", ("--model-path", "--model")),
    _Flags("tensor", ("--tensor-parallel-size", "--tp-size", "--tp"), whole),
    _Flags("pipeline", ("--pipeline-parallel-size", "--pp-size", "--pp"), whole),
    _Flags("data", ("--data-parallel-size", "--dp-size", "--dp"), whole),
    _Flags("max_num_seqs", ("--max-running-requests",), whole),
    _Flags("max_num_batched_tokens", ("--chunked-prefill-size",), whole),
    _Flags("dtype", ("--dtype",)),
    _Flags("quantization", ("--quantization",)),
    _Flags("kv_cache_dtype", ("--kv-cache-dtype",)),
    _Flags("max_model_len", ("--context-length",), whole),
    _Flags("gpu_memory_utilization", ("--mem-fraction-static",), float),
    _Flags("download_dir", ("--download-dir",)),
    _Flags("config_file", ("--config",)),
    _Flags("port", ("--port",), whole),
    _Flags("enforce_eager", (), on=("--disable-cuda-graph",)),
)
TABLES: Mapping[str, tuple[_Flags, ...]] = {"vllm": VLLM, "sglang": SGLANG}

SETUP = (
    "tensor", "pipeline", "data", "max_num_seqs", "max_num_batched_tokens", "enforce_eager",
)  # fmt: skip
"""Values that go into a setup as they are."""

QUANTIZED = {"fp8": "fp8", "ptpc_fp8": "fp8", "fbgemm_fp8": "fp8", "w8a8_fp8": "fp8",
             "w8a8_int8": "int8", "experts_int8": "int8"}  # fmt: skip
"""Weights made smaller while they are loaded; other methods stand in the model's config.json."""


def parse(argv: Sequence[str], kind: str = "vllm") -> Command:
    """Read a command line; a value that cannot be read is left out."""
    table = TABLES[kind]
    given: dict[str, Any] = {}
    words = list(argv)
    if (model := _positional(words)) is not None:
        given["model"] = model
    at = 0
    while at < len(words):
        flag, equals, value = _split(words[at])
        at += 1
        for row in table:
            if flag in row.on or flag in row.off:
                given[row.name] = flag in row.on
            elif flag in row.flags:
                if not equals:
                    value = words[at] if at < len(words) else ""
                    at += 1
                try:
                    given[row.name] = row.read(value)
                except ValueError:
                    given.pop(row.name, None)
    return _command(given, words, kind)


def _command(given: Mapping[str, Any], words: Sequence[str], kind: str) -> Command:
    known = {name: given[name] for name in SETUP if name in given}
    known["kind"] = kind
    if "model" in given:
        known["model_id"] = given["model"]
    if (kv := given.get("kv_cache_dtype")) and kv != "auto":
        known["kv_cache_dtype"] = kv
    if weights := QUANTIZED.get(given.get("quantization", "")):
        known["weights_dtype"] = weights
    dtype = given.get("dtype")
    return Command(
        setup=Setup(**known, origins=dict.fromkeys(known, ORIGINS[kind])),
        shown=shown(words),
        model=given.get("model"),
        dtype=None if dtype == "auto" else dtype,
        quantization=given.get("quantization"),
        download_dir=given.get("download_dir"),
        config_file=given.get("config_file"),
        port=given.get("port"),
        max_model_len=given.get("max_model_len"),
        gpu_memory_utilization=given.get("gpu_memory_utilization"),
    )


def _split(word: str) -> tuple[str, bool, str]:
    """Flag, whether a value came with it, and the value; underscores are as good as dashes."""
    flag, equals, value = word.partition("=")
    if flag.startswith("--"):
        flag = flag.replace("_", "-")
    return flag, bool(equals), value


def _positional(words: Sequence[str]) -> str | None:
    """Return the MODEL of `serve MODEL`."""
    try:
        at = words.index("serve") + 1
    except ValueError:
        return None
    if at < len(words) and not words[at].startswith("-"):
        return words[at]
    return None


_CONFIDENTIAL = (
    r"(?:[\w-]*[-_])?(?:api[-_]?keys?|tokens?|passw(?:or)?d|secrets?|credentials?|auth)"
    r"(?:[-_]\w+)?"
)
"""Names of flags, variables and JSON keys whose values are not shown."""
_SECRET_FLAG = re.compile(rf"--?{_CONFIDENTIAL}", re.IGNORECASE)
_COUNTS_TOKENS = re.compile(r"tokens|token[-_]", re.IGNORECASE)
"""In a flag's name: with a number for a value it is about tokens of text."""
_SECRET_VALUE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[\w-]{8,}|AKIA[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{16,})"
    r"|(?<=://)[^/@\s]+(?=@)"
    r"|\bBearer\s+\S+",
)
_SECRET_JSON = re.compile(rf"""(["']{_CONFIDENTIAL}["']\s*:\s*)(["']).*?\2""", re.IGNORECASE)
_SECRET_PAIR = re.compile(rf"^({_CONFIDENTIAL})=.*$", re.IGNORECASE | re.DOTALL)

REMOVED = "[removed]"


def shown(argv: Sequence[str]) -> str:
    """Return the line as it may be shown: what may be a secret removed, one line, cut if long."""
    words: list[str] = []
    flag, hiding = "", False
    for word in argv:
        if word.startswith("-") and len(word) > 1:
            flag, equals, value = _split(word)
            hiding = _SECRET_FLAG.fullmatch(flag) is not None
            hide = hiding and equals and not _counts(flag, value)
            words.append(f"{flag}={REMOVED}" if hide else _cleaned(word))
        else:
            words.append(REMOVED if hiding and not _counts(flag, word) else _cleaned(word))
    line = " ".join(word if word.isprintable() else repr(word)[1:-1] for word in words)
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]} ..."


def _counts(flag: str, value: str) -> bool:
    return (
        _COUNTS_TOKENS.search(flag) is not None
        and re.fullmatch(r"[\d.]+[kKmM]?", value) is not None
    )


def _cleaned(word: str) -> str:
    word = _SECRET_VALUE.sub(REMOVED, word)
    word = _SECRET_JSON.sub(rf'\1"{REMOVED}"', word)
    return _SECRET_PAIR.sub(rf"\1={REMOVED}", word)
