import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundby.core.facts import GPU_FACTS
from boundby.core.setup import GpuIdentity
from boundby.sources import dcgm
from boundby.sources.dcgm_names import ROWS
from boundby.sources.looks import WrongPageError

Stored = Callable[[str], str]

PAGES = (
    "dcgm-exporter/4.8.2-8xh100-default",
    "dcgm-exporter/4.8.4-8xh100-extended",
    "dcgm-exporter/4.9.0-8xh100-newnames",
    "dcgm-exporter/4.8.2-mig-a100",
    "dcgm-exporter/oddities",
    "simulated-dialects/dcgm",
    "simulated-dialects/nvml-only",
)


def row(name: str, value: float | str, **labels: str) -> str:
    labels = {"gpu": "0", "UUID": "GPU-a", "modelName": "NVIDIA H100", **labels}
    text = ",".join(f'{label}="{word}"' for label, word in labels.items() if word)
    return f"{name}{{{text}}} {value}\n"


@pytest.mark.parametrize("name", PAGES)
def test_only_known_facts_are_given(name: str, stored: Stored) -> None:
    for part in dcgm.parse(stored(name)).gpus:
        for kind, names in (("gauge", part.gauges), ("counter", part.counters)):
            assert {GPU_FACTS[fact].kind for fact in names} == {kind} if names else True


@pytest.mark.parametrize("name", PAGES)
def test_every_ratio_is_a_share(name: str, stored: Stored) -> None:
    for part in dcgm.parse(stored(name)).gpus:
        assert all(
            0 <= value <= 1 for fact, value in part.gauges.items() if fact.endswith("_ratio")
        )


def test_every_row_gives_a_fact_there_is() -> None:
    assert {entry.fact for entry in ROWS} <= set(GPU_FACTS)


def test_names_before_and_after_the_renaming_give_the_same_facts(stored: Stored) -> None:
    old = dcgm.parse(stored("dcgm-exporter/4.8.2-8xh100-default")).gpus[0]
    new = dcgm.parse(stored("dcgm-exporter/4.9.0-8xh100-newnames")).gpus[0]

    assert set(old.gauges) == set(new.gauges)
    for fact in ("sm_clock_hertz", "memory_clock_hertz", "memory_used_bytes", "gpu_busy_ratio"):
        assert old.gauges[fact] == new.gauges[fact]
    assert new.gauges["nvlink_bytes_per_second"] == pytest.approx(
        old.gauges["nvlink_bytes_per_second"], rel=0.001
    )
    assert new.counters["energy_joules_total"] == pytest.approx(
        old.counters["energy_joules_total"], rel=0.1
    )


def test_a_whole_node_is_read(stored: Stored) -> None:
    parsed = dcgm.parse(stored("dcgm-exporter/4.8.4-8xh100-extended"))
    first, last = parsed.gpus[0], parsed.gpus[-1]

    assert [part.index for part in parsed.gpus] == list(range(8))
    assert (first.name, first.pod, first.namespace) == (
        "NVIDIA H100 80GB HBM3",
        "qwen-72b-tp4-0",
        "llm",
    )
    assert (last.pod, last.namespace) == (None, None)
    assert first.infos == {"driver_version": "580.95.05"}
    assert first.gauges["power_limit_watts"] == 700.0
    assert first.gauges["memory_total_bytes"] == (72914 + 8110 + 535) * 1024**2
    assert parsed.profiling


def test_a_page_of_plain_nvml_has_no_profiling_rows(stored: Stored) -> None:
    parsed = dcgm.parse(stored("simulated-dialects/nvml-only"))

    assert not parsed.profiling
    assert all("tensor_active_ratio" not in part.gauges for part in parsed.gpus)


@pytest.mark.parametrize(
    ("name", "value", "fact", "expected"),
    [
        ("DCGM_FI_DEV_POWER_VIOLATION", "40000000000", "power_violation_seconds_total", 40.0),
        ("DCGM_FI_DEV_THERMAL_VIOLATION", "5e8", "thermal_violation_seconds_total", 0.5),
        ("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "1e9", "board_violation_seconds_total", 1.0),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "1500", "energy_joules_total", 1.5),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "1.5", "energy_joules_total", 1.5),
        ("DCGM_FI_DEV_SM_CLOCK", "1980", "sm_clock_hertz", 1.98e9),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ", "1.98e9", "sm_clock_hertz", 1.98e9),
        ("DCGM_FI_DEV_FB_USED", "1", "memory_used_bytes", 1048576.0),
        ("DCGM_FI_DEV_FB_USED_BYTES", "1048576", "memory_used_bytes", 1048576.0),
        ("DCGM_FI_DEV_GPU_UTIL", "88", "gpu_busy_ratio", 0.88),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", "0.88", "gpu_busy_ratio", 0.88),
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "1000", "nvlink_bytes_per_second", 1.024e9),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", "7", "pcie_tx_bytes_per_second", 7.0),
        ("dcgm_gpu_utilization", "88", "gpu_busy_ratio", 0.88),
        ("dcgm_total_energy_consumption", "1500", "energy_joules_total", 1.5),
        ("dcgm_nvlink_bandwidth_total", "1000", "nvlink_bytes_per_second", 1.024e9),
    ],
)
def test_units_are_brought_to_the_base(name: str, value: str, fact: str, expected: float) -> None:
    (part,) = dcgm.parse(row(name, value)).gpus

    assert {**part.gauges, **part.counters}[fact] == pytest.approx(expected)


