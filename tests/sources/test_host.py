import re
import threading
from pathlib import Path

import pytest

from boundby.core.facts import HOST_FACTS
from boundby.core.parts import HostPart
from boundby.sources.base import SourceError
from boundby.sources.host import HostRead, HostSource
from boundby.sources.host_read import Reader
from boundby.sources.host_search import SEARCH_EVERY, choose
from boundby.sources.proc import Server
from boundby.sources.tree import Tree
from process_tree import process, stat, write
from recorded_tree import plant, recorded


def source(root: Path, port: int | None = None) -> HostSource:
    return HostSource(root, port=port, ticks_per_second=100)


async def test_a_real_vllm_s_times_grow_as_its_files_say(tmp_path: Path) -> None:
    host = source(plant(recorded("proc-vllm-0.32.0/before"), tmp_path))
    await host.read()
    plant(recorded("proc-vllm-0.32.0/after"), tmp_path)

    counters = (await host.read()).part.counters

    # What the two recordings say: clock ticks of each process, and of the main thread of engine
    # core and API server, the busiest of theirs, nanoseconds and involuntary switches.
    assert counters == pytest.approx(
        {
            "engine_core_cpu_seconds_total": 4.10,
            "engine_core_busiest_thread_cpu_seconds_total": 4.097043691,
            "engine_core_run_queue_seconds_total": 0.156194347,
            "context_switches_total": 479,
            "api_server_cpu_seconds_total": 0.04,
            "api_server_busiest_thread_cpu_seconds_total": 0.025663913,
            "api_server_run_queue_seconds_total": 0.012241694,
            "worker_cpu_seconds_total": 5.38,
        }
    )


async def test_a_real_vllm_s_command_line_gives_its_setup(tmp_path: Path) -> None:
    root = plant(recorded("proc-vllm-0.32.0/before"), tmp_path)
    write(root / "models/tiny/config.json", '{"model_type": "llama"}')

    read = await source(root).read()

    assert (read.setup.model_id, read.setup.enforce_eager, read.setup.model_config) == (
        "/models/tiny", True, {"model_type": "llama"},
    )  # fmt: skip


async def test_every_name_is_a_known_fact(tmp_path: Path) -> None:
    part = (await source(plant(recorded("proc-vllm-0.32.0/before"), tmp_path)).read()).part

    assert {*part.gauges, *part.counters, *part.infos} <= set(HOST_FACTS)


async def test_each_fact_is_given_or_has_a_reason(tmp_path: Path) -> None:
    process(tmp_path, 7, 1, "vllm serve m")

    read = await source(tmp_path).read()

    given = {*read.part.gauges, *read.part.counters, *read.part.infos}
    assert set(HOST_FACTS) - given == set(HOST_FACTS) & set(read.reasons)


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    process(tmp_path, 7, 1, "vllm serve m", threads={7: (1, 0)})
    process(tmp_path, 8, 7, "VLLM::EngineCore", threads={8: (50, 0), 9: (1, 0)})
    return tmp_path


async def test_the_busiest_thread_is_the_one_that_is_busy_now(engine: Path) -> None:
    host = source(engine)
    await host.read()
    # The main thread, which loaded the model for 50 s, rests; another has taken over.
    process(engine, 8, 7, "VLLM::EngineCore", threads={8: (50.1, 0), 9: (1.9, 0.4)})

    counters = (await host.read()).part.counters

    assert counters["engine_core_busiest_thread_cpu_seconds_total"] == pytest.approx(0.9)
    assert counters["engine_core_run_queue_seconds_total"] == pytest.approx(0.4)


async def test_a_restarted_engine_does_not_turn_a_counter_back(engine: Path) -> None:
    host = source(engine)
    for ticks, start in ((100, 1), (300, 1), (50, 2), (80, 2)):
        write(engine / "proc/8/stat", stat(8, 7, ticks, start))
        for _ in range(SEARCH_EVERY):
            read = await host.read()

    assert read.part.counters["engine_core_cpu_seconds_total"] == pytest.approx(2.3)


