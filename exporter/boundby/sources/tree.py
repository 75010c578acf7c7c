"""Small files under a root: /proc and /sys as they are, or as they were recorded.

Every read is capped and never waits for a writer. A path that some other process chose is
followed inside a given folder only, as if that folder were the root of its file system.

Errors: `OSError` and nothing else; a process that ended while it was read is one of them
(`FileNotFoundError` or `ProcessLookupError`).
"""

import errno
import os
import stat
from pathlib import Path, PurePosixPath

MOST_BYTES = 128 * 1024
"""No file of /proc or of a cgroup that is read here is larger; a command line is cut there."""

MOST_LINKS = 40
"""Symbolic links followed on one path, as the kernel has it."""


class Tree:
    """Files below one root."""

    def __init__(self, root: str | Path = "/") -> None:
        self.root = Path(root)

    def data(self, path: str, most: int = MOST_BYTES) -> bytes:
        """Read a file's first bytes."""
        return _read(self.root / path.lstrip("/"), most, os.O_RDONLY)

    def text(self, path: str) -> str:
        """Read a file as text."""
        return self.data(path).decode("utf-8", errors="replace")

    def names(self, path: str) -> list[str]:
        """Names in a folder."""
        return os.listdir(self.root / path.lstrip("/"))  # noqa: PTH208  names alone, and cheap

    def there(self, folder: str, path: str) -> bool:
        """Tell whether `path` exists as `inside` would find it; `OSError` where none may look."""
        try:
            _resolved(self.root / folder.lstrip("/"), path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def inside(self, folder: str, path: str, most: int) -> bytes:
        """Read a regular file at `path` as someone whose root is `folder` sees it.

        Links are followed by hand and never lead out of `folder`. A file of more than `most`
        bytes, or one that is no regular file, is an `OSError`.
        """
        base = self.root / folder.lstrip("/")
        found = _resolved(base, path)
        content = _read(found, most + 1, os.O_RDONLY | os.O_NOFOLLOW, regular=True)
        if len(content) > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        return content


def _read(path: Path, most: int, flags: int, *, regular: bool = False) -> bytes:
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if regular and not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        pieces = bytearray()
        while len(pieces) < most:
            piece = os.read(handle, most - len(pieces))
            if not piece:
                break
            pieces += piece
        return bytes(pieces)
    finally:
        os.close(handle)


def _resolved(base: Path, path: str) -> Path:
    """Walk `path` below `base`, which stands for `/`."""
    todo = [part for part in PurePosixPath(path).parts if part != "/"][::-1]
    done: list[str] = []
    links = 0
    while todo:
        part = todo.pop()
        if part == "..":
            del done[-1:]
            continue
        try:
            target = str(base.joinpath(*done, part).readlink())
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: it is no link
                raise
            done.append(part)
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if target.startswith("/"):
            done.clear()
        todo.extend(piece for piece in PurePosixPath(target).parts[::-1] if piece != "/")
    return base.joinpath(*done)
