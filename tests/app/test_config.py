"""Settings from a file, the environment and flags; every mistake at once, with what to do."""

import json
from pathlib import Path

import pytest

from boundby.app.config import SettingsError, from_environment, load
from boundby_rules import LIMITS


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "boundby.toml"
    file.write_text('listen = "127.0.0.1:1"\n[engine]\nurl = "http://file/m"\nkind = "vllm"\n')

    settings = load(
        LIMITS,
        file=file,
        environment={"BOUNDBY_ENGINE_URL": "http://env/m", "BOUNDBY_LISTEN": "127.0.0.1:2"},
        flags={"listen": "127.0.0.1:3"},
    )

    assert (settings.listen, settings.engine.url, settings.engine.kind) == (
        "127.0.0.1:3", "http://env/m", "vllm",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        pytest.param("BOUNDBY_LISTEN", "a:1", {"listen": "a:1"}, id="a setting of its own"),
        pytest.param(
            "BOUNDBY_LIMITS_MAX_NUM_SEQS", "8", {"limits": {"max_num_seqs": 8}}, id="a number"
        ),
        pytest.param(
            "BOUNDBY_GPU_DEVICES", "GPU-1, GPU-2", {"gpu": {"devices": ["GPU-1", "GPU-2"]}},
            id="a list with commas",
        ),
        pytest.param("BOUNDBY_GPU_DEVICES", "[0, 1]", {"gpu": {"devices": [0, 1]}}, id="indices"),
        pytest.param("BOUNDBY_CONFIG", "x.toml", {}, id="the file's own name is no setting"),
        pytest.param("HOME", "/h", {}, id="what is not ours is passed over"),
        pytest.param("BOUNDBY_SERVICE_HOST", "10.0.0.1", {}, id="a Service called boundby"),
        pytest.param("BOUNDBY_PORT", "tcp://10.0.0.1:9877", {}, id="its link"),
        pytest.param("BOUNDBY_PORT_9877_TCP_ADDR", "10.0.0.1", {}, id="its port's address"),
        pytest.param("BOUNDBY_ENGINE_SERVICE_PORT_HTTP", "1", {}, id="a Service of the engine"),
        pytest.param("BOUNDBY_PORT", "9877", {"port": "9877"}, id="a guess that is told"),
    ],
)  # fmt: skip
def test_a_variable_is_a_setting(variable: str, text: str, expected: object) -> None:
    assert from_environment({variable: text}) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            '[engine]\nurl = "localhost:8000"\n',
            'engine.url  "localhost:8000" has no http or https scheme; '
            "did you mean http://localhost:8000/metrics?",
            id="an address without a scheme",
        ),
        pytest.param(
            "[engine]\nurll = 1\n",
            "engine.urll  no such setting; did you mean url?",
            id="a setting misspelt",
        ),
        pytest.param(
            "[limits]\nkv_capcity = {}\n",
            "limits.kv_capcity  no such setting; did you mean kv_capacity?",
            id="a limit misspelt",
        ),
        pytest.param(
            "[limits.demand]\nidle = 1\n",
            "limits.demand.idle  no such knob; demand has: idle_for_a_fifth (0.166667)",
            id="a knob that is none",
        ),
        pytest.param(
            "[limits]\nmax_num_seqs = 0\n",
            "limits.max_num_seqs  0 is no whole number above 0",
            id="a cap of nothing",
        ),
        pytest.param(
            'listen = "9877"\n',
            'listen  "9877" is no ADDRESS:PORT; say for example 127.0.0.1:9877',
            id="a port alone",
        ),
        pytest.param(
            "listen = 5\n", "listen  5: input should be a valid string", id="a port as a number"
        ),
        pytest.param(
            '[engine]\nurl = "http://localhost:99999"\n',
            "engine.url  Port out of range 0-65535",
            id="a port that is none",
        ),
        pytest.param(
            "[limits.kv_capacity]\nchurn = nan\n",
            "limits.kv_capacity.churn  nan is no number",
            id="a knob that is no number",
        ),
        pytest.param(
            "[watch]\nbeat_seconds = -1\n",
            "watch.beat_seconds  -1: input should be greater than or equal to 0.1",
            id="a beat below zero",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_the_fix(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "boundby.toml"
    file.write_text(text)

    with pytest.raises(SettingsError) as told:
        load(LIMITS, file=file)

    assert str(told.value) == f"1 mistake in {file}\n  {message}"


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "boundby.toml"
    file.write_text('listen = "x"\n[engine]\nurl = "a:1"\n[limits]\nnope = 1\n')

    with pytest.raises(SettingsError) as told:
        load(LIMITS, file=file)

    assert [key for key, _ in told.value.mistakes] == ["engine.url", "limits.nope", "listen"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"listen = ", "not TOML", id="half a file"),
        pytest.param(b"\xff\xfe", "not TOML", id="bytes that are no text"),
        pytest.param(b"x = " + b"[" * 100_000, "not TOML", id="a nest without end"),
        pytest.param(None, "cannot be read", id="no file"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "boundby.toml"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(SettingsError, match=words):
        load(LIMITS, file=file)


def test_the_setup_says_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    flags = {"model": {"config": tmp_path}, "limits": {"max_num_seqs": 8}}

    setup = load(LIMITS, flags=flags).setup()

    assert setup.model_config == {"model_type": "llama"}
    assert setup.max_num_seqs == 8
    assert setup.origins == {"model_config": "settings", "max_num_seqs": "settings"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("{", "is not JSON", id="half a file"),
        pytest.param("[" * 100_000, "is not JSON", id="nested past all measure"),
        pytest.param("[]", "holds no JSON object", id="a list"),
        pytest.param(" " * (4 * 2**20 + 1), "too large", id="far too large"),
        pytest.param(None, "cannot be read", id="none"),
    ],
)
def test_a_model_config_that_is_none_says_so(
    tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content)

    with pytest.raises(SettingsError, match=words):
        load(LIMITS, flags={"model": {"config": file}}).setup()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host:8000", "http://host:8000/metrics"),
        ("http://host:8000/", "http://host:8000/metrics"),
        ("http://host:8000?key=1", "http://host:8000/metrics?key=1"),
        ("http://[::1]:8000", "http://[::1]:8000/metrics"),
        ("http://host/other", "http://host/other"),
    ],
)
def test_an_address_without_a_path_is_that_of_its_metrics(url: str, expected: str) -> None:
    assert load(LIMITS, flags={"engine": {"url": url}}).engine.url == expected