async def test_of_two_engine_cores_the_busier_counts_and_workers_add_up(engine: Path) -> None:
    process(engine, 20, 7, "VLLM::EngineCore_DP1")
    process(engine, 30, 8, "VLLM::Worker_TP0")
    process(engine, 31, 8, "VLLM::Worker_TP1")
    host = source(engine)
    await host.read()
    for pid, parent, ticks in ((8, 7, 10), (20, 7, 90), (30, 8, 40), (31, 8, 50)):
        write(engine / f"proc/{pid}/stat", stat(pid, parent, ticks, 100))

    counters = (await host.read()).part.counters

    assert counters["engine_core_cpu_seconds_total"] == pytest.approx(0.9)
    assert counters["worker_cpu_seconds_total"] == pytest.approx(0.9)


async def test_a_core_that_ends_between_search_and_read_is_said_to_be_gone(engine: Path) -> None:
    host = source(engine)
    await host.read()
    (engine / "proc/8/stat").unlink()

    reasons = (await host.read()).reasons

    assert reasons["engine_core_cpu_seconds_total"] == (
        "no engine core process of vllm 7 is visible"
    )


async def test_a_kernel_without_run_queue_times_is_told_by_stat(engine: Path) -> None:
    for path in engine.glob("proc/*/task/*/schedstat"):
        path.unlink()
    write(engine / "proc/8/task/8/stat", stat(8, 7, 100, 1))
    host = source(engine)
    await host.read()
    write(engine / "proc/8/task/8/stat", stat(8, 7, 150, 1))

    read = await host.read()

    assert read.part.counters["engine_core_busiest_thread_cpu_seconds_total"] == 0.5
    assert "CONFIG_SCHED_INFO" in read.reasons["engine_core_run_queue_seconds_total"]


async def test_cores_are_the_lesser_of_quota_and_affinity(engine: Path) -> None:
    write(engine / "sys/fs/cgroup/cgroup.procs", "")
    write(engine / "sys/fs/cgroup/cpu.max", "150000 100000\n")
    write(engine / "sys/fs/cgroup/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_usec 9\n")

    gauges = (await source(engine).read()).part.gauges

    assert (gauges["cpu_usable_cores_count"], gauges["cpu_cores_count"]) == (4.0, 1.5)


async def test_only_the_two_variables_of_an_environment_are_kept(engine: Path) -> None:
    write(engine / "proc/8/environ", "CUDA_VISIBLE_DEVICES=1\0HF_TOKEN=secret\0")

    assert (await source(engine).read()).visible == {"CUDA_VISIBLE_DEVICES": "1"}


async def test_a_dtype_names_the_weights_of_an_unquantised_model_alone(tmp_path: Path) -> None:
    process(tmp_path, 7, 1, "vllm serve /m --dtype float16")
    write(tmp_path / "m/config.json", '{"quantization_config": {"quant_method": "awq"}}')

    assert (await source(tmp_path).read()).setup.weights_dtype is None


async def test_a_config_file_on_the_command_line_is_said_to_be_unread(tmp_path: Path) -> None:
    process(tmp_path, 7, 1, "vllm serve m --config /etc/vllm.yaml")

    assert "/etc/vllm.yaml" in (await source(tmp_path).read()).reasons["config_file"]


async def test_without_an_engine_each_fact_says_how_to_grant_it(tmp_path: Path) -> None:
    process(tmp_path, 1, 0, "boundby run")

    reasons = (await source(tmp_path).read()).reasons

    assert "shareProcessNamespace: true" in reasons["engine_core_cpu_seconds_total"]


async def test_hidepid_is_named(tmp_path: Path) -> None:
    process(tmp_path, 1, 0, "boundby run")
    write(tmp_path / "proc/self/mounts", "proc /proc proc rw,nosuid,hidepid=invisible 0 0\n")

    reasons = (await source(tmp_path).read()).reasons

    assert "hidepid=invisible" in reasons["api_server_cpu_seconds_total"]


