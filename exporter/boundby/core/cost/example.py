"""The worked example: a 70-billion-parameter model on four 80 GB GPUs, by its own conventions.

Weights are parameters times bytes; a decode step is all weights and all KV over the bandwidth;
a prefill is 2 FLOPs a parameter and token over the peak. GB are 10^9 and nothing is reserved.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

PARAMETERS = 70e9
LAYERS, KV_HEADS, HEAD_WIDTH = 80, 8, 128
WEIGHT_BYTES, KV_BYTES = 2, 2
GPUS = 4
MEMORY_BYTES = 80e9
BYTES_PER_SECOND = 3.35e12
FLOPS_PER_SECOND = 989e12
CONTEXT, PROMPT = 4096, 2000
BATCHES = (1, 32, 134)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the example, in the unit the document prints."""

    id: str
    what: str
    value: float
    unit: str
    decimals: int


def figures() -> Iterator[Figure]:
    """Work out every figure, in the document's order."""
    weights = PARAMETERS * WEIGHT_BYTES
    memory = GPUS * MEMORY_BYTES
    bandwidth = GPUS * BYTES_PER_SECOND
    peak = GPUS * FLOPS_PER_SECOND
    kv_token = 2 * LAYERS * KV_HEADS * HEAD_WIDTH * KV_BYTES
    kv_request = kv_token * CONTEXT
    work = 2 * PARAMETERS

    def step(batch: int, stored: float = weights) -> float:
        return (stored + batch * kv_request) / bandwidth

    def fit(stored: float) -> int:
        return math.floor((memory - stored) / kv_request)

    largest = BATCHES[-1]
    yield Figure("weights_gb", "weight bytes", weights / 1e9, "GB", 0)
    yield Figure("mem_total_gb", "total memory", memory / 1e9, "GB", 0)
    yield Figure("bw_total", "total bandwidth", bandwidth / 1e12, "TB/s", 1)
    yield Figure("flops_total", "total compute", peak / 1e15, "PFLOP/s", 2)
    yield Figure("prefill_flops", "prefill operations", work * PROMPT / 1e12, "TFLOP", 0)
    yield Figure("prefill_ms", "prefill compute floor", work * PROMPT / peak * 1e3, "ms", 0)
    yield Figure("weight_read_ms", "read all weights once", weights / bandwidth * 1e3, "ms", 1)
    yield Figure("ridge", "ridge point", FLOPS_PER_SECOND / BYTES_PER_SECOND, "FLOP/byte", 0)
    yield Figure("decode_arith_us", "arithmetic of a step, batch 1", work / peak * 1e6, "us", 0)
    yield Figure("kv_bytes_token", "KV bytes per token", kv_token, "B", 0)
    yield Figure("kv_req_gb", "KV of one request", kv_request / 1e9, "GB", 2)
    yield Figure("kv_space_gb", "memory left for KV", (memory - weights) / 1e9, "GB", 0)
    yield Figure("max_requests", "requests that fit", fit(weights), "requests", 0)
    for batch in BATCHES:
        seconds = step(batch)
        yield Figure(f"decode_ms_b{batch}", f"step, batch {batch}", seconds * 1e3, "ms", 2)
        yield Figure(
            f"decode_tps_b{batch}", f"all requests, batch {batch}", batch / seconds, "tok/s", 1
        )
        yield Figure(
            f"decode_tps1_b{batch}", f"one request, batch {batch}", 1 / seconds, "tok/s", 1
        )
        yield Figure(
            f"kv_gb_b{batch}", f"KV cache, batch {batch}", batch * kv_request / 1e9, "GB", 2
        )
    yield Figure("ai_b1", "intensity, batch 1", work / (weights + kv_request), "FLOP/byte", 0)
    yield Figure(
        "mem_over_arith_b1", "step over arithmetic, batch 1", step(1) / (work / peak), "x", 0
    )
    yield Figure(
        f"ai_weights_b{largest}",
        f"intensity of the weights, batch {largest}",
        work * largest / weights,
        "FLOP/byte",
        0,
    )
    yield Figure(
        f"ai_step_b{largest}",
        f"intensity of the step, batch {largest}",
        work * largest / (weights + largest * kv_request),
        "FLOP/byte",
        0,
    )
    yield Figure("w8_weights_gb", "8-bit weights", PARAMETERS / 1e9, "GB", 0)
    yield Figure("w8_step_ms_b1", "step, 8-bit, batch 1", step(1, PARAMETERS) * 1e3, "ms", 2)
    yield Figure("w8_max_requests", "requests that fit, 8-bit", fit(PARAMETERS), "requests", 0)
