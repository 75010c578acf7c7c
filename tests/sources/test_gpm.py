"""GPM, as the real nvidia-ml-py shows a library that we script (tests/fake_nvml)."""

from pathlib import Path
from typing import Any

import pytest

from fake_nvml.stage import play

GPU = "GPU-00000000-0000-0000-0000-000000000000"
TWICE = ("read", "clock 1", "read")


@pytest.fixture(scope="session")
def pair(driver: Path) -> dict[str, Any]:
    """The second of two reads a second apart."""
    _, second = play(driver, *TWICE, script="gpm=1 gpm.5=42 gpm.10=81.5 gpm.61=8000", gpm="on")
    read: dict[str, Any] = second
    return read


VALUES = {
    "engine active": ("engine_active_ratio", 0.01),
    "SM active": ("sm_active_ratio", 0.02),
    "SM occupancy": ("sm_occupancy_ratio", 0.03),
    "tensor active": ("tensor_active_ratio", 0.42),
    "DRAM active": ("dram_active_ratio", 0.815),
    "the FP64 pipe": ("fp64_active_ratio", 0.11),
    "the FP32 pipe": ("fp32_active_ratio", 0.12),
    "the FP16 pipe": ("fp16_active_ratio", 0.13),
    "MiB sent over PCIe": ("pcie_tx_bytes_per_second", 20 * 1024.0**2),
    "MiB received over PCIe": ("pcie_rx_bytes_per_second", 21 * 1024.0**2),
    "MiB received over NVLink": ("nvlink_rx_bytes_per_second", 60 * 1024.0**2),
    "MiB sent over NVLink": ("nvlink_tx_bytes_per_second", 8000 * 1024.0**2),
}


@pytest.mark.parametrize(("fact", "value"), VALUES.values(), ids=VALUES.keys())
def test_metrics_come_in_the_units_of_our_facts(
    pair: dict[str, Any], fact: str, value: float
) -> None:
    assert pair["gpus"][GPU]["gauges"][fact] == pytest.approx(value)


def test_a_read_with_gpm_says_so(pair: dict[str, Any]) -> None:
    assert pair["source"] == "gpm"


def test_nvlink_bytes_are_counted_beside_gpm(pair: dict[str, Any]) -> None:
    assert pair["gpus"][GPU]["counters"]["nvlink_bytes_total"] == 2048 * 1024.0


def test_one_sample_alone_gives_nothing(driver: Path) -> None:
    (read,) = play(driver, "read", script="gpm=1", gpm="on")

    assert read["source"] == "nvml"
    assert "first of two" in read["reasons"]["dram_active_ratio"]


def test_samples_nearer_than_100_ms_are_not_taken(driver: Path) -> None:
    steps = ("read", "clock 0.05", "read", "calls nvmlGpmSampleGet")
    *_, calls = play(driver, *steps, script="gpm=1", gpm="on")

    assert calls == 1


def test_a_read_too_soon_keeps_the_values_of_the_pair_before(driver: Path) -> None:
    *_, last = play(driver, *TWICE, "clock 0.05", "read", script="gpm=1", gpm="on")

    assert last["gpus"][GPU]["gauges"]["dram_active_ratio"] == pytest.approx(0.1)


def test_a_sample_of_another_time_is_no_partner(driver: Path) -> None:
    steps = ("read", "clock 100", "read", "clock 1", "read")
    _, late, then = play(driver, *steps, script="gpm=1", gpm="on")

    assert late["source"] == "nvml"
    assert then["source"] == "gpm"


def test_a_gpu_keeps_two_samples_however_often_it_is_read(driver: Path) -> None:
    steps = ["read", "clock 1"] * 20
    *_, samples = play(driver, *steps, "samples", script="gpus=4 gpm=1", gpm="on")

    assert samples == 8


FREED = {
    "at the end": ("close",),
    "when a GPU is lost": ("script lost.0=1", "clock 1", "read"),
    "when sampling fails": ("script rc.nvmlGpmSampleGet=999", "clock 1", "read"),
    "when the metrics are refused": ("script rc.nvmlGpmMetricsGet=3", "clock 1", "read"),
    "when NVML fails": ("script rc.nvmlDeviceGetCount_v2=999", "clock 11", "read"),
}


@pytest.mark.parametrize("steps", FREED.values(), ids=FREED.keys())
def test_samples_are_given_back(driver: Path, steps: tuple[str, ...]) -> None:
    *_, samples = play(driver, *TWICE, *steps, "samples", script="gpm=1", gpm="on")

    assert samples == 0


def test_a_second_buffer_that_is_refused_does_not_leak_the_first(driver: Path) -> None:
    steps = ("read", "script rc.nvmlGpmSampleAlloc=20", "clock 1", "read", "samples")
    *_, samples = play(driver, *steps, script="gpm=1 rc.nvmlGpmSampleAlloc=20", gpm="on")

    assert samples == 0


