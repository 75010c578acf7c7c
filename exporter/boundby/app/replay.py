"""A recording diagnosed: a verdict for each window, and one for the whole."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from boundby.core.limit import Limit
from boundby.core.report import Report
from boundby.core.watch import Options, Watch
from boundby.sinks import terminal
from boundby.sources.recording import open_recording


def replay(
    path: Path, limits: Sequence[Limit], options: Options, output: str, out: TextIO
) -> Report:
    """Write a recording's verdicts as text, json or jsonl; return the summary.

    Raises RecordingError (a ValueError) or OSError for a file that cannot be read.
    """
    recording = open_recording(path)
    watch = Watch(recording.setup, limits, replace(options, remember=True))
    verdicts: list[Report] = []
    shown = ""
    due: float | None = None
    for snapshot in recording.snapshots:
        report = watch.observe(snapshot)
        if due is None:
            due = snapshot.t + options.window_seconds
        if snapshot.t >= due and report.engines:
            due = snapshot.t + options.window_seconds
            verdicts.append(report)
            if output == "jsonl":
                out.write(json.dumps(report.as_dict(), allow_nan=False) + "\n")
        if output == "text" and report.engines:
            line = " | ".join(
                f"{e.kind}-{e.engine} {e.verdict['engine'].limit}" for e in report.engines
            )
            if line != shown:
                out.write(f"{snapshot.t:14.1f}  {line}\n")
                shown = line
    summary = watch.summary()
    if not verdicts and summary.engines:
        verdicts.append(summary)
    for warning in recording.warnings:
        sys.stderr.write(f"boundby: {warning}\n")
    if output == "json":
        document = {
            "verdicts": [report.as_dict() for report in verdicts], "summary": summary.as_dict()
        }  # fmt: skip
        out.write(json.dumps(document, allow_nan=False) + "\n")
    elif output == "jsonl":
        out.write(json.dumps({"summary": summary.as_dict()}, allow_nan=False) + "\n")
    else:
        out.write("\n" + terminal.render(summary))
    return summary
