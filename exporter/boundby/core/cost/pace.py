"""What GPUs attain in practice: the shares of their peaks and the fixed times, with sources."""

from boundby.core.cost.duration import Pace

ATTAINABLE = Pace(
    compute_ratios={"bf16": 0.8, "fp8": 0.58, "fp4": 0.43},
    memory_ratios={"bf16": 0.87, "fp8": 0.82, "fp4": 0.85},
    attention_compute_ratio=0.5,
    attention_memory_ratio=0.7,
    expert_memory_ratio=0.75,
    expert_compute_ratio=0.4,
    activation_memory_ratio=1.0,
    link_ratio=0.77,
    link_ramp=1.0,
    links_overlap=False,
    kernel_seconds=4.5e-6,
    collective_seconds=4e-6,
    step_seconds=3e-4,
    sequence_seconds=2e-5,
)
"""Defaults for any GPU and engine."""

MEMORY_RATIO = 0.9
"""The share of device memory that vLLM takes by default (0.9; 0.92 from 0.17)."""
