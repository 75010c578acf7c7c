"""A server that answers with the pages of a recording, each for as long as it was the newest.

    replayed_engine.py RECORDING --source engine --port 8000

Starts over when the recording ends, as an engine does that is restarted: its counters fall back.
"""

import argparse
import gzip
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def pages(recording: Path, source: str) -> list[tuple[float, bytes]]:
    """One source's pages with the seconds from the first of them."""
    with gzip.open(recording, "rt", encoding="utf-8") as file:
        next(file)
        reads = [read for line in file if (read := json.loads(line))["source"] == source]
    begin = reads[0]["t"]
    return [(read["t"] - begin, read["body"].encode()) for read in reads]


class Player:
    """Knows which page is the newest at a moment."""

    def __init__(self, recorded: list[tuple[float, bytes]]) -> None:
        self._recorded = recorded
        self._length = recorded[-1][0] + recorded[-1][0] / len(recorded)
        self._begin = time.monotonic()

    def page(self) -> bytes:
        at = (time.monotonic() - self._begin) % self._length
        return next(body for t, body in reversed(self._recorded) if t <= at)


def handler(player: Player) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = player.page()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("recording", type=Path)
    ask.add_argument("--source", default="engine")
    ask.add_argument("--port", type=int, default=0)
    args = ask.parse_args()
    player = Player(pages(args.recording, args.source))
    ThreadingHTTPServer(("127.0.0.1", args.port), handler(player)).serve_forever()


if __name__ == "__main__":
    main()
