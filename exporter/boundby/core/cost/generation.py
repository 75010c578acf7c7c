"""The generation of a GPU: what its measured constants are kept by."""

from typing import Literal

from boundby.core.hardware import Gpu

Generation = Literal["ampere", "ada", "hopper", "blackwell", "rtx_blackwell", "cdna"]


def generation(gpu: Gpu) -> Generation:
    """Return a GPU's generation; older NVIDIA parts count as Ampere, the nearest measured."""
    match gpu.architecture:
        case "Volta" | "Turing" | "Ampere":
            return "ampere"
        case "Ada":
            return "ada"
        case "Hopper":
            return "hopper"
        case "Blackwell" | "Blackwell Ultra":
            return "blackwell" if gpu.nvlink_bytes_per_second else "rtx_blackwell"
        case _:
            return "cdna"
