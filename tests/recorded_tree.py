"""A recorded tree of files: one text with a line "== PATH" before each file.

In a file `\\0` stands for NUL and `\\\\` for a backslash; a last line that ends in a backslash had
no newline.
"""

import re
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"


def plant(text: str, root: Path) -> Path:
    """Write the files below `root`, over what is there; returns `root`."""
    for piece in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, _, content = piece.partition("\n")
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_plain(content).encode())
    return root


def recorded(name: str) -> str:
    """The text of a recorded tree among the fixtures, such as "proc-throttled/before"."""
    return (FIXTURES / f"{name}.tree").read_text(encoding="utf-8")


def _plain(content: str) -> str:
    content = re.sub(r"(?<!\\)((?:\\\\)*)\\\n\Z", r"\1", content)
    return re.sub(r"\\([0\\])", lambda m: "\0" if m[1] == "0" else "\\", content)
