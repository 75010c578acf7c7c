"""Public reports with a known cause, as steady signals: what would we have said?

Each row's numbers are as its report gives them; what it does not say is left out. `accepted` are
the answers that its cause allows: the limit itself, and `unknown` where the report has too little.
The reports that give no signals of a running server cannot be rows here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from boundby.core.parts import EnginePart, GpuPart, Snapshot
from boundby.core.report import Report
from boundby.core.setup import Setup
from boundby.core.watch import Options, Watch
from boundby_rules import LIMITS

SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A gauge that goes from one value to another."""

    first: float
    last: float

    def at(self, share: float) -> float:
        return self.first + (self.last - self.first) * share


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One report: its address, what was seen, what it turned out to be."""

    source: str
    running: Ramp
    waiting: Ramp
    kv: Ramp
    accepted: frozenset[str]
    generated: float = 0.0
    prompts: float = 0.0
    preemptions: float = 0.0
    busy: float | None = None
    setup: Setup = field(default_factory=Setup)


def flat(value: float) -> Ramp:
    return Ramp(first=value, last=value)


CASES: Mapping[str, Case] = {
    "running pinned at max_num_seqs with half of the cache free is the cap": Case(
        source="vllm-project/vllm#14022",
        running=flat(600), waiting=flat(4475), kv=flat(0.592), generated=3210, prompts=308,
        busy=0.2, setup=Setup(max_num_seqs=600, tensor=8),
        accepted=frozenset({"batch_slots", "cpu_scheduling", "interconnect"}),
    ),
    "a cache at 100 % with 740 waiting below the cap is the cache": Case(
        source="vllm-project/vllm#6737",
        running=Ramp(first=247, last=219), waiting=Ramp(first=740, last=768),
        kv=Ramp(first=0.997, last=1.0), generated=2136, busy=0.2,
        setup=Setup(max_num_seqs=256), accepted=frozenset({"kv_capacity", "cpu_scheduling"}),
    ),
    "prompts of 40,000 tokens that queue beside a cache that still fills are no cap": Case(
        source="vllm-project/vllm#37307",
        running=Ramp(first=10, last=34), waiting=Ramp(first=90, last=66),
        kv=Ramp(first=0.193, last=0.654), generated=50, prompts=24000,
        accepted=frozenset({"compute", "unknown"}),
    ),
    "a prefill-only load that queues without end at KV 32 % is no cache": Case(
        source="llm-d/llm-d-autoscaling#662",
        running=flat(20), waiting=Ramp(first=10, last=200), kv=flat(0.32), generated=16,
        prompts=48000, setup=Setup(max_num_batched_tokens=65000, max_num_seqs=256),
        accepted=frozenset({"compute", "unknown"}),
    ),
    "one long generation that holds the cache while 14 wait is no hang": Case(
        source="intel/llm-scaler#391",
        running=flat(1), waiting=flat(14), kv=Ramp(first=0.765, last=0.768), generated=5.4,
        accepted=frozenset({"batch_slots", "kv_capacity", "unknown"}),
    ),
    "a small pool at 94 % with a queue is the cache": Case(
        source="sgl-project/sglang#14972",
        running=flat(6), waiting=flat(5), kv=flat(0.94), generated=446,
        accepted=frozenset({"kv_capacity"}),
    ),
    "two ranks full beside six that idle are a cache here, and an imbalance": Case(
        source="vllm-project/vllm#36748",
        running=flat(51), waiting=flat(117), kv=flat(1.0), generated=1157, prompts=16,
        setup=Setup(max_num_seqs=64), accepted=frozenset({"kv_capacity", "imbalance"}),
    ),
    "a batch of 30 that decodes with nobody waiting is no hang": Case(
        source="vllm-project/vllm#9640",
        running=flat(30), waiting=flat(0), kv=Ramp(first=0.016, last=0.022), generated=1250,
        accepted=frozenset({"demand", "memory_bandwidth"}),
    ),
    "swapped requests and thousands waiting at KV 99 % are the cache": Case(
        source="vllm-project/vllm#5578",
        running=Ramp(first=34, last=37), waiting=flat(9800), kv=flat(0.992), generated=13395,
        prompts=2706, preemptions=2.0, accepted=frozenset({"kv_capacity"}),
    ),
    "four that run with nobody waiting lack demand": Case(
        source="vllm-project/vllm#5626",
        running=flat(4), waiting=flat(0), kv=flat(0.156), generated=69, prompts=6501,
        accepted=frozenset({"demand", "compute"}),
    ),
    "exactly 100 running of 200 callers and no queue is the client": Case(
        source="vllm-project/vllm#14513",
        running=flat(100), waiting=flat(0), kv=flat(0.3), generated=3000,
        accepted=frozenset({"demand"}),
    ),
    "the same 100 below a cap of 256 is the client": Case(
        source="vllm-project/vllm#7241",
        running=flat(100), waiting=flat(0), kv=flat(0.3), generated=3000,
        setup=Setup(max_num_seqs=256), accepted=frozenset({"demand"}),
    ),
    "eight that fill the cache with nobody waiting are not yet short of it": Case(
        source="vllm-project/vllm#21809",
        running=flat(8), waiting=flat(0), kv=Ramp(first=0.912, last=0.958), generated=240,
        setup=Setup(max_num_seqs=8),
        accepted=frozenset({"demand", "memory_bandwidth", "kv_capacity", "unknown"}),
    ),
    "a thousand preemptions behind a full cache are the cache": Case(
        source="vllm-project/vllm#44594",
        running=flat(100), waiting=flat(28), kv=flat(0.99), generated=11582, prompts=2300,
        preemptions=3.0, setup=Setup(max_num_seqs=256), accepted=frozenset({"kv_capacity"}),
    ),
    "a frozen page with 106 running is no live verdict of a cap": Case(
        source="vllm-project/vllm#22545",
        running=flat(106), waiting=flat(15), kv=flat(0.904),
        accepted=frozenset({"stalled", "demand", "unknown"}),
    ),
    "running requests and no token for minutes are a stall": Case(
        source="vllm-project/vllm#42897",
        running=flat(4), waiting=flat(0), kv=flat(0.2), accepted=frozenset({"stalled"}),
    ),
    "an idle engine whose core spins is idle": Case(
        source="vllm-project/vllm#41964",
        running=flat(0), waiting=flat(0), kv=flat(0.0), accepted=frozenset({"demand"}),
    ),
    "a cap below what was asked for shows as a plateau": Case(
        source="sgl-project/sglang#30160",
        running=flat(50), waiting=Ramp(first=5, last=60), kv=flat(0.2), generated=2000,
        accepted=frozenset({"batch_slots"}),
    ),
    "a GPU at 20 % with a full batch waits for the host": Case(
        source="vllm-project/vllm#21873",
        running=flat(15), waiting=flat(0), kv=flat(0.2), generated=10, prompts=868, busy=0.2,
        setup=Setup(max_num_seqs=15), accepted=frozenset({"cpu_scheduling"}),
    ),
    "a GPU at 60 to 75 % under 128 callers waits for the host, or could take more": Case(
        source="vllm-project/vllm#4806",
        running=flat(128), waiting=flat(0), kv=flat(0.3), generated=2000, busy=0.65,
        accepted=frozenset({"cpu_scheduling", "demand"}),
    ),
    "one request, one waiting for another adapter, and an empty cache are not for sure": Case(
        source="vllm-project/vllm#11517",
        running=flat(1), waiting=flat(3), kv=flat(0.031), generated=45.7,
        setup=Setup(max_num_seqs=256, tensor=8), accepted=frozenset({"unknown"}),
    ),
}  # fmt: skip


def judged(case: Case) -> Report:
    watch = Watch(case.setup, LIMITS, Options(remember=True))
    for second in range(SECONDS):
        share = second / (SECONDS - 1)
        engine = EnginePart(
            engine="0",
            model_name="m",
            kind="vllm",
            gauges={
                "running_requests": round(case.running.at(share)),
                "waiting_requests": round(case.waiting.at(share)),
                "kv_used_ratio": case.kv.at(share) if case.generated else case.kv.first,
            },
            counters={
                "generation_tokens_total": case.generated * second,
                "prompt_tokens_total": case.prompts * second,
                "preemptions_total": float(int(case.preemptions * second)),
            },
        )
        gpus = ()
        if case.busy is not None:
            gpus = (GpuPart(gpu="0", index=0, gauges={"gpu_busy_ratio": case.busy}),)
        watch.take(Snapshot(t=float(second), engines=(engine,), gpus=gpus))
    return watch.summary()


@pytest.mark.parametrize(
    "case", CASES.values(), ids=[f"{c.source}: {s}" for s, c in CASES.items()]
)
def test_a_public_report_is_named_rightly_or_left_open(case: Case) -> None:
    verdict = judged(case).engines[0].verdict["engine"]

    assert verdict.limit in case.accepted


@pytest.mark.parametrize("case", CASES.values(), ids=[c.source for c in CASES.values()])
def test_where_too_little_is_told_what_is_missing_is_named(case: Case) -> None:
    report = judged(case).engines[0]

    assert report.verdict["engine"].limit != "unknown" or report.missing
