"""Every metric family we publish, as data: name, kind, help, labels, and how its rows are read.

A family's rows come from a `Report` alone. A value that is not known has no row. The name is
stamped on by the catalogue, so a row function cannot misspell it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from boundby.core.report import STATES, TIME_PARTS, EngineReport, Report

Row = tuple[tuple[str, ...], float]
Rows = Callable[[Report], Iterable[Row]]
Stability = Literal["experimental", "stable"]

ENGINE = ("engine", "model_name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric family; its name carries its unit, a counter ends in `_total`."""

    name: str
    kind: Literal["gauge", "counter", "info"]
    help: str
    labels: tuple[str, ...]
    rows: Rows
    stability: Stability = "experimental"


def _engines(read: Callable[[EngineReport], Iterable[Row]]) -> Rows:
    def rows(report: Report) -> Iterator[Row]:
        for engine in report.engines:
            own = (engine.engine, engine.model)
            for labels, value in read(engine):
                yield (*own, *labels), value

    return rows


def _signal(name: str) -> Rows:
    def read(engine: EngineReport) -> Iterator[Row]:
        if name in engine.signals:
            yield (), engine.signals[name]

    return _engines(read)


def _phases(stem: str) -> Rows:
    def read(engine: EngineReport) -> Iterator[Row]:
        for phase in ("prefill", "decode"):
            if (value := engine.signals.get(f"{phase}_{stem}")) is not None:
                yield (phase,), value

    return _engines(read)


def _gpus(name: str) -> Rows:
    def rows(report: Report) -> Iterator[Row]:
        for gpu in report.gpus:
            if (value := gpu.signals.get(name)) is not None:
                yield (gpu.gpu,), value

    return rows


