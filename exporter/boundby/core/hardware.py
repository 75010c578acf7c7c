"""What a GPU can do at best: peak FLOP/s by dtype, memory and link bytes/s, by its name.

Figures are data sheet peaks without sparsity, in base units; `attainable` fractions are the
cost model's business, not this table's. A GPU nobody listed is None, never a guess.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from boundby.core import gpu_table

_NOISE = frozenset({"nvidia", "tesla", "geforce", "amd", "instinct", "graphics", "gpu", "radeon"})
"""Words that vendors add or drop from one driver to the next."""

_OTHER_PARTS = frozenset({"d", "ti", "super", "laptop", "mobile", "max", "embedded"})
"""A name with one of these extra words is another, slower part."""

_PCIE_BYTES_PER_SECOND = {3: 15.75e9, 4: 31.5e9, 5: 63e9, 6: 121e9}
"""One direction of 16 lanes by generation (PCI-SIG line rate less encoding)."""

_DTYPES = {
    "bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "half": "fp16",
    "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "float8": "fp8", "float8_e4m3fn": "fp8",
    "int8": "int8", "w8a8_int8": "int8",
    "fp4": "fp4", "nvfp4": "fp4", "mxfp4": "fp4",
    "fp32": "fp32", "float32": "fp32", "float": "fp32", "tf32": "tf32",
}  # fmt: skip
"""The words that configs and flags use for a dtype of arithmetic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One kind of GPU. Peaks are dense; links are one direction; 0 is "has none".

    `uncertain` names the figures that are scaled, disputed or seen in one place only.
    """

    key: str
    names: tuple[str, ...]
    architecture: str
    vendor: str
    memory_bytes: float
    memory_bytes_per_second: float
    peaks: Mapping[str, float] = field(hash=False)
    sm_count: int
    max_sm_clock_hertz: float | None
    nvlink_bytes_per_second: float
    pcie_generation: int
    tdp_watts: float
    source: str
    notes: str = ""
    uncertain: tuple[str, ...] = ()

    def peak_flops(self, dtype: str) -> float | None:
        """Peak FLOP/s of arithmetic in `dtype`, None where the part has no such units."""
        return self.peaks.get(_DTYPES.get(dtype.lower(), dtype.lower()))

    def runs_in(self, dtype: str) -> str:
        """Return the dtype that arithmetic in `dtype` runs in: 16 bits without its units."""
        word = _DTYPES.get(dtype.lower(), dtype.lower())
        return next((w for w in (word, "bf16", "fp16") if w in self.peaks), "fp32")

    def best_peak_flops(self, dtype: str) -> float:
        """Peak FLOP/s for `dtype`, or of the dtype it runs in where the part lacks its units."""
        return self.peaks[self.runs_in(dtype)]

    @property
    def pcie_bytes_per_second(self) -> float:
        """Bytes/s over PCIe with 16 lanes, one direction."""
        return _PCIE_BYTES_PER_SECOND[self.pcie_generation]

    @property
    def link_bytes_per_second(self) -> float:
        """Bytes/s to a peer GPU, one direction: NVLink where there is one, else PCIe."""
        return self.nvlink_bytes_per_second or self.pcie_bytes_per_second

    def ridge_point(self, dtype: str = "bf16") -> float:
        """FLOPs per byte at which arithmetic in `dtype` and memory take as long."""
        return self.best_peak_flops(dtype) / self.memory_bytes_per_second


def _row(header: list[str], line: str) -> Gpu:
    cells = dict(zip(header, line.split(), strict=True))

    def number(column: str, unit: float) -> float | None:
        return None if cells[column] == "-" else float(cells[column]) * unit

    def required(column: str, unit: float) -> float:
        return float(cells[column]) * unit

    key = cells["key"]
    architecture = cells["arch"].replace("-", " ")
    peaks = {
        dtype: peak
        for dtype in ("fp32", "tf32", "fp16", "fp8", "int8", "fp4")
        if (peak := number(dtype, 1e12)) is not None
    }
    if architecture not in {"Volta", "Turing"}:
        peaks["bf16"] = peaks["fp16"]
    return Gpu(
        key=key,
        names=gpu_table.NAMES[key],
        architecture=architecture,
        vendor=cells["vendor"],
        memory_bytes=required("mib", 2.0**20),
        memory_bytes_per_second=required("gb/s", 1e9),
        peaks=MappingProxyType(peaks),
        sm_count=int(cells["sms"]),
        max_sm_clock_hertz=number("mhz", 1e6),
        nvlink_bytes_per_second=required("link", 1e9),
        pcie_generation=int(cells["pcie"]),
        tdp_watts=required("watts", 1.0),
        source=gpu_table.SOURCES[key],
        notes=gpu_table.NOTES.get(key, ""),
        uncertain=gpu_table.UNCERTAIN.get(key, ()),
    )


def _table() -> tuple[Gpu, ...]:
    header, *rows = gpu_table.ROWS.strip().splitlines()
    return tuple(_row(header.split(), line) for line in rows)


GPUS = _table()
"""Every GPU that is known."""


def _words(name: str) -> frozenset[str]:
    """Return the words that tell a name apart: lower case, no vendor, `sxm4` as `sxm`."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    return frozenset(re.sub(r"^sxm\d$", "sxm", w) for w in words if w) - _NOISE


_PATTERNS = tuple(
    (words, gpu)
    for gpu in GPUS
    for words in {*(_words(name) for name in gpu.names), _words(gpu.key)}
)


def _nearest(gpus: list[Gpu], memory_bytes: float | None) -> Gpu | None:
    """Return the one whose memory is nearest, or the first listed where memory is not known."""
    if not gpus or memory_bytes is None:
        return gpus[0] if gpus else None
    return min(gpus, key=lambda gpu: abs(gpu.memory_bytes - memory_bytes))


@cache
def find(name: str, memory_bytes: float | None = None) -> Gpu | None:
    """Find the GPU that NVML, amdsmi or a person calls `name`; None when none is like it.

    A full device name must hold all words of a listed one ("NVIDIA H100 PCIe"). A shorter name
    ("A100") takes the listed part whose memory is nearest, else the first listed.
    """
    asked = _words(name)
    if not asked:
        return None
    held = [(len(words), gpu) for words, gpu in _PATTERNS if words <= asked]
    if held:
        most = max(count for count, _ in held)
        best = [(words, gpu) for words, gpu in _PATTERNS if words <= asked and len(words) == most]
        extra = frozenset.union(*(asked - words for words, _ in best)) & _OTHER_PARTS
        return None if extra else _nearest(_unique(gpu for _, gpu in best), memory_bytes)
    within = _unique(gpu for words, gpu in _PATTERNS if asked <= words)
    return _nearest(within, memory_bytes)


def _unique(gpus: Iterable[Gpu]) -> list[Gpu]:
    """Each GPU once, in the table's order."""
    found = {gpu.key for gpu in gpus}
    return [gpu for gpu in GPUS if gpu.key in found]
