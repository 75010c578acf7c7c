"""The HTTP front doors: /metrics, /report.json, /, /healthz and /readyz.

Every answer is made from bytes that were rendered when the report was: a request never waits for a
source. A report past its age is served without what it concluded, and /readyz says so.
"""

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from boundby.app.loop import without_engines
from boundby.core.report import Report
from boundby.sinks import html_report, json_report, prometheus
from boundby.sinks.catalogue import Family

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Sent with every answer: nothing is loaded from elsewhere, nothing is framed or kept."""

PATHS = ("/", "/metrics", "/report.json", "/healthz", "/readyz", "/style.css")


@dataclass(frozen=True, slots=True)
class _Bytes:
    """One report in every form."""

    report: Report
    page: prometheus.Page
    json: bytes
    html: bytes


class Board:
    """Holds the newest report, rendered once; gives it, or what is left of it when it is old."""

    def __init__(
        self, families: Sequence[Family], *, stale_after_seconds: float, now: Callable[[], float]
    ) -> None:
        self._families = families
        self._stale_after = stale_after_seconds
        self._now = now
        self._fresh = self._render(Report(at=0.0, window_seconds=0.0, ready=False))
        self._stale: _Bytes | None = None

    def publish(self, report: Report) -> None:
        """Render a report and serve it from now on."""
        self._fresh = self._render(report)
        self._stale = None

    @property
    def report(self) -> Report:
        """The newest report."""
        return self._fresh.report

    def ready(self) -> str | None:
        """None when a fresh verdict is served, else what is wrong."""
        report = self._fresh.report
        if not report.at:
            return "no report yet"
        if self._old():
            return f"the newest report is {self._now() - report.at:.0f} s old"
        if not report.ready:
            down = [s.source for s in report.sources if not s.up]
            return f"no verdict yet; down: {', '.join(down) or 'nothing'}"
        return None

    def current(self) -> _Bytes:
        """What to serve now."""
        if not self._old():
            return self._fresh
        if self._stale is None:
            self._stale = self._render(without_engines(self._fresh.report))
        return self._stale

    def _old(self) -> bool:
        at = self._fresh.report.at
        return bool(at) and self._now() - at > self._stale_after

    def _render(self, report: Report) -> _Bytes:
        return _Bytes(
            report,
            prometheus.render(report, self._families),
            json_report.render(report).encode(),
            html_report.render(report, self._now()).encode(),
        )


def application(board: Board) -> web.Application:
    """Build the application."""

    async def metrics(request: web.Request) -> web.Response:
        wants = "application/openmetrics-text" in request.headers.get("Accept", "")
        page = board.current().page
        body = page.openmetrics if wants else page.text
        headers = {"Content-Type": prometheus.OPENMETRICS if wants else prometheus.TEXT}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept, Accept-Encoding"
        return web.Response(body=body, headers=headers)

    async def report(_: web.Request) -> web.Response:
        return web.Response(body=board.current().json, content_type="application/json")

    async def page(_: web.Request) -> web.Response:
        return web.Response(body=board.current().html, content_type="text/html", charset="utf-8")

    async def style(_: web.Request) -> web.Response:
        return web.Response(text=html_report.STYLE, content_type="text/css")

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        wrong = board.ready()
        return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)

    @web.middleware
    async def finish(
        request: web.Request, handler: Callable[[web.Request], web.StreamResponse]
    ) -> web.StreamResponse:
        try:
            response = await handler(request)  # type: ignore[misc]  # aiohttp's handlers are coroutines
        except web.HTTPNotFound:
            text = f"nothing here; there are: {', '.join(PATHS)}\n"
            response = web.Response(text=text, status=404)
        except web.HTTPMethodNotAllowed as error:
            response = web.Response(
                text=f"only {', '.join(sorted(error.allowed_methods))} here\n", status=405
            )
        response.headers.update(HEADERS)
        return response

    app = web.Application(middlewares=[finish], client_max_size=1024)  # type: ignore[list-item]  # see above
    app.add_routes(
        [
            web.get("/metrics", metrics),
            web.get("/report.json", report),
            web.get("/", page),
            web.get("/style.css", style),
            web.get("/healthz", healthz),
            web.get("/readyz", readyz),
        ]
    )
    return app
