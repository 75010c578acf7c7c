"""Names that drivers and people give, and the parts they must find."""

import pytest

from boundby.core.hardware import GPUS, Gpu, find

GIB = 2.0**30

NAMES = [
    ("NVIDIA H100 PCIe", None, "h100-pcie"),
    ("NVIDIA H100 80GB HBM3", None, "h100-sxm"),
    ("NVIDIA H100 NVL", None, "h100-nvl"),
    ("NVIDIA A100-SXM4-40GB", None, "a100-sxm4-40"),
    ("NVIDIA A100-SXM4-80GB", None, "a100-sxm4-80"),
    ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", None, "a100-sxm4-80"),
    ("NVIDIA A100 80GB PCIe", None, "a100-pcie-80"),
    ("NVIDIA A100-PCIE-40GB", None, "a100-pcie-40"),
    ("NVIDIA A10", None, "a10"),
    ("NVIDIA A10G", None, "a10g"),
    ("NVIDIA L4", None, "l4"),
    ("NVIDIA L40", None, "l40"),
    ("NVIDIA L40S", None, "l40s"),
    ("NVIDIA H20", None, "h20"),
    ("NVIDIA H20-3e", None, "h20-3e"),
    ("NVIDIA H200", None, "h200-sxm"),
    ("NVIDIA H200 NVL", None, "h200-nvl"),
    ("NVIDIA B200", None, "b200"),
    ("NVIDIA GB200", None, "gb200"),
    ("NVIDIA GH200 480GB", None, "gh200-96"),
    ("NVIDIA GeForce RTX 4090", None, "rtx4090"),
    ("NVIDIA RTX 6000 Ada Generation", None, "rtx6000ada"),
    ("Tesla V100-SXM2-32GB", None, "v100-sxm2-32"),
    ("Tesla T4", None, "t4"),
    ("AMD Instinct MI300X OAM", None, "mi300x"),
    ("A100", 80 * GIB, "a100-sxm4-80"),
    ("A100", 40 * GIB, "a100-sxm4-40"),
    ("H100", None, "h100-sxm"),
    ("h100_pcie", None, "h100-pcie"),
]


@pytest.mark.parametrize(("name", "memory", "key"), NAMES, ids=[f"{n} {m}" for n, m, _ in NAMES])
def test_a_name_finds_its_part(name: str, memory: float | None, key: str) -> None:
    gpu = find(name, memory)

    assert gpu is not None
    assert gpu.key == key


@pytest.mark.parametrize(
    "name",
    ["", "NVIDIA", "NVIDIA GeForce GTX 1080", "NVIDIA GeForce RTX 4090 Laptop GPU", "H1000"],
)
def test_a_part_that_is_not_listed_is_none(name: str) -> None:
    assert find(name) is None


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.key)
def test_each_listed_name_finds_its_own_row(gpu: Gpu) -> None:
    found = [find(name, gpu.memory_bytes) for name in (*gpu.names, gpu.key)]

    assert {row.key for row in found if row} == {gpu.key}


def test_the_ridge_point_of_an_h100_is_near_295() -> None:
    gpu = find("NVIDIA H100 80GB HBM3")

    assert gpu is not None
    assert gpu.ridge_point("bf16") == pytest.approx(295, rel=0.01)


def test_a_dtype_without_units_has_no_peak_but_a_wider_one_serves() -> None:
    gpu = find("NVIDIA A100-SXM4-80GB")

    assert gpu is not None
    assert gpu.peak_flops("fp8") is None
    assert gpu.best_peak_flops("fp8") == gpu.peak_flops("bfloat16")
