from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundby.sources import proc
from boundby.sources.proc import Server
from boundby.sources.tree import Tree
from process_tree import process
from recorded_tree import plant, recorded


def found(root: Path) -> tuple[Server, ...]:
    tree = Tree(root)
    return proc.servers(tree, proc.pids(tree))


def roles(server: Server) -> dict[int, str]:
    return {one.pid: one.role for one in server.processes}


def test_a_real_vllm_is_told_by_its_titles(tmp_path: Path) -> None:
    (server,) = found(plant(recorded("proc-vllm-0.32.0/before"), tmp_path))

    assert (server.kind, server.pid) == ("vllm", 3884)
    assert roles(server) == {3884: "api_server", 3940: "helper", 3941: "engine_core",
                             4028: "worker"}  # fmt: skip


# Numbers, parents and titles as `ps` showed them of a real vLLM 0.32.0.
TWO_API_SERVERS = (
    (25358, 1, "/opt/venv/bin/python /opt/venv/bin/vllm serve tiny --api-server-count 2"),
    (25554, 25358, "python3 -c multiprocessing.resource_tracker"),
    (25555, 25358, "VLLM::EngineCore"),
    (25556, 25358, "VLLM::APIServer_0"),
    (25557, 25358, "VLLM::APIServer_1"),
    (26050, 25555, "VLLM::Worker"),
)
TWO_RANKS = (
    (26465, 1, "/opt/venv/bin/vllm serve tiny --data-parallel-size 2"),
    (26993, 26465, "VLLM::DPCoordinator"),
    (27231, 26465, "VLLM::EngineCore_DP0"),
    (27232, 26465, "VLLM::EngineCore_DP1"),
    (27233, 26465, "VLLM::APIServer_0"),
    (27912, 27232, "VLLM::Worker_DP1"),
    (27921, 27231, "VLLM::Worker_DP0"),
)


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        pytest.param(
            TWO_API_SERVERS,
            {25358: "server", 25554: "helper", 25555: "engine_core", 25556: "api_server",
             25557: "api_server", 26050: "worker"},
            id="two API servers leave their parent a mere server",
        ),
        pytest.param(
            TWO_RANKS,
            {26465: "server", 26993: "helper", 27231: "engine_core", 27232: "engine_core",
             27233: "api_server", 27912: "worker", 27921: "worker"},
            id="each data-parallel rank has its engine core",
        ),
        pytest.param(
            (
                (7, 1, "python3 -m vllm.entrypoints.openai.api_server --model m"),
                (8, 7, "python3 -c from multiprocessing.resource_tracker import main"),
                (9, 7, "python3 -c from multiprocessing.spawn import spawn_main"),
                (10, 9, "python3 -c from multiprocessing.spawn import spawn_main"),
            ),
            {7: "api_server", 8: "helper", 9: "engine_core", 10: "worker"},
            id="an old vLLM without titles is told by descent",
        ),
        pytest.param(
            ((7, 1, "vllm serve m"), (9, 7, "vllm serve m"), (10, 9, "vllm serve m")),
            {7: "api_server", 9: "engine_core", 10: "worker"},
            id="a forked child still has its parent's command line",
        ),
        pytest.param(
            (
                (7, 1, "python3 -m sglang.launch_server --model-path m"),
                (8, 7, "sglang::scheduler_TP0"),
                (9, 7, "sglang::scheduler_TP1"),
                (10, 7, "sglang::detokenizer"),
            ),
            {7: "api_server", 8: "engine_core", 9: "engine_core", 10: "helper"},
            id="SGLang's schedulers are its engine cores",
        ),
    ],
)  # fmt: skip
def test_each_process_has_its_role(
    processes: tuple[tuple[int, int, str], ...], expected: dict[int, str], tmp_path: Path
) -> None:
    for pid, parent, command in processes:
        process(tmp_path, pid, parent, command)

    (server,) = found(tmp_path)

    assert roles(server) == expected


@pytest.mark.parametrize(
    "command",
    [
        "vim notes-on-vllm",
        "grep vllm serve.log",
        "sh -c vllm-serve",
        "vllm bench",
        "python3 -m vllm",
    ],
)
def test_what_only_speaks_of_vllm_is_no_server(command: str, tmp_path: Path) -> None:
    process(tmp_path, 7, 1, command)

    assert found(tmp_path) == ()


def test_titles_whose_server_is_out_of_sight_still_count(tmp_path: Path) -> None:
    process(tmp_path, 8, 1, "VLLM::EngineCore")

    (server,) = found(tmp_path)

    assert (server.argv, roles(server)) == ((), {8: "engine_core"})


def test_two_servers_are_two(tmp_path: Path) -> None:
    process(tmp_path, 7, 1, "vllm serve a")
    process(tmp_path, 8, 1, "vllm serve b")

    assert [server.pid for server in found(tmp_path)] == [7, 8]


def test_a_process_that_ended_meanwhile_is_passed_over(tmp_path: Path) -> None:
    process(tmp_path, 7, 1, "vllm serve a")
    process(tmp_path, 8, 7, "VLLM::EngineCore")
    (tmp_path / "proc" / "8" / "stat").unlink()

    (server,) = found(tmp_path)

    assert roles(server) == {7: "api_server"}


def test_processes_that_are_each_other_s_parents_do_not_hang_the_search(tmp_path: Path) -> None:
    process(tmp_path, 7, 8, "VLLM::EngineCore")
    process(tmp_path, 8, 7, "VLLM::Worker")

    (server,) = found(tmp_path)

    assert roles(server) == {7: "engine_core", 8: "worker"}


@given(st.text(max_size=15).filter(lambda name: "\0" not in name))
def test_any_name_leaves_the_stat_line_readable(name: str) -> None:
    line = f"7 ({name}) S 3 {'0 ' * 9}5 6 {'0 ' * 6}99 0"

    assert proc.stat(line) == proc.Stat(parent=3, cpu_ticks=11, start_ticks=99)


@pytest.mark.parametrize("text", ["", "7 (x) S", "7 x S 3"], ids=["none", "half", "no name"])
def test_a_stat_line_that_is_cut_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"stat line|substring"):
        proc.stat(text)


@pytest.mark.parametrize(("listed", "count"), [("0-3,8", 5), ("5", 1), ("0-1\n", 2), ("", 0)])
def test_a_list_of_cpus_is_counted(listed: str, count: int) -> None:
    assert proc.cores(listed) == count
