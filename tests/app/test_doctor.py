import csv as csv_file
import gzip
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from boundby.app.cli import main
from boundby.app.doctor import Row, as_json, as_text, code, examine
from boundby.app.doctor_csv import csv
from boundby.app.doctor_sight import Readers, Sight, look
from boundby.core.facts import GPU_FACTS
from boundby.core.parts import EnginePart, GpuPart, HostPart
from boundby.core.setup import Setup
from boundby.sources import dcgm
from boundby.sources.base import SourceError
from boundby.sources.host import HostRead
from boundby.sources.host_read import Reader
from boundby.sources.tree import Tree
from process_tree import process, write


@dataclass(frozen=True)
class Page:
    engines: tuple[EnginePart, ...] = (
        EnginePart(engine="0", model_name="m", kind="vllm", gauges={"running_requests": 1.0}),
    )
    kind: str = "vllm"
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Nvml:
    gpus: tuple[GpuPart, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    processes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Gives:
    """A reader that gives one thing, or fails as sources do."""

    read: Any

    async def __call__(self) -> Any:
        if isinstance(self.read, SourceError):
            raise self.read
        return self.read


def h100(**gauges: float) -> GpuPart:
    return GpuPart(gpu="GPU-a", index=0, uuid="GPU-a", name="NVIDIA H100 80GB HBM3", gauges=gauges)


def row(rows: tuple[Row, ...], name: str) -> Row:
    return next(one for one in rows if one.check.name == name)


NO_NVML = Gives(SourceError("nvml", "libnvidia-ml.so.1 is not here"))


@pytest.fixture
def alone(tmp_path: Path) -> HostRead:
    """A container that sees no process but its own."""
    process(tmp_path / "alone", 1, 0, "boundby doctor")
    write(tmp_path / "alone/proc/pressure/cpu", "some avg10=3.00 avg60=0 avg300=0 total=1\n")
    return Reader(Tree(tmp_path / "alone"), port=None, ticks_per_second=100).read()


@pytest.fixture
def shared(tmp_path: Path) -> HostRead:
    """A container that shares the engine's process namespace."""
    root = tmp_path / "shared"
    process(root, 7, 1, "vllm serve /m -tp 1 --max-num-seqs 64 --max-num-batched-tokens 8192")
    process(root, 8, 7, "VLLM::EngineCore")
    write(root / "m/config.json", "{}")
    write(root / "proc/pressure/cpu", "some avg10=3.00 avg60=0 avg300=0 total=1\n")
    write(root / "sys/fs/cgroup/cgroup.procs", "")
    write(root / "sys/fs/cgroup/cpu.max", "max 100000\n")
    return Reader(Tree(root), port=None, ticks_per_second=100).read()


async def seen(settings: Setup | None = None, pod: str | None = None, **readers: Any) -> Sight:
    return await look(Readers(**readers), settings or Setup(), pod)


async def test_a_bare_container_names_what_would_supply_each_input(alone: HostRead) -> None:
    sight = await seen(engine=Gives(Page()), nvml=NO_NVML, host=Gives(alone))
    rows = examine(sight)

    assert [one.check.name for one in rows if one.missing] == [
        "GPU", "model config", "max_num_seqs", "max_num_batched_tokens", "engine processes",
    ]  # fmt: skip
    assert code(sight, rows) == 3


async def test_a_shared_process_namespace_with_hopper_s_counters_lacks_nothing(
    shared: HostRead,
) -> None:
    gpu = h100(
        engine_active_ratio=1, dram_active_ratio=1, tensor_active_ratio=0.1,
        power_throttled_ratio=0.0,
    )  # fmt: skip
    nvml = Nvml((gpu,), processes={"GPU-a": (8,)})

    sight = await seen(engine=Gives(Page()), nvml=Gives(nvml), host=Gives(shared))
    rows = examine(sight)

    assert [one.check.name for one in rows if one.missing] == []
    assert (code(sight, rows), sight.tier, sight.pairing.how) == (0, "counters", "pid")


async def test_without_the_engine_s_page_the_code_is_4(alone: HostRead) -> None:
    down = SourceError("engine", "no metrics from http://h:8000/metrics (Connection refused)")

    sight = await seen(engine=Gives(down), host=Gives(alone))
    rows = examine(sight)

    assert code(sight, rows) == 4
    assert "Connection refused" in row(rows, "engine page").look.says


async def test_an_engine_seen_among_the_processes_gives_the_address_to_set(
    shared: HostRead,
) -> None:
    rows = examine(await seen(host=Gives(shared)))

    assert row(rows, "engine page").remedy == ("boundby run --engine http://127.0.0.1:8000",)


def dcgm_page(name: str) -> Any:
    path = Path(__file__).parents[1] / "fixtures/dcgm-exporter" / f"{name}.prom.gz"
    return dcgm.parse(gzip.decompress(path.read_bytes()).decode())


async def test_a_page_with_prof_rows_is_the_best_tier() -> None:
    assert (await seen(dcgm=Gives(dcgm_page("4.8.2-8xh100-default")))).tier == "counters"


async def test_a_page_without_prof_rows_is_told_which_rows_to_add() -> None:
    page = Nvml((h100(gpu_busy_ratio=1.0),))

    rows = examine(await seen(engine=Gives(Page()), dcgm=Gives(page)))

    assert row(rows, "GPU activity").remedy[0] == (
        "dcgm-exporter: add to its CSV the rows DCGM_FI_PROF_GR_ENGINE_ACTIVE, "
        "DCGM_FI_PROF_DRAM_ACTIVE, DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
    )


async def test_a_page_of_eight_gpus_that_nothing_pairs_asks_for_their_names() -> None:
    sight = await seen(engine=Gives(Page()), dcgm=Gives(dcgm_page("4.8.2-8xh100-default")))

    assert row(examine(sight), "GPU pairing").look.says.startswith("8 GPUs here, and nothing")


async def test_our_pod_s_rows_pair_it() -> None:
    page = dcgm_page("4.8.2-8xh100-default")
    pod = page.gpus[0].pod

    sight = await seen(dcgm=Gives(page), pod=pod)

    assert (sight.pairing.how, len(sight.pairing.gpus)) == ("pod", 4)


async def test_nvml_without_gpm_passes_on_its_own_reason() -> None:
    nvml = Nvml((h100(gpu_busy_ratio=1.0),), reasons={"dram_active_ratio": "this GPU has no GPM"})

    rows = examine(await seen(nvml=Gives(nvml)))

    assert row(rows, "GPU activity").look.says == (
        "NVML gives a busy share alone (this GPU has no GPM)"
    )


async def test_settings_win_over_the_command_line(shared: HostRead) -> None:
    settings = Setup(max_num_seqs=32, origins={"max_num_seqs": "settings"})

    sight = await seen(settings, host=Gives(shared))

    assert row(examine(sight), "max_num_seqs").look.says == "32 from settings"


async def test_a_gpu_outside_the_table_is_named() -> None:
    page = Nvml((GpuPart(gpu="x", name="Unheard-of 9000"),))

    rows = examine(await seen(nvml=Gives(page)))

    assert row(rows, "GPU in the table").look.says == (
        "Unheard-of 9000 is not in the hardware table"
    )


async def test_missing_rows_of_the_engine_are_listed() -> None:
    rows = examine(await seen(engine=Gives(Page(missing=("itl_seconds",)))))

    assert row(rows, "engine rows").look.says == "the page lacks itl_seconds"


@pytest.mark.parametrize(
    "host",
    [HostRead(part=HostPart()), None],
    ids=["a host that gave nothing", "a host that is not read"],
)
async def test_the_text_is_whole_whatever_was_seen(host: HostRead | None) -> None:
    sight = await seen(host=Gives(host) if host else None)
    rows = examine(sight)

    text = as_text(sight, rows)

    assert all(f"\n{one.check.name} ({one.check.tier}): " in text for one in rows if one.missing)


async def test_json_has_each_input_with_its_remedy(alone: HostRead) -> None:
    sight = await seen(host=Gives(alone))
    rows = examine(sight)

    found = json.loads(json.dumps(as_json(sight, rows)))

    assert found["exit"] == 4
    assert all(bool(one["remedy"]) == (one["state"] == "missing") for one in found["inputs"])


def test_the_csv_is_one_that_dcgm_exporter_takes() -> None:
    lines = [line for line in io.StringIO(csv()) if not line.startswith("#")]
    rows = list(csv_file.reader(lines, skipinitialspace=True))

    assert {(len(one), one[1]) for one in rows} == {(3, "gauge"), (3, "counter")}


def test_the_rows_of_the_csv_are_read_by_our_own_parser() -> None:
    rows = [line.split(", ") for line in csv().splitlines() if not line.startswith("#")]
    page = "".join(f'{field}{{gpu="0",UUID="GPU-a"}} 1\n' for field, *_ in rows)

    (gpu,) = dcgm.parse(page).gpus

    given = {*gpu.gauges, *gpu.counters} - {"memory_total_bytes"}
    assert len(given) == len(rows)
    assert given <= set(GPU_FACTS)


def test_rows_whose_facts_are_there_can_be_left_out() -> None:
    assert "DRAM_ACTIVE" not in csv(present={"dram_active_ratio"})


def test_the_command_prints_the_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--dcgm-csv"]) == 0
    assert capsys.readouterr().out == csv()


def test_the_command_as_a_new_user_types_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process(tmp_path, 1, 0, "sh")
    monkeypatch.setenv("BOUNDBY_GPU_SOURCE", "none")
    monkeypatch.setenv("BOUNDBY_HOST_ROOT", str(tmp_path))

    exit_code = main(["doctor"])

    assert exit_code == 4
    assert "--  engine page" in capsys.readouterr().out
