"""A limit as a value: its name, its scores, what helps, what does not, and worked cases.

A score is an *elasticity*: the estimated relative change of throughput (scope `engine`) or of
step speed (scopes `decode`, `prefill`) for a small relative improvement of this one resource,
ln(ratio)/ln(1.2). It binds from 0.25 (`demand`: from 0.5).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from boundby.core.formula import Formula

Score = Callable[..., float]

Group = Literal["load", "software", "roof", "progress", "none"]
"""`load`: demand. `software`: judged before the roofs. `roof`: sets the step. `progress`: stalled.
`none`: said beside the verdict, never chosen by score."""


@dataclass(frozen=True, slots=True)
class Case:
    """One worked example: inputs by name, the scope judged, and the score they must give."""

    says: str
    given: Mapping[str, float]
    score: float
    scope: Literal["engine", "prefill", "decode"] = "engine"
    trap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """The alert a limit brings: how long it must bind, and when it hurts."""

    after: str = "10m"
    share: float = 0.8
    severity: Literal["info", "warning", "critical"] = "warning"
    summary: str = ""
    pain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The signals a dashboard shows beside a limit's score."""

    shows: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A thing that can hold the server back. One file in `boundby_rules` exports one as LIMIT."""

    name: str
    title: str
    group: Group
    page: str
    engine: Score | None = None
    decode: Score | None = None
    prefill: Score | None = None
    evidence: tuple[str, ...] = ()
    binds_at: float = 0.25
    remedies: tuple[str, ...]
    wont_help: tuple[str, ...]
    cases: tuple[Case, ...] = ()
    alert: Alert | None = None
    panel: Panel | None = None
    stability: Literal["experimental", "stable"] = "experimental"
    scores: Mapping[str, Formula] = field(init=False)

    def __post_init__(self) -> None:
        """Read the scores' needs and knobs off their signatures."""
        scores = {
            scope: Formula.of(function, f"{self.name}.{scope}")
            for scope, function in (
                ("engine", self.engine),
                ("decode", self.decode),
                ("prefill", self.prefill),
            )
            if function is not None
        }
        object.__setattr__(self, "scores", scores)
