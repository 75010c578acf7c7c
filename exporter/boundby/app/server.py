"""The HTTP front doors: /metrics, /report.json, /, /healthz and /readyz.

Every answer is made from the newest report, and each form of it is made once: a request never
waits for a source. A report past its age is served without what it concluded, and /readyz says so.
"""

import gzip
import logging
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from boundby.app.loop import without_engines
from boundby.core.report import Report
from boundby.sinks import html_report, json_report, prometheus
from boundby.sinks.catalogue import Family

log = logging.getLogger("boundby.server")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

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


class _Rendered:
    """One report in every form it was asked for in; each form is made once."""

    def __init__(self, report: Report, families: Sequence[Family], now: float) -> None:
        self.report = report
        self._makers: dict[str, Callable[[], bytes]] = {
            "text": lambda: prometheus.text(report, families),
            "openmetrics": lambda: prometheus.open_text(report, families),
            "json": lambda: json_report.render(report).encode(),
            "html": lambda: html_report.render(report, now).encode(),
        }
        self._made: dict[str, bytes] = {}

    def __getitem__(self, form: str) -> bytes:
        """The report in this form."""
        if form not in self._made:
            self._made[form] = self._makers[form]()
        return self._made[form]


class Board:
    """Holds the newest report; gives it in every form, or what is left of it when it is old.

    `now` is a clock that nobody sets; a report is as old as its publishing.
    """

    def __init__(
        self, families: Sequence[Family], *, stale_after_seconds: float, now: Callable[[], float]
    ) -> None:
        self._families = families
        self._stale_after = stale_after_seconds
        self._now = now
        self._published = now()
        self._fresh = self._render(Report(at=0.0, window_seconds=0.0, ready=False))
        self._stale: _Rendered | None = None

    def publish(self, report: Report) -> None:
        """Serve a report from now on."""
        self._published = self._now()
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
            return f"the newest report is {self._age():.0f} s old"
        if not report.ready:
            down = [s.source for s in report.sources if not s.up]
            return f"no verdict yet; down: {', '.join(down) or 'nothing'}"
        return None

    def current(self) -> _Rendered:
        """What to serve now."""
        if not self._old():
            return self._fresh
        if self._stale is None:
            self._stale = self._render(without_engines(self._fresh.report))
        return self._stale

    def _age(self) -> float:
        return self._now() - self._published

    def _old(self) -> bool:
        return bool(self._fresh.report.at) and self._age() > self._stale_after

    def _render(self, report: Report) -> _Rendered:
        return _Rendered(report, self._families, report.at + self._age())


class _Doors:
    """The handlers; each answers from the board."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def metrics(self, request: web.Request) -> web.Response:
        """The families, in the format that is asked for."""
        wants = "application/openmetrics-text" in request.headers.get("Accept", "")
        body = self._board.current()["openmetrics" if wants else "text"]
        headers = {
            "Content-Type": prometheus.OPENMETRICS if wants else prometheus.TEXT,
            "Vary": "Accept, Accept-Encoding",
        }
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, headers=headers)

    async def report(self, _: web.Request) -> web.Response:
        """The report as JSON."""
        return web.Response(body=self._board.current()["json"], content_type="application/json")

    async def page(self, _: web.Request) -> web.Response:
        """The page."""
        html = self._board.current()["html"]
        return web.Response(body=html, content_type="text/html", charset="utf-8")

    async def style(self, _: web.Request) -> web.Response:
        """The page's style sheet."""
        return web.Response(text=html_report.STYLE, content_type="text/css")

    async def healthz(self, _: web.Request) -> web.Response:
        """The process is there."""
        return web.Response(text="ok\n")

    async def readyz(self, _: web.Request) -> web.Response:
        """A fresh verdict is served, or what is wrong."""
        wrong = self._board.ready()
        return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)


_said: dict[str, str] = {}


def _say_once(path: str, error: Exception) -> None:
    """Log a fault of ours once for each path and kind."""
    said = f"{type(error).__name__}: {error}"
    if _said.get(path) != said:
        _said[path] = said
        log.error("path=%s cannot be written: %s", path, said, exc_info=error)


@web.middleware
async def _finish(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give every answer its headers, and a wrong path the right ones."""
    response: web.StreamResponse
    try:
        response = await handler(request)
    except web.HTTPNotFound:
        text = f"nothing here; there are: {', '.join(PATHS)}\n"
        response = web.Response(text=text, status=404)
    except web.HTTPMethodNotAllowed as error:
        text = f"only {', '.join(sorted(error.allowed_methods))} here\n"
        response = web.Response(text=text, status=405)
    except web.HTTPException:
        raise
    except Exception as error:  # noqa: BLE001  a report that cannot be written ends no server
        _say_once(request.path, error)
        text = f"this cannot be written ({type(error).__name__}); the log says why\n"
        response = web.Response(text=text, status=500)
    response.headers.update(HEADERS)
    return response


def application(board: Board) -> web.Application:
    """Build the application that serves a board."""
    doors = _Doors(board)
    app = web.Application(middlewares=[_finish], client_max_size=1024)
    app.add_routes(
        [
            web.get("/metrics", doors.metrics),
            web.get("/report.json", doors.report),
            web.get("/", doors.page),
            web.get("/style.css", doors.style),
            web.get("/healthz", doors.healthz),
            web.get("/readyz", doors.readyz),
        ]
    )
    return app
