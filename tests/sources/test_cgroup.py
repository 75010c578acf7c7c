from pathlib import Path

import pytest

from boundby.sources import cgroup
from boundby.sources.cgroup import Limits
from boundby.sources.tree import Tree
from process_tree import write
from recorded_tree import plant, recorded

PSI = "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\n"


def group(root: Path, path: str, quota: str = "max 100000", stat: str = "") -> None:
    folder = root / "sys/fs/cgroup" / path.strip("/")
    write(folder / "cgroup.procs", "")
    write(folder / "cpu.max", f"{quota}\n")
    write(folder / "cpu.stat", f"usage_usec 5\n{stat}")
    write(folder / "cpu.pressure", PSI)


def joined(root: Path, lines: str) -> None:
    write(root / "proc/7/cgroup", lines)


STAT = "nr_periods 100\nnr_throttled 40\nthrottled_usec 2500000\n"


def test_a_real_quota_of_v1_is_read(tmp_path: Path) -> None:
    plant(recorded("proc-throttled/after"), tmp_path)

    limits = cgroup.limits(Tree(tmp_path), 11571)

    assert limits == Limits(
        version=1,
        quota_cores=0.15,
        throttled_seconds=2.767514446,
        throttled_periods=40,
        periods=41,
    )


def test_v1_without_a_quota_says_so(tmp_path: Path) -> None:
    plant(recorded("proc-vllm-0.32.0/before"), tmp_path)

    assert cgroup.limits(Tree(tmp_path), 3941) == Limits(version=1, quota_cores=None)


def test_a_quota_of_v2_is_read_with_its_throttling(tmp_path: Path) -> None:
    joined(tmp_path, "0::/pod/engine\n")
    group(tmp_path, "/pod/engine", "250000 100000", STAT)

    limits = cgroup.limits(Tree(tmp_path), 7)

    assert limits == Limits(
        version=2,
        quota_cores=2.5,
        throttled_seconds=2.5,
        throttled_periods=40,
        periods=100,
        pressure={"cpu": PSI},
    )


def test_the_tightest_level_counts(tmp_path: Path) -> None:
    joined(tmp_path, "0::/pod/engine\n")
    group(tmp_path, "/pod", "100000 100000", STAT)
    group(tmp_path, "/pod/engine", "400000 100000")

    limits = cgroup.limits(Tree(tmp_path), 7)

    assert (limits.quota_cores, limits.throttled_periods) == (1.0, 40)


def test_our_own_namespace_has_its_limit_at_the_top(tmp_path: Path) -> None:
    joined(tmp_path, "0::/\n")
    group(tmp_path, "/", "150000 100000", STAT)

    assert cgroup.limits(Tree(tmp_path), 7).quota_cores == 1.5


@pytest.mark.parametrize(
    "path",
    ["/../cri-containerd-engine.scope", "/kubepods/pod1/engine"],
    ids=["of a cgroup namespace beside ours", "in the machine's words"],
)
def test_another_container_s_limit_is_read_through_its_own_root(path: str, tmp_path: Path) -> None:
    joined(tmp_path, f"0::{path}\n")
    group(tmp_path, "/", "100000 100000", STAT)  # ours, which must not be taken for theirs
    group(tmp_path / "proc/7/root", "/", "300000 100000", STAT)

    assert cgroup.limits(Tree(tmp_path), 7).quota_cores == 3.0


def test_another_container_out_of_sight_is_an_error_and_not_our_own_limit(tmp_path: Path) -> None:
    joined(tmp_path, "0::/../engine.scope\n")
    group(tmp_path, "/", "100000 100000", STAT)

    with pytest.raises(FileNotFoundError):
        cgroup.limits(Tree(tmp_path), 7)


def test_a_cgroup_that_ends_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        cgroup.limits(Tree(tmp_path), 7)
