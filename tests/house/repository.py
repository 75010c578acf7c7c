"""The repository as its own tests see it: files under version control, and their text."""

import gzip
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROSE = (
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "exporter/README.md",
)  # fmt: skip
"""Pages written by hand at fixed places; those under docs/ come on top."""


def tracked() -> list[Path]:
    """Every file under version control, new ones included; all files where git is not at hand."""
    git = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607  git, wherever it is
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if git.returncode == 0:
        names = git.stdout.splitlines()
    else:
        skip = {".venv", ".git", "build", "dist"}
        files = (p.relative_to(ROOT) for p in ROOT.rglob("*") if p.is_file())
        names = [str(p) for p in files if not skip & set(p.parts) and "cache" not in str(p)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def text(path: Path) -> str:
    """What a file says, unpacked; bytes that are no text are left out."""
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    return raw.decode("utf-8", "ignore")


def prose() -> list[Path]:
    """Every page that a person wrote."""
    return [ROOT / name for name in PROSE] + [
        path for path in sorted((ROOT / "docs").rglob("*.md")) if "make regen" not in text(path)
    ]


def code_of(page: str) -> list[str]:
    """Code spans and the lines of code blocks, in order."""
    blocks = re.findall(r"^```.*?\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    spans = re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    )
    return [line for block in blocks for line in block.splitlines()] + spans


def toml_of(page: str) -> list[str]:
    """Blocks of settings."""
    return re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
