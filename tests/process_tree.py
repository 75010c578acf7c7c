"""Processes in few words, as files of /proc.

process(tmp_path, 10, 1, "vllm serve m")     a process, its parent and its arguments
"""

from pathlib import Path


def process(
    root: Path,
    pid: int,
    parent: int,
    command: str,
    *,
    cpu_ticks: int = 0,
    start_ticks: int = 100,
    threads: dict[int, tuple[float, float]] | None = None,
    cgroup: str = "0::/\n",
) -> Path:
    """Write one process; `threads` gives seconds on a CPU and waiting for one, by number."""
    folder = root / "proc" / str(pid)
    write(folder / "cmdline", command.replace(" ", "\0") + "\0")
    write(folder / "stat", stat(pid, parent, cpu_ticks, start_ticks))
    write(
        folder / "status",
        f"Name:\tx\nCpus_allowed_list:\t0-3\nnonvoluntary_ctxt_switches:\t{pid}\n",
    )
    write(folder / "cgroup", cgroup)
    write(folder / "environ", "")
    for tid, (run, wait) in (threads or {pid: (0.0, 0.0)}).items():
        write(folder / "task" / str(tid) / "schedstat", f"{run * 1e9:.0f} {wait * 1e9:.0f} 1\n")
    return folder


def stat(pid: int, parent: int, cpu_ticks: int, start_ticks: int) -> str:
    """A stat line; the name has what makes such lines hard to read."""
    fields = ["S", str(parent), *["0"] * 9, str(cpu_ticks), *["0"] * 7, str(start_ticks), "0"]
    return f"{pid} (a) b (c) {' '.join(fields)}\n"


def write(path: Path, text: str) -> None:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
