"""What it costs to read 8 GPUs through NVML and GPM once a second, beside the budgets.

Run it by hand: python tests/bench/nvml.py [SECONDS]. It prints, and never fails. The driver is
the fake of tests/fake_nvml, so the time in it is not a driver's; all of ours is counted. The
budgets are those of the whole program: 0.5 % of a core, 60 MB resident.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
GPUS = 8
CORE_SHARE = 0.005
RESIDENT_BYTES = 60e6
WARM_UP = 3
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> float:
    """Return what this process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def cpu_seconds() -> float:
    """Return the CPU time of this process, its threads and its ended children."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


async def measure(seconds: int) -> None:
    """Read once a second for so long, and print."""
    from boundby.sources.nvml import NvmlSource  # noqa: PLC0415  the parent needs none of it

    bare = resident_bytes()
    source = NvmlSource(gpm="on")
    for _ in range(WARM_UP):
        await source.read()
        await asyncio.sleep(0.2)
    cpu, wall, took = cpu_seconds(), time.monotonic(), []
    for _ in range(seconds):
        begun = time.monotonic()
        read = await source.read()
        took.append(time.monotonic() - begun)
        await asyncio.sleep(max(0.0, 1.0 - took[-1]))
    share = (cpu_seconds() - cpu) / (time.monotonic() - wall)
    held = resident_bytes()
    values = sum(len(gpu.gauges) + len(gpu.counters) for gpu in read.gpus)
    sys.stdout.write(
        f"read              {len(read.gpus)} GPUs by {read.source}, {values} values\n"
        f"one read          {sorted(took)[len(took) // 2] * 1000:8.2f} ms, the median\n"
        f"CPU at 1 Hz       {share:8.3%} of a core (budget of all: {CORE_SHARE:.1%})\n"
        f"resident          {held / 1e6:8.1f} MB with Python and the binding, "
        f"{(held - bare) / 1e6:.1f} MB of it by reading (budget of all: "
        f"{RESIDENT_BYTES / 1e6:.0f} MB)\n"
    )
    await source.close()


def main() -> None:
    """Build the fake and run the measurement in a process that loads it."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    if "FAKE_NVML" in os.environ:
        asyncio.run(measure(seconds))
        return
    sys.path.insert(0, str(ROOT / "tests"))
    from fake_nvml.stage import build  # noqa: PLC0415  its folder was not on the path before

    with tempfile.TemporaryDirectory() as folder:
        paths = [str(ROOT / part) for part in ("exporter", "rules", "tests")]
        subprocess.run(  # noqa: S603  ourselves, with the fake in front
            [sys.executable, __file__, str(seconds)],
            check=True,
            env={
                **os.environ,
                "FAKE_NVML": f"gpus={GPUS} gpm=1 pids.0=2",
                "LD_LIBRARY_PATH": str(build(Path(folder))),
                "PYTHONPATH": os.pathsep.join(paths),
            },
        )


if __name__ == "__main__":
    main()
