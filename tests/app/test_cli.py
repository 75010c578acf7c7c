"""The command line by its answers and exit codes."""

import gzip
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from boundby.app.cli import code, main, parser
from boundby.core.report import EngineReport, Report, Verdict
from boundby_rules import LIMITS

FIXTURES = Path(__file__).parents[1] / "fixtures"
CAPPED = FIXTURES / "vllm-0.32.0-runs" / "admission_cap_2.jsonl.gz"


def test_a_recording_is_diagnosed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(CAPPED), "--output", "json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"verdicts", "summary"}
    assert document["summary"]["schema"] == 1
    assert document["summary"]["engines"][0]["verdict"]["engine"]["limit"] == "batch_slots"
    assert document["verdicts"]


def test_jsonl_gives_a_report_a_line_and_the_summary_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["replay", str(CAPPED), "--output", "jsonl"])

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "summary" in lines[-1]
    assert all(line["schema"] == 1 for line in lines[:-1])


def test_text_ends_with_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", str(CAPPED)])

    assert "vllm-0: bound by batch slots (max_num_seqs)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "No such file", id="no such file"),
        pytest.param(b"", "the file is empty", id="an empty file"),
        pytest.param(b'{"format": "x"}\n', "not a boundby recording", id="another format"),
        pytest.param(
            b'{"format": "boundby-capture", "version": 9}\n', "version 9", id="another version"
        ),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, words: str
) -> None:
    file = tmp_path / "run.jsonl"
    if content is not None:
        file.write_bytes(content)

    assert main(["replay", str(file)]) == 2
    told = capsys.readouterr().err
    assert str(file) in told
    assert words in told


def test_a_recording_cut_off_is_judged_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    shutil.copy(CAPPED, cut)
    cut.write_bytes(cut.read_bytes()[:-4000])

    assert main(["replay", str(cut), "--output", "json"]) == 0
    captured = capsys.readouterr()
    assert "is left out" in captured.err
    assert json.loads(captured.out)["summary"]["engines"]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_every_limit_can_be_explained(capsys: pytest.CaptureFixture[str], limit: object) -> None:
    name = limit.name  # type: ignore[attr-defined]  # a Limit
    assert main(["explain", name]) == 0

    page = capsys.readouterr().out
    assert page.startswith(f"{name}\n")
    assert "What will not help" in page


def test_a_limit_that_is_none_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "kv"]) == 2
    assert "no such limit: kv; there are: batch_slots, compute" in capsys.readouterr().err


def test_without_an_engine_the_flag_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["once"]) == 2
    assert "engine.url  not set; say --engine http://HOST:8000" in capsys.readouterr().err


def engines(*limits: str) -> Report:
    return Report(
        at=1.0,
        window_seconds=1.0,
        engines=tuple(
            EngineReport(
                engine=str(index), kind="vllm", model="m", state="active", saturated=None,
                verdict={"engine": Verdict(limit=limit, confidence=1.0, since=0.0)},
            )
            for index, limit in enumerate(limits)
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param(["demand"], 0, id="nothing binds but demand"),
        pytest.param(["kv_capacity"], 3, id="a limit binds"),
        pytest.param(["demand", "compute"], 3, id="one engine of two is bound"),
        pytest.param(["unknown"], 4, id="it is not known"),
        pytest.param([], 4, id="no engine was seen"),
        pytest.param(["demand", "unknown"], 0, id="the engine that is known is not bound"),
    ],
)
def test_the_exit_code_is_the_diagnosis(limits: list[str], expected: int) -> None:
    assert code(engines(*limits)) == expected


def test_every_command_of_the_contract_is_there() -> None:
    text = parser().format_help()

    for command in ("run", "demo", "once", "top", "replay", "record", "plan", "explain", "doctor"):
        assert f"    {command} " in text


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_length_of_time_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str], seconds: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["once", "--engine", "http://127.0.0.1:1", f"--seconds={seconds}"])

    assert ended.value.code == 2
    assert f"'{seconds}' is no number of seconds above 0" in capsys.readouterr().err


def test_a_ca_file_that_holds_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "boundby.toml"
    file.write_text('[engine]\nurl = "https://127.0.0.1:1"\nca_file = "/no/such.pem"\n')

    assert main(["once", "--config", str(file)]) == 2
    told = capsys.readouterr().err
    assert "engine.ca_file  /no/such.pem is no CA bundle in PEM form (No such file" in told


def test_a_taken_port_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SystemExit) as ended:
            main(["demo", "--listen", place, "--seconds", "1"])

    assert ended.value.code == 2
    expected = f"boundby: cannot listen on {place} (Address already in use)\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("line", [1, 2])
def test_a_line_nested_without_end_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: int
) -> None:
    file = tmp_path / "run.jsonl"
    good = '{"format": "boundby-capture", "version": 1}\n'
    file.write_text(good * (line - 1) + "[" * 100_000 + "\n")

    assert main(["replay", str(file)]) == 2
    assert f"{file}:{line}: " in capsys.readouterr().err


def test_a_pipe_is_refused_before_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    assert main(["replay", str(pipe)]) == 2
    assert "this is a pipe" in capsys.readouterr().err


def boundby(*words: str, **how: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "boundby", *words]
    return subprocess.run(  # type: ignore[call-overload, no-any-return]  # noqa: S603  our own
        command, stderr=subprocess.PIPE, check=False, timeout=60, **how
    )


def test_a_full_disk_under_the_answer_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        ended = boundby("explain", "compute", stdout=full)

    assert (ended.returncode, ended.stderr) == (2, b"boundby: No space left on device\n")


def test_a_terminal_without_the_letters_gets_their_numbers(tmp_path: Path) -> None:
    page = gzip.decompress((FIXTURES / "vllm-0.32.0" / "idle-1.prom.gz").read_bytes()).decode()
    lines = [{"format": "boundby-capture", "version": 1}]
    lines += [
        {"t": t, "source": "engine", "body": page.replace('engine="0"', 'engine="\x1b[31m\u00e9"')}
        for t in range(9)
    ]  # fmt: skip
    file = tmp_path / "run.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    ended = boundby(
        "replay", str(file), stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"vllm-\\x1b[31m\\xe9: bound by demand" in ended.stdout


def test_a_recording_that_fills_its_disk_ends_with_what_was_written(tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"

    ended = boundby(
        "record", "--engine", "http://127.0.0.1:1", "--out", str(out), stdout=subprocess.PIPE,
        env={**os.environ, "BOUNDBY_WATCH_BEAT_SECONDS": "0.1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )  # fmt: skip

    assert ended.returncode == 2
    assert b"reads (File too large); what was written can be replayed\n" in ended.stderr
    assert boundby("replay", str(out), stdout=subprocess.PIPE).returncode == 0
