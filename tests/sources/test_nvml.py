"""NVML, as the real nvidia-ml-py shows a library that we script (tests/fake_nvml)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boundby.core.facts import GPU_FACTS
from fake_nvml.calls import ALL_CALLS, GIVES, GPM, RICH, SECOND
from fake_nvml.stage import LIBRARY, Play, build, play, play_all

GPU = "GPU-00000000-0000-0000-0000-000000000000"
OTHER = "GPU-00000001-0000-0000-0000-000000000000"


@pytest.fixture(scope="session")
def one_read(driver: Path) -> dict[str, Any]:
    """Two GPUs, read twice a second apart, with bytes moved between."""
    script = "gpus=2 pids.0=2 mhz.1=1755 mhz.2=2619 xid.1=79"
    moved = "script field.138=2048 field.139=1024 field.197=8192 field.198=1004096"
    _, second = play(driver, "read", "clock 1", moved, "read", script=script)
    read: dict[str, Any] = second
    return read


VALUES = {
    "memory is read without the driver's own share": ("memory_used_bytes", 75e9),
    "free memory is in bytes": ("memory_free_bytes", 74e9),
    "all memory is in bytes": ("memory_total_bytes", 150e9),
    "GPU utilisation becomes a ratio": ("gpu_busy_ratio", 0.97),
    "memory utilisation becomes a ratio": ("memory_copy_busy_ratio", 0.41),
    "MHz of the SMs become hertz": ("sm_clock_hertz", 1.755e9),
    "MHz of the memory become hertz": ("memory_clock_hertz", 2.619e9),
    "the highest SM clock too": ("max_sm_clock_hertz", 1.98e9),
    "the highest memory clock too": ("max_memory_clock_hertz", 1.98e9),
    "milliwatts become watts": ("power_watts", 650.0),
    "the enforced limit too": ("power_limit_watts", 700.0),
    "temperature stays in degrees": ("temperature_celsius", 61.0),
    "the memory has its own": ("memory_temperature_celsius", 71.0),
    "reasons are the driver's bit mask": ("clock_event_reasons_count", 4.0),
    "nanoseconds held down by power become seconds": ("power_violation_seconds_total", 2.0),
    "by heat": ("thermal_violation_seconds_total", 2.0),
    "by the board": ("board_violation_seconds_total", 2.0),
    "millijoules become joules": ("energy_joules_total", 5.0),
    "uncorrected errors are counted": ("ecc_uncorrected_errors_total", 7.0),
    "PCIe replays are counted": ("pcie_replays_total", 3.0),
    "PCIe lanes": ("pcie_link_width_count", 16.0),
    "PCIe generation": ("pcie_link_generation_count", 5.0),
    "KiB sent over NVLink become bytes a second": ("nvlink_tx_bytes_per_second", 1024.0**2),
    "an NVLink that was quiet moved nothing": ("nvlink_rx_bytes_per_second", 0.0),
    "NVLink bytes of both ways are one counter": ("nvlink_bytes_total", 3 * 1024.0**2),
    "bytes sent over PCIe become a rate": ("pcie_tx_bytes_per_second", 4096.0),
    "bytes received over PCIe become a rate": ("pcie_rx_bytes_per_second", 1e6),
}


@pytest.mark.parametrize(("fact", "value"), VALUES.values(), ids=VALUES.keys())
def test_values_come_in_the_units_of_our_facts(
    one_read: dict[str, Any], fact: str, value: float
) -> None:
    gpu = one_read["gpus"][GPU]

    assert {**gpu["gauges"], **gpu["counters"]}[fact] == pytest.approx(value)


def test_every_value_is_a_known_fact_under_its_kind(one_read: dict[str, Any]) -> None:
    gpu = one_read["gpus"][GPU]
    kinds = {"gauges": "gauge", "counters": "counter", "infos": "info"}

    assert all(GPU_FACTS[name].kind == kind for at, kind in kinds.items() for name in gpu[at])


def test_a_gpu_is_known_by_uuid_index_and_name(one_read: dict[str, Any]) -> None:
    gpu = one_read["gpus"][OTHER]

    assert (gpu["uuid"], gpu["index"], gpu["name"]) == (OTHER, 1, "NVIDIA H200")


def test_driver_and_compute_capability_are_told(one_read: dict[str, Any]) -> None:
    infos = one_read["gpus"][GPU]["infos"]

    assert infos == {"driver_version": "570.86.15", "compute_capability": "9.0"}


def test_processes_are_told_by_gpu(one_read: dict[str, Any]) -> None:
    assert one_read["processes"] == {GPU: [1000, 1001], OTHER: []}


def test_an_xid_stays_with_the_gpu_it_happened_on(one_read: dict[str, Any]) -> None:
    xids = [gpu["gauges"].get("xid_last_count") for gpu in one_read["gpus"].values()]

    assert xids == [None, 79.0]


def test_a_counter_that_went_back_gives_no_rate(driver: Path) -> None:
    _, read = play(driver, "read", "clock 1", "script field.138=1", "read")

    assert "nvlink_tx_bytes_per_second" not in read["gpus"][GPU]["gauges"]
    assert "began anew" in read["reasons"]["nvlink_tx_bytes_per_second"]


def test_the_first_read_says_that_rates_need_two(driver: Path) -> None:
    (read,) = play(driver, "read")

    assert "two reads" in read["reasons"]["pcie_tx_bytes_per_second"]


# MIG


def test_mig_instances_stand_beside_their_gpu_each_once(driver: Path) -> None:
    (read,) = play(driver, "read", script="mig.0=1")

    assert list(read["gpus"]) == [GPU, f"{GPU}/1", f"{GPU}/5"]


def test_a_mig_instance_has_its_own_memory_and_the_clocks_of_its_board(driver: Path) -> None:
    (read,) = play(driver, "read", script="mig.0=1")

    gauges = read["gpus"][f"{GPU}/5"]["gauges"]
    assert (gauges["memory_total_bytes"], gauges["sm_clock_hertz"]) == (37.5e9, 1.755e9)


def test_processes_are_told_by_mig_instance_and_not_by_its_gpu_too(driver: Path) -> None:
    (read,) = play(driver, "read", script="mig.0=1 pids.0=3")

    assert read["processes"] == {
        GPU: [], f"{GPU}/1": [1000, 1002], f"{GPU}/5": [1001]
    }  # fmt: skip


def test_mig_switched_on_is_seen_without_a_restart(driver: Path) -> None:
    *_, read = play(driver, "read", "script mig.0=1", "clock 11", "read")

    assert f"{GPU}/1" in read["gpus"]


# What a driver or a GPU does not have


RESTART = ("clock 11", "script gpus=2", "read")


def test_the_calls_tried_here_one_by_one_are_all_that_are_made(driver: Path) -> None:
    steps = ("read", "clock 1", "read", *RESTART, "functions")
    plays = {
        lacking: Play(steps=steps, script=f"{RICH} {lacking}", gpm="on")
        for lacking in ("", *SECOND.values())
    }

    answers = play_all(driver, plays)

    assert set().union(*(answer[-1] for answer in answers.values())) == set(ALL_CALLS)


@pytest.fixture(scope="session")
def lacking(driver: Path) -> Callable[[str], list[Any]]:
    """Each call in turn says that it is not supported."""
    plays = {
        function: Play(
            steps=("read", f"calls {function}", "clock 11", "read", f"calls {function}"),
            script=f"{SECOND.get(function, '')} rc.{function}=3",
        )
        for function in GIVES
    }
    return play_all(driver, plays).__getitem__


SAME_FACT = {
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetViolationStatus",
    "nvmlDeviceGetFieldValues",
}
"""Calls with a second way to the same fact."""


@pytest.mark.parametrize("function", GIVES)
def test_a_call_that_is_not_supported_leaves_the_others_and_a_reason(
    lacking: Callable[[str], list[Any]], function: str
) -> None:
    first, _, second, _ = lacking(function)
    fact = GIVES[function]

    for read in (first, second):
        (gpu,) = read["gpus"].values()
        values = {**gpu["gauges"], **gpu["counters"]}
        assert len(values) > 15
        if fact and function not in SAME_FACT:
            assert fact not in values
            assert "not supported" in read["reasons"][fact]
        elif fact:
            assert fact in values


@pytest.mark.parametrize("function", [f for f, fact in GIVES.items() if fact])
def test_a_call_that_is_not_supported_is_not_made_again(
    lacking: Callable[[str], list[Any]], function: str
) -> None:
    _, once, _, twice = lacking(function)

    if function == "nvmlEventSetWait_v2":
        assert twice == once + 1  # an event set is asked anew: it costs nothing and may mend
    else:
        assert twice == once


def test_a_passing_error_is_a_reason_for_now_and_the_call_is_made_again(driver: Path) -> None:
    script = "rc.nvmlDeviceGetPowerUsage=10"
    steps = ("read", "script rc.nvmlDeviceGetPowerUsage=0", "clock 1", "read")
    first, second = play(driver, *steps, script=script)

    assert first["reasons"]["power_watts"].endswith("nvmlDeviceGetPowerUsage: timed out")
    assert second["gpus"][GPU]["gauges"]["power_watts"] == 650.0


def test_a_single_field_that_is_lacking_leaves_the_batch_whole(driver: Path) -> None:
    (read,) = play(driver, "read", script="fieldrc.82=3")

    gpu = read["gpus"][GPU]
    assert "memory_temperature_celsius" not in gpu["gauges"]
    assert gpu["counters"]["energy_joules_total"] == 5.0
    assert "82" in read["reasons"]["memory_temperature_celsius"]


FIELD_TYPES = {
    "a double": 0,
    "an unsigned int": 1,
    "an unsigned long": 2,
    "64 bits": 3,
    "an int": 5,
}


@pytest.mark.parametrize("kind", FIELD_TYPES.values(), ids=FIELD_TYPES.keys())
def test_a_field_value_is_read_by_its_type(driver: Path, kind: int) -> None:
    (read,) = play(driver, "read", script=f"fieldtype.83={kind}")

    assert read["gpus"][GPU]["counters"]["energy_joules_total"] == 5.0


def test_a_structure_of_another_version_falls_back_to_the_first_one(driver: Path) -> None:
    (read,) = play(driver, "read", script="wrong_version=1")

    assert read["gpus"][GPU]["gauges"]["memory_used_bytes"] == 76e9  # with the driver's share


def test_pcie_rates_that_need_waiting_are_asked_of_one_gpu_a_beat(driver: Path) -> None:
    steps = ("read", "calls nvmlDeviceGetPcieThroughput", "clock 1", "read")
    _, calls, read = play(driver, *steps, script="gpus=2 fieldrc.197=3 fieldrc.198=3")

    assert calls == 2
    assert [gpu["gauges"]["pcie_tx_bytes_per_second"] for gpu in read["gpus"].values()] == [
        2e6, 2e6
    ]  # fmt: skip


NEW_SYMBOLS = (
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetMigMode",
    "nvmlEventSetCreate",
    *GPM,
)


def test_a_library_that_lacks_new_symbols_gives_what_it_has(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    old = build(tmp_path_factory.mktemp("old"), hidden=NEW_SYMBOLS)
    (read,) = play(old, "read", script="driver=450.80 gpm=1", gpm="on")

    gpu = read["gpus"][GPU]
    assert gpu["gauges"]["clock_event_reasons_count"] == 4.0
    assert gpu["counters"]["energy_joules_total"] == 5.0
    assert "older" in read["reasons"]["processes"]
    assert "older" in read["reasons"]["dram_active_ratio"]


def test_a_driver_before_r510_lists_processes_by_its_older_call(driver: Path) -> None:
    script = "rc.nvmlDeviceGetComputeRunningProcesses_v3=13 pids.0=2"
    (read,) = play(driver, "read", script=script)

    assert read["processes"] == {GPU: [1000, 1001]}


MISREAD = {
    "a driver of the time with wider entries": ("driver=535.54.03 wide=1 pids.0=2", []),
    "the driver that mended it": ("driver=535.104.05 pids.0=2", [1000, 1001]),
}


@pytest.mark.parametrize(("script", "pids"), MISREAD.values(), ids=MISREAD.keys())
def test_processes_are_not_read_where_their_layout_differs(
    driver: Path, script: str, pids: list[int]
) -> None:
    (read,) = play(driver, "read", script=script)

    assert read["processes"] == {GPU: pids}
    assert ("R535" in read["reasons"].get("processes", "")) == (not pids)


# Hangs


def hang(function: str) -> Play:
    """Hang a call in the first read, or in the one that begins anew; then let it go."""
    return Play(
        script=f"{RICH} {SECOND.get(function, '')} hang.{function}=1",
        gpm="on",
        deadline_seconds=0.1,
        steps=(
            "read", "clock 1", "read", "clock 11", "script gpus=2", "read", "read", "threads",
            f"script hang.{function}=0", "settle", "clock 60", "recover",
        ),
    )  # fmt: skip


@pytest.fixture(scope="session")
def hung(driver: Path) -> Callable[[str], list[Any]]:
    return play_all(driver, {function: hang(function) for function in ALL_CALLS}).__getitem__


@pytest.mark.parametrize("function", ALL_CALLS)
def test_a_call_that_hangs_takes_the_source_down_by_name_and_in_time(
    hung: Callable[[str], list[Any]], function: str
) -> None:
    *reads, _, _ = hung(function)
    binding = function.removesuffix("WithFlags").removesuffix("_v2").removesuffix("_v3")
    down = [read for read in reads if "down" in read]

    assert down[0]["down"].startswith(f"nvml: {binding}")
    assert "has not come back" in down[0]["down"]
    assert all(read["took"] < 10.0 for read in down)


@pytest.mark.parametrize("function", ALL_CALLS)
def test_a_hung_call_costs_one_thread_and_the_source_comes_back(
    hung: Callable[[str], list[Any]], function: str
) -> None:
    *_, threads, recovered = hung(function)

    assert threads == 1
    assert GPU in recovered["gpus"]


def test_while_a_call_hangs_reads_are_refused_at_once(driver: Path) -> None:
    script = "hang.nvmlDeviceGetPowerUsage=1"
    steps = ("read", *["read"] * 5, "script hang.nvmlDeviceGetPowerUsage=0")
    _, *refused = play(driver, *steps, script=script, deadline_seconds=0.1)

    assert max(read["took"] for read in refused) < 0.05


def test_four_threads_read_at_once_and_leave_nothing_behind(driver: Path) -> None:
    read, samples = play(driver, "readers 4", "samples", script="gpus=4 gpm=1")

    assert read == [[4] * 25] * 4
    assert samples == 0


# Lost GPUs and drivers


def test_a_lost_gpu_is_left_out_and_named_while_the_others_go_on(driver: Path) -> None:
    _, read = play(driver, "read", "script lost.1=1", "clock 1", "read", script="gpus=2")

    assert list(read["gpus"]) == [GPU]
    assert "lost" in read["reasons"]["gpu 1"]


def test_a_lost_gpu_that_is_back_is_found(driver: Path) -> None:
    steps = ("read", "script lost.1=1", "clock 1", "read", "script lost.1=0", "clock 31", "read")
    *_, read = play(driver, *steps, script="gpus=2")

    assert list(read["gpus"]) == [GPU, OTHER]


def test_the_last_gpu_lost_takes_the_source_down(driver: Path) -> None:
    _, read, back = play(
        driver, "read", "script lost.0=1", "clock 1", "read",
        "script lost.0=0", "clock 6", "read",
    )  # fmt: skip

    assert "gpu 0" in read["down"]
    assert "lost" in read["down"]
    assert GPU in back["gpus"]


def test_a_gpu_that_appears_is_found(driver: Path) -> None:
    *_, read = play(driver, "read", "script gpus=2", "clock 11", "read")

    assert OTHER in read["gpus"]


def test_a_gpu_that_vanishes_is_left_out(driver: Path) -> None:
    *_, read = play(driver, "read", "script gpus=1", "clock 11", "read", script="gpus=2")

    assert list(read["gpus"]) == [GPU]


def test_no_gpu_at_all_says_what_to_look_at(driver: Path) -> None:
    (read,) = play(driver, "read", script="gpus=0")

    assert "no GPU is visible" in read["down"]
    assert "NVIDIA_VISIBLE_DEVICES" in read["down"]


def test_a_reloaded_driver_is_found_again(driver: Path) -> None:
    _, down, up = play(driver, "read", "script reload=1", "clock 1", "read", "clock 6", "read")

    assert "not initialised" in down["down"]
    assert GPU in up["gpus"]


def test_a_failing_start_is_not_tried_every_beat(driver: Path) -> None:
    script = "rc.nvmlInitWithFlags=9"
    *_, read, calls = play(
        driver, "read", "clock 1", "read", "clock 1", "read", "calls nvmlInitWithFlags",
        script=script,
    )  # fmt: skip

    assert "not loaded" in read["down"]
    assert calls == 1


def test_a_driver_updated_under_the_process_is_loaded_anew(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("update")
    loaded, update = build(folder / "loaded"), build(folder / "update")
    down, up = play(
        loaded, "read", f"install {update / LIBRARY}", "clock 6", "read",
        script="rc.nvmlInitWithFlags=18",
    )  # fmt: skip

    assert "the driver was replaced" in down["down"]
    assert up["gpus"][GPU]["infos"]["driver_version"] == "590.48"


def test_without_the_library_the_source_says_how_to_get_it(driver: Path) -> None:
    (read,) = play(driver, "read", script="rc.nvmlInitWithFlags=12")

    assert "NVIDIA_DRIVER_CAPABILITIES" in read["down"]
