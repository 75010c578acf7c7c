"""What GPUs attain in practice: the shares of their peaks and the fixed times, with sources."""

from boundby.core.cost.duration import Pace

ATTAINABLE = Pace(
    compute_ratio=0.7,
    attention_compute_ratio=0.5,
    memory_ratio=0.8,
    attention_memory_ratio=0.7,
    expert_memory_ratio=0.6,
    expert_compute_ratio=0.5,
    link_ratio=0.6,
    links_overlap=False,
    block_seconds=35e-6,
    collective_seconds=8e-6,
    step_seconds=1e-3,
)
"""Defaults for any GPU and engine."""

MEMORY_RATIO = 0.9
"""The share of device memory that vLLM takes by default (0.9; 0.92 from 0.17)."""
