"""`boundby doctor`: which inputs are visible from here, what is missing, what supplies it.

Exit codes: 0 every needed and useful input is there, 3 something useful is missing, 4 the
engine's page cannot be read, 2 usage.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from boundby.app.config import Settings
from boundby.app.doctor_checks import CHECKS, Check, Look
from boundby.app.doctor_csv import csv
from boundby.app.doctor_sight import Readers, Sight, look

OK, MISSING, NO_ENGINE = 0, 3, 4

SPREAD = {
    "counters": "counters: measured activity of memory and tensor pipes",
    "nvml": "nvml: a busy share, clocks and power; activity is modelled",
    "engine": "engine: its page alone; all of the GPU is modelled or unknown",
}
"""The tiers of evidence of the GPU, in words."""


@dataclass(frozen=True, slots=True)
class Row:
    """One input with what was found."""

    check: Check
    look: Look

    @property
    def missing(self) -> bool:
        """Whether it would improve something and is not there."""
        return self.look.there is False

    @property
    def state(self) -> str:
        """The finding as one word."""
        return {True: "there", False: "missing", None: "not applicable"}[self.look.there]

    @property
    def remedy(self) -> tuple[str, ...]:
        """What supplies it, where it is missing."""
        return (self.look.remedy or self.check.remedy) if self.missing else ()


def examine(sight: Sight) -> tuple[Row, ...]:
    """Run every check."""
    return tuple(Row(check, check.look(sight)) for check in CHECKS)


def code(sight: Sight, rows: tuple[Row, ...]) -> int:
    """Return the exit code."""
    if sight.engine is None:
        return NO_ENGINE
    return MISSING if any(row.missing and row.check.tier != "extra" for row in rows) else OK


def as_json(sight: Sight, rows: tuple[Row, ...]) -> dict[str, Any]:
    """Return what was found as an object."""
    return {
        "schema": 1,
        "exit": code(sight, rows),
        "evidence": sight.tier,
        "inputs": [
            {
                "input": row.check.name,
                "tier": row.check.tier,
                "state": row.state,
                "detail": row.look.says,
                "improves": row.check.improves,
                "remedy": list(row.remedy),
            }
            for row in rows
        ],
    }


def as_text(sight: Sight, rows: tuple[Row, ...]) -> str:
    """Return what was found for a person to read."""
    width = max(len(row.check.name) for row in rows)
    marks = {True: "ok", False: "--", None: "  "}
    lines = [f"evidence  {SPREAD[sight.tier]}", ""]
    lines += [
        f"{marks[row.look.there]}  {row.check.name:<{width}}  {row.look.says}" for row in rows
    ]
    missing = [row for row in rows if row.missing]
    order = {"needed": 0, "useful": 1, "extra": 2}
    for row in sorted(missing, key=lambda row: order[row.check.tier]):
        lines += ["", f"{row.check.name} ({row.check.tier}): {row.check.improves}"]
        lines += [f"    {line}" for line in row.remedy]
    if not missing:
        lines += ["", "nothing is missing"]
    return "\n".join(lines) + "\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    from boundby.app.cli import _settings_flags  # noqa: PLC0415  it is what imports us

    _settings_flags(parser)
    parser.add_argument(
        "--output", choices=("text", "json"), default="text", help="for people or for programs"
    )
    parser.add_argument(
        "--dcgm-csv", action="store_true", help="print a counters file for dcgm-exporter, no more"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.dcgm_csv:
        sys.stdout.write(csv())
        return OK
    from boundby.app.cli import _load  # noqa: PLC0415  it is what imports us
    from boundby.app.wiring import all_limits  # noqa: PLC0415

    settings = _load(args, all_limits())
    sight = asyncio.run(_look(settings, os.environ))
    rows = examine(sight)
    if args.output == "json":
        sys.stdout.write(json.dumps(as_json(sight, rows), indent=2) + "\n")
    else:
        sys.stdout.write(as_text(sight, rows))
    return code(sight, rows)


async def _look(settings: Settings, environment: Mapping[str, str]) -> Sight:
    """Read everything that the settings name."""
    import aiohttp  # noqa: PLC0415  slow to import, and not needed for --dcgm-csv

    from boundby.app.wiring import engine_tls  # noqa: PLC0415
    from boundby.sources import dcgm, engines  # noqa: PLC0415
    from boundby.sources.fetch import Address, PageSource  # noqa: PLC0415
    from boundby.sources.host import HostSource  # noqa: PLC0415

    engine, gpu = settings.engine, settings.gpu
    port = urlsplit(engine.url).port if engine.url else None
    async with aiohttp.ClientSession() as session:
        readers = Readers(
            engine=PageSource(
                "engine",
                session,
                Address(
                    url=engine.url,
                    token_file=engine.token_file,
                    tls=engine_tls(settings),
                    deadline_seconds=engine.timeout_seconds,
                ),
                lambda text: engines.parse(text, engine.kind),
            ).read
            if engine.url
            else None,
            dcgm=PageSource(
                "dcgm",
                session,
                Address(url=gpu.url, deadline_seconds=gpu.timeout_seconds),
                dcgm.parse,
            ).read
            if gpu.url and gpu.source in ("auto", "dcgm")
            else None,
            nvml=_nvml(settings) if gpu.source in ("auto", "nvml") else None,
            host=HostSource(settings.host.root, port=port).read if settings.host.enabled else None,
        )
        return await look(readers, settings.setup(), environment.get("POD_NAME"))


def _nvml(settings: Settings) -> Any:
    from boundby.sources.base import SourceError  # noqa: PLC0415

    name = "nvml"

    async def read() -> Any:
        try:
            from boundby.sources.nvml import NvmlSource  # noqa: PLC0415  loads a driver library
        except ImportError as error:
            problem = f"not installed ({error})"
            raise SourceError(name, problem) from error
        source = NvmlSource(deadline_seconds=settings.gpu.timeout_seconds, gpm=settings.gpu.gpm)
        try:
            return await source.settled()
        finally:
            await source.close()

    return read
