"""What the sinks print for labelled runs, whole, and what holds for any report."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families

from boundby.core.parts import SourceState
from boundby.core.report import EngineReport, LimitReport, Report, Verdict
from boundby.core.watch import Options, Watch
from boundby.sinks import html_report, json_report, prometheus, terminal
from boundby.sinks.catalogue import catalogue
from boundby.sources.recording import open_recording
from boundby_rules import LIMITS

NAMES = tuple(limit.name for limit in LIMITS)
FAMILIES = catalogue(NAMES, "0.0.0")
SIMULATED = Path(__file__).parents[1] / "fixtures" / "simulated-servers"


def summary(name: str) -> Report:
    recording = open_recording(SIMULATED / f"{name}.jsonl.gz")
    watch = Watch(recording.setup, LIMITS, Options(remember=True))
    for snapshot in recording.snapshots:
        watch.take(snapshot)
    return watch.summary()


def test_a_full_cache_reads_like_this(golden: Callable[[str, str], None]) -> None:
    golden("kv-full.prom", prometheus.text(summary("kv_full-054"), FAMILIES).decode())


def test_a_full_cache_is_told_like_this(golden: Callable[[str, str], None]) -> None:
    golden("kv-full.txt", terminal.render(summary("kv_full-054")))


def test_a_full_cache_is_reported_like_this(golden: Callable[[str, str], None]) -> None:
    golden("kv-full.json", json_report.render(summary("kv_full-054"), indent=1) + "\n")


def test_a_full_cache_looks_like_this(golden: Callable[[str, str], None]) -> None:
    report = summary("kv_full-054")

    golden("kv-full.html", html_report.render(report, report.at))


def test_a_limit_is_explained_like_this(golden: Callable[[str, str], None]) -> None:
    limit = next(limit for limit in LIMITS if limit.name == "kv_capacity")

    golden("explain-kv_capacity.txt", terminal.explain(limit))


words = st.text(max_size=20)
verdicts = st.builds(
    Verdict,
    limit=st.sampled_from(NAMES),
    confidence=st.floats(0, 1),
    since=st.floats(0, 1e9),
    because=st.lists(words, max_size=3).map(tuple),
)
engines = st.builds(
    EngineReport,
    engine=words,
    kind=words,
    model=words,
    state=st.sampled_from(["active", "idle", "stalled", "asleep", "down"]),
    saturated=st.none() | st.booleans(),
    verdict=st.fixed_dictionaries({"engine": verdicts}, optional={"decode": verdicts}),
    limits=st.just((LimitReport(limit="demand", score=0.5, headroom=None, binds=True),)),
    story=words,
)
reports = st.builds(
    Report,
    at=st.floats(0, 1e9),
    window_seconds=st.floats(0, 1e4),
    engines=st.lists(engines, max_size=3, unique_by=lambda e: (e.engine, e.model)).map(tuple),
    sources=st.just((SourceState(source="engine", up=True, age_seconds=0.0, detail="<&>"),)),
)


@given(reports)
def test_exactly_one_answer_is_1_for_each_engine_and_scope(report: Report) -> None:
    rows: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(prometheus.text(report, FAMILIES).decode()):
        if family.name == "boundby_binding_limit":
            for sample in family.samples:
                key = tuple(sample.labels[k] for k in ("engine", "model_name", "scope"))
                rows[key] = rows.get(key, 0.0) + sample.value

    assert set(rows.values()) <= {1.0}
    assert len(rows) == sum(len(engine.verdict) for engine in report.engines)


@given(reports)
def test_no_report_breaks_a_sink(report: Report) -> None:
    list(open_families(prometheus.open_text(report, FAMILIES).decode()))
    json.loads(json_report.render(report))
    terminal.render(report)
    page = html_report.render(report, report.at + 1)

    assert page.count("<section>") == page.count("</section>")


def test_a_page_of_one_engine_with_eight_gpus_is_within_its_series() -> None:
    page = prometheus.text(summary("pcie-042"), FAMILIES).decode()

    assert sum(1 for line in page.splitlines() if not line.startswith("#")) <= 300


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_is_named_by_the_rules(family: object) -> None:
    name, kind = family.name, family.kind  # type: ignore[attr-defined]  # a Family

    assert name.startswith("boundby_")
    assert name.endswith("_total") == (kind == "counter")
    assert name.endswith("_info") == (kind == "info")
    assert family.help.endswith(".")  # type: ignore[attr-defined]  # a Family
