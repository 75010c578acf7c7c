"""The simulated models: Hugging Face configs, and the weights and KV that follow from them.

Counts are written operator by operator from the published architecture (Llama, Qwen 2 and 3,
Mixtral): projections of attention, attention itself, gated MLP or experts, and the head.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

BYTES_PER_WEIGHT: Mapping[str, float] = MappingProxyType({"bf16": 2.0, "fp8": 1.0, "int4": 0.53})
"""int4 carries one 16-bit scale and zero point for each group of 128 weights."""

BYTES_PER_KV: Mapping[str, float] = MappingProxyType({"bf16": 2.0, "fp8": 1.0})


def _config(
    architecture: str,
    layers: int,
    hidden: int,
    heads: tuple[int, int, int],
    inner: int,
    vocabulary: int,
    *,
    tied: bool = False,
    **more: Any,
) -> Mapping[str, Any]:
    queries, keys, width = heads
    return MappingProxyType(
        {
            "architectures": [f"{architecture}ForCausalLM"],
            "model_type": architecture.lower().replace("moe", "_moe"),
            "num_hidden_layers": layers,
            "hidden_size": hidden,
            "num_attention_heads": queries,
            "num_key_value_heads": keys,
            "head_dim": width,
            "intermediate_size": inner,
            "vocab_size": vocabulary,
            "torch_dtype": "bfloat16",
            "max_position_embeddings": 131072,
            "tie_word_embeddings": tied,
            "hidden_act": "silu",
            **more,
        }
    )


CONFIGS: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "llama3-1b": (
            "meta-llama/Llama-3.2-1B-Instruct",
            _config("Llama", 16, 2048, (32, 8, 64), 8192, 128256, tied=True),
        ),
        "llama3-8b": (
            "meta-llama/Llama-3.1-8B-Instruct",
            _config("Llama", 32, 4096, (32, 8, 128), 14336, 128256),
        ),
        "llama3-70b": (
            "meta-llama/Llama-3.3-70B-Instruct",
            _config("Llama", 80, 8192, (64, 8, 128), 28672, 128256),
        ),
        "llama2-7b": (
            "meta-llama/Llama-2-7b-chat-hf",
            _config("Llama", 32, 4096, (32, 32, 128), 11008, 32000),
        ),
        "llama2-13b": (
            "meta-llama/Llama-2-13b-chat-hf",
            _config("Llama", 40, 5120, (40, 40, 128), 13824, 32000),
        ),
        "qwen2.5-7b": (
            "Qwen/Qwen2.5-7B-Instruct",
            _config("Qwen2", 28, 3584, (28, 4, 128), 18944, 152064),
        ),
        "qwen2.5-14b": (
            "Qwen/Qwen2.5-14B-Instruct",
            _config("Qwen2", 48, 5120, (40, 8, 128), 13824, 152064),
        ),
        "qwen2.5-32b": (
            "Qwen/Qwen2.5-32B-Instruct",
            _config("Qwen2", 64, 5120, (40, 8, 128), 27648, 152064),
        ),
        "qwen2.5-72b": (
            "Qwen/Qwen2.5-72B-Instruct",
            _config("Qwen2", 80, 8192, (64, 8, 128), 29568, 152064),
        ),
        "qwen3-0.6b": (
            "Qwen/Qwen3-0.6B",
            _config("Qwen3", 28, 1024, (16, 8, 128), 3072, 151936, tied=True),
        ),
        "qwen3-30b-a3b": (
            "Qwen/Qwen3-30B-A3B",
            _config(
                "Qwen3Moe",
                48,
                2048,
                (32, 4, 128),
                6144,
                151936,
                num_experts=128,
                num_experts_per_tok=8,
                moe_intermediate_size=768,
            ),
        ),
        "mixtral": (
            "mistralai/Mixtral-8x7B-Instruct-v0.1",
            _config(
                "Mixtral",
                32,
                4096,
                (32, 8, 128),
                14336,
                32000,
                num_local_experts=8,
                num_experts_per_tok=2,
            ),
        ),
    }
)
"""By the short names that scenarios use: the model's id and its config.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model at one precision. Weight counts are of the whole model, not of a shard."""

    key: str
    weights_dtype: str = "bf16"
    kv_dtype: str = "bf16"

    @property
    def id(self) -> str:
        """The name it is served under."""
        return CONFIGS[self.key][0]

    @property
    def config(self) -> Mapping[str, Any]:
        """Its config.json."""
        return CONFIGS[self.key][1]

    @property
    def experts(self) -> int:
        """Experts of a layer; 1 for a dense model."""
        config = self.config
        return int(config.get("num_experts") or config.get("num_local_experts") or 1)

    @property
    def experts_per_token(self) -> int:
        """Experts that one token visits."""
        return int(self.config.get("num_experts_per_tok", 1))

    @property
    def projection_weights(self) -> float:
        """Weights of one layer's query, key, value and output projections."""
        c = self.config
        width = c["num_attention_heads"] * c["head_dim"]
        kv_width = c["num_key_value_heads"] * c["head_dim"]
        return float(c["hidden_size"] * (2 * width + 2 * kv_width))

    @property
    def expert_weights(self) -> float:
        """Weights of one expert (or of the one MLP): gate, up and down."""
        inner = self.config.get("moe_intermediate_size", self.config["intermediate_size"])
        return float(3 * self.config["hidden_size"] * inner)

    @property
    def head_weights(self) -> float:
        """Weights of the output head."""
        return float(self.config["hidden_size"] * self.config["vocab_size"])

    @property
    def weight_bytes(self) -> float:
        """What all weights take; embeddings and head stay 16-bit."""
        c = self.config
        layer = self.projection_weights + self.experts * self.expert_weights
        tables = 1 if c["tie_word_embeddings"] else 2
        return float(
            c["num_hidden_layers"] * layer * BYTES_PER_WEIGHT[self.weights_dtype]
            + tables * self.head_weights * 2.0
        )

    def kv_bytes_per_token_layer(self, tensor: int) -> float:
        """KV of one token in one layer on one of `tensor` GPUs; heads are replicated past one."""
        heads = max(1.0, self.config["num_key_value_heads"] / tensor)
        return float(2 * heads * self.config["head_dim"] * BYTES_PER_KV[self.kv_dtype])
