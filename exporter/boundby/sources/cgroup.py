"""CPU limits of a process's cgroup, v2, v1 or both at once: quota, throttling, pressure file.

A limit may stand on any level above the process; the tightest one visible counts, and throttling
is read where that limit is. In a container's own cgroup namespace the container's cgroup is the
root of the mount; another container's is seen through /proc/PID/root, or not at all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from boundby.sources.tree import Tree

MOUNT = "/sys/fs/cgroup"

MOST_LEVELS = 16
"""Levels above a process that are looked at."""

MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a cgroup said; `quota_cores` is None where no level has a quota.

    `pressure` holds the text of the cgroup's own pressure files, "cpu" and "memory", if any.
    """

    version: int
    quota_cores: float | None
    throttled_seconds: float | None = None
    throttled_periods: float | None = None
    periods: float | None = None
    pressure: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Place:
    """A cgroup's folder as seen below `base`, which is a root of a file system."""

    base: str
    mount: str
    path: str


def limits(tree: Tree, pid: int | str) -> Limits:
    """Read the CPU limits of a process; `OSError` says why they cannot be read."""
    lines = tree.text(f"/proc/{pid}/cgroup").splitlines()
    problem: OSError = FileNotFoundError(2, "its cgroup is not below", MOUNT)
    for place, version in _places(tree, pid, lines):
        try:
            return _read(tree, place, version)
        except FileNotFoundError:
            continue
        except OSError as error:
            problem = error
    raise problem


def _places(tree: Tree, pid: int | str, lines: list[str]) -> Iterator[tuple[_Place, int]]:
    """Where the CPU controller may show this process, likeliest first."""
    groups = _groups(lines)
    mounts = [
        (f"{MOUNT}/{name}", path, 1)
        for controllers, path in groups.items()
        if "cpu" in controllers.split(",")
        for name in dict.fromkeys((controllers, "cpu,cpuacct", "cpu"))
    ]
    if (path := groups.get("")) is not None:
        mounts.append((MOUNT, path, 2))
    theirs = f"/proc/{pid}/root"
    for mount, path, version in mounts:
        # A path that leads up leaves our namespace; one that is not there is the machine's word
        # for a cgroup that a container shows as the top of its own mount.
        for base, shown in (("/", path), (theirs, path), (theirs, "/")):
            if ".." not in PurePosixPath(shown).parts and tree.there(base, f"{mount}/{shown}"):
                yield _Place(base, mount, shown), version


def _groups(lines: list[str]) -> dict[str, str]:
    """Path by controllers; "" stands for the one hierarchy of v2."""
    found = {}
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        found[controllers] = path
    return found


def _read(tree: Tree, place: _Place, version: int) -> Limits:
    tightest: tuple[float, str] | None = None
    at = PurePosixPath(place.path)
    levels = (at, *at.parents)[:MOST_LEVELS]
    found = False
    for level in levels:
        try:
            quota = _quota(tree, place, str(level), version)
        except FileNotFoundError:
            continue  # the root of v2 has no such file, nor has a cgroup without the controller
        found = True
        if quota is not None and (tightest is None or quota < tightest[0]):
            tightest = quota, str(level)
    pressure = _pressure(tree, place) if version == 2 else {}  # noqa: PLR2004  v2
    if not found and not pressure:
        raise FileNotFoundError(2, "no CPU controller in", place.mount)
    if tightest is None:
        return Limits(version=version, quota_cores=None, pressure=pressure)
    counts = _counts(_text(tree, place, tightest[1], "cpu.stat"))
    nanoseconds = counts.get("throttled_time")
    microseconds = counts.get("throttled_usec")
    return Limits(
        version=version,
        quota_cores=tightest[0],
        throttled_seconds=microseconds / 1e6
        if microseconds is not None
        else None
        if nanoseconds is None
        else nanoseconds / 1e9,
        throttled_periods=counts.get("nr_throttled"),
        periods=counts.get("nr_periods"),
        pressure=pressure,
    )


def _quota(tree: Tree, place: _Place, level: str, version: int) -> float | None:
    if version == 1:
        quota = _text(tree, place, level, "cpu.cfs_quota_us").strip()
        period = _text(tree, place, level, "cpu.cfs_period_us").strip()
    else:
        quota, _, period = _text(tree, place, level, "cpu.max").strip().partition(" ")
    try:
        return int(quota) / int(period) if quota.isdecimal() and int(quota) > 0 else None
    except (ValueError, ZeroDivisionError):
        return None


def _pressure(tree: Tree, place: _Place) -> dict[str, str]:
    found = {}
    for resource in ("cpu", "memory"):
        try:
            found[resource] = _text(tree, place, place.path, f"{resource}.pressure")
        except OSError:
            continue  # the machine's own pressure files say why
    return found


def _counts(text: str) -> dict[str, float]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}  # noqa: PLR2004


def _text(tree: Tree, place: _Place, level: str, file: str) -> str:
    path = f"{place.mount}/{level.strip('/')}/{file}"
    return tree.inside(place.base, path, MOST_BYTES).decode("utf-8", errors="replace")
