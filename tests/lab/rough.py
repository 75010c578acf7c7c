"""How a recording falls short: uneven beats, lost reads, stale GPU rows, a silent header."""

from dataclasses import dataclass

from draw import Draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Rough:
    """The circumstances of one recording."""

    beat_seconds: float = 2.0
    beat_jitter_seconds: float = 0.0
    collect_seconds: float = 0.0
    """How often the GPU exporter collects; 0 is at every read. Between, its page stands still."""
    fails_share: float = 0.0
    tells_limits: bool = True
    tells_model: bool = True


SMOOTH = Rough()


def rough(seed: int) -> Rough:
    """Draw the circumstances of one recording."""
    d = Draw(seed)
    return Rough(
        beat_seconds=d.random.choice((1.0, 2.0, 2.0, 5.0)),
        beat_jitter_seconds=d.random.choice((0.0, 0.05, 0.3)),
        collect_seconds=d.random.choice((0.0, 1.0, 10.0, 30.0)),
        fails_share=d.random.choice((0.0, 0.0, 0.1)),
        tells_limits=d.chance(0.6),
        tells_model=d.chance(0.85),
    )
