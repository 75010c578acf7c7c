"""Hypothesis strategies: books of any values, loads of any size."""

from hypothesis import strategies as st

from boundby.core.formula import Book, Unknown
from boundby.core.signals import SIGNALS
from boundby_rules import LIMITS

NEEDS = sorted(
    {need for limit in LIMITS for formula in limit.scores.values() for need in formula.needs}
    | {need for formula in SIGNALS.values() for need in formula.needs}
)
"""Every name that a limit or a signal asks for."""


def amounts(name: str) -> st.SearchStrategy[float]:
    """Values that a name with this unit could have."""
    most = 1.0 if name.endswith("_ratio") and not name.startswith("free_") else 1e6
    return st.floats(0.0, most, allow_nan=False, allow_infinity=False)


@st.composite
def facts(draw: st.DrawFn, missing: float = 0.3) -> dict[str, float | Unknown]:
    """Facts for every need, some of them missing with a reason."""
    out: dict[str, float | Unknown] = {}
    for name in NEEDS:
        if draw(st.floats(0, 1)) < missing:
            out[name] = Unknown(name, f"{name} was left out")
        else:
            out[name] = draw(amounts(name))
    return out


books = facts().map(lambda given: Book(given, SIGNALS))
"""Books with holes."""
