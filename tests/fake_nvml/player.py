"""The process that plays: real nvidia-ml-py, our source, the fake library under both."""

import asyncio
import ctypes
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pynvml

from boundby.sources.base import SourceError
from boundby.sources.gpm_probe import BEING_TRIED
from boundby.sources.nvml import NvmlSource, to_body

PATIENCE_SECONDS = 20.0


class Clock:
    """Stands still until it is set on, or made to run."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.runs = False

    def __call__(self) -> float:
        return time.monotonic() if self.runs else self.now


def library() -> Any:
    """Give the library as the binding has it loaded now; a second handle would pin it."""
    if pynvml.nvmlLib is None:
        pynvml._LoadNvmlLibrary()  # noqa: SLF001  to script it before the first call
    loaded = pynvml.nvmlLib
    loaded.fake_calls.restype = ctypes.c_long
    loaded.fake_samples.restype = ctypes.c_long
    return loaded


class Player:
    """One play."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.clock = Clock()
        self.source = NvmlSource(
            clock=self.clock, gpm=asked["gpm"], deadline_seconds=asked["deadline_seconds"]
        )
        self.seen: list[Any] = []
        library().fake_script(f"clear {asked['script']}".encode())

    async def read(self, way: Any = None) -> dict[str, Any]:
        begun = time.monotonic()
        try:
            read = await (way or self.source.read)()
        except SourceError as error:
            return {"down": str(error), "took": time.monotonic() - begun}
        body = json.loads(json.dumps(to_body(read), allow_nan=False))
        return {
            "gpus": {gpu["gpu"]: gpu for gpu in body["gpus"]},
            "source": read.source,
            "reasons": dict(read.reasons),
            "processes": {key: list(pids) for key, pids in read.processes.items()},
        }

    async def step(self, words: str) -> None:
        """Do one step; its verb is the name of a method below."""
        verb, _, rest = words.partition(" ")
        seen = await getattr(self, f"do_{verb}")(rest)
        if seen is not None:
            self.seen.append(seen)

    async def do_read(self, _: str) -> dict[str, Any]:
        return await self.read()

    async def do_settled(self, _: str) -> dict[str, Any]:
        self.clock.runs = True
        return await self.read(self.source.settled)

    async def do_clock(self, seconds: str) -> None:
        self.clock.now += float(seconds)

    async def do_script(self, words: str) -> None:
        library().fake_script(words.encode())

    async def do_calls(self, function: str) -> int:
        return int(library().fake_calls(function.encode()))

    async def do_functions(self, _: str) -> list[str]:
        names = ctypes.create_string_buffer(8192)
        library().fake_functions(names, ctypes.c_size_t(len(names)))
        return names.value.decode().split()

    async def do_samples(self, _: str) -> int:
        return int(library().fake_samples())

    async def do_threads(self, _: str) -> int:
        return [thread.name for thread in threading.enumerate()].count("boundby-nvml")

    async def do_settle(self, _: str) -> None:
        await self.until(lambda _: not self.source.hangs, reads=False)

    async def do_recover(self, _: str) -> None:
        await self.until(lambda read: "gpus" in read)

    async def do_tried(self, _: str) -> None:
        await self.until(lambda read: BEING_TRIED not in str(read["reasons"]))

    async def do_install(self, library_file: str) -> None:
        loaded = Path(os.environ["LD_LIBRARY_PATH"], "libnvidia-ml.so.1")
        fresh = loaded.with_suffix(".new")
        shutil.copy(library_file, fresh)
        fresh.rename(loaded)
        os.environ["FAKE_NVML"] = "driver=590.48"

    async def do_readers(self, count: str) -> list[list[int]]:
        return await readers(int(count))

    async def do_binding(self, _: str) -> str:
        return str(pynvml.__file__)

    async def do_close(self, _: str) -> None:
        await self.source.close()

    async def until(self, good: Any, *, reads: bool = True) -> None:
        """Wait for other threads and processes, reading the while."""
        for _ in range(int(PATIENCE_SECONDS / 0.02)):
            read = await self.read() if reads else None
            if good(read):
                if reads:
                    self.seen.append(read)
                return
            self.clock.now += 1.0
            await asyncio.sleep(0.02)
        self.seen.append("patience ran out")


READS = 25


async def readers(count: int) -> list[list[int]]:
    """Read in so many threads at once, each with its own source; the GPUs of each read."""

    async def reads() -> list[int]:
        source = NvmlSource(gpm="on", deadline_seconds=10.0)
        found = [len((await source.read()).gpus) for _ in range(READS)]
        await source.close()
        return found

    return list(
        await asyncio.gather(
            *(asyncio.to_thread(lambda: asyncio.run(reads())) for _ in range(count))
        )
    )


async def main() -> None:
    answers = {}
    for name, asked in json.loads(sys.stdin.read()).items():
        player = Player(asked)
        for words in asked["steps"]:
            await player.step(words)
        library().fake_script(b"clear")
        await player.source.close()
        answers[name] = player.seen
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    asyncio.run(main())
