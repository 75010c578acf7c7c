"""The simulated GPUs: what the hardware can do, and how much of it software gets.

Peaks are the vendor's data-sheet values (dense, without sparsity). The `Machine` adds what no
data sheet says: the shares of the peaks that kernels reach, the fixed time of one kernel and of
one collective, host time per step, and what the board does under a power or thermal limit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

Link = Literal["nvlink", "pcie"]

MIB = 2**20
FIFTH = 1.2
"""By how much a resource is improved in a counterfactual run: a fifth more of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One kind of GPU, from its data sheet; `name` is what NVML calls it."""

    name: str
    memory_bytes: float
    bandwidth_bytes_per_second: float
    bf16_flops_per_second: float
    fp8_flops_per_second: float | None
    clock_hertz: float
    power_watts: float
    link: Link
    link_bytes_per_second: float
    """One way, per GPU."""


def _gpu(
    name: str,
    mib: int,
    gigabytes_per_second: float,
    bf16: float,
    fp8: float | None,
    megahertz: float,
    watts: float,
    link: tuple[Link, float],
) -> Gpu:
    return Gpu(
        name=name,
        memory_bytes=mib * MIB,
        bandwidth_bytes_per_second=gigabytes_per_second * 1e9,
        bf16_flops_per_second=bf16 * 1e12,
        fp8_flops_per_second=None if fp8 is None else fp8 * 1e12,
        clock_hertz=megahertz * 1e6,
        power_watts=watts,
        link=link[0],
        link_bytes_per_second=link[1] * 1e9,
    )


GPUS: Mapping[str, Gpu] = MappingProxyType(
    {
        "A10G": _gpu("NVIDIA A10G", 23028, 600, 70, None, 1710, 300, ("pcie", 32)),
        "A100": _gpu("NVIDIA A100-SXM4-80GB", 81920, 2039, 312, None, 1410, 400, ("nvlink", 300)),
        "A100-PCIE": _gpu(
            "NVIDIA A100 80GB PCIe", 81920, 1935, 312, None, 1410, 300, ("pcie", 32)
        ),
        "L4": _gpu("NVIDIA L4", 23034, 300, 121, 242, 2040, 72, ("pcie", 32)),
        "L40S": _gpu("NVIDIA L40S", 46068, 864, 362, 733, 2520, 350, ("pcie", 32)),
        "H100": _gpu("NVIDIA H100 80GB HBM3", 81559, 3352, 989, 1979, 1980, 700, ("nvlink", 450)),
        "H100-PCIE": _gpu("NVIDIA H100 PCIe", 81559, 2039, 756, 1513, 1755, 350, ("pcie", 64)),
        "H200": _gpu("NVIDIA H200", 143771, 4800, 989, 1979, 1980, 700, ("nvlink", 450)),
        "H20": _gpu("NVIDIA H20", 97871, 4000, 148, 296, 1980, 500, ("nvlink", 450)),
        "B200": _gpu("NVIDIA B200", 183359, 7672, 2250, 4500, 1965, 1000, ("nvlink", 900)),
        "RTX4090": _gpu("NVIDIA GeForce RTX 4090", 24564, 1008, 165, 330, 2520, 450, ("pcie", 32)),
    }
)
"""By the short names that scenarios use. Vendor data sheets; memory as NVML reports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """How the board turns work into watts, and what holds its clock down.

    Power is idle, plus a share for busy SMs, for tensor work and for DRAM traffic. Tensor and SM
    power fall with clock x voltage squared, which is why a power cap costs less speed than power.
    """

    power_limit_watts: float
    idle_share: float = 0.13
    busy_share: float = 0.10
    tensor_share: float = 1.0
    dram_share: float = 0.45
    lowest_clock_ratio: float = 0.35
    thermal_clock_ratio: float = 1.0
    """The clock that the temperature allows, over the highest; 1 while it is cool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the CPU does between and during steps.

    `step_seconds` and `sequence_seconds` are scheduling, input preparation and output handling.
    `launch_seconds` is one kernel launch: it matters where no CUDA graph is replayed.
    With `overlaps`, the host prepares the next step while the GPU works (asynchronous
    scheduling), so only what exceeds the GPU's time shows as a gap.
    """

    step_seconds: float
    sequence_seconds: float
    launch_seconds: float
    overlaps: bool
    jitter_ratio: float = 0.1
    eager: bool = False
    graph_tokens: int = 512
    """Most tokens of a step that a captured CUDA graph covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`tensor` GPUs of one kind that serve one engine, with what software makes of them."""

    gpu: Gpu
    tensor: int
    board: Board
    host: Host
    matmul_flops_ratio: float = 0.75
    matmul_bandwidth_ratio: float = 0.85
    attention_flops_ratio: float = 0.55
    attention_bandwidth_ratio: float = 0.75
    overlap_power: float = 3.0
    """How well a kernel hides its smaller roof behind its larger: the norm's exponent."""
    tile_tokens: float = 24.0
    """Tokens of work lost to half-filled tiles in every matrix product."""
    kernel_seconds: float = 4e-6
    kernels_per_layer: float = 12.0
    link_ratio: float = 0.7
    collective_seconds: float = 8e-6
    flops_scale: float = 1.0
    bandwidth_scale: float = 1.0
    link_scale: float = 1.0
    in_switch: bool = False
    """The NVLink switch adds up (NVLS): a GPU sends its data once and a bit, not twice."""
    through_host: bool = False
    """Collectives leave NVLink for PCIe and host memory."""

    @property
    def peak_bandwidth(self) -> float:
        """DRAM bytes per second of this machine's GPUs."""
        return self.gpu.bandwidth_bytes_per_second * self.bandwidth_scale

    @property
    def link(self) -> Link:
        """What the collectives travel on."""
        return "pcie" if self.through_host else self.gpu.link

    @property
    def link_bytes_per_second(self) -> float:
        """One way, per GPU, as the collectives get it."""
        raw = PCIE_STAGED_BYTES_PER_SECOND if self.through_host else self.gpu.link_bytes_per_second
        return raw * self.link_ratio * self.link_scale


