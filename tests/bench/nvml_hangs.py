"""What a scrape costs while the driver hangs, one NVML call after the other.

Run it by hand: python tests/bench/nvml_hangs.py [CALLS]. It prints, and never fails. Loop, feed,
board and server are the real ones; the driver is the fake of tests/fake_nvml. The budget is 5 ms
for the 99th hundredth of scrapes.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / part) for part in ("exporter", "rules", "tests")]

import aiohttp  # noqa: E402  the paths come first
import pynvml  # noqa: E402

from boundby.app.config import Settings  # noqa: E402
from boundby.app.live import serving  # noqa: E402
from boundby.app.loop import Loop  # noqa: E402
from boundby.app.server import Board  # noqa: E402
from boundby.app.wiring import NvmlFeed, SystemClock, all_limits, board  # noqa: E402
from boundby.core.setup import Setup  # noqa: E402
from boundby.core.watch import Watch  # noqa: E402
from boundby.sources.nvml import NvmlSource  # noqa: E402
from fake_nvml.calls import ALL_CALLS, RICH, SECOND  # noqa: E402
from fake_nvml.stage import build  # noqa: E402

BEAT_SECONDS = 0.1
DEADLINE_SECONDS = 0.05
QUICKER = 40
"""The source's clock runs so much faster, so that what it does every 10 s comes soon."""

PATIENCE_SECONDS = 5.0
SCRAPES = 60
BUDGET_SECONDS = 0.005
DOWN = 'boundby_source_up{source="nvml"} 0.0'
UP = 'boundby_source_up{source="nvml"} 1.0'


def script(words: str) -> None:
    """Tell the fake driver what to do."""
    if pynvml.nvmlLib is None:
        pynvml._LoadNvmlLibrary()  # noqa: SLF001  before the first call
    pynvml.nvmlLib.fake_script(words.encode())


class Scraper:
    """Scrapes and notes how long each took."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self.took: list[float] = []

    async def scrape(self) -> str:
        """Fetch the page once."""
        begun = time.perf_counter()
        async with self._session.get(self._url) as response:
            page = await response.text()
        self.took.append(time.perf_counter() - begun)
        return page

    async def seen(self, row: str) -> bool:
        """Scrape until a row is there."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            if row in await self.scrape():
                return True
            await asyncio.sleep(BEAT_SECONDS / 4)
        return False


async def hang(function: str, shown: Board, scraper: Scraper) -> tuple[bool, bool]:
    """Hang one call under a running loop; whether that was seen, and seen to be over."""
    script(f"clear {RICH} {SECOND.get(function, '')} hang.{function}=1")
    source = NvmlSource(
        clock=lambda: time.monotonic() * QUICKER, deadline_seconds=DEADLINE_SECONDS, gpm="on"
    )
    feed = NvmlFeed(source, deadline_seconds=4 * DEADLINE_SECONDS)
    watch = Watch(Setup(), all_limits())
    loop = Loop([feed], watch, SystemClock(), beat_seconds=BEAT_SECONDS, publish=shown.publish)
    running = asyncio.ensure_future(loop.run())
    await asyncio.sleep(4 * BEAT_SECONDS)
    script("gpus=2")
    down = await scraper.seen(DOWN)
    for _ in range(SCRAPES):
        await scraper.scrape()
        await asyncio.sleep(BEAT_SECONDS / 20)
    script(f"hang.{function}=0")
    up = await scraper.seen(UP)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await source.close()
    return down, up


async def measure(functions: list[str]) -> None:
    """Hang each, and print."""
    settings = Settings(listen="127.0.0.1:0")
    shown = board(settings, all_limits())
    async with serving(shown, settings) as where, aiohttp.ClientSession() as session:
        scraper = Scraper(session, f"{where}/metrics")
        for function in functions:
            down, up = await hang(function, shown, scraper)
            if not (down and up):
                sys.stdout.write(f"{function}: seen down {down}, back {up}\n")
    took = sorted(scraper.took)
    middle, late = took[len(took) // 2], took[int(len(took) * 0.99)]
    sys.stdout.write(
        f"{len(functions)} calls hung one by one, {len(took)} scrapes: median "
        f"{middle * 1000:.2f} ms, p99 {late * 1000:.2f} ms, longest {took[-1] * 1000:.2f} ms "
        f"(budget of p99: {BUDGET_SECONDS * 1000:.0f} ms)\n"
    )


def main() -> None:
    """Build the fake and measure in a process that loads it."""
    if "FAKE_NVML" in os.environ:
        asyncio.run(measure(sys.argv[1:] or list(ALL_CALLS)))
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(  # noqa: S603  ourselves, with the fake in front
            [sys.executable, __file__, *sys.argv[1:]],
            check=True,
            env={
                **os.environ,
                "FAKE_NVML": "gpus=1",
                "LD_LIBRARY_PATH": str(build(Path(folder))),
            },
        )


if __name__ == "__main__":
    main()
