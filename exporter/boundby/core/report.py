"""All that is known of every engine at one moment: what each sink prints.

`as_dict` is the JSON contract; the dataclasses are the same thing with types.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from boundby.core.parts import SourceState

Scope = Literal["engine", "prefill", "decode"]
SCOPES: tuple[Scope, ...] = ("engine", "prefill", "decode")

TIME_PARTS = (
    "no_work",
    "host_gap",
    "compute",
    "memory",
    "interconnect",
    "kernel_latency",
    "other",
)
"""The shares of wall time; they sum to 1."""

STATES = ("active", "idle", "stalled", "asleep", "down")
"""What an engine can be doing; exactly one holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The binding limit of one scope. `since` is when it began to hold, seconds."""

    limit: str
    confidence: float
    since: float
    because: tuple[str, ...] = ()
    next: str | None = None
    ties: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return {
            "limit": self.limit,
            "confidence": round(self.confidence, 4),
            "since": self.since,
            "because": list(self.because),
            "next": self.next,
            "ties": list(self.ties),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReport:
    """One limit's answer. `score` and `headroom` are None where an input is missing."""

    limit: str
    score: float | None
    headroom: float | None
    binds: bool
    evidence: Mapping[str, float] = field(default_factory=dict)
    remedies: tuple[str, ...] = ()
    wont_help: tuple[str, ...] = ()
    why_not: str = ""
    missing: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return {
            "limit": self.limit,
            "score": self.score,
            "headroom": self.headroom,
            "binds": self.binds,
            "evidence": dict(self.evidence),
            "remedies": list(self.remedies),
            "not": list(self.wont_help),
            "why_not": self.why_not,
            "missing": list(self.missing),
        }


@dataclass(frozen=True, slots=True)
class Missing:
    """An input nobody gave: which, why, and what would supply it."""

    signal: str
    why: str
    fix: str

    def as_dict(self) -> dict[str, str]:
        """Return the JSON shape."""
        return {"signal": self.signal, "why": self.why, "fix": self.fix}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """Everything about one engine. `story` is the one line for a person."""

    engine: str
    kind: str
    model: str
    state: str
    saturated: bool | None
    verdict: Mapping[Scope, Verdict]
    limits: tuple[LimitReport, ...] = ()
    time: Mapping[str, float] = field(default_factory=dict)
    signals: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    story: str = ""
    notes: tuple[str, ...] = ()
    infos: Mapping[str, str] = field(default_factory=dict)
    binding_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    verdict_changes: Mapping[str, float] = field(default_factory=dict)
    host_gap_seconds_total: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return {
            "engine": self.engine,
            "kind": self.kind,
            "model": self.model,
            "state": self.state,
            "saturated": self.saturated,
            "story": self.story,
            "verdict": {scope: verdict.as_dict() for scope, verdict in self.verdict.items()},
            "limits": [limit.as_dict() for limit in self.limits],
            "time": dict(self.time),
            "signals": dict(self.signals),
            "missing": [missing.as_dict() for missing in self.missing],
            "notes": list(self.notes),
            "infos": dict(self.infos),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """What was concluded of one GPU; `signals` are named with their units."""

    gpu: str
    name: str | None
    index: int | None = None
    signals: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return {
            "gpu": self.gpu,
            "name": self.name,
            "index": self.index,
            "signals": dict(self.signals),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One moment: every engine, every GPU, every source."""

    at: float
    window_seconds: float
    engines: tuple[EngineReport, ...] = ()
    gpus: tuple[GpuReport, ...] = ()
    sources: tuple[SourceState, ...] = ()
    ready: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of product's contract, schema 1."""
        return {
            "schema": 1,
            "at": self.at,
            "window_seconds": self.window_seconds,
            "engines": [engine.as_dict() for engine in self.engines],
            "gpus": [gpu.as_dict() for gpu in self.gpus],
            "sources": [
                {
                    "source": source.source,
                    "up": source.up,
                    "age_seconds": source.age_seconds,
                    "detail": source.detail,
                }
                for source in self.sources
            ],
        }