def catalogue(limits: tuple[str, ...], version: str) -> tuple[Family, ...]:
    """Every family, for these limits' names."""

    def binding(engine: EngineReport) -> Iterator[Row]:
        for scope, verdict in engine.verdict.items():
            yield from (((scope, limit), float(limit == verdict.limit)) for limit in limits)

    def seconds(engine: EngineReport) -> Iterator[Row]:
        yield from sorted(engine.binding_seconds.items())

    return (
        Family(
            name="boundby_binding_limit",
            kind="gauge",
            help="1 for the limit that binds in the scope, 0 for every other; exactly one is 1.",
            labels=(*ENGINE, "scope", "limit"),
            rows=_engines(binding),
            stability="stable",
        ),
        Family(
            name="boundby_limit_binding_seconds_total",
            kind="counter",
            help="Time that each limit has bound; its rate is a share of time.",
            labels=(*ENGINE, "scope", "limit"),
            rows=_engines(seconds),
            stability="stable",
        ),
        Family(
            name="boundby_limit_score_ratio",
            kind="gauge",
            help=(
                "Estimated elasticity: relative gain for a small relative improvement of the "
                "limit's resource, 0 to 1; absent where an input is missing."
            ),
            labels=(*ENGINE, "limit"),
            rows=_engines(
                lambda e: (((r.limit,), r.score) for r in e.limits if r.score is not None)
            ),
            stability="stable",
        ),
        Family(
            name="boundby_limit_headroom_ratio",
            kind="gauge",
            help="Gain of throughput from lifting the limit until the next one binds.",
            labels=(*ENGINE, "limit"),
            rows=_engines(
                lambda e: (((r.limit,), r.headroom) for r in e.limits if r.headroom is not None)
            ),
            stability="stable",
        ),
        Family(
            name="boundby_limit_missing_inputs",
            kind="gauge",
            help="Inputs that the limit lacked; above 0 it could not be judged in some scope.",
            labels=(*ENGINE, "limit"),
            rows=_engines(lambda e: (((r.limit,), float(len(r.missing))) for r in e.limits)),
            stability="stable",
        ),
        Family(
            name="boundby_verdict_confidence_ratio",
            kind="gauge",
            help="Probability that the verdict is right, as calibrated on labelled recordings.",
            labels=(*ENGINE, "scope"),
            rows=_engines(lambda e: (((s,), v.confidence) for s, v in e.verdict.items())),
            stability="stable",
        ),
        Family(
            name="boundby_verdict_changes_total",
            kind="counter",
            help="Changes of the verdict shown.",
            labels=(*ENGINE, "scope"),
            rows=_engines(lambda e: (((s,), n) for s, n in e.verdict_changes.items())),
        ),
        Family(
            name="boundby_saturated",
            kind="gauge",
            help="1 when work is waiting or more load would bring little.",
            labels=ENGINE,
            rows=_engines(lambda e: () if e.saturated is None else (((), float(e.saturated)),)),
            stability="stable",
        ),
        Family(
            name="boundby_engine_state",
            kind="gauge",
            help="1 for what the engine is doing, 0 for every other state.",
            labels=(*ENGINE, "state"),
            rows=_engines(lambda e: (((s,), float(s == e.state)) for s in STATES)),
            stability="stable",
        ),
        Family(
            name="boundby_time_share_ratio",
            kind="gauge",
            help="Share of wall time by what it went to; the parts sum to 1.",
            labels=(*ENGINE, "part"),
            rows=_engines(lambda e: (((p,), e.time[p]) for p in TIME_PARTS if p in e.time)),
            stability="stable",
        ),
        Family(
            name="boundby_arithmetic_intensity_flops_per_byte",
            kind="gauge",
            help="FLOPs per byte that the model's steps must move, by phase.",
            labels=(*ENGINE, "phase"),
            rows=_phases("arithmetic_intensity_flops_per_byte"),
            stability="stable",
        ),
        Family(
            name="boundby_operational_intensity_flops_per_byte",
            kind="gauge",
            help="FLOPs per byte of measured DRAM traffic; absent without cycle counters.",
            labels=("gpu",),
            rows=_gpus("operational_intensity_flops_per_byte"),
            stability="stable",
        ),
        Family(
            name="boundby_ridge_point_flops_per_byte",
            kind="gauge",
            help="Intensity at which compute and memory take as long, at today's clocks.",
            labels=("gpu",),
            rows=_gpus("ridge_point_flops_per_byte"),
            stability="stable",
        ),
        *(
            Family(
                name=name,
                kind="gauge",
                help=text,
                labels=ENGINE,
                rows=_signal(signal),
                stability="stable",
            )
            for name, signal, text in (
                (
                    "boundby_mfu_ratio",
                    "mfu_ratio",
                    "Model FLOPs utilisation: useful FLOP/s over the peak of the dtype in use.",
                ),
                (
                    "boundby_mbu_ratio",
                    "mbu_ratio",
                    "Model bandwidth utilisation: bytes that steps must move over peak bandwidth.",
                ),
                ("boundby_kv_used_ratio", "kv_used_ratio", "KV cache in use, mean of the window."),
                (
                    "boundby_kv_capacity_tokens",
                    "kv_capacity_tokens",
                    "Tokens that the KV cache can hold.",
                ),
                (
                    "boundby_kv_fitting_sequences",
                    "kv_fitting_sequences",
                    "Sequences that fit in the KV cache at today's mean context.",
                ),
                (
                    "boundby_decode_step_seconds",
                    "decode_step_seconds",
                    "Mean length of a step as a decoding sequence sees it.",
                ),
                (
                    "boundby_decode_step_floor_seconds",
                    "decode_step_floor_seconds",
                    "What the roofline alone would take for a step that only decodes.",
                ),
                (
                    "boundby_batch_sequences",
                    "batch_sequences",
                    "Sequences in the batch while any ran, mean of the window.",
                ),
                (
                    "boundby_batch_slots",
                    "batch_slots_sequences",
                    "Most sequences the batch may hold, as set or as inferred.",
                ),
                (
                    "boundby_host_gap_ratio",
                    "host_gap_ratio",
                    "Share of time that the GPU waited for the host while requests ran.",
                ),
                (
                    "boundby_prefix_hit_ratio",
                    "prefix_hit_ratio",
                    "Prompt tokens found in the prefix cache over those asked for.",
                ),
                (
                    "boundby_calibration_residual_ratio",
                    "calibration_residual_ratio",
                    "Mean relative error of step times learnt from this deployment's own steps.",
                ),
                (
                    "boundby_calibration_age_seconds",
                    "calibration_age_seconds",
                    "Time since this deployment is learnt; a new model or GPU starts it anew.",
                ),
                (
                    "boundby_engine_flops_ratio",
                    "engine_flops_ratio",
                    "FLOPs by the engine's own counter over those of the cost model; 1 agrees.",
                ),
                (
                    "boundby_modelled_bytes_ratio",
                    "modelled_bytes_ratio",
                    "Bytes that the cost model explains over bytes that DRAM counters saw.",
                ),
            )
        ),
        Family(
            name="boundby_host_gap_seconds_total",
            kind="counter",
            help="Time that the GPU waited for the host while requests ran.",
            labels=ENGINE,
            rows=_engines(lambda e: (((), e.host_gap_seconds_total),)),
            stability="stable",
        ),
        Family(
            name="boundby_engine_info",
            kind="info",
            help="The engine's kind and version.",
            labels=(*ENGINE, "kind", "version"),
            rows=_engines(lambda e: (((e.kind, e.infos.get("version", "")), 1.0),)),
            stability="stable",
        ),
        Family(
            name="boundby_gpu_info",
            kind="info",
            help="The GPU's index and name.",
            labels=("gpu", "index", "name"),
            rows=lambda r: (
                ((g.gpu, "" if g.index is None else str(g.index), g.name or ""), 1.0)
                for g in r.gpus
            ),
            stability="stable",
        ),
        Family(
            name="boundby_source_up",
            kind="gauge",
            help="1 while the source's last read succeeded.",
            labels=("source",),
            rows=lambda r: (((s.source,), float(s.up)) for s in r.sources),
            stability="stable",
        ),
        Family(
            name="boundby_source_age_seconds",
            kind="gauge",
            help="Age of the source's newest good read when the report was made.",
            labels=("source",),
            rows=lambda r: (((s.source,), s.age_seconds) for s in r.sources),
        ),
        Family(
            name="boundby_source_read_duration_seconds",
            kind="gauge",
            help="How long the source's last read took.",
            labels=("source",),
            rows=lambda r: (((s.source,), s.duration_seconds) for s in r.sources),
            stability="stable",
        ),
        Family(
            name="boundby_source_missing_metrics",
            kind="gauge",
            help="Names expected of the source that its page lacks.",
            labels=("source",),
            rows=lambda r: (((s.source,), float(len(s.missing))) for s in r.sources),
            stability="stable",
        ),
        Family(
            name="boundby_report_timestamp_seconds",
            kind="gauge",
            help="Unix time of the report that these rows come from.",
            labels=(),
            rows=lambda r: (((), r.at),) if r.at else (),
        ),
        Family(
            name="boundby_build_info",
            kind="info",
            help="The version of boundby.",
            labels=("version",),
            rows=lambda _: (((version,), 1.0),),
            stability="stable",
        ),
    )
