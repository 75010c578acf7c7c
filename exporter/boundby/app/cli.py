"""The command line: every command, its flags and its exit code.

Exit codes: 0 done (for a diagnosis: nothing binds but demand), 2 usage or settings, 3 a limit
binds, 4 unknown, 130 interrupted.
"""

import argparse
import asyncio
import contextlib
import io
import logging
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from boundby import __version__
from boundby.app import live
from boundby.app.config import KINDS, LISTEN, PLACE, Settings, SettingsError, load
from boundby.app.replay import replay
from boundby.app.wiring import all_limits, options
from boundby.core.limit import Limit
from boundby.core.report import Report
from boundby.sinks import terminal

OK, USAGE, BINDS, UNKNOWN = 0, 2, 3, 4


def code(report: Report) -> int:
    """The exit code of a diagnosis: the worst of its engines'."""
    answers = {engine.verdict["engine"].limit for engine in report.engines}
    if not answers or answers == {"unknown"}:
        return UNKNOWN
    return BINDS if answers - {"demand", "unknown"} else OK


def _seconds(text: str) -> float:
    """A length of time from a flag."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        msg = f"{text!r} is no number of seconds above 0"
        raise argparse.ArgumentTypeError(msg)
    return number


def _settings_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", metavar="URL", help="the engine's metrics page")
    parser.add_argument("--kind", choices=KINDS, help="which engine it is (default: auto)")
    parser.add_argument("--gpu-url", metavar="URL", help="dcgm-exporter's metrics page")
    parser.add_argument("--config", metavar="FILE", type=Path, help="settings file (TOML)")
    parser.add_argument(
        "--model-config", metavar="PATH", type=Path, help="the model's config.json or its folder"
    )
    parser.add_argument("--tensor", type=int, metavar="N", help="tensor-parallel GPUs")
    parser.add_argument("--max-num-seqs", type=int, metavar="N", help="the engine's batch cap")
    parser.add_argument(
        "--max-num-batched-tokens", type=int, metavar="N", help="the engine's token budget"
    )


def _flags(args: argparse.Namespace) -> dict[str, Any]:
    given: dict[str, Any] = {}

    def put(section: str, key: str, value: Any) -> None:
        if value is not None:
            given.setdefault(section, {})[key] = value

    put("engine", "url", getattr(args, "engine", None))
    put("engine", "kind", getattr(args, "kind", None))
    put("gpu", "url", getattr(args, "gpu_url", None))
    put("model", "config", getattr(args, "model_config", None))
    put("parallelism", "tensor", getattr(args, "tensor", None))
    put("limits", "max_num_seqs", getattr(args, "max_num_seqs", None))
    put("limits", "max_num_batched_tokens", getattr(args, "max_num_batched_tokens", None))
    if getattr(args, "listen", None):
        given["listen"] = args.listen
    return given


def _load(args: argparse.Namespace, limits: Sequence[Limit]) -> Settings:
    file = getattr(args, "config", None)
    if file is None and (named := os.environ.get("BOUNDBY_CONFIG")):
        file = Path(named)
    return load(limits, file=file, environment=os.environ, flags=_flags(args))


def _need_engine(settings: Settings) -> None:
    if not settings.engine.url:
        problem = "not set; say --engine http://HOST:8000 or put it in the file"
        raise SettingsError(PLACE, [("engine.url", problem)])


def _run(args: argparse.Namespace) -> int:
    limits = all_limits()
    settings = _load(args, limits)
    _need_engine(settings)
    return _interruptible(live.serve(settings, limits))


def _demo(args: argparse.Namespace) -> int:
    settings = load(all_limits(), flags={"listen": args.listen or LISTEN})
    return _interruptible(live.demo(settings, all_limits(), seconds=args.seconds))


def _once(args: argparse.Namespace) -> int:
    limits = all_limits()
    settings = _load(args, limits)
    _need_engine(settings)
    report = asyncio.run(live.once(settings, limits, args.seconds))
    if args.output == "json":
        from boundby.sinks import json_report  # noqa: PLC0415

        sys.stdout.write(json_report.render(report, indent=2) + "\n")
    else:
        sys.stdout.write(terminal.render(report))
    return code(report)


def _top(args: argparse.Namespace) -> int:
    limits = all_limits()
    settings = _load(args, limits)
    _need_engine(settings)
    return _interruptible(live.top(settings, limits))


def _replay(args: argparse.Namespace) -> int:
    limits = all_limits()
    settings = _load(args, limits)
    try:
        replay(args.file, limits, options(settings), args.output, sys.stdout)
    except OSError as error:
        return _fail(f"{args.file}: {error.strerror or error}")
    except ValueError as error:
        return _fail(str(error))
    return OK


def _record(args: argparse.Namespace) -> int:
    limits = all_limits()
    settings = _load(args, limits)
    _need_engine(settings)
    return _interruptible(live.record(settings, limits, args.out, args.seconds))


def _explain(args: argparse.Namespace) -> int:
    named = {limit.name: limit for limit in all_limits()}
    limit = named.get(args.limit)
    if limit is None:
        return _fail(f"no such limit: {args.limit}; there are: {', '.join(named)}")
    sys.stdout.write(terminal.explain(limit))
    return OK


def _fail(message: str) -> int:
    sys.stderr.write(f"boundby: {message}\n")
    return USAGE


def _interruptible(work: Any) -> int:
    """Run until done or told to stop; SIGTERM stops as Ctrl-C does, cleanly."""

    async def guarded() -> int:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, task.cancel)
        try:
            return int(await task)
        except asyncio.CancelledError:
            return OK

    return asyncio.run(guarded())


def parser() -> argparse.ArgumentParser:
    """Build the parser."""
    top = argparse.ArgumentParser(
        prog="boundby",
        description="Names the one limit an LLM serving engine is bound by, and what would help.",
    )
    top.add_argument("--version", action="version", version=f"boundby {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(
        name: str, text: str, action: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.")
        sub.set_defaults(action=action)
        return sub

    run = command("run", "watch an engine and serve metrics, report and page", _run)
    _settings_flags(run)
    run.add_argument("--listen", metavar="ADDR:PORT", help=f"where to serve (default {LISTEN})")
    demo = command(
        "demo", "the same on a simulated engine and GPU that walk through limits", _demo
    )
    demo.add_argument("--listen", metavar="ADDR:PORT", help=f"where to serve (default {LISTEN})")
    demo.add_argument("--seconds", type=_seconds, metavar="N", help="stop after so long")
    once = command("once", "one diagnosis", _once)
    _settings_flags(once)
    once.add_argument(
        "--seconds", type=_seconds, default=10.0, metavar="N", help="how long to look"
    )
    once.add_argument(
        "--output", choices=("text", "json"), default="text", help="for people or for programs"
    )
    _settings_flags(command("top", "live terminal view", _top))
    again = command("replay", "diagnose a recording", _replay)
    again.add_argument("file", metavar="FILE", type=Path, help="a .jsonl or .jsonl.gz recording")
    again.add_argument(
        "--output",
        choices=("text", "json", "jsonl"),
        default="text",
        help="jsonl gives a report a line as they come",
    )
    again.add_argument("--config", metavar="FILE", type=Path, help="settings file (TOML)")
    record = command("record", "write a recording", _record)
    _settings_flags(record)
    record.add_argument(
        "--out", metavar="FILE", type=Path, required=True, help="packed where it ends in .gz"
    )
    record.add_argument("--seconds", type=_seconds, metavar="N", help="stop after so long")
    explain = command("explain", "what a limit means, and what would help", _explain)
    explain.add_argument("limit", metavar="LIMIT", help="its name, as in a verdict")
    for name, text in (
        ("plan", "what a model on a GPU can do: batch curve, capacity, roofline"),
        ("doctor", "which inputs are visible from here, what is missing, how to supply it"),
        ("history", "diagnose the past from series in Prometheus"),
    ):
        if find_spec(f"boundby.app.{name}") is None:
            continue
        module = __import__(f"boundby.app.{name}", fromlist=["add_arguments"])
        module.add_arguments(command(name, text, module.run))
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s",
    )
    # A request that is no HTTP gets its 400; anyone could fill the log with a trace for each.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that lacks a letter gets its number; no answer fails for that.
        sys.stdout.reconfigure(errors="backslashreplace")
    args = parser().parse_args(argv)
    try:
        answer = int(args.action(args))
        sys.stdout.flush()
    except SettingsError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe has gone; what is left to say has no one to hear it.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        return _fail(error.strerror or str(error))
    return answer
