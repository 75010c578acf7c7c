"""What is seen from outside when settings are wrong, the engine dies, or we are told to stop."""

import re
import socket
import subprocess

import pytest

from e2e.stack import BOUNDBY, WATCH, Stack, free_port, get, until, url

pytestmark = pytest.mark.e2e

RUN = "simulated-kv-full.jsonl.gz"


def row(page: str, pattern: str) -> str | None:
    found = re.search(rf"^{pattern} (\S+)$", page, re.MULTILINE)
    return found[1] if found else None


def settings(engine: int) -> str:
    return (
        f'listen = "127.0.0.1:0"\n[engine]\nurl = "{url(engine)}"\ntimeout_seconds = 1\n'
        f'[gpu]\nsource = "none"\n{WATCH}'
    )


def test_all_mistakes_in_the_settings_are_told_at_once_with_what_to_do(stack: Stack) -> None:
    file = stack.folder / "boundby.toml"
    file.write_text(
        '[engine]\nurl = "localhost:8000"\n'
        "[watch]\nbeat_second = 1\n"
        "[limits.kv_capacity]\nchurm = 0.3\n",
        encoding="utf-8",
    )

    run = subprocess.run(  # noqa: S603  our own command
        [*BOUNDBY, "run", "--config", str(file)], capture_output=True, text=True, check=False
    )

    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        f"boundby: 3 mistakes in {file}\n"
        '  engine.url                "localhost:8000" has no http or https scheme; '
        "did you mean http://localhost:8000/metrics?\n"
        "  limits.kv_capacity.churm  no such knob; "
        "kv_capacity has: churn (0.15), avoidable (0.25)\n"
        "  watch.beat_second         no such setting; did you mean beat_seconds?\n"
    )


def test_a_dead_engine_is_shown_as_down_without_a_verdict_until_it_is_back(stack: Stack) -> None:
    port = free_port()
    engine = stack.pages(RUN, "engine", port)
    _, boundby = stack.boundby(settings(port))

    def verdict() -> bool:
        return "boundby_binding_limit{" in get(f"{boundby}/metrics")[1]

    def up() -> str | None:
        return row(get(f"{boundby}/metrics")[1], r'boundby_source_up\{source="engine"\}')

    until("a first verdict", verdict)
    engine.kill()
    until("the source is down", lambda: up() == "0.0", 5)
    until("no stale verdict is served", lambda: not verdict(), 10)
    assert get(f"{boundby}/readyz")[0] == 503
    assert get(f"{boundby}/healthz")[0] == 200
    stack.pages(RUN, "engine", port)
    until("the verdict is back", lambda: up() == "1.0" and verdict(), 15)


def test_it_stops_within_five_seconds_while_its_engine_hangs(stack: Stack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        boundby, where = stack.boundby(settings(silent.getsockname()[1]))
        until("it serves", lambda: get(f"{where}/healthz")[0] == 200)

        code, seconds = boundby.stop()

    assert (code, seconds < 5) == (0, True), boundby.said()


def test_a_taken_port_is_said_in_one_line(stack: Stack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        run = subprocess.run(  # noqa: S603  our own command
            [*BOUNDBY, "run", "--engine", "http://127.0.0.1:9", "--listen", address],
            capture_output=True, text=True, check=False, cwd=stack.folder, timeout=30,
        )  # fmt: skip

    assert run.returncode == 2
    assert f"cannot listen on {address}" in run.stdout + run.stderr
