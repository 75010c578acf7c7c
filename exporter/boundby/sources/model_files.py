"""A model's config.json as the engine's process sees it, from the name on its command line."""

import errno
import json
from collections.abc import Iterator, Mapping
from typing import Any

from boundby.sources.tree import Tree

MOST_BYTES = 4 * 2**20
"""A config.json larger than this is none."""

HUB = ".cache/huggingface/hub"

HOMES = ("/root", "/home/vllm")
"""Homes that images run their engine in."""

CACHES = (*(f"{home}/{HUB}" for home in HOMES), "/data/hub", "/data", "/models", "/cache")
"""Where images keep Hugging Face's cache; an engine's own environment is not read."""


class NoModelConfigError(Exception):
    """There is no config.json to be had; the text says why and what to do."""


def model_config(
    tree: Tree, pid: int, model: str, download_dir: str | None = None
) -> Mapping[str, Any]:
    """Read the config.json of `model`; `NoModelConfigError`."""
    problem: OSError | None = None
    for folder, path in _places(tree, pid, model, download_dir):
        try:
            return _parsed(tree.inside(folder, path, MOST_BYTES), path)
        except OSError as error:
            if problem is None or error.errno != errno.ENOENT:
                problem = error
    raise NoModelConfigError(_why(model, problem))


def _parsed(content: bytes, path: str) -> Mapping[str, Any]:
    try:
        config = json.loads(content)
    except (ValueError, RecursionError) as error:
        msg = f"{path} is not JSON ({error}); set model.config to a good copy"
        raise NoModelConfigError(msg) from error
    if not isinstance(config, dict):
        msg = f"{path} holds no JSON object; set model.config to a good copy"
        raise NoModelConfigError(msg)
    return config


def _places(
    tree: Tree, pid: int, model: str, download_dir: str | None
) -> Iterator[tuple[str, str]]:
    """Roots and paths, the engine's own view before ours."""
    roots = (f"/proc/{pid}/root", "/")
    if model.startswith("/"):
        for root in roots:
            yield root, f"{model}/config.json"
        return
    if model.startswith((".", "~")) or model.count("/") > 1:
        yield f"/proc/{pid}/cwd", f"{model}/config.json"
        return
    yield f"/proc/{pid}/cwd", f"{model}/config.json"
    folder = f"models--{model.replace('/', '--')}"
    for cache in dict.fromkeys(filter(None, (download_dir, *CACHES))):
        for root in roots:
            try:
                revision = tree.inside(root, f"{cache}/{folder}/refs/main", 256).decode("ascii")
            except (OSError, ValueError):
                continue
            yield root, f"{cache}/{folder}/snapshots/{revision.strip()}/config.json"


def _why(model: str, problem: OSError | None) -> str:
    if problem is not None and problem.errno in (errno.EACCES, errno.EPERM):
        return (
            f"the config.json of {model} may not be read through the engine's process; run as "
            "its user, add CAP_SYS_PTRACE, or set model.config to a copy"
        )
    if problem is not None and problem.errno not in (errno.ENOENT, None):
        return f"the config.json of {model} cannot be read ({problem.strerror}); set model.config"
    return f"no config.json of {model} was found; set model.config to its path"