def test_violation_times_are_nanoseconds_where_help_says_microseconds_too() -> None:
    """NVML counts nanoseconds and DCGM hands them on; older HELP lines were wrong."""
    name = "DCGM_FI_DEV_POWER_VIOLATION"
    text = f"# HELP {name} Throttling duration due to power constraints (in us).\n"

    (part,) = dcgm.parse(text + row(name, 2_000_000_000)).gpus

    assert part.counters["power_violation_seconds_total"] == 2.0


def test_a_ratio_that_is_still_in_percent_is_made_a_share() -> None:
    """DCGM 4.6 renamed field 203 to a ratio and went on giving 0 to 100."""
    text = row("DCGM_FI_DEV_GPU_UTIL_RATIO", 100) + row(
        "DCGM_FI_DEV_GPU_UTIL_RATIO", 1, gpu="1", UUID="GPU-b"
    )

    parsed = dcgm.parse(text)

    assert [part.gauges["gpu_busy_ratio"] for part in parsed.gpus] == [1.0, 0.01]


def test_event_times_are_added_where_the_violation_has_no_row() -> None:
    text = row("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", 1e9) + row(
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", 2e9
    )

    (part,) = dcgm.parse(text).gpus

    assert part.counters["thermal_violation_seconds_total"] == pytest.approx(3.0)


@pytest.mark.parametrize(
    "blank",
    [
        "9223372036854775792",
        "9223372036854775794",
        "9.223372036854775794e+18",
        "2147483632",
        "140737488355328",
        "140737488355330.000000",
        "NaN",
    ],
)
def test_a_blank_value_vanishes(blank: str) -> None:
    text = row("DCGM_FI_DEV_GPU_TEMP", 50) + row("DCGM_FI_DEV_MEMORY_TEMP", blank)

    (part,) = dcgm.parse(text).gpus

    assert part.gauges == {"temperature_celsius": 50.0}


def test_no_error_is_no_error_code() -> None:
    text = row("DCGM_FI_DEV_XID_ERRORS", 0, err_code="0") + row("DCGM_FI_DEV_GPU_TEMP", 50)

    (part,) = dcgm.parse(text).gpus

    assert "xid_last_count" not in part.gauges


def test_an_error_code_is_given(stored: Stored) -> None:
    (part,) = dcgm.parse(stored("dcgm-exporter/oddities")).gpus

    assert part.gauges["xid_last_count"] == 79.0


def test_a_gpu_shared_by_pods_is_one_gpu_of_no_one_pod(stored: Stored) -> None:
    parsed = dcgm.parse(stored("dcgm-exporter/oddities"))

    assert (len(parsed.gpus), parsed.gpus[0].pod) == (1, None)
    assert parsed.gpus[0].gauges["gpu_busy_ratio"] == 0.88
    assert set(parsed.shared[parsed.gpus[0].gpu]) == {"svc-a-0", "svc-b-0"}
    assert "shared by pods" in parsed.problems[-1]


def test_mig_instances_are_apart_and_repeat_what_the_device_has(stored: Stored) -> None:
    parsed = dcgm.parse(stored("dcgm-exporter/4.8.2-mig-a100"))
    instances = [part for part in parsed.gpus if part.mig_instance]

    assert [part.mig_instance for part in instances] == ["2", "3", "9"]
    assert [part.gpu.rpartition("/")[2] for part in instances] == ["2", "3", "9"]
    assert {part.gauges["power_watts"] for part in instances} == {287.4}
    assert {part.gauges["dram_active_ratio"] for part in instances} == {0.66, 0.31, 0.0}
    assert all("gpu_busy_ratio" not in part.gauges for part in instances)


def test_rows_of_links_switches_and_cpus_are_no_gpus() -> None:
    text = row("DCGM_FI_DEV_GPU_TEMP", 50) + (
        'DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{nvlink="0",gpu="0"} 5\n'
        'DCGM_FI_DEV_GPU_TEMP{nvswitch="1"} 40\n'
        'DCGM_FI_DEV_POWER_USAGE{cpu="0"} 40\n'
    )

    (part,) = dcgm.parse(text).gpus

    assert part.gauges == {"temperature_celsius": 50.0}


def test_without_a_uuid_the_index_is_the_identity() -> None:
    (part,) = dcgm.parse(row("DCGM_FI_DEV_GPU_TEMP", 50, UUID="", gpu="3")).gpus

    assert (part.gpu, part.index, part.uuid) == ("3", 3, None)