async def test_an_engine_that_starts_later_is_found_at_the_next_read(tmp_path: Path) -> None:
    process(tmp_path, 1, 0, "sh")
    host = source(tmp_path)
    await host.read()
    process(tmp_path, 7, 1, "vllm serve m")

    assert (await host.read()).engine_pids == {7}


SERVERS = (
    Server(kind="vllm", pid=7, argv=("vllm", "serve", "a"), processes=()),
    Server(kind="vllm", pid=9, argv=("vllm", "serve", "b", "--port", "8001"), processes=()),
)


def test_the_port_tells_our_engine_from_another() -> None:
    assert choose(SERVERS, 8000)[0] == SERVERS[0]


@pytest.mark.parametrize("port", [None, 9999], ids=["no port", "a port of neither"])
def test_of_two_engines_none_is_guessed(port: int | None) -> None:
    assert choose(SERVERS, port) == (
        None,
        "2 engines run here (vllm 7 on port 8000, vllm 9 on port 8001) and which of them is ours "
        "is not clear; give engine.url the port of one",
    )


def test_the_only_engine_is_ours_when_its_port_is_asked_for_or_none_is() -> None:
    (first, _) = SERVERS

    assert [choose((first,), port)[0] for port in (None, 8000)] == [first, first]


def test_the_only_engine_is_a_strangers_when_it_listens_elsewhere() -> None:
    assert choose(SERVERS[:1], 9999) == (
        None,
        "the engine that runs here (vllm 7) listens on port 8000, and engine.url names 9999; a "
        "stranger's processes are not taken for ours",
    )


async def test_a_root_without_proc_is_a_source_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"No such file.*host\.root"):
        await source(tmp_path).read()


async def test_a_read_that_hangs_is_late_once_and_then_refused(tmp_path: Path) -> None:
    freed = threading.Event()

    def hang() -> HostRead:
        freed.wait(10)
        return HostRead(part=HostPart())

    host = HostSource(tmp_path, deadline_seconds=0.05, reading=hang)

    with pytest.raises(SourceError, match=r"no answer from .* within 0\.05 s"):
        await host.read()
    with pytest.raises(SourceError, match="has not come back"):
        await host.read()
    freed.set()


class Refusing(Tree):
    """A tree of which some files may not be read by us."""

    def __init__(self, root: Path, refused: str) -> None:
        super().__init__(root)
        self._refused = re.compile(refused)

    def data(self, path: str, most: int = 1000) -> bytes:
        self._check(path)
        return super().data(path, most)

    def there(self, folder: str, path: str) -> bool:
        self._check(f"{folder}/{path}")
        return super().there(folder, path)

    def inside(self, folder: str, path: str, most: int) -> bytes:
        self._check(f"{folder}/{path}")
        return super().inside(folder, path, most)

    def _check(self, path: str) -> None:
        if self._refused.search(path):
            raise PermissionError(13, "Permission denied", path)


@pytest.mark.parametrize(
    ("refused", "name", "said"),
    [
        pytest.param(
            "/proc/./stat$", "engine_core_cpu_seconds_total", "run as the engine's user",
            id="other users' processes",
        ),
        pytest.param(
            "cgroup", "cpu_quota_cores_count", "add CAP_SYS_PTRACE", id="the engine's cgroup"
        ),
        pytest.param("environ", "visible_devices", "add CAP_SYS_PTRACE", id="its environment"),
        pytest.param("root//m", "model_config", "set model.config to a copy", id="its files"),
    ],
)  # fmt: skip
def test_what_is_refused_says_how_to_be_let_in(
    refused: str, name: str, said: str, engine: Path
) -> None:
    process(engine, 7, 1, "vllm serve /m")
    reader = Reader(Refusing(engine, refused), port=None, ticks_per_second=100)

    assert said in reader.read().reasons[name]
