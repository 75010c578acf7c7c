"""Where a plan's model comes from: a config.json, a folder that holds one, or a shipped name.

Nothing is downloaded. Errors: `ModelError` < `ValueError`, with what to do about it.
"""

import difflib
import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

MOST_BYTES = 4 * 2**20
"""A config.json is a few kB; the largest seen (per-layer quantisation lists) is under 1 MiB."""


class ModelError(ValueError):
    """The model's config cannot be had; the text says where and what would help."""


def shipped() -> Mapping[str, Mapping[str, Any]]:
    """Return the configs that come with the program, by model name."""
    text = resources.files("boundby.core.cost").joinpath("models.json").read_text("utf-8")
    configs: dict[str, dict[str, Any]] = json.loads(text)
    return configs


def load(name: str) -> tuple[str, Mapping[str, Any]]:
    """Return the model's name and config, from a file, a folder or the shipped list."""
    path = Path(name)
    if path.is_dir():
        config = dict(_read(path / "config.json"))
        quantised = path / "hf_quant_config.json"
        if quantised.is_file() and "quantization_config" not in config:
            config["quantization_config"] = {"quant_method": "modelopt", **_read(quantised)}
        return path.name, config
    if path.is_file():
        return path.parent.name or path.stem, _read(path)
    return _named(name)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            msg = f"{path} is larger than {MOST_BYTES // 2**20} MiB: no config.json is"
            raise ModelError(msg)
        config = json.loads(path.read_bytes())
    except OSError as error:
        msg = f"{path}: {error.strerror}. Give a config.json, or a folder that holds one."
        raise ModelError(msg) from error
    except RecursionError:
        msg = f"{path} is nested too deeply to be a config.json"
        raise ModelError(msg) from None
    except ValueError as error:
        msg = f"{path} is not JSON: {str(error)[:200]}"
        raise ModelError(msg) from error
    if not isinstance(config, dict):
        msg = f"{path} holds no JSON object"
        raise ModelError(msg)
    return config


def _plain(name: str) -> str:
    """Return a name without its owner and tuning, for comparison."""
    word = name.lower().rsplit("/", 1)[-1].removeprefix("meta-")
    return re.sub(r"-(instruct|chat|it|base|hf|bf16|fp8|v0\.\d)+(?=-|$)", "", word)


def _named(name: str) -> tuple[str, Mapping[str, Any]]:
    configs = shipped()
    if name in configs:
        return name, configs[name]
    plain = {_plain(known): known for known in configs}
    if found := plain.get(_plain(name)):
        return found, configs[found]
    near = difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.4)
    hint = ", ".join(plain[word] for word in near) or ", ".join(sorted(configs)[:3])
    msg = (
        f"no file, folder or shipped model is called {name[:80]!r}. "
        f"Shipped ones like it: {hint}. Else give the path of its config.json."
    )
    raise ModelError(msg)
