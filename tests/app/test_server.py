"""The front doors over HTTP: what each answers, when a report is fresh, old or not there."""

import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import web

from boundby.app.server import HEADERS, PATHS, Board, application
from boundby.core.parts import SourceState
from boundby.core.report import EngineReport, Report, Verdict
from boundby.sinks.catalogue import catalogue

FAMILIES = catalogue(("demand", "unknown"), "1.2.3")


@dataclass
class Hand:
    """The time as the test says it is."""

    at: float = 1000.0

    def __call__(self) -> float:
        return self.at


@dataclass
class Site:
    """A served board."""

    board: Board
    hand: Hand
    url: str
    session: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> aiohttp.ClientResponse:
        return await self.session.get(self.url + path, headers=headers)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    hand = Hand()
    board = Board(FAMILIES, stale_after_seconds=15.0, now=hand)
    runner = web.AppRunner(application(board), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    async with aiohttp.ClientSession() as session:
        yield Site(board, hand, f"http://{host}:{port}", session)
    await runner.cleanup()


def report(at: float) -> Report:
    return Report(
        at=at,
        window_seconds=30.0,
        engines=(
            EngineReport(
                engine="0",
                kind="vllm",
                model='<script>alert("m")</script>',
                state="idle",
                saturated=False,
                verdict={"engine": Verdict(limit="demand", confidence=0.9, since=at - 5)},
            ),
        ),
        sources=(SourceState(source="engine", up=True, age_seconds=0.0, detail="fine"),),
    )


@pytest.mark.parametrize("path", PATHS)
async def test_every_path_answers_with_its_headers(site: Site, path: str) -> None:
    site.board.publish(report(1000.0))

    response = await site.get(path)

    assert response.status == 200
    assert {name: response.headers[name] for name in HEADERS} == HEADERS


async def test_a_wrong_path_names_the_right_ones(site: Site) -> None:
    response = await site.get("/metric")

    assert response.status == 404
    assert await response.text() == (
        "nothing here; there are: /, /metrics, /report.json, /healthz, /readyz, /style.css\n"
    )


async def test_nothing_can_be_posted(site: Site) -> None:
    response = await site.session.post(f"{site.url}/metrics", data=b"x")

    assert response.status == 405
    assert await response.text() == "only GET, HEAD here\n"


@pytest.mark.parametrize(
    ("accept", "kind", "ending"),
    [
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8", "\n"),
        (
            "application/openmetrics-text; version=1.0.0",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "# EOF\n",
        ),
    ],
)
async def test_the_format_is_what_was_asked_for(
    site: Site, accept: str, kind: str, ending: str
) -> None:
    site.board.publish(report(1000.0))

    response = await site.get("/metrics", Accept=accept)

    assert response.headers["Content-Type"] == kind
    assert (await response.text()).endswith(ending)


async def test_a_page_is_packed_when_that_is_asked_for(site: Site) -> None:
    site.board.publish(report(1000.0))
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        response = await session.get(f"{site.url}/metrics", headers={"Accept-Encoding": "gzip"})
        body = await response.read()

    assert b"boundby_binding_limit" in gzip.decompress(body)


async def test_before_the_first_report_nothing_is_ready(site: Site) -> None:
    response = await site.get("/readyz")

    assert (response.status, await response.text()) == (503, "no report yet\n")


async def test_an_old_report_is_not_served_as_new(site: Site) -> None:
    site.board.publish(report(1000.0))
    site.hand.at = 1020.0

    ready = await site.get("/readyz")
    metrics = await (await site.get("/metrics")).text()
    document = json.loads(await (await site.get("/report.json")).text())

    assert (ready.status, await ready.text()) == (503, "the newest report is 20 s old\n")
    assert "boundby_binding_limit" not in metrics
    assert "boundby_source_up" in metrics
    assert document["engines"] == []


async def test_the_page_escapes_what_comes_from_outside(site: Site) -> None:
    site.board.publish(report(1000.0))

    page = await (await site.get("/")).text()

    assert "<script>" not in page
    assert "&lt;script&gt;" in page


async def test_a_report_without_a_verdict_says_which_source_is_down(site: Site) -> None:
    down = SourceState(source="engine", up=False, age_seconds=3.0, detail="refused")
    site.board.publish(Report(at=1000.0, window_seconds=30.0, sources=(down,), ready=False))

    response = await site.get("/readyz")

    assert await response.text() == "no verdict yet; down: engine\n"


async def test_a_report_is_old_by_its_publishing_whatever_its_own_clock_says(site: Site) -> None:
    site.board.publish(report(999_999.0))
    site.hand.at = 1020.0

    assert (await site.get("/readyz")).status == 503


async def test_a_report_that_cannot_be_written_is_told_and_the_rest_goes_on(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.board.publish(Report(at=1000.0, window_seconds=float("nan")))

    broken = [await site.get("/report.json") for _ in range(2)]
    whole = await site.get("/metrics")

    assert [answer.status for answer in broken] == [500, 500]
    assert broken[0].headers["X-Content-Type-Options"] == "nosniff"
    assert await broken[0].text() == "this cannot be written (ValueError); the log says why\n"
    assert (whole.status, len(caplog.records)) == (200, 1)
