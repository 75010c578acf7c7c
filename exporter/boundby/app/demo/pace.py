"""How long one forward pass takes on the simulated machine, operator by operator.

Each kernel has a compute time and a memory time at the ratios its machine reaches, and hides the
smaller behind the larger imperfectly: the two are joined by a p-norm. A chain of kernels adds a
fixed time each (launch gap, ramp and tail, counted in SM cycles, so slower clocks stretch it), and
tensor parallelism adds two all-reduces a layer, each a latency and bytes over a link.
"""

from typing import NamedTuple

from boundby.app.demo.machine import Machine
from boundby.app.demo.model import BYTES_PER_WEIGHT, Model

HEAD_KERNELS = 18.0
"""Final norm, head, and the kernels of sampling."""

EXPERT_KERNELS = 6.0
"""A layer of experts routes, sorts, permutes and combines besides multiplying."""

ACTIVATION_PASSES = 10.0
"""Times a token's hidden vector crosses DRAM in a layer: norms, residuals, rotary, reductions."""

LOGIT_BYTES = 16.0
"""Per logit: written once in 16 bits, then read and written in 32 by the sampler."""


class Work(NamedTuple):
    """What one step asks of the model: token counts, not operations."""

    tokens: float
    """Tokens computed: one for each decoding sequence, and the prefill chunks."""
    sampled: float
    """Positions whose logits are needed."""
    context: float
    """Tokens of KV that the decoding sequences read, all together."""
    pairs: float
    """Query-key pairs of the prefill chunks, the causal half only."""
    reads: float
    """Tokens of KV that the prefill chunks read."""


class Pass(NamedTuple):
    """What one forward pass took and moved, on each GPU."""

    seconds: float
    tensor_seconds: float
    """Its operations over the peak rate at full clock."""
    dram_bytes: float
    link_bytes: float
    """Sent by one GPU."""


class Pace:
    """The time of a step as a function of its work, for one model on one machine."""

    def __init__(self, model: Model, machine: Machine) -> None:
        gpu, tensor, config = machine.gpu, machine.tensor, model.config
        quantised_math = model.weights_dtype == "fp8" and gpu.fp8_flops_per_second is not None
        matmul_peak = (
            gpu.fp8_flops_per_second
            if quantised_math and gpu.fp8_flops_per_second
            else gpu.bf16_flops_per_second
        ) * machine.flops_scale
        attention_peak = gpu.bf16_flops_per_second * machine.flops_scale
        bandwidth = gpu.bandwidth_bytes_per_second * machine.bandwidth_scale
        weight_bytes = BYTES_PER_WEIGHT[model.weights_dtype]
        self._layers = float(config["num_hidden_layers"])
        self._tile = machine.tile_tokens
        self._power = machine.overlap_power
        self._peak, self._attention_peak = matmul_peak, attention_peak
        self._matmul_rate = matmul_peak * machine.matmul_flops_ratio
        self._matmul_bandwidth = bandwidth * machine.matmul_bandwidth_ratio
        self._attention_rate = attention_peak * machine.attention_flops_ratio
        self._attention_bandwidth = bandwidth * machine.attention_bandwidth_ratio
        self._projection = model.projection_weights / tensor
        self._projection_bytes = self._projection * weight_bytes
        self._expert = model.expert_weights / tensor
        self._expert_bytes = self._expert * weight_bytes
        self._experts, self._visited = model.experts, model.experts_per_token
        self._head = model.head_weights / tensor
        self._pair_flops = 4.0 * config["num_attention_heads"] * config["head_dim"] / tensor
        self._kv_bytes = model.kv_bytes_per_token_layer(tensor)
        self._activation_bytes = 2.0 * (
            ACTIVATION_PASSES * config["hidden_size"]
            + 3.0 * self._visited * model.expert_weights / (3.0 * config["hidden_size"]) / tensor
        )
        self._logit_bytes = LOGIT_BYTES * config["vocab_size"] / tensor
        per_layer = machine.kernels_per_layer + (EXPERT_KERNELS if self._experts > 1 else 0.0)
        self.kernels = self._layers * per_layer + HEAD_KERNELS
        self._kernel_seconds = self.kernels * machine.kernel_seconds
        self._collectives = 2.0 * self._layers if tensor > 1 else 0.0
        self._collective_seconds = machine.collective_seconds
        in_switch = machine.in_switch and machine.link == "nvlink"
        times_sent = 1.0 + 1.0 / tensor if in_switch else 2.0 * (tensor - 1) / tensor
        self._sent_bytes = 2.0 * config["hidden_size"] * times_sent
        self._link_rate = machine.link_bytes_per_second

    def _joined(self, compute: float, memory: float) -> float:
        power = self._power
        if compute > memory:
            compute, memory = memory, compute
        if memory <= 0.0:
            return 0.0
        return float(memory * (1.0 + (compute / memory) ** power) ** (1.0 / power))

    def _wasted(self, tokens: float) -> float:
        """Tokens of work that half-filled tiles add: few for few tokens, `tile_tokens` at most."""
        return self._tile * tokens / (self._tile + tokens)

    def forward(self, work: Work, clock: float = 1.0) -> Pass:
        """One pass over `work`, at `clock` of the highest clock."""
        tokens, sampled, context, pairs, reads = work
        matmul, attention = self._matmul_rate * clock, self._attention_rate * clock
        tiled = tokens + self._wasted(tokens)
        # Projections and MLP: two operations a weight a token, the weights read once a step.
        seconds = self._joined(
            2.0 * self._projection * tiled / matmul,
            self._projection_bytes / self._matmul_bandwidth,
        )
        if self._experts > 1:
            miss = (1.0 - self._visited / self._experts) ** tokens
            touched = self._experts * (1.0 - miss)
            each = tokens * self._visited / touched
            spread = touched * (each + self._wasted(each))
        else:
            touched, spread = 1.0, tiled
        mlp_bytes = self._expert_bytes * touched
        seconds += self._joined(
            2.0 * self._expert * spread / matmul, mlp_bytes / self._matmul_bandwidth
        )
        # Attention: decoding reads each sequence's context, a prefill chunk its own and before.
        kv_read, kv_chunk = context * self._kv_bytes, reads * self._kv_bytes
        seconds += self._joined(
            self._pair_flops * context / attention, kv_read / self._attention_bandwidth
        )
        seconds += self._joined(
            self._pair_flops * pairs / attention, kv_chunk / self._attention_bandwidth
        )
        moved = tokens * self._activation_bytes
        seconds += moved / self._matmul_bandwidth
        seconds *= self._layers
        layer_bytes = self._projection_bytes + mlp_bytes + kv_read + kv_chunk + moved
        head_bytes = 2.0 * self._head + sampled * self._logit_bytes
        if sampled:
            seconds += self._joined(
                2.0 * self._head * (sampled + self._wasted(sampled)) / matmul,
                head_bytes / self._matmul_bandwidth,
            )
        flops = (
            self._layers * 2.0 * tokens * (self._projection + self._expert * self._visited)
            + 2.0 * self._head * sampled
        )
        pair_flops = self._layers * self._pair_flops * (context + pairs)
        payload = self._collectives * tokens * self._sent_bytes
        seconds += self._kernel_seconds / clock
        if self._collectives:
            seconds += self._collectives * self._collective_seconds + payload / self._link_rate
        return Pass(
            seconds,
            flops / self._peak + pair_flops / self._attention_peak,
            self._layers * layer_bytes + (head_bytes if sampled else 0.0),
            payload,
        )