PCIE_STAGED_BYTES_PER_SECOND = 16e9
"""PCIe 4.0 x16 with every byte crossing host memory, so half of the link's 32 GB/s."""


def improved(machine: Machine, resource: str) -> Machine:
    """Give the machine with one resource a fifth better, the rest as it was.

    Raises KeyError for a resource that is not of the machine (slots, cache and load are not).
    """
    return _IMPROVED[resource](machine)


def _better_link(machine: Machine) -> Machine:
    sooner = machine.collective_seconds / FIFTH
    return replace(machine, link_scale=machine.link_scale * FIFTH, collective_seconds=sooner)


def _better_host(machine: Machine) -> Machine:
    host = machine.host
    faster = replace(
        host,
        step_seconds=host.step_seconds / FIFTH,
        sequence_seconds=host.sequence_seconds / FIFTH,
        launch_seconds=host.launch_seconds / FIFTH,
    )
    return replace(machine, host=faster)


def _more_power(machine: Machine) -> Machine:
    limit = machine.board.power_limit_watts * FIFTH
    return replace(machine, board=replace(machine.board, power_limit_watts=limit))


def _cooler(machine: Machine) -> Machine:
    clock = min(1.0, machine.board.thermal_clock_ratio * FIFTH)
    return replace(machine, board=replace(machine.board, thermal_clock_ratio=clock))


_IMPROVED: Mapping[str, Callable[[Machine], Machine]] = MappingProxyType(
    {
        "compute": lambda machine: replace(machine, flops_scale=machine.flops_scale * FIFTH),
        "memory_bandwidth": lambda machine: replace(
            machine, bandwidth_scale=machine.bandwidth_scale * FIFTH
        ),
        "kernel_latency": lambda machine: replace(
            machine, kernel_seconds=machine.kernel_seconds / FIFTH
        ),
        "interconnect": _better_link,
        "cpu_scheduling": _better_host,
        "power": _more_power,
        "thermal": _cooler,
    }
)

MACHINE_RESOURCES = tuple(_IMPROVED)
"""What `improved` knows."""
