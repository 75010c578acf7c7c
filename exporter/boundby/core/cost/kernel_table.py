"""Constants of single kernels by generation and dtype. Data, and nothing else.

Shares are of data sheet peaks. Fitted to others' measurements; see `kernels`.
"""

from boundby.core.cost.generation import Generation

Key = tuple[Generation, str]

GEMM: dict[Key, tuple[float, float, float, float]] = {
    ("ampere", "bf16"): (4.9e-07, 0.90, 0.93, 1.3),
    ("ada", "bf16"): (8.2e-08, 0.62, 0.79, 0.011),
    ("ada", "fp8"): (1.4e-06, 0.45, 0.73, 0.25),
    ("ada", "fp8_block"): (2.9e-04, 0.45, 1.2, 0.04),
    ("hopper", "bf16"): (4.4e-06, 0.81, 0.88, 0.017),
    ("hopper", "fp8"): (4.7e-06, 0.66, 1.0, 0.80),
    ("hopper", "fp8_block"): (6.2e-05, 0.69, 1.5, 0.049),
    ("blackwell", "bf16"): (4.4e-06, 0.72, 0.87, 0.015),
    ("blackwell", "fp8"): (5.2e-06, 0.55, 1.1, 1.2),
    ("blackwell", "fp8_block"): (2.4e-04, 0.84, 1.0, 0.086),
    ("blackwell", "nvfp4"): (8.2e-06, 0.43, 0.90, 0.03),
    ("rtx_blackwell", "bf16"): (2.0e-07, 0.85, 1.0, 0.46),
    ("rtx_blackwell", "fp8"): (2.7e-06, 0.80, 1.3, 1.0),
    ("rtx_blackwell", "nvfp4"): (1.2e-05, 0.66, 0.86, 0.08),
}
"""Launch seconds, compute share, memory share, ramp."""

ATTENTION_DECODE: dict[Key, tuple[float, float, float, float, float]] = {
    ("ampere", "bf16"): (1.5e-05, 0.4, 0.82, 0.80, 1.0),
    ("ada", "bf16"): (1.1e-05, 0.4, 0.85, 0.72, 4.5),
    ("ada", "fp8"): (1.2e-05, 0.4, 0.79, 0.18, 4.4),
    ("hopper", "bf16"): (1.2e-05, 0.4, 1.0, 0.90, 2.2),
    ("hopper", "fp8"): (1.4e-05, 0.4, 0.91, 1.4, 1.6),
    ("blackwell", "bf16"): (9.9e-06, 0.4, 1.0, 0.45, 2.4),
    ("blackwell", "fp8"): (1.0e-05, 0.4, 1.0, 0.45, 2.1),
    ("rtx_blackwell", "bf16"): (1.3e-05, 0.4, 0.97, 0.06, 1.7),
    ("rtx_blackwell", "fp8"): (1.2e-05, 0.4, 0.98, 0.056, 2.4),
}
"""Launch seconds, compute share, memory share, ramp, how much faster the last cache is."""

L2_BYTES: dict[Generation, float] = {
    "ampere": 40e6,
    "ada": 96e6,
    "hopper": 50e6,
    "blackwell": 120e6,
    "rtx_blackwell": 128e6,
    "cdna": 256e6,
}
"""The last cache before memory, by the vendors' architecture papers."""

ATTENTION_PREFILL: dict[Key, tuple[float, float, float, float]] = {
    ("ampere", "bf16"): (7.3e-06, 0.59, 50.0, 2.6),
    ("ada", "bf16"): (5.7e-06, 0.52, 58.0, 1.2),
    ("ada", "fp8"): (1.0e-05, 0.47, 1.3, 3.0),
    ("hopper", "bf16"): (1.3e-05, 0.67, 310.0, 0.56),
    ("hopper", "fp8"): (1.5e-05, 0.66, 530.0, 0.69),
    ("blackwell", "bf16"): (1.1e-05, 0.59, 47.0, 2.7),
    ("blackwell", "fp8"): (1.0e-05, 0.71, 110.0, 3.5),
    ("rtx_blackwell", "bf16"): (5.6e-06, 0.66, 32.0, 2.2),
    ("rtx_blackwell", "fp8"): (8.9e-06, 0.62, 1.0, 4.4),
}
"""Launch seconds, compute share, keys too many for each query, ramp; by the cache's dtype."""

EXPERTS: dict[Key, tuple[float, float, float, float, float, float]] = {
    ("ampere", "bf16"): (6.0e-05, 0.26, 0.78, 0.047, 0.30, 50.0),
    ("ada", "bf16"): (4.6e-06, 0.31, 0.80, 0.11, 1.1, 170.0),
    ("ada", "fp8"): (6.1e-06, 0.22, 0.80, 0.028, 0.85, 120.0),
    ("ada", "fp8_block"): (9.1e-06, 0.30, 0.80, 0.38, 0.85, 160.0),
    ("ada", "mxfp4"): (1.4e-05, 0.30, 0.80, 0.30, 0.37, 43.0),
    ("hopper", "bf16"): (1.9e-05, 0.47, 1.0, 1.8, 2.3, 94.0),
    ("hopper", "fp8"): (7.5e-06, 0.20, 0.20, 5.0, 5.7, 33.0),
    ("hopper", "fp8_block"): (2.2e-05, 0.39, 1.1, 1.8, 3.9, 77.0),
    ("hopper", "mxfp4"): (3.3e-05, 0.36, 0.97, 2.0, 0.77, 29.0),
    ("blackwell", "bf16"): (1.2e-05, 0.27, 0.96, 0.62, 0.18, 86.0),
    ("blackwell", "fp8"): (1.2e-05, 0.36, 0.91, 0.60, 2.2, 120.0),
    ("blackwell", "fp8_block"): (1.9e-05, 0.14, 1.3, 2.4, 1.7, 34.0),
    ("blackwell", "nvfp4"): (1.1e-05, 0.65, 1.2, 1.6, 3.4, 190.0),
    ("blackwell", "mxfp4"): (1.4e-05, 0.41, 0.80, 1.6, 13.0, 46.0),
    ("rtx_blackwell", "bf16"): (2.2e-05, 0.34, 0.92, 0.057, 1.3, 110.0),
    ("rtx_blackwell", "fp8"): (2.4e-05, 0.35, 0.93, 0.033, 1.3, 110.0),
    ("rtx_blackwell", "nvfp4"): (3.2e-05, 0.74, 1.1, 1.7, 1.8, 37.0),
    ("rtx_blackwell", "mxfp4"): (2.2e-05, 0.35, 0.88, 0.19, 0.62, 30.0),
}
"""Launch seconds, compute share, memory share, ramp, activation traffic, tokens a tile holds."""

ALLREDUCE: dict[Key, tuple[float, float, float, float]] = {
    ("ampere", "graph"): (3.9e-06, 0.19, 0.684, 1.0),
    ("ampere", "nccl"): (6.7e-06, 0.53, 0.77, 2.6),
    ("hopper", "graph"): (3.7e-06, 0.13, 0.79, 0.81),
    ("hopper", "nccl"): (3.6e-06, 0.70, 0.85, 1.65),
    ("blackwell", "graph"): (5.7e-06, 0.08, 0.79, 2.3),
    ("blackwell", "nccl"): (6.4e-06, 0.64, 0.76, 1.95),
}
"""Launch seconds for one GPU, its power in the number of GPUs, link share, ramp; over NVLink."""
