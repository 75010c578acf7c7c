"""What the simulated engine was started with."""

from dataclasses import dataclass

from boundby.app.demo.batch import BLOCK
from boundby.app.demo.machine import Machine
from boundby.app.demo.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The engine's own limits, in vLLM's words."""

    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    kv_blocks: int = 10_000
    watermark: float = 0.0
    """Share of the blocks that admission leaves free."""
    mixes: bool = True
    """Prefill chunks share steps with decoding; else prefills go first, alone."""
    memory_utilization: float = 0.9


def kv_blocks(model: Model, machine: Machine, memory_utilization: float) -> int:
    """Count the blocks that fit on one GPU beside its weights and a working reserve."""
    tensor = machine.tensor
    per_token = model.config["num_hidden_layers"] * model.kv_bytes_per_token_layer(tensor)
    room = machine.gpu.memory_bytes * memory_utilization - model.weight_bytes / tensor
    reserve = 1.5e9 + 0.03 * machine.gpu.memory_bytes
    return max(16, int((room - reserve) / (per_token * BLOCK)))
