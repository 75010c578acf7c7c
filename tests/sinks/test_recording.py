import json
from pathlib import Path

import pytest

from boundby.core.setup import GpuIdentity, Setup
from boundby.sinks.recording import RecordingWriter
from boundby.sources.recording import open_recording

PAGE = "vllm:num_requests_running 3\n"


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_each_line_is_readable_while_the_file_is_still_open(name: str, tmp_path: Path) -> None:
    """A process that is killed closes nothing."""
    path = tmp_path / name
    counts = []
    with RecordingWriter(path, Setup()) as writer:
        for t in range(3):
            writer.write(t, "engine", PAGE)
            counts.append(len(list(open_recording(path).snapshots)))

    assert counts == [1, 2, 3]


def test_the_header_leaves_out_what_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RecordingWriter(path, Setup(kind="vllm", gpus=(GpuIdentity(index=0),))):
        pass

    assert json.loads(path.read_text()) == {
        "format": "boundby-capture",
        "version": 1,
        "engine": {"kind": "vllm"},
        "gpus": [{"index": 0}],
    }


def test_a_failed_read_is_written_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RecordingWriter(path, Setup()) as writer:
        writer.write(1.5, "engine", None, error="refused")

    assert json.loads(path.read_text().splitlines()[1]) == {
        "t": 1.5,
        "source": "engine",
        "error": "refused",
    }


def test_a_page_with_odd_letters_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    page = 'a{b="\u2028 \x85 \U0001f600 \\n"} 1\r\n' + PAGE
    with RecordingWriter(path, Setup()) as writer:
        writer.write(0, "engine", page)

    text = path.read_text(encoding="utf-8").split("\n")[1]

    assert json.loads(text)["body"] == page


def test_the_same_reads_make_the_same_packed_file(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.gz", "two.gz")]
    for path in paths:
        with RecordingWriter(path, Setup()) as writer:
            writer.write(0, "engine", PAGE)

    assert paths[0].read_bytes() == paths[1].read_bytes()
