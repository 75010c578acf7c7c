import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundby.core.facts import GPU_FACTS, HOST_FACTS
from boundby.core.parts import GpuPart, HostPart, Snapshot
from boundby.core.setup import GpuIdentity, Setup
from boundby.sinks.recording import RecordingWriter, gpu_body, host_body
from boundby.sources.recording import open_recording
from boundby.sources.recording_shape import RecordingError

FIXTURES = Path(__file__).parent.parent / "fixtures"
SHORT = FIXTURES / "simulated-dialects" / "admission-004-short.jsonl.gz"

HEADER: dict[str, Any] = {"format": "boundby-capture", "version": 1}
PAGE = 'vllm:num_requests_running{engine="0",model_name="m"} 3\n'


def line(t: float, source: str = "engine", **rest: Any) -> dict[str, Any]:
    return {"t": t, "source": source, **(rest or {"body": PAGE})}


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write lines (objects, or text as it is) to a file."""

    def write(*lines: dict[str, Any] | str, name: str = "run.jsonl", end: str = "\n") -> Path:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        data = ("\n".join(texts) + end).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def snapshots(path: Path) -> list[Snapshot]:
    return list(open_recording(path).snapshots)


def test_a_simulated_recording_is_read() -> None:
    recording = open_recording(SHORT)
    moments = list(recording.snapshots)

    assert recording.setup.model_id == "meta-llama/Llama-3.1-8B-Instruct"
    assert recording.setup.max_num_seqs == 16
    assert recording.setup.gpus[0].name == "NVIDIA A10G"
    assert recording.setup.origins["max_num_seqs"] == "the recording's header"
    assert recording.setup.model_config is not None
    assert [moment.t for moment in moments] == sorted({moment.t for moment in moments})
    assert {len(moment.engines) for moment in moments} == {1}
    assert {len(moment.gpus) for moment in moments} == {1}
    assert {moment.gpu_source for moment in moments} == {"dcgm"}
    assert {state.source: state.up for state in moments[-1].sources} == {
        "engine": True,
        "dcgm": True,
    }
    assert recording.warnings == []


def test_lines_of_one_moment_are_one_snapshot(write: Write) -> None:
    path = write(
        HEADER,
        line(1),
        line(1, "host", body={"gauges": {"cpu_pressure_ratio": 0.5}}),
        line(2),
    )

    first, second = snapshots(path)

    assert (first.t, first.host, second.t, second.host) == (
        1.0,
        HostPart(gauges={"cpu_pressure_ratio": 0.5}),
        2.0,
        None,
    )


def test_a_header_may_say_nothing_but_what_it_is(write: Write) -> None:
    assert open_recording(write(HEADER)).setup == Setup()


def test_keys_that_a_later_boundby_adds_are_passed_over(write: Write) -> None:
    path = write({**HEADER, "weather": "fine", "limits": {"max_num_seqs": 4, "x": 1}})

    assert open_recording(path).setup.max_num_seqs == 4


def test_a_packed_recording_is_known_by_its_bytes_and_not_its_name(write: Write) -> None:
    path = write(HEADER, line(1), name="run.jsonl.gz")
    renamed = path.rename(path.with_name("run.jsonl"))

    assert len(snapshots(renamed)) == 1


def test_a_read_that_failed_puts_its_source_down_and_ages_it(write: Write) -> None:
    path = write(HEADER, line(1), line(4, error="Connection refused"))

    _, second = snapshots(path)

    (state,) = second.sources
    assert (state.source, state.up, state.age_seconds, state.detail) == (
        "engine",
        False,
        3.0,
        "Connection refused",
    )
    assert second.engines == ()


def test_a_page_of_something_else_puts_its_source_down(write: Write) -> None:
    path = write({**HEADER, "engine": {"kind": "vllm"}}, line(1, body="<html></html>\n"))

    ((state,),) = [moment.sources for moment in snapshots(path)]

    assert not state.up
    assert "not a vLLM page; it looks like a web page (HTML)." in state.detail


def test_only_the_gpus_of_the_header_count(write: Write) -> None:
    page = "".join(
        f'DCGM_FI_DEV_GPU_TEMP{{gpu="{n}",UUID="GPU-{n}"}} {50 + n}\n' for n in range(4)
    )
    path = write({**HEADER, "gpus": [{"uuid": "GPU-2"}]}, line(1, "dcgm", body=page))

    (moment,) = snapshots(path)

    assert [part.gpu for part in moment.gpus] == ["GPU-2"]


def test_gpus_of_two_sources_fill_each_other_in(write: Write) -> None:
    page = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0"} 50\n'
    body = {"gpus": [{"gpu": "GPU-0", "gauges": {"temperature_celsius": 51, "power_watts": 9}}]}
    path = write(HEADER, line(1, "nvml", body=body), line(1, "dcgm", body=page))

    (moment,) = snapshots(path)

    assert moment.gpu_source == "dcgm"
    assert moment.gpus[0].gauges == {"temperature_celsius": 50.0, "power_watts": 9.0}


def test_an_nvml_body_that_is_text_is_a_dcgm_style_page(write: Write) -> None:
    path = write(HEADER, line(1, "nvml", body='DCGM_FI_DEV_GPU_TEMP{gpu="0"} 50\n'))

    (moment,) = snapshots(path)

    assert (moment.gpu_source, len(moment.gpus)) == ("nvml", 1)
    assert moment.sources[0].detail == "1 GPU, no PROF rows"


def test_unknown_sources_are_skipped_with_one_warning(write: Write) -> None:
    path = write(HEADER, line(1), line(1, "weather", body="fine"), line(2, "weather", body="fine"))
    recording = open_recording(path)

    moments = list(recording.snapshots)

    assert [len(moment.sources) for moment in moments] == [1, 0]
    assert recording.warnings == ["source 'weather' is not known here; its lines are skipped"]


def test_values_of_unknown_names_are_skipped_with_one_warning(write: Write) -> None:
    body = {"gauges": {"cpu_pressure_ratio": 0.5, "moon_phase_ratio": 1}}
    path = write(HEADER, line(1, "host", body=body), line(2, "host", body=body))
    recording = open_recording(path)

    moments = list(recording.snapshots)

    assert [moment.host.gauges for moment in moments if moment.host] == [
        {"cpu_pressure_ratio": 0.5}
    ] * 2
    assert recording.warnings == ["values of unknown names are skipped: moon_phase_ratio"]


def test_a_line_that_was_cut_off_is_the_end(write: Write) -> None:
    path = write(HEADER, line(1), json.dumps(line(2))[:30], end="")
    recording = open_recording(path)

    moments = list(recording.snapshots)

    assert [moment.t for moment in moments] == [1.0]
    assert recording.warnings == [f"{path}: ends within line 3; it is left out"]


def test_a_last_line_that_only_lacks_its_newline_counts(write: Write) -> None:
    assert len(snapshots(write(HEADER, line(1), line(2), end=""))) == 2


@pytest.mark.parametrize("lost", [1, 8, 30, 60])
def test_a_packed_file_that_was_cut_off_ends_there(lost: int, write: Write) -> None:
    path = write(HEADER, *(line(t, body=PAGE + f"# {t * 7919}\n") for t in range(50)), name="a.gz")
    path.write_bytes(path.read_bytes()[:-lost])
    recording = open_recording(path)

    moments = list(recording.snapshots)

    assert 0 < len(moments) <= 50
    assert len(recording.warnings) == 1


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        pytest.param("{oops", "not JSON", id="no JSON"),
        pytest.param('{"source": "engine", "body": ""}', "t: Field required", id="no time"),
        pytest.param('{"t": 2, "body": ""}', "source: Field required", id="no source"),
        pytest.param('{"t": "soon", "source": "engine", "body": ""}', "t: Input", id="odd time"),
        pytest.param('{"t": NaN, "source": "engine", "body": ""}', "t: Input", id="no number"),
        pytest.param('{"t": 2, "source": "engine"}', 'neither "body" nor "error"', id="no body"),
        pytest.param("[]", "line: Input", id="a list"),
        pytest.param('{"t": 0, "source": "engine", "error": "x"}', "t is 0 after 1", id="order"),
        pytest.param('{"t": 2, "source": "engine", "body": {}}', "the page as text", id="object"),
        pytest.param('{"t": 2, "source": "host", "body": "x"}', "is an object", id="host text"),
        pytest.param('{"t": 2, "source": "nvml", "body": {}}', "gpus: Field required", id="nvml"),
        pytest.param(
            '{"t": 2, "source": "host", "body": {"gauges": {"cpu_pressure_ratio": "x"}}}',
            "body: gauges.cpu_pressure_ratio: Input",
            id="a word for a value",
        ),
    ],
)
def test_any_other_bad_line_is_told_with_file_and_line(bad: str, told: str, write: Write) -> None:
    path = write(HEADER, line(1), bad, line(3))

    with pytest.raises(RecordingError) as refused:
        snapshots(path)

    assert str(refused.value).startswith(f"{path}:3: ")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        pytest.param("", "the file is empty", id="empty"),
        pytest.param("# HELP x", "the header is not JSON", id="a metrics page"),
        pytest.param("[]", "not a boundby recording: format is 'list'", id="a list"),
        pytest.param("{}", "not a boundby recording: format is None", id="no format"),
        pytest.param('{"format": "har"}', "format is 'har'", id="another format"),
        pytest.param('{"format": "boundby-capture"}', "version None", id="no version"),
        pytest.param(
            '{"format": "boundby-capture", "version": 2}',
            "recording of version 2; this boundby reads version 1",
            id="a later version",
        ),
        pytest.param(
            '{"format": "boundby-capture", "version": 1, "parallelism": {"tensor": 0}, '
            '"limits": {"max_num_seqs": "many"}}',
            "parallelism.tensor: Input should be greater than or equal to 1; "
            "limits.max_num_seqs: Input should be a valid integer",
            id="all mistakes at once",
        ),
    ],
)
def test_a_bad_header_is_told_at_once(header: str, told: str, write: Write) -> None:
    path = write(header)

    with pytest.raises(RecordingError) as refused:
        open_recording(path)

    assert str(refused.value).startswith(f"{path}:1: ")
    assert told in str(refused.value)


def test_damaged_packing_is_told(write: Write) -> None:
    path = write(HEADER, *(line(t) for t in range(200)), name="a.gz")
    data = bytearray(path.read_bytes())
    data[60:90] = bytes(30)
    path.write_bytes(data)

    with pytest.raises(RecordingError, match=str(path)):
        snapshots(path)


def test_an_amd_page_is_read(write: Write) -> None:
    path = write(HEADER, line(1, "amd", body='gpu_gfx_activity{gpu_id="0"} 50\n'))

    (moment,) = snapshots(path)

    assert (moment.gpu_source, moment.gpus[0].gauges) == ("amd", {"gpu_busy_ratio": 0.5})


def test_a_packed_file_cut_off_in_its_header_is_told(write: Write) -> None:
    path = write(HEADER, name="a.gz")
    path.write_bytes(path.read_bytes()[:12])

    with pytest.raises(RecordingError, match="cannot be read"):
        open_recording(path)


def test_a_file_that_is_not_there_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_recording(tmp_path / "none.jsonl")


# What is written is what is read.

numbers = st.floats(0, 1e15, allow_nan=False)


def named(kind: str, facts: Any) -> st.SearchStrategy[dict[str, float]]:
    return st.dictionaries(
        st.sampled_from(sorted(name for name, fact in facts.items() if fact.kind == kind)),
        numbers,
        max_size=4,
    )


words = st.text(st.characters(codec="utf-8"), max_size=12)
maybe = st.one_of(st.none(), words)
gpus = st.builds(
    GpuPart,
    gpu=words,
    index=st.one_of(st.none(), st.integers(0, 15)),
    uuid=maybe,
    name=maybe,
    pod=maybe,
    namespace=maybe,
    mig_instance=maybe,
    age_seconds=st.one_of(st.none(), numbers),
    gauges=named("gauge", GPU_FACTS),
    counters=named("counter", GPU_FACTS),
    infos=st.dictionaries(st.just("driver_version"), words),
)
hosts = st.builds(
    HostPart,
    gauges=named("gauge", HOST_FACTS),
    counters=named("counter", HOST_FACTS),
    infos=st.dictionaries(st.just("engine_command"), words),
)
setups = st.builds(
    Setup,
    kind=st.sampled_from([None, "vllm", "sglang"]),
    model_id=maybe,
    model_config=st.one_of(st.none(), st.dictionaries(words, st.integers(0, 9))),
    weights_dtype=maybe,
    kv_cache_dtype=maybe,
    tensor=st.one_of(st.none(), st.integers(1, 16)),
    pipeline=st.one_of(st.none(), st.integers(1, 16)),
    data=st.one_of(st.none(), st.integers(1, 16)),
    max_num_seqs=st.one_of(st.none(), st.integers(1, 4096)),
    max_num_batched_tokens=st.one_of(st.none(), st.integers(1, 4096)),
    enforce_eager=st.sampled_from([None, True, False]),
    gpus=st.lists(
        st.builds(
            GpuIdentity,
            index=st.one_of(st.none(), st.integers(0, 15)),
            uuid=maybe,
            name=maybe,
            memory_bytes=st.one_of(st.none(), st.floats(1, 1e12)),
        ),
        max_size=3,
    ).map(tuple),
)


@given(
    setups,
    st.lists(st.tuples(st.lists(gpus, max_size=3, unique_by=lambda g: g.gpu), hosts), max_size=4),
    st.sampled_from(["run.jsonl", "run.jsonl.gz"]),
)
def test_a_recording_read_back_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    setup: Setup,
    moments: list[tuple[list[GpuPart], HostPart]],
    name: str,
) -> None:
    path = tmp_path_factory.mktemp("recording") / name
    with RecordingWriter(path, setup) as writer:
        for t, (parts, host) in enumerate(moments):
            writer.write(t, "nvml", gpu_body(parts))
            writer.write(t, "host", host_body(host))

    recording = open_recording(path)
    read = list(recording.snapshots)

    found = {field: getattr(recording.setup, field) for field in setup.__slots__}
    assert {**found, "origins": {}} == {
        **{field: getattr(setup, field) for field in setup.__slots__},
        "origins": {},
    }
    assert [(list(moment.gpus), moment.host) for moment in read] == moments
    assert recording.warnings == []
