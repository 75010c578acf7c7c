import pytest

from boundby.core.facts import GPU_FACTS
from boundby.core.setup import GpuIdentity
from boundby.sources import amd
from boundby.sources.gpu_page import choose
from boundby.sources.looks import WrongPageError

# No real page was at hand: these rows are made up from the documented names, labels and units.


def row(name: str, value: float, prefix: str = "", **labels: str) -> str:
    labels = {
        "gpu_id": "0",
        "serial_number": "S0",
        "card_series": "AMD Instinct MI300X",
        "gpu_partition_id": "0",
        **labels,
    }
    text = ",".join(f'{label}="{word}"' for label, word in labels.items())
    return f"{prefix}{name}{{{text}}} {value}\n"


BUSY = row("gpu_gfx_activity", 88)


def test_a_made_up_page_is_read() -> None:
    text = (
        BUSY
        + row("gpu_umc_activity", 63)
        + row("gpu_package_power", 700)
        + row("gpu_energy_consumed", 2_000_000)
        + row("gpu_total_vram", 1024)
        + row("gpu_clock", 2100, clock_type="system", clock_index="0")
        + row("gpu_clock", 2000, clock_type="system", clock_index="1")
        + row("gpu_clock", 1300, clock_type="memory", clock_index="0")
        + row("gpu_prof_tensor_active_percent", 40)
        + row("gpu_violation_ppt_residency_percentage", 25)
    )

    parsed = amd.parse(text)

    (part,) = parsed.gpus
    assert (part.gpu, part.index, part.name) == ("S0", 0, "AMD Instinct MI300X")
    assert part.gauges == pytest.approx(
        {
            "gpu_busy_ratio": 0.88,
            "memory_copy_busy_ratio": 0.63,
            "tensor_active_ratio": 0.4,
            "power_watts": 700.0,
            "sm_clock_hertz": 2.05e9,
            "memory_clock_hertz": 1.3e9,
            "memory_total_bytes": 1024.0**3,
            "power_throttled_ratio": 0.25,
        }
    )
    assert part.counters == {"energy_joules_total": 2.0}
    assert parsed.profiling


def test_every_row_gives_a_fact_there_is() -> None:
    assert {entry.fact for entry in amd.ROWS} <= set(GPU_FACTS)


def test_links_and_directions_are_added_up() -> None:
    text = BUSY + "".join(
        row(name, 10, xgmi_neighbor=str(link))
        for name in ("gpu_xgmi_link_rx", "gpu_xgmi_link_tx")
        for link in range(7)
    )

    (part,) = amd.parse(text).gpus

    assert part.counters == {"nvlink_bytes_total": 140 * 1024.0}


def test_a_prefix_before_every_name_is_found_out() -> None:
    (part,) = amd.parse(row("gpu_gfx_activity", 50, prefix="amd_")).gpus

    assert part.gauges == {"gpu_busy_ratio": 0.5}


def test_partitions_are_apart_and_have_no_board_power_of_their_own() -> None:
    text = BUSY + "".join(
        row("gpu_package_power", 0 if n else 700, gpu_partition_id=str(n))
        + row("gpu_used_vram", 100, gpu_partition_id=str(n))
        for n in range(2)
    )

    first, second = amd.parse(text).gpus

    assert (first.gpu, second.gpu, second.mig_instance) == ("S0", "S0/1", "1")
    assert first.gauges["power_watts"] == 700.0
    assert "power_watts" not in second.gauges


def test_virtual_functions_that_share_a_uuid_of_zeros_are_told_apart_by_index() -> None:
    # ROCm/device-metrics-exporter#233
    text = "".join(
        row(
            "gpu_gfx_activity",
            busy,
            gpu_id=str(index),
            gpu_uuid="00000000-0000-0000-0000-000000000000",
            serial_number="",
            gpu_partition_id="4294967295",
        )
        for index, busy in enumerate((90, 10))
    )

    gpus = amd.parse(text).gpus

    assert [(part.gpu, part.mig_instance, part.gauges["gpu_busy_ratio"]) for part in gpus] == [
        ("0", None, 0.9),
        ("1", None, 0.1),
    ]


def test_our_gpus_are_chosen_by_index() -> None:
    parsed = amd.parse(BUSY + row("gpu_gfx_activity", 5, gpu_id="1", serial_number="S1"))

    choice = choose(parsed, [GpuIdentity(index=1)])

    assert [part.gpu for part in choice.gpus] == ["S1"]


def test_another_page_is_refused_by_its_name() -> None:
    with pytest.raises(WrongPageError, match="it looks like dcgm-exporter"):
        amd.parse('DCGM_FI_DEV_GPU_TEMP{gpu="0"} 50\n')
