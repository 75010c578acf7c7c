"""README opens with what the program prints for a recording; run, this rewrites the opening."""

import re
import subprocess
import sys

from house.repository import ROOT, text

RECORDING = "tests/fixtures/runs/simulated-kv-full.jsonl.gz"

OPENING = re.compile(r"(<!-- opening: .*? -->\n).*?(<!-- /opening -->)", re.DOTALL)


def printed() -> str:
    """The verdict's lines, without the log of changes before them and the inputs missing below."""
    run = subprocess.run(  # noqa: S603  our own command
        [sys.executable, "-m", "boundby", "replay", RECORDING],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    _, summary = run.stdout.split("\n\n", 1)
    lines = re.split(r"^ {2}note ", summary, maxsplit=1, flags=re.MULTILINE)[0].rstrip()
    return f"```\n$ boundby replay {RECORDING}\n{lines}\n```\n"


def fresh(readme: str) -> str:
    """The README with what is printed now."""
    note = "\nFrom a recording of a simulated server: Llama 3.1 8B on one H100.\n"
    return OPENING.sub(lambda match: match[1] + printed() + note + match[2], readme)


if __name__ == "__main__":
    (ROOT / "README.md").write_text(fresh(text(ROOT / "README.md")), encoding="utf-8")
