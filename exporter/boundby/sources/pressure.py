"""Pressure stall information: the share of time in which some task waited for a resource."""

import errno
import re

from boundby.sources.tree import Tree

_SOME = re.compile(r"^some avg10=(\d+(?:\.\d+)?)", re.MULTILINE)

SINCE = (4, 20)
"""The kernel that brought PSI."""


def some_ratio(text: str) -> float:
    """Mean over 10 s of "some", 0 to 1; `ValueError` for a text that has none."""
    found = _SOME.search(text)
    if found is None:
        msg = "no line 'some avg10=...'"
        raise ValueError(msg)
    return float(found[1]) / 100


def machine_ratio(tree: Tree, resource: str) -> float:
    """Read the machine's own pressure of "cpu" or "memory"; `OSError`, `ValueError`."""
    return some_ratio(tree.text(f"/proc/pressure/{resource}"))


def why_missing(tree: Tree, error: Exception) -> str:
    """Say in one sentence why there is no PSI, and what would bring it."""
    number = error.errno if isinstance(error, OSError) else None
    kernel = _kernel(tree)
    if number == errno.ENOENT:
        version = _version(kernel)
        if version is not None and version < SINCE:
            return f"Linux {kernel} has no pressure stall information; 4.20 and later have"
        return (
            f"this kernel ({kernel or 'version unknown'}) was built without CONFIG_PSI=y, "
            "or /proc/pressure is masked in this container"
        )
    if number in (errno.EOPNOTSUPP, errno.ENOTSUP):
        return "pressure stall information is switched off in this kernel; boot it with psi=1"
    if number in (errno.EACCES, errno.EPERM):
        return "/proc/pressure may not be read here; let this user read it"
    return f"/proc/pressure cannot be read ({error})"


def _kernel(tree: Tree) -> str:
    try:
        return tree.text("/proc/sys/kernel/osrelease").strip()
    except OSError:
        return ""


def _version(kernel: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", kernel)
    return (int(found[1]), int(found[2])) if found else None
