"""The catalogue as exposition, text and OpenMetrics, by the client library's writers."""

from collections.abc import Iterator, Sequence
from typing import cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.openmetrics import exposition as openmetrics

from boundby.core.report import Report
from boundby.sinks.catalogue import Family

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = openmetrics.CONTENT_TYPE_LATEST


class _Families:
    """What the writers ask of a registry: families, fresh each time."""

    def __init__(self, families: Sequence[Family], report: Report) -> None:
        self._families = families
        self._report = report

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            kind = "gauge" if family.kind == "info" else family.kind
            name = family.name.removesuffix("_total") if kind == "counter" else family.name
            metric = Metric(name, family.help, kind)
            for labels, value in family.rows(self._report):
                metric.add_sample(
                    family.name, dict(zip(family.labels, labels, strict=True)), value
                )
            if metric.samples:
                yield metric


def text(report: Report, families: Sequence[Family]) -> bytes:
    """Write a report in the Prometheus text format."""
    return generate_latest(cast("CollectorRegistry", _Families(families, report)))


def open_text(report: Report, families: Sequence[Family]) -> bytes:
    """Write a report in the OpenMetrics format."""
    source = cast("CollectorRegistry", _Families(families, report))
    written: bytes = openmetrics.generate_latest(source)  # type: ignore[no-untyped-call]  # theirs
    return written
