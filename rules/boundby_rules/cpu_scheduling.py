"""The GPU waits for the host between steps while requests run.

Scheduling, input preparation, sampling and launching take host time in every step; when they are
not hidden behind the GPU, it idles. "GPU utilisation" can read 100 % meanwhile, and work may wait.
Small models, large batches, eager mode, structured output and starved containers bring it about.
"""

from boundby.core.limit import Alert, Case, Limit, Panel


def engine(engine_cpu_scheduling_elasticity_ratio: float) -> float:
    """What a fifth less host time would give in throughput."""
    return engine_cpu_scheduling_elasticity_ratio


def decode(decode_cpu_scheduling_elasticity_ratio: float) -> float:
    """What a fifth less host time would give in decode steps."""
    return decode_cpu_scheduling_elasticity_ratio


def prefill(prefill_cpu_scheduling_elasticity_ratio: float) -> float:
    """What a fifth less host time would give in prefill steps."""
    return prefill_cpu_scheduling_elasticity_ratio


LIMIT = Limit(
    name="cpu_scheduling",
    title="CPU scheduling",
    group="software",
    page=__doc__,
    engine=engine,
    decode=decode,
    prefill=prefill,
    evidence=(
        "host_gap_ratio",
        "host_gap_seconds_per_step",
        "running_requests",
        "engine_core_busiest_thread_ratio",
        "cpu_throttled_ratio",
    ),
    remedies=(
        "Give the pod whole cores: raise the CPU limit or remove it, and pin the engine core.",
        "Drop --enforce-eager, and capture CUDA graphs for the batches in use.",
        "Turn on asynchronous scheduling (vLLM: --async-scheduling), or more API servers.",
        "Move structured-output compilation and tokenisation off the engine's cores.",
    ),
    wont_help=(
        "A faster GPU: it would wait longer.",
        "Quantisation or a smaller model: steps get shorter, the gap between them does not.",
    ),
    cases=(
        Case(
            "a GPU idle between steps for most of the time binds",
            {"engine_cpu_scheduling_elasticity_ratio": 0.66},
            score=0.66,
        ),
        Case(
            "a gap of a hundredth of the step does not bind",
            {"engine_cpu_scheduling_elasticity_ratio": 0.01},
            score=0.01,
        ),
        Case(
            "the decode scope reads its own share",
            {"decode_cpu_scheduling_elasticity_ratio": 0.44},
            score=0.44,
            scope="decode",
        ),
    ),
    alert=Alert(
        after="10m",
        severity="warning",
        summary="leaves its GPU waiting for the CPU",
        pain="tokens come slower than the GPU could make them",
    ),
    panel=Panel(shows=("host_gap_ratio", "host_gap_seconds_per_step")),
)
