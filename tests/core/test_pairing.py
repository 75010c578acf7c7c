from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundby.core.pairing import Pairing, pair
from boundby.core.parts import GpuPart
from boundby.core.setup import GpuIdentity


def gpu(index: int, *, name: str = "NVIDIA H100", pod: str | None = None) -> GpuPart:
    uuid = f"GPU-{index}aaaa"
    return GpuPart(gpu=uuid, index=index, uuid=uuid, name=name, pod=pod)


FOUR = tuple(gpu(index) for index in range(4))
PIDS = {"GPU-0aaaa": (1,), "GPU-1aaaa": (50,), "GPU-2aaaa": (50, 51), "GPU-3aaaa": ()}


def indices(pairing: Pairing) -> list[int | None]:
    return [part.index for part in pairing.gpus]


def test_settings_win_over_everything() -> None:
    pairing = pair(
        FOUR, settings=[GpuIdentity(index=3)], pids_by_gpu=PIDS, engine_pids=[50], tensor=2
    )

    assert (indices(pairing), pairing.how) == ([3], "settings")


def test_a_uuid_is_one_in_either_case() -> None:
    assert indices(pair(FOUR, settings=[GpuIdentity(uuid="gpu-2AAAA")])) == [2]


def test_a_gpu_that_is_set_and_not_there_gives_none() -> None:
    assert pair(FOUR, settings=[GpuIdentity(index=7)]) == Pairing(
        ambiguous_reason="GPU of index 7, which gpu.devices names, is not here"
    )


def test_an_index_that_two_machines_have_gives_none() -> None:
    other = GpuPart(gpu="GPU-zz", index=0, uuid="GPU-zz")

    pairing = pair((*FOUR, other), settings=[GpuIdentity(index=0)])

    assert pairing.ambiguous_reason == "there is more than one GPU of index 0; name it by UUID"


def test_the_driver_s_processes_tell() -> None:
    pairing = pair(FOUR, pids_by_gpu=PIDS, engine_pids=[50, 60], tensor=2)

    assert (indices(pairing), pairing.how) == ([1, 2], "pid")


def test_replicas_hold_a_multiple() -> None:
    assert indices(pair(FOUR, pids_by_gpu=PIDS, engine_pids=[50], tensor=1)) == [1, 2]


def test_processes_on_too_few_gpus_give_none() -> None:
    pairing = pair(FOUR, pids_by_gpu=PIDS, engine_pids=[1], tensor=2)

    assert pairing.ambiguous_reason == (
        "the driver's list of processes says GPU 0, but the engine is spread over 2; name them "
        "with gpu.devices, by UUID or index"
    )


def test_processes_none_of_which_is_ours_forbid_taking_the_only_gpu() -> None:
    pairing = pair(FOUR[:1], pids_by_gpu=PIDS, engine_pids=[7])

    assert (pairing.gpus, pairing.ambiguous_reason[:23]) == ((), "processes run on the GP")


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "GPU-1aaaa"}, [1], id="a UUID let in"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "GPU-2"}, [2], id="a UUID cut short"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "3,1"}, [3, 1], id="numbers among equal GPUs"),
        pytest.param(
            {"NVIDIA_VISIBLE_DEVICES": "2,3", "CUDA_VISIBLE_DEVICES": "1"},
            [3],
            id="CUDA counts within what was let in",
        ),
        pytest.param(
            {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0"}, [0], id="all let in"
        ),
    ],
)
def test_visible_devices_tell(visible: Mapping[str, str], expected: list[int]) -> None:
    pairing = pair(FOUR, visible=visible)

    assert (indices(pairing), pairing.how) == (expected, "visible_devices")


@pytest.mark.parametrize(
    "visible",
    [
        pytest.param({"CUDA_VISIBLE_DEVICES": "GPU-"}, id="a UUID cut too short"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "-1"}, id="none at all"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "GPU-9"}, id="one of another machine"),
        pytest.param(
            {"NVIDIA_VISIBLE_DEVICES": "void", "CUDA_VISIBLE_DEVICES": "0"},
            id="numbers where the runtime does not say what it let in",
        ),
    ],
)
def test_visible_devices_that_tell_nothing_give_none(visible: Mapping[str, str]) -> None:
    assert pair(FOUR, visible=visible).gpus == ()


def test_numbers_among_unlike_gpus_give_none() -> None:
    mixed = (gpu(0), gpu(1, name="NVIDIA A100"))

    assert pair(mixed, visible={"CUDA_VISIBLE_DEVICES": "0"}).gpus == ()


def test_more_visible_gpus_than_used_give_none() -> None:
    assert pair(FOUR, visible={"CUDA_VISIBLE_DEVICES": "0,1"}, tensor=1).gpus == ()


def test_an_engine_may_leave_visible_gpus_unused() -> None:
    pairing = pair(
        FOUR,
        pids_by_gpu=PIDS,
        engine_pids=[1],
        visible={"CUDA_VISIBLE_DEVICES": "0,1"},
        tensor=1,
    )

    assert indices(pairing) == [0]


def test_processes_outside_the_visible_devices_give_none() -> None:
    pairing = pair(FOUR, pids_by_gpu=PIDS, engine_pids=[1], visible={"CUDA_VISIBLE_DEVICES": "3"})

    assert pairing.ambiguous_reason == (
        "the driver's list of processes says GPU 0, the engine's list of visible devices says "
        "GPU 3; name them with gpu.devices, by UUID or index"
    )


def test_the_pod_on_the_rows_tells() -> None:
    pairing = pair((gpu(0, pod="a"), gpu(1, pod="b")), pod="b")

    assert (indices(pairing), pairing.how) == ([1], "pod")


def test_another_pod_s_only_gpu_is_not_taken() -> None:
    assert pair((gpu(0, pod="a"),), pod="b").ambiguous_reason.startswith("no GPU here is pod b's")


def test_the_only_gpu_is_taken() -> None:
    assert pair(FOUR[:1]).how == "only_one"


def test_as_many_as_the_engine_needs_are_all_taken() -> None:
    assert pair(FOUR, tensor=4).how == "all_needed"


def test_more_than_one_with_nothing_to_tell_gives_none() -> None:
    assert pair(FOUR, tensor=2).ambiguous_reason == (
        "4 GPUs here, of which the engine uses 2, and nothing tells which are the engine's; name "
        "them with gpu.devices, by UUID or index"
    )


def test_no_gpu_at_all_is_said() -> None:
    assert pair(()) == Pairing(ambiguous_reason="no GPU is visible")


@given(
    st.lists(st.integers(0, 3), unique=True),
    st.dictionaries(st.sampled_from([part.gpu for part in FOUR]), st.sets(st.integers(1, 4))),
    st.sets(st.integers(1, 4)),
    st.dictionaries(
        st.sampled_from(["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"]),
        st.sampled_from(["", "0", "1,2", "all", "void", "GPU-1", "-1", "x"]),
    ),
    st.sampled_from([None, 1, 2, 4]),
)
def test_there_are_gpus_or_a_reason_and_never_both(
    shown: list[int],
    pids: dict[str, set[int]],
    engine: set[int],
    visible: dict[str, str],
    tensor: int | None,
) -> None:
    pairing = pair(
        [FOUR[index] for index in shown],
        pids_by_gpu=pids,
        engine_pids=engine,
        visible=visible,
        tensor=tensor,
    )

    assert bool(pairing.gpus) != bool(pairing.ambiguous_reason)
