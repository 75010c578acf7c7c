"""Real processes for tests: started on unused ports of loopback, ended by their own handles."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

FOUND = TypeVar("FOUND")

RUNS = Path(__file__).parent.parent / "fixtures" / "runs"
REPLAYED_ENGINE = Path(__file__).parent / "replayed_engine.py"

WATCH = """
[watch]
beat_seconds = 0.5
window_seconds = 6
dwell_seconds = 1.5
stale_after_seconds = 3
"""
"""Lengths that a test can wait for."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str, **headers: str) -> tuple[int, str]:
    """Status and text of a page; a page that is refused has status 0."""
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  always http on loopback
    try:
        with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310  as above
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def until(what: str, look: Callable[[], FOUND | None], seconds: float = 30.0) -> FOUND:
    """What `look` finds, as soon as it finds something; fails with `what` after so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    pytest.fail(f"not within {seconds:g} s: {what}")


@dataclass(slots=True)
class Running:
    """One process and what it wrote."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait(10)

    def stop(self, seconds: float = 10.0) -> tuple[int, float]:
        """Ask it to end; gives its exit code and how long it took."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        return code, time.monotonic() - begun


@dataclass(slots=True)
class Stack:
    """Everything one test started, in `folder`."""

    folder: Path
    running: list[Running] = field(default_factory=list)

    def start(self, name: str, command: Sequence[str | Path]) -> Running:
        log = self.folder / f"{name}-{len(self.running)}.log"
        quiet = {key: v for key, v in os.environ.items() if not key.startswith("BOUNDBY_")}
        with log.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603  our own commands
                [str(part) for part in command],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=quiet,
            )
        one = Running(process, log)
        self.running.append(one)
        return one

    def end(self) -> None:
        for one in reversed(self.running):
            if one.process.poll() is None:
                one.kill()

    def pages(self, recording: str, source: str, port: int) -> Running:
        """Serve a recording's pages of one source."""
        one = self.start(
            source, (sys.executable, REPLAYED_ENGINE, RUNS / recording, "--source", source,
                     "--port", str(port)),
        )  # fmt: skip
        until(f"{source}'s pages are served", lambda: get(url(port, "/metrics"))[0] == 200)
        return one

    def boundby(self, settings: str, *arguments: str) -> tuple[Running, str]:
        """Start `boundby run`; gives the process and the address it says it is found at."""
        file = self.folder / f"boundby-{len(self.running)}.toml"
        file.write_text(settings, encoding="utf-8")
        one = self.start("boundby", (*BOUNDBY, "run", "--config", file, *arguments))

        def where() -> str | None:
            assert one.process.poll() is None, one.said()
            for word in one.said().split():
                if word.startswith("http://") and word.endswith("/metrics"):
                    return word.removesuffix("/metrics")
            return None

        return one, until("boundby says where it is", where)

    def prometheus(self, targets: dict[str, str], rules: Sequence[Path] = ()) -> str:
        """Start a Prometheus that scrapes every target each second; gives its address."""
        binary = shutil.which("prometheus")
        if binary is None:
            pytest.skip("prometheus is not installed (apt install prometheus)")
        port = free_port()
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in rules],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": [target.split("//")[-1]]}]}
                for job, target in targets.items()
            ],
        }
        file = self.folder / "prometheus.yml"
        file.write_text(json.dumps(config), encoding="utf-8")
        self.start(
            "prometheus",
            (
                binary,
                f"--config.file={file}",
                f"--storage.tsdb.path={self.folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ),
        )
        until("Prometheus is ready", lambda: get(url(port, "/-/ready"))[0] == 200)
        return url(port)


BOUNDBY = (sys.executable, "-m", "boundby")


def url(port: int, path: str = "") -> str:
    return f"http://127.0.0.1:{port}{path}"


def query(prometheus: str, expression: str) -> list[dict[str, Any]]:
    """What Prometheus answers to an instant query."""
    asked = urllib.parse.urlencode({"query": expression})
    status, text = get(f"{prometheus}/api/v1/query?{asked}")
    assert status == 200, text
    result: list[dict[str, Any]] = json.loads(text)["data"]["result"]
    return result
