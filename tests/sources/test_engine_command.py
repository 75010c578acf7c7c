import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundby.sources.engine_command import parse, shown, whole


def setup_of(line: str, kind: str = "vllm") -> dict[str, object]:
    setup = parse(shlex.split(line), kind).setup
    return {name: getattr(setup, name) for name in setup.origins if name != "kind"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("vllm serve org/model", {"model_id": "org/model"}, id="a model by position"),
        pytest.param(
            "python3 /usr/bin/vllm serve --model m", {"model_id": "m"}, id="a model by flag"
        ),
        pytest.param(
            "python -m vllm.entrypoints.openai.api_server --model=m -tp 4 -pp=2 -dp 2",
            {"model_id": "m", "tensor": 4, "pipeline": 2, "data": 2},
            id="short flags, with and without an equals sign",
        ),
        pytest.param(
            "vllm serve m --tensor_parallel_size=8 --max_num_seqs 64",
            {"model_id": "m", "tensor": 8, "max_num_seqs": 64},
            id="underscores are as good as dashes",
        ),
        pytest.param(
            "vllm serve m --max-num-seqs 64 --max-num-seqs 32",
            {"model_id": "m", "max_num_seqs": 32},
            id="the last of two wins",
        ),
        pytest.param(
            "vllm serve m --max-num-batched-tokens 8k",
            {"model_id": "m", "max_num_batched_tokens": 8000},
            id="k is a thousand",
        ),
        pytest.param(
            "vllm serve m --max-num-batched-tokens 8K",
            {"model_id": "m", "max_num_batched_tokens": 8192},
            id="K is 1,024",
        ),
        pytest.param(
            "vllm serve m --enforce-eager", {"model_id": "m", "enforce_eager": True}, id="eager"
        ),
        pytest.param(
            "vllm serve m --no-enforce-eager",
            {"model_id": "m", "enforce_eager": False},
            id="not eager",
        ),
        pytest.param(
            "vllm serve m --kv-cache-dtype fp8_e4m3 --quantization fp8",
            {"model_id": "m", "kv_cache_dtype": "fp8_e4m3", "weights_dtype": "fp8"},
            id="formats",
        ),
        pytest.param(
            "vllm serve m --kv-cache-dtype auto --quantization awq",
            {"model_id": "m"},
            id="what the config.json tells is left to it",
        ),
        pytest.param("vllm serve m --max-num-seqs many", {"model_id": "m"}, id="no number"),
        pytest.param("vllm serve m --max-num-seqs", {"model_id": "m"}, id="cut after a flag"),
    ],
)
def test_vllm_s_flags_give_its_setup(line: str, expected: dict[str, object]) -> None:
    assert setup_of(line) == expected


def test_sglang_s_flags_give_its_setup() -> None:
    line = "python3 -m sglang.launch_server --model-path m --tp 2 --max-running-requests 48"

    assert setup_of(line, "sglang") == {"model_id": "m", "tensor": 2, "max_num_seqs": 48}


def test_each_value_says_where_it_came_from() -> None:
    setup = parse(["vllm", "serve", "m", "-tp", "2"]).setup

    assert set(setup.origins.values()) == {"vLLM's command line"}


def test_what_is_no_part_of_a_setup_is_kept_beside_it() -> None:
    line = (
        "vllm serve m --port 9000 --config /x.yaml --max-model-len 32k --dtype half "
        "--gpu-memory-utilization 0.85 --download-dir /cache"
    )

    command = parse(shlex.split(line))

    assert (
        command.port, command.config_file, command.max_model_len, command.dtype,
        command.gpu_memory_utilization, command.download_dir,
    ) == (9000, "/x.yaml", 32000, "half", 0.85, "/cache")  # fmt: skip


SECRET = "s3cr3t-value"  # noqa: S105  nobody's


@pytest.mark.parametrize(
    "line",
    [
        f"vllm serve m --api-key {SECRET}",
        f"vllm serve m --api-key={SECRET}",
        f"vllm serve m --api_key {SECRET} {SECRET}2 --port 1",
        f"vllm serve m --hf-token {SECRET}",
        f"vllm serve m --ssl-keyfile-password {SECRET}",
        f"python3 -m sglang.launch_server --admin-api-key {SECRET}",
        f"env HF_TOKEN={SECRET} vllm serve m",
        f"""vllm serve m --kv-transfer-config '{{"password": "{SECRET}", "a": 1}}'""",
        f"vllm serve m --endpoint https://user:{SECRET}@host/x",
        "vllm serve m --header 'Authorization: Bearer s3cr3t-value'",
        "vllm serve m --anything hf_s3cr3tvalues3cr3tvalue",
        "vllm serve m --anything sk-s3cr3t-value",
        "vllm serve m --api-key 12345-s3cr3t",
    ],
)
def test_what_may_be_a_secret_is_not_shown(line: str) -> None:
    said = parse(shlex.split(line)).shown

    assert "s3cr3t" not in said


def test_an_api_key_of_digits_is_not_shown() -> None:
    assert shown(["vllm", "serve", "m", "--api-key", "12345"]).endswith("--api-key [removed]")


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve m --max-num-batched-tokens 8192",
        "vllm serve m --long-prefill-token-threshold 1024",
        "vllm serve m --tokenizer-mode auto --tokenizer t",
        "vllm serve https://host/m",
    ],
)
def test_what_is_no_secret_is_shown_as_it_is(line: str) -> None:
    assert shown(shlex.split(line)) == line


def test_a_line_is_shown_as_one_line() -> None:
    assert "\n" not in shown(["vllm", "serve", "a\nb"])


@given(st.lists(st.text(max_size=20), max_size=12), st.sampled_from(["vllm", "sglang"]))
def test_no_command_line_is_refused(argv: list[str], kind: str) -> None:
    assert parse(argv, kind).setup.kind == kind


@pytest.mark.parametrize("text", ["", "k", "1e99K", "x", "-1k"])
def test_what_is_no_number_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        whole(text)
