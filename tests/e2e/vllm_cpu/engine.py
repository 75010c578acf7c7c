"""A real vLLM on a CPU, on an unused port of loopback, with a tiny model of random weights."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.stack import free_port, get, until, url
from e2e.vllm_cpu.load import MODEL

ROOT = Path(__file__).parents[3]

START_SECONDS = 300.0
"""From start to healthy: about 40 s on two free cores."""

OURS = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_OMP_THREADS_BIND": str(max(os.sched_getaffinity(0))),
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
"""A CPU engine with one core to compute on and 1 GiB of KV cache, that asks no other machine."""


def environment() -> Path | None:
    """The folder that install.sh made, where there is one: $VLLM_CPU_ENV or .venv-vllm here."""
    folder = Path(os.environ.get("VLLM_CPU_ENV") or ROOT / ".venv-vllm")
    return folder if (folder / "bin" / "python").exists() else None


def descendants(parent: int) -> list[int]:
    """Every process that this one started, and those that they started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
    return [one for child in map(int, children) for one in (child, *descendants(child))]


@dataclass(slots=True)
class Engine:
    """One running vLLM."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return url(self.port)

    def metrics(self) -> str:
        return get(f"{self.url}/metrics")[1]

    def value(self, name: str) -> float:
        """The sum of a metric's rows; 0 while there is none."""
        rows = re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", self.metrics(), re.MULTILINE)
        return sum(map(float, rows))

    def running(self) -> float:
        return self.value("vllm:num_requests_running")

    def waiting(self) -> float:
        return self.value("vllm:num_requests_waiting")

    def workers(self) -> list[int]:
        """The processes that step: the engine core and what it started."""
        titles = {
            pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(self.process.pid)
        }
        return [pid for pid, title in titles.items() if title.startswith(b"VLLM::")]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Its core and workers stand still; its API server goes on answering."""
        stopped = self.workers()
        assert stopped, "no process of the engine is called VLLM::..."
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    @contextmanager
    def load(self, *, concurrency: int, prompt: int, output: int, give_up: float | None = None
             ) -> Iterator[None]:  # fmt: skip
        """Clients in a closed loop, ended with the block, at most five minutes."""
        command = [
            sys.executable, "-m", "e2e.vllm_cpu.load", self.url, "--seconds", "300",
            "--concurrency", str(concurrency), "--prompt", str(prompt), "--output", str(output),
            *(() if give_up is None else ("--give-up", str(give_up))),
        ]  # fmt: skip
        clients = subprocess.Popen(command, cwd=ROOT / "tests")  # noqa: S603  our own command
        try:
            yield
        finally:
            clients.kill()
            clients.wait(10)

    def rest(self) -> None:
        """Wait until nothing runs."""
        until("the engine is idle", lambda: self.running() + self.waiting() == 0, 60)

    def kill(self) -> None:
        """End it as a crash would, with all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)

    def stop(self) -> None:
        """Ask it to end, and see that it does."""
        self.process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self.kill()


def start(folder: Path, model: Path, *flags: str) -> Engine:
    """Start a vLLM and wait until it is healthy; skips the test where none is installed."""
    installed = environment()
    if installed is None:
        pytest.skip("no vLLM for CPUs (tests/e2e/vllm_cpu/install.sh .venv-vllm)")
    port = free_port()
    log = folder / f"vllm-{port}.log"
    command = [
        installed / "bin" / "python", "-m", "vllm.entrypoints.openai.api_server",
        "--model", model, "--load-format", "dummy", "--served-model-name", MODEL,
        "--host", "127.0.0.1", "--port", str(port), "--enforce-eager", *flags,
    ]  # fmt: skip
    ours = {"PATH": f"{installed / 'bin'}:{os.environ['PATH']}", **OURS}
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603  our own command
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={**os.environ, **ours}, cwd=folder, start_new_session=True,
        )  # fmt: skip
    engine = Engine(process, port, log)
    end = time.monotonic() + START_SECONDS
    while get(f"{engine.url}/health")[0] != 200:
        if process.poll() is not None or time.monotonic() > end:
            engine.kill()
            said = log.read_text(encoding="utf-8", errors="replace").splitlines()
            pytest.fail("vLLM did not start:\n" + "\n".join(said[-30:]))
        time.sleep(0.25)
    return engine
