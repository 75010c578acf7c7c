"""`boundby plan`, run as the command runs it."""

import argparse
import json
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from boundby.app import plan
from boundby.app.plan_models import shipped

FIXTURES = Path(__file__).parents[1] / "fixtures/models"
EXAMPLE = json.loads((FIXTURES / "example.json").read_text())
LLAMA = ["--model", "meta-llama/Llama-3.1-70B", "--gpu", "H100", "--tensor", "4"]


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    return plan.run(parser.parse_args(words))


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert run(*words, "--output", "json") == 0
    page: dict[str, object] = json.loads(capsys.readouterr().out)
    return page


@pytest.mark.parametrize("figure", EXAMPLE, ids=[figure["id"] for figure in EXAMPLE])
def test_the_example_gives_the_documented_figure(
    figure: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    got = answer(capsys, "--example")["example"]

    assert isinstance(got, dict)
    assert got[figure["id"]] == pytest.approx(figure["value"], abs=figure["tolerance_abs"])


def test_the_example_gives_no_other_figure(capsys: pytest.CaptureFixture[str]) -> None:
    got = answer(capsys, "--example")["example"]

    assert isinstance(got, dict)
    assert set(got) == {figure["id"] for figure in EXAMPLE}


def test_the_example_reads_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--example") == 0

    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:2] == ["10.55", "ms"] for line in lines)
    assert max(len(line) for line in lines) <= 80


def test_a_plan_has_the_fields_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    page = answer(capsys, *LLAMA, "--batch", "1,32", "--prompt", "2000")

    top = {
        "ridge_point_flops_per_byte", "weight_bytes", "kv_bytes_per_token",
        "kv_bytes_per_sequence", "max_sequences", "prefill", "decode",
    }  # fmt: skip
    assert top <= set(page)
    prefill, decode = page["prefill"], page["decode"]
    assert isinstance(prefill, dict)
    assert isinstance(decode, list)
    assert {"flops", "compute_seconds", "weight_read_seconds"} <= set(prefill)
    assert [row["batch"] for row in decode] == [1, 32]
    assert {
        "batch", "step_seconds", "tokens_per_second", "tokens_per_second_per_request", "kv_bytes",
        "arithmetic_intensity_flops_per_byte", "bound_by",
    } <= set(decode[0])  # fmt: skip


def test_an_ideal_step_is_its_bytes_over_the_bandwidth(capsys: pytest.CaptureFixture[str]) -> None:
    page = answer(capsys, *LLAMA, "--batch", "32", "--context", "4096")

    decode = page["decode"]
    assert isinstance(decode, list)
    moved = 69_503_033_344 * 2 + 32 * 4096 * 327_680
    assert decode[0]["step_seconds"] == pytest.approx(moved / 13.4e12, rel=0.002)
    assert decode[0]["bound_by"] == "memory_bandwidth"


def test_an_attainable_step_is_slower_than_an_ideal_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ideal = answer(capsys, *LLAMA)["decode"]
    real = answer(capsys, *LLAMA, "--attainable")["decode"]

    assert isinstance(ideal, list)
    assert isinstance(real, list)
    assert all(b["step_seconds"] > a["step_seconds"] for a, b in zip(ideal, real, strict=True))


@pytest.mark.parametrize("more", [[], ["--attainable", "--what-if"]])
@pytest.mark.parametrize("model", [*sorted(shipped()), "Llama-3.1-8B-Instruct"])
def test_the_text_is_no_wider_than_a_terminal(
    model: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--model", model, "--gpu", "NVIDIA H200", "--tensor", "8", *more) == 0

    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 80


def test_the_picture_marks_every_batch_and_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "roof.svg"

    assert run(*LLAMA, "--batch", "1,32", "--picture", str(path)) == 0

    capsys.readouterr()
    root = ET.fromstring(path.read_text())  # noqa: S314  # our own page
    words = {node.text for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"b1", "b32", "p2048", "ridge point 295"} <= words


def test_a_folder_is_read_by_its_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {
        "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192,
        "vocab_size": 128256, "tie_word_embeddings": True,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))

    page = answer(capsys, "--model", str(tmp_path), "--gpu", "L4")

    assert page["parameters"] == 1_235_814_400