def test_values_are_as_old_as_their_timestamps_say() -> None:
    text = row("DCGM_FI_DEV_GPU_TEMP", "50 1796102803000")

    (part,) = dcgm.parse(text, now=1796102833.0).gpus

    assert part.age_seconds == 30.0


def test_without_timestamps_nobody_knows_how_old_values_are(stored: Stored) -> None:
    parsed = dcgm.parse(stored("dcgm-exporter/4.8.2-8xh100-default"), now=1.8e9)

    assert {part.age_seconds for part in parsed.gpus} == {None}


def test_another_page_is_refused_by_its_name(stored: Stored) -> None:
    with pytest.raises(WrongPageError, match="not a dcgm-exporter page; it looks like vLLM"):
        dcgm.parse(stored("vllm-0.32.0/many-decode"))


def test_an_exporter_that_sees_no_gpu_says_so() -> None:
    parsed = dcgm.parse('# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_FAN_SPEED{gpu="0"} 1\n')

    assert (parsed.gpus, parsed.problems) == ((), ("no GPU has a value on this page",))


@pytest.fixture
def node(stored: Stored) -> dcgm.Parsed:
    return dcgm.parse(stored("dcgm-exporter/4.8.2-8xh100-default"))


def test_our_gpus_are_chosen_by_uuid_whatever_the_order_and_case(node: dcgm.Parsed) -> None:
    wanted = [node.gpus[5], node.gpus[2]]

    choice = dcgm.choose(node, [GpuIdentity(uuid=(part.uuid or "").upper()) for part in wanted])

    assert ([part.index for part in choice.gpus], choice.certain) == ([5, 2], True)


def test_our_gpus_are_chosen_by_index_where_no_uuid_is_known(node: dcgm.Parsed) -> None:
    choice = dcgm.choose(node, [GpuIdentity(index=1)])

    assert ([part.index for part in choice.gpus], choice.certain) == ([1], True)


def test_our_gpus_are_chosen_by_pod(node: dcgm.Parsed) -> None:
    choice = dcgm.choose(node, pod="qwen-72b-tp4-0", namespace="llm")

    assert ([part.index for part in choice.gpus], choice.certain) == ([0, 1, 2, 3], True)


def test_a_gpu_that_is_not_there_is_named(node: dcgm.Parsed) -> None:
    choice = dcgm.choose(node, [GpuIdentity(uuid="GPU-none"), GpuIdentity(index=1)])

    assert [part.index for part in choice.gpus] == [1]
    assert choice.problems == ("GPU GPU-none is not on the page",)
    assert not choice.certain


def test_a_pod_without_a_gpu_is_named(node: dcgm.Parsed) -> None:
    choice = dcgm.choose(node, pod="elsewhere")

    assert (choice.gpus, choice.problems) == ((), ("no GPU of pod elsewhere on the page",))


def test_an_index_on_two_machines_is_nobodys() -> None:
    parsed = dcgm.parse(
        row("DCGM_FI_DEV_GPU_TEMP", 50, Hostname="a")
        + row("DCGM_FI_DEV_GPU_TEMP", 51, Hostname="b", UUID="GPU-b")
    )

    choice = dcgm.choose(parsed, [GpuIdentity(index=0)])

    assert (choice.gpus, choice.certain) == ((), False)
    assert "more than one machine" in choice.problems[0]


def test_with_nothing_to_go_by_all_are_taken_and_that_is_said(node: dcgm.Parsed) -> None:
    choice = dcgm.choose(node)

    assert (len(choice.gpus), choice.certain) == (8, False)
    assert "Name them by UUID or index" in choice.problems[0]


def test_the_only_gpu_is_ours() -> None:
    choice = dcgm.choose(dcgm.parse(row("DCGM_FI_DEV_GPU_TEMP", 50)))

    assert (len(choice.gpus), choice.certain, choice.problems) == (1, True, ())


def test_a_parent_with_several_instances_is_not_certain(stored: Stored) -> None:
    parsed = dcgm.parse(stored("dcgm-exporter/4.8.2-mig-a100"))

    choice = dcgm.choose(parsed, [GpuIdentity(uuid="GPU-bb00c0de-5eed-4a7e-b0a7-000000000000")])

    assert (len(choice.gpus), choice.certain) == (3, False)
    assert "3 MIG instances" in choice.problems[0]


@given(st.text(), st.integers(0, 300))
def test_a_damaged_page_gives_parts_or_a_refusal(text: str, cut: int) -> None:
    page = row("DCGM_FI_DEV_GPU_TEMP", 50) + row("DCGM_FI_PROF_DRAM_ACTIVE", 0.5)
    try:
        parsed = dcgm.parse(page[:cut] + text + page[cut:])
    except WrongPageError:
        return
    for part in parsed.gpus:
        assert all(not re.search("nan|inf", str(value)) for value in part.gauges.values())
