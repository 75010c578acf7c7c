"""A recording diagnosed: a verdict for each window, and one for the whole."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from boundby.core.limit import Limit
from boundby.core.report import Report
from boundby.core.watch import Options, Watch
from boundby.sinks import terminal
from boundby.sources.recording import open_recording


class _Output:
    """Writes verdicts as they come: the changes as text, all as jsonl, none as json."""

    def __init__(self, output: str, out: TextIO) -> None:
        self._output = output
        self._out = out
        self._shown = ""
        self.verdicts: list[Report] = []

    def beat(self, report: Report) -> None:
        """Take in the report of one moment."""
        if self._output != "text" or not report.engines:
            return
        line = " | ".join(
            f"{e.kind}-{e.engine} {e.verdict['engine'].limit}" for e in report.engines
        )
        if line != self._shown:
            self._out.write(f"{report.at:14.1f}  {terminal.plain(line)}\n")
            self._shown = line

    def window(self, report: Report) -> None:
        """Take in the report of a whole window."""
        self.verdicts.append(report)
        if self._output == "jsonl":
            self._out.write(json.dumps(report.as_dict(), allow_nan=False) + "\n")

    def end(self, summary: Report) -> None:
        """Write what is judged of the whole."""
        if not self.verdicts and summary.engines:
            self.window(summary)
        if self._output == "text":
            self._out.write("\n" + terminal.render(summary))
            return
        whole: dict[str, Any] = {"summary": summary.as_dict()}
        if self._output == "json":
            whole = {"verdicts": [report.as_dict() for report in self.verdicts], **whole}
        self._out.write(json.dumps(whole, allow_nan=False) + "\n")


def replay(
    path: Path, limits: Sequence[Limit], options: Options, output: str, out: TextIO
) -> Report:
    """Write a recording's verdicts as text, json or jsonl; return the summary.

    Raises RecordingError (a ValueError) or OSError for a file that cannot be read.
    """
    recording = open_recording(path)
    watch = Watch(recording.setup, limits, replace(options, remember=True))
    writer = _Output(output, out)
    due: float | None = None
    for snapshot in recording.snapshots:
        report = watch.observe(snapshot)
        writer.beat(report)
        if due is None:
            due = snapshot.t + options.window_seconds
        if snapshot.t >= due and report.engines:
            due = snapshot.t + options.window_seconds
            writer.window(report)
    summary = watch.summary()
    for warning in recording.warnings:
        sys.stderr.write(f"boundby: {warning}\n")
    writer.end(summary)
    return summary
