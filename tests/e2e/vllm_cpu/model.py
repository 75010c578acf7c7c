"""A tiny Llama for vLLM's `--load-format dummy`: a config and a tokenizer, no weights.

    model.py FOLDER

The tokenizer knows the words w0, w1, ...; a test sends token ids and needs none of them.
"""

import json
import sys
from pathlib import Path

VOCABULARY = 4096
LENGTH = 4096
"""Tokens that a sequence may have."""

LAYERS, HIDDEN, HEADS, KV_HEADS = 12, 768, 12, 4
"""Large enough that a step takes longer on one core than telling of it does."""

SPECIAL = ("<s>", "</s>", "<unk>")


def config() -> dict[str, object]:
    """What config.json says."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 3 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HIDDEN // HEADS,
        "max_position_embeddings": LENGTH,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "torch_dtype": "bfloat16",
    }


def tokenizer() -> dict[str, object]:
    """Every word is one token: the simplest tokenizer that the loaders take."""
    words = [*SPECIAL, *(f"w{n}" for n in range(VOCABULARY - len(SPECIAL)))]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": word, **plain, "special": True}
            for number, word in enumerate(SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": "<unk>",
        },
    }


def tokenizer_config() -> dict[str, object]:
    """How the tokenizer is loaded."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "model_max_length": LENGTH,
        "clean_up_tokenization_spaces": False,
    }


def write(folder: Path) -> Path:
    """Write the model's folder and give it back."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("config.json", config()),
        ("tokenizer.json", tokenizer()),
        ("tokenizer_config.json", tokenizer_config()),
    ):
        (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return folder


if __name__ == "__main__":
    write(Path(sys.argv[1]))