WITHOUT = {
    "the off switch": ("gpm=1", "off", "switched off"),
    "a GPU before Hopper": ("gpm=0", "on", "no GPM"),
    "structures of another version": ("gpm=1 wrong_version=1", "on", "another version"),
    "sampling that is not permitted": ("gpm=1 rc.nvmlGpmSampleGet=4", "on", "not permitted"),
    "MIG with a driver that breaks by it": ("gpm=1 mig.0=1 driver=535.129", "on", "R550"),
}


@pytest.mark.parametrize(("script", "gpm", "why"), WITHOUT.values(), ids=WITHOUT.keys())
def test_without_gpm_plain_nvml_goes_on_and_the_reason_is_told(
    driver: Path, script: str, gpm: str, why: str
) -> None:
    _, read = play(driver, *TWICE, script=script, gpm=gpm)

    assert read["source"] == "nvml"
    assert read["gpus"][GPU]["gauges"]["power_watts"] == 650.0
    assert why in read["reasons"]["dram_active_ratio"]


CALLS = (
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleAlloc",
    "nvmlGpmSampleGet",
    "nvmlGpmMetricsGet",
)


@pytest.mark.parametrize("function", CALLS)
def test_a_gpm_call_that_is_not_supported_is_a_reason_and_not_made_again(
    driver: Path, function: str
) -> None:
    steps = (*TWICE, f"calls {function}", "clock 1", "read", f"calls {function}")
    *_, once, read, twice = play(driver, *steps, script=f"gpm=1 rc.{function}=3", gpm="on")

    assert twice == once
    assert function in read["reasons"]["dram_active_ratio"]
    assert read["gpus"][GPU]["gauges"]["power_watts"] == 650.0


def test_a_single_metric_that_is_lacking_leaves_the_others(driver: Path) -> None:
    _, read = play(driver, *TWICE, script="gpm=1 gpmrc.10=3", gpm="on")

    gauges = read["gpus"][GPU]["gauges"]
    assert "dram_active_ratio" not in gauges
    assert "sm_active_ratio" in gauges
    assert "nvmlGpmMetricsGet 10" in read["reasons"]["dram_active_ratio"]


def test_blank_metrics_are_no_values(driver: Path) -> None:
    _, read = play(driver, *TWICE, script="gpm=1 gpm_blank=1", gpm="on")

    assert "dram_active_ratio" not in read["gpus"][GPU]["gauges"]
    assert "blank" in read["reasons"]["dram_active_ratio"]


def test_mig_instances_have_their_own_metrics_with_a_newer_driver(driver: Path) -> None:
    _, read = play(driver, *TWICE, script="gpm=1 mig.0=1 driver=580.65", gpm="on")

    assert read["gpus"][f"{GPU}/5"]["gauges"]["dram_active_ratio"] == pytest.approx(0.1)


def test_on_mig_with_an_old_driver_no_sample_is_ever_taken(driver: Path) -> None:
    steps = (*TWICE, "calls nvmlGpmSampleGet", "calls nvmlGpmMigSampleGet")
    *_, whole, instances = play(driver, *steps, script="gpm=1 mig.0=1 driver=535.129", gpm="on")

    assert (whole, instances) == (0, 0)


# The child that tries first


def test_gpm_is_used_once_a_child_has_tried_it(driver: Path) -> None:
    first, *_, last = play(driver, "read", "tried", "clock 1", "read", script="gpm=1", gpm="auto")

    assert "process of its own" in first["reasons"]["dram_active_ratio"]
    assert last["source"] == "gpm"


def test_who_reads_once_only_can_wait_for_gpm(driver: Path) -> None:
    (read,) = play(driver, "settled", script="gpm=1", gpm="auto")

    assert read["source"] == "gpm"


def test_a_driver_that_gpm_breaks_is_broken_in_the_child_only(driver: Path) -> None:
    script = "gpm=1 poison=1"
    steps = ("read", "tried", "clock 1", "read", "calls nvmlGpmSampleGet")
    *_, read, calls = play(driver, *steps, script=script, gpm="auto")

    assert calls == 0
    assert read["gpus"][GPU]["gauges"]["power_watts"] == 650.0
    assert "breaks NVML" in read["reasons"]["dram_active_ratio"]


def test_a_child_that_hangs_is_ended_and_the_reason_told(driver: Path) -> None:
    script = "gpm=1 hang.nvmlGpmSampleGet=1"
    *_, read = play(driver, "read", "tried", script=script, gpm="auto")

    assert "hangs" in read["reasons"]["dram_active_ratio"]


def test_no_child_is_started_where_the_gpu_has_no_gpm(driver: Path) -> None:
    (read,) = play(driver, "read", script="gpm=0", gpm="auto")

    assert "no GPM" in read["reasons"]["dram_active_ratio"]


def test_a_driver_broken_after_all_is_begun_anew_without_gpm(driver: Path) -> None:
    script = "gpm=1 poison=1"
    first, down, *_, read = play(
        driver, "read", "clock 1", "read", "script clear", "script gpm=1",
        "clock 6", "read", "clock 1", "read", script=script, gpm="on",
    )  # fmt: skip

    assert "down" in first
    assert "unknown error" in down["down"]
    assert "GPM is off" in read["reasons"]["dram_active_ratio"]
