"""One limit on one book: its score in each scope, or the input that was missing."""

from collections.abc import Mapping
from dataclasses import dataclass

from boundby.core.formula import Book, Unknown, Value
from boundby.core.limit import Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A limit's scores by scope (only the scopes it is judged in) and its evidence."""

    limit: Limit
    scores: Mapping[str, Value]
    evidence: Mapping[str, float]
    missing: tuple[Unknown, ...]

    def score(self, scope: str) -> float | None:
        """The score in `scope`; None where it is not judged there or an input is missing."""
        value = self.scores.get(scope)
        return None if value is None or isinstance(value, Unknown) else value

    def unjudged(self, scope: str) -> Unknown | None:
        """Why the limit could not be judged in `scope`, if that is so."""
        value = self.scores.get(scope)
        return value if isinstance(value, Unknown) else None


def judge(limit: Limit, book: Book, knobs: Mapping[str, float] | None = None) -> Finding:
    """Score `limit` on `book`; a score is held to 0 to 1."""
    scores: dict[str, Value] = {}
    missing: dict[str, Unknown] = {}
    for scope, formula in limit.scores.items():
        tuned = formula
        if knobs:
            tuned = formula.tuned({k: v for k, v in knobs.items() if k in formula.knobs})
        value = tuned(book)
        if isinstance(value, Unknown):
            missing.setdefault(value.name, value)
            scores[scope] = value
        else:
            scores[scope] = min(1.0, max(0.0, value))
    evidence = {
        name: number for name in limit.evidence if (number := book.number(name)) is not None
    }
    return Finding(limit=limit, scores=scores, evidence=evidence, missing=tuple(missing.values()))
