"""Single kernels: near what was measured, and slower with more to do."""

import pytest

from boundby.core.cost.kernels import (
    Attention,
    ExpertLayer,
    NotMeasuredError,
    Product,
    allreduce_seconds,
    decode_attention_seconds,
    experts_seconds,
    gemm_seconds,
    prefill_attention_seconds,
)
from boundby.core.hardware import Gpu, find


def gpu(name: str) -> Gpu:
    found = find(name)
    assert found is not None
    return found


H100, A100, L40S, B200 = gpu("h100-sxm"), gpu("a100-sxm4-80"), gpu("l40s"), gpu("b200")
HEADS = {"query_heads": 32, "kv_heads": 8, "width": 128}

MEASURED = [
    (
        "a bf16 product of 1 row on A100",
        gemm_seconds(A100, Product(rows=1, columns=1024, inner=4096), "bf16"),
        9.84e-6,
    ),
    ("a small all-reduce over four H100", allreduce_seconds(H100, 8192, 4), 4.9e-6),
]


@pytest.mark.parametrize(
    ("seconds", "measured"), [m[1:] for m in MEASURED], ids=[m[0] for m in MEASURED]
)
def test_a_kernel_takes_about_as_long_as_measured(seconds: float, measured: float) -> None:
    assert seconds == pytest.approx(measured, rel=0.25)


def test_a_large_product_runs_near_its_attained_share_of_the_peak() -> None:
    product = Product(rows=8192, columns=8192, inner=8192)

    rate = 2 * 8192**3 / gemm_seconds(H100, product, "bf16")

    assert rate == pytest.approx(0.8 * 989.5e12, rel=0.05)


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_more_context_takes_longer(dtype: str) -> None:
    short, long = (Attention(sequences=16, context=n, **HEADS) for n in (1024, 16384))

    assert decode_attention_seconds(H100, short, dtype) < decode_attention_seconds(
        H100, long, dtype
    )
    assert prefill_attention_seconds(H100, short, dtype) < prefill_attention_seconds(
        H100, long, dtype
    )


def test_a_cache_that_fits_the_last_level_is_read_faster() -> None:
    small = Attention(sequences=8, context=1024, **HEADS)
    large = Attention(sequences=64, context=1024, **HEADS)

    each = [decode_attention_seconds(L40S, a, "bf16") / a.sequences for a in (small, large)]

    assert each[0] < each[1]


def test_experts_spread_over_gpus_take_less_each() -> None:
    whole = ExpertLayer(tokens=512, hidden=7168, inner=2048, count=256, active=8)
    spread = ExpertLayer(tokens=512, hidden=7168, inner=2048, count=256, active=8, holders=8)

    assert experts_seconds(B200, spread, "nvfp4") < experts_seconds(B200, whole, "nvfp4") / 3


def test_a_library_launch_is_slower_than_one_in_a_graph() -> None:
    assert allreduce_seconds(H100, 8192, 8, "nccl") > 2 * allreduce_seconds(H100, 8192, 8)


@pytest.mark.parametrize(
    "name", ["AMD Instinct MI300X", "A100"], ids=["no such GPU", "no such dtype"]
)
def test_what_nobody_measured_is_not_guessed(name: str) -> None:
    with pytest.raises(NotMeasuredError):
        gemm_seconds(gpu(name), Product(rows=1, columns=1, inner=1), "nvfp4")


def test_all_reduces_over_pcie_are_not_guessed() -> None:
    with pytest.raises(NotMeasuredError):
        allreduce_seconds(L40S, 8192, 4)


def test_fewer_experts_met_take_less() -> None:
    some, all_of_them = (
        ExpertLayer(tokens=64, hidden=4096, inner=1536, count=128, active=8, read=read)
        for read in (40.0, 128.0)
    )

    assert experts_seconds(H100, some, "bf16") < experts_seconds(H100, all_of_them, "bf16")
