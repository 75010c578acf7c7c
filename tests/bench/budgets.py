"""The budgets, measured on this machine and printed: `make bench`.

Nothing here passes or fails. Pages are a simulated server's, with its engine's or its GPU's rows
repeated to the number that a budget speaks of.
"""

import gzip
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from prometheus_client.parser import text_string_to_metric_families

from boundby.sources import vllm
from e2e.stack import RUNS, Running, Stack, free_port, get, until, url

RUN = "simulated-kv-full.jsonl.gz"
VLLM = "vllm-0.32.0-cpu-kv-starved.jsonl.gz"
GPUS = 8
ENGINES = 8
TICK = os.sysconf("SC_CLK_TCK")
WATCHED_SECONDS = 30.0


def repeated(page: str, label: str, times: int) -> str:
    """Repeat every row of the label's value "0" for each below `times`; UUIDs stay unique."""
    out = []
    for line in page.splitlines():
        if f'{label}="0"' not in line or line.startswith("#"):
            out.append(line)
            continue
        for number in range(times):
            row = line.replace(f'{label}="0"', f'{label}="{number}"')
            out.append(re.sub(r'UUID="[^"]*"', f'UUID="GPU-{number}"', row))
    return "\n".join(out) + "\n"


def reads(recording: str) -> tuple[str, list[dict[str, object]]]:
    """Give a recording's header line and its reads."""
    with gzip.open(RUNS / recording, "rt", encoding="utf-8") as file:
        return next(file), [json.loads(line) for line in file]


def eight_gpus(folder: Path) -> Path:
    """Write the simulated run with eight GPUs."""
    header, lines = reads(RUN)
    path = folder / "eight.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(header)
        for read in lines:
            if read["source"] == "dcgm":
                read["body"] = repeated(str(read["body"]), "gpu", GPUS)
            file.write(json.dumps(read) + "\n")
    return path


def best(work: Callable[[], object], times: int) -> float:
    """Time some work: the median of so many runs, in seconds."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def show(what: str, measured: str, budget: str = "-") -> None:
    """Print one row."""
    sys.stdout.write(f"{what:<58}{measured:>20}{budget:>14}\n")
    sys.stdout.flush()


def parsing() -> None:
    """Time our parser beside the client library's on a page of eight engines."""
    page = repeated(str(reads(VLLM)[1][-1]["body"]), "engine", ENGINES)
    size = len(page) / 1024
    ours = best(lambda: vllm.parse(page), 50)
    theirs = best(lambda: list(text_string_to_metric_families(page)), 3)
    show(f"parse a vLLM page of {ENGINES} engines, {size:.0f} kB", f"{ours * 1e3:.2f} ms")
    show("  the same for 256 kB of it", f"{ours * 256 / size * 1e3:.2f} ms", "3 ms")
    show("  the client library's parser for 256 kB", f"{theirs * 256 / size * 1e3:.1f} ms")


def spent(one: Running) -> tuple[float, float]:
    """CPU seconds and resident megabytes of a process."""
    stat = Path(f"/proc/{one.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
    fields = stat.split()
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return (int(fields[11]) + int(fields[12])) / TICK, int(fields[21]) * page_bytes / 1e6


def watching(folder: Path) -> None:
    """Watch one engine with eight GPUs at 1 Hz, with the settings that come with the program."""
    stack = Stack(folder)
    try:
        engine, gpu = free_port(), free_port()
        recording = str(eight_gpus(folder))
        stack.pages(recording, "engine", engine)
        stack.pages(recording, "dcgm", gpu)
        config = folder / "config.json"
        config.write_text(json.dumps(json.loads(reads(RUN)[0])["model"]["config"]))
        begun = time.monotonic()
        one, where = stack.boundby(
            f'listen = "127.0.0.1:0"\n[engine]\nurl = "{url(engine)}"\n'
            f'[gpu]\nurl = "{url(gpu)}"\nname = "NVIDIA H100 80GB HBM3"\n'
            f'[model]\nconfig = "{config}"\n'
        )
        until("a verdict", lambda: get(f"{where}/readyz")[0] == 200, 60)
        show("start to first verdict", f"{time.monotonic() - begun:.1f} s", "30 s")
        before, _ = spent(one)
        time.sleep(WATCHED_SECONDS)
        after, resident = spent(one)
        show("CPU at 1 Hz, one engine, 8 GPUs",
             f"{(after - before) / WATCHED_SECONDS:.2%} of a core", "0.5 %")  # fmt: skip
        show("resident memory", f"{resident:.0f} MB", "60 MB")
        page = get(f"{where}/metrics")[1]
        rows = [line for line in page.splitlines() if not line.startswith("#")]
        show("series published", f"{len(rows)}", "300")
        scraping(where, "answer a scrape, p99, sources well")
    finally:
        stack.end()


class Silence(BaseHTTPRequestHandler):
    """Never answers."""

    def do_GET(self) -> None:
        """Hold the line."""
        time.sleep(60)


@contextmanager
def silent_server() -> Iterator[int]:
    """Listen, and say nothing."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Silence)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


def scraping(where: str, what: str) -> None:
    """Time two hundred scrapes over fresh connections."""
    took = []
    for _ in range(200):
        begun = time.perf_counter()
        get(f"{where}/metrics")
        took.append(time.perf_counter() - begun)
    show(what, f"{statistics.quantiles(took, n=100)[98] * 1e3:.1f} ms", "5 ms")


def hanging(folder: Path) -> None:
    """Scrape while every source hangs."""
    stack = Stack(folder)
    try:
        with silent_server() as port:
            _, where = stack.boundby(
                f'listen = "127.0.0.1:0"\n[engine]\nurl = "{url(port)}"\n'
                f'[gpu]\nurl = "{url(port)}"\n'
            )
            until("it serves", lambda: get(f"{where}/healthz")[0] == 200)
            scraping(where, "answer a scrape, p99, all sources hanging")
    finally:
        stack.end()


def main() -> None:
    """Measure everything."""
    show("what", "measured", "budget")
    parsing()
    with tempfile.TemporaryDirectory() as folder:
        watching(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        hanging(Path(folder))


if __name__ == "__main__":
    main()
