"""What every source is: a name and a read that gives a value or raises `SourceError`.

Errors: `SourceError` < `Exception`; nothing else leaves a source's `read`.
"""

from typing import Protocol, TypeVar

Read_co = TypeVar("Read_co", covariant=True)


class SourceError(Exception):
    """A read that gave nothing: who, what happened, and what to try."""

    def __init__(self, source: str, problem: str, hint: str = "") -> None:
        self.source = source
        self.problem = problem
        self.hint = hint
        message = f"{source}: {problem}"
        if hint:
            message = f"{message.rstrip('.')}. {hint}"
        super().__init__(message)

    @property
    def detail(self) -> str:
        """The message without the source's name, as a `SourceState` shows it."""
        return str(self).removeprefix(f"{self.source}: ")


class Source(Protocol[Read_co]):
    """One outside thing that can be read again and again."""

    @property
    def name(self) -> str:
        """The source's name as reports and metrics show it."""

    async def read(self) -> Read_co:
        """Read it once; raises nothing but `SourceError`."""