BAD = [
    ("nothing", [], "give --model and --gpu"),
    ("an unknown GPU", ["--model", "Llama-3.1-8B", "--gpu", "H9"], "GPU table"),
    ("an unknown model", ["--model", "lama-3", "--gpu", "H100"], "config.json"),
    ("an unknown dtype", [*LLAMA, "--weights", "fp7"], "fp7"),
    ("an unknown KV dtype", [*LLAMA, "--kv", "fp7"], "fp7"),
    ("another picture", [*LLAMA, "--picture", "roof.gif"], ".svg"),
    ("a picture in no folder", [*LLAMA, "--picture", "/nowhere/at/all/roof.svg"], "No such"),
]


@pytest.mark.parametrize(("words", "says"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_what_cannot_be_planned_is_said_in_one_line(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2

    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


FILES = [
    ("cut short", b'{"model_type": "llama", "hidden_si', "not JSON"),
    ("not text", b"\xff\xfe\x00\x01", "not JSON"),
    ("a list", b"[1, 2]", "no JSON object"),
    ("nested without end", b"[" * 100_000, "nested too deeply"),
    ("huge", b"[" + b"0," * (3 * 2**20) + b"0]", "larger than"),
    ("a number of many digits", b'{"hidden_size": ' + b"9" * 5000 + b"}", "not JSON"),
    ("empty", b"", "not JSON"),
    ("without fields", b"{}", "model_type"),
]


@pytest.mark.parametrize(("body", "says"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_a_bad_config_file_is_said_in_one_line(
    body: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(body)

    assert run("--model", str(path), "--gpu", "H100") == 2

    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("words", ["--tensor=0", "--batch=1,x", "--context=-1", "--prompt=1e9"])
def test_a_number_out_of_range_is_a_usage_error(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run(*LLAMA, words)

    assert left.value.code == 2
    assert "whole number" in capsys.readouterr().err


def test_a_png_names_the_library_that_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)

    assert run(*LLAMA, "--picture", str(tmp_path / "roof.png")) == 2

    assert "pip install cairosvg" in capsys.readouterr().err


def test_a_png_is_drawn_from_the_svg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    painter = ModuleType("cairosvg")
    painter.svg2png = lambda *, bytestring, scale: b"PNG of " + bytestring[:4]  # type: ignore[attr-defined]  # noqa: ARG005  # the library's own signature
    monkeypatch.setitem(sys.modules, "cairosvg", painter)

    assert run(*LLAMA, "--picture", str(tmp_path / "roof.png")) == 0

    assert (tmp_path / "roof.png").read_bytes() == b"PNG of <svg"


def test_a_folders_own_quantisation_file_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {
        "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192,
        "vocab_size": 128256, "tie_word_embeddings": True,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    plain = answer(capsys, "--model", str(tmp_path), "--gpu", "L4")["weight_bytes"]
    quantised = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quantised))

    page = answer(capsys, "--model", str(tmp_path), "--gpu", "L4")

    assert isinstance(plain, float)
    assert page["weight_bytes"] == pytest.approx(plain - 16 * 60_817_408, rel=1e-4)
    assert page["kv_bytes_per_token"] == 16_384


def test_what_if_sets_formats_and_gpus_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    page = answer(capsys, *LLAMA, "--what-if", "--attainable")

    rows = page["what_if"]
    assert isinstance(rows, list)
    changes = [row["change"] for row in rows]
    assert {"fp8 weights", "int4 weights", "fp8 KV", "h200-sxm"} <= set(changes)
    assert "bf16 weights" not in changes


def test_rates_by_analogy_and_uncertain_figures_are_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--model", "Llama-3.1-8B", "--gpu", "rtxpro6000-ws", "--attainable") == 0

    said = capsys.readouterr().out
    assert "uncertain of this GPU: fp16" in said
    assert "by analogy" in said


def test_a_model_too_large_for_its_gpus_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--model", "deepseek-ai/DeepSeek-V3", "--gpu", "L4", "--batch", "1") == 0

    said = capsys.readouterr().out
    assert "too few GPUs" in said
    assert "* does not fit" in said
