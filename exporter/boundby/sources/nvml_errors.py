"""NVML's return codes: what each means for the call, for its GPU and for the driver.

The codes are those of nvml.h. Texts are our own and no library call: the binding's `str(error)`
asks the driver for codes it does not know, and that can hang.
"""

from boundby.sources.base import SourceError

NAME = "nvml"

UNINITIALIZED = 1
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
VERSION_MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25
GPU_NOT_FOUND = 28
UNKNOWN = 999

FINAL = frozenset(
    {2, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, FUNCTION_NOT_FOUND, 22, ARGUMENT_VERSION_MISMATCH}
    | {26}
)
"""A call that said one of these says it again: it is not made again on that GPU.

2 is an invalid argument (an older driver's word for a field it does not know), 22 ECC that a
virtual GPU lacks, 26 a call that newer drivers dropped.
"""

GPU_GONE = frozenset({GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND})
"""The GPU answers no more until it is reset; the others do."""

DRIVER_GONE = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, VERSION_MISMATCH})
"""Nothing answers until NVML is initialised again."""

MEANS = {
    UNINITIALIZED: "NVML is not initialised",
    2: "not known to this driver",
    NOT_SUPPORTED: "not supported by this GPU or driver",
    NO_PERMISSION: "not permitted to this user",
    NOT_FOUND: "not there",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    TIMEOUT: "timed out",
    LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 is not here",
    FUNCTION_NOT_FOUND: "not in this driver's library, which is older",
    14: "the GPU's infoROM is corrupted",
    GPU_IS_LOST: "the GPU is lost: it fell off the bus",
    RESET_REQUIRED: "the GPU needs a reset",
    17: "blocked by the operating system",
    VERSION_MISMATCH: "the driver was replaced: library and kernel module differ in version",
    20: "out of memory",
    21: "no data yet",
    22: "not supported by this virtual GPU",
    ARGUMENT_VERSION_MISMATCH: "another version of the call is wanted by this driver",
    26: "dropped by this driver",
    27: "not ready",
    GPU_NOT_FOUND: "the GPU is gone",
    UNKNOWN: "unknown error",
}

HINTS = {
    LIBRARY_NOT_FOUND: (
        "In a container ask for the driver: NVIDIA_DRIVER_CAPABILITIES=utility and "
        "NVIDIA_VISIBLE_DEVICES; or set gpu.url to a dcgm-exporter."
    ),
    DRIVER_NOT_LOADED: "Is this a machine with an NVIDIA GPU, and does nvidia-smi work on it?",
    VERSION_MISMATCH: "Restart the container, or reboot, so that both are of one version.",
    NO_PERMISSION: "Give this user read access to /dev/nvidiactl and /dev/nvidia*.",
}


def means(code: int) -> str:
    """Say what a code means."""
    return MEANS.get(code, f"NVML error {code}")


def down(code: int, doing: str) -> SourceError:
    """Say that the whole source is down: what was asked, what it means, what to try."""
    return SourceError(
        NAME,
        f"{means(code)} ({doing})",
        hint=HINTS.get(code, "Does nvidia-smi work on this machine?"),
    )
