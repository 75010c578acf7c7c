"""Rewrite the generated pages: `python -m boundby.app.generate [ROOT]`.

A page follows from what is registered in the code; `pages` makes all of them in memory, which is
how a test tells whether the committed ones are fresh.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from boundby import __version__
from boundby.app import cli, config
from boundby.app.reference import commands, limits, metrics, settings
from boundby.core.facts import ENGINE_FACTS, GPU_FACTS, HOST_FACTS
from boundby.core.signals import SIGNALS
from boundby.sinks.catalogue import catalogue
from boundby_rules import LIMITS

FACTS = {
    "Facts that an engine's page gives": tuple(ENGINE_FACTS.values()),
    "Facts that a GPU source gives": tuple(GPU_FACTS.values()),
    "Facts that the host gives": tuple(HOST_FACTS.values()),
}


def pages() -> Mapping[str, str]:
    """Every generated page by its path in the repository."""
    families = catalogue(tuple(limit.name for limit in LIMITS), __version__)
    return {
        "exporter/METRICS.md": metrics.render(families, FACTS, SIGNALS.values()),
        "rules/README.md": limits.render(LIMITS),
        "docs/settings.md": settings.render(config.Settings, config.PREFIX, LIMITS),
        "docs/cli.md": commands.render(cli.parser()),
    }


def main(arguments: list[str]) -> None:
    """Write every page under a root, the working directory by default."""
    root = Path(arguments[0] if arguments else ".")
    for name, text in pages().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
