"""The versions of nvidia-ml-py that we say we work with, each over the same fake driver."""

import subprocess
import sys
from typing import Any

import pytest

from fake_nvml.stage import Play, build, play_all

pytestmark = pytest.mark.e2e

VERSIONS = ("11.525.84", "11.525.150", "12.535.77", "12.535.161", "12.560.30", "13.615.71")
"""Oldest supported first, newest last; 12.535.77 lays processes out as no later one does."""

GPU = "GPU-00000000-0000-0000-0000-000000000000"
TWICE = ("read", "clock 1", "read")


@pytest.fixture(scope="module", params=VERSIONS)
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[dict[str, dict[str, dict[str, dict[str, float]]]]]]:
    """All plays under one version of the binding, fetched into a folder of its own."""
    folder = tmp_path_factory.mktemp("binding")
    fetched = subprocess.run(  # noqa: S603  pip, by our own Python
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
            "--target", str(folder), f"nvidia-ml-py=={request.param}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if fetched.returncode:
        pytest.skip(f"nvidia-ml-py {request.param} cannot be fetched here")
    plays = {
        "all there": Play(steps=TWICE, script="gpus=2 gpm=1 xid.0=79", gpm="on"),
        "MIG": Play(steps=TWICE, script="gpm=1 mig.0=1", gpm="on"),
        "processes": Play(steps=("binding", "read"), script="pids.0=3"),
        "an old driver": Play(
            steps=("read",),
            script="driver=450.80 rc.nvmlDeviceGetMemoryInfo_v2=13 "
            "rc.nvmlDeviceGetComputeRunningProcesses_v3=13",
        ),
        "lost": Play(steps=("read", "script lost.1=1", "clock 1", "read"), script="gpus=2"),
        "samples": Play(steps=(*TWICE, "close", "samples"), script="gpm=1", gpm="on"),
    }
    played = play_all(build(tmp_path_factory.mktemp("nvml")), plays, binding=folder)
    assert played["processes"].pop(0).startswith(str(folder))
    return played


def test_every_fact_comes_under_every_version(played: dict[str, Any]) -> None:
    gpu = played["all there"][-1]["gpus"][GPU]

    assert len(gpu["gauges"]) == 29
    assert len(gpu["counters"]) == 7


def test_gpm_is_read_under_every_version(played: dict[str, Any]) -> None:
    gauges = played["all there"][-1]["gpus"][GPU]["gauges"]

    assert gauges["dram_active_ratio"] == pytest.approx(0.1)


def test_an_xid_is_seen_under_every_version(played: dict[str, Any]) -> None:
    assert played["all there"][-1]["gpus"][GPU]["gauges"]["xid_last_count"] == 79.0


def test_mig_is_read_under_every_version(played: dict[str, Any]) -> None:
    gauges = played["MIG"][-1]["gpus"][f"{GPU}/5"]["gauges"]

    assert gauges["memory_total_bytes"] == 37.5e9
    assert gauges["dram_active_ratio"] == pytest.approx(0.1)


def test_processes_are_right_or_not_told(played: dict[str, Any]) -> None:
    (read,) = played["processes"]

    if "processes" in read["reasons"]:
        assert read["processes"] == {GPU: []}
        assert "R535" in read["reasons"]["processes"]
    else:
        assert read["processes"] == {GPU: [1000, 1001, 1002]}


def test_an_old_driver_gives_what_it_has_under_every_version(played: dict[str, Any]) -> None:
    (read,) = played["an old driver"]

    assert read["gpus"][GPU]["gauges"]["memory_used_bytes"] == 76e9


def test_a_lost_gpu_is_named_under_every_version(played: dict[str, Any]) -> None:
    assert "lost" in played["lost"][-1]["reasons"]["gpu 1"]


def test_samples_are_given_back_under_every_version(played: dict[str, Any]) -> None:
    assert played["samples"][-1] == 0
