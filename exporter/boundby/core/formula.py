"""Functions that ask for their inputs by name, and the book that answers them.

A formula is a plain function: a parameter without a default names a fact or signal, a keyword
with a default is a knob. Everything else about it (what it needs, its docs row, its settings)
is read off that signature. A value nobody could give is an `Unknown` with its reason; the first
one met becomes the formula's own answer, so no formula ever sees a missing input.

Errors: `FormulaError` < `ValueError`, raised while loading and never while serving.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

UNITS = re.compile(
    r"_(ratio|seconds|bytes|tokens|requests|sequences|blocks|watts|celsius|hertz|count|steps|joules)$"
    r"|_per_(second|byte|token|step|sequence)$"
)
"""How the name of a fact or signal ends, so that it carries its unit."""


class FormulaError(ValueError):
    """A formula is written wrongly."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value nobody could give: the input that was missing, and why."""

    name: str
    why: str


Value = float | Unknown


@dataclass(frozen=True, slots=True)
class Formula:
    """One pure function with what its signature declares."""

    name: str
    says: str
    needs: tuple[str, ...]
    knobs: Mapping[str, float]
    compute: Callable[..., float]

    @classmethod
    def of(cls, function: Callable[..., float], name: str | None = None) -> Self:
        """Read a formula off `function`; its docstring is compulsory."""
        name = name or function.__name__
        doc = inspect.getdoc(function)
        if not doc:
            msg = f"{name}: a formula without a docstring has no docs row"
            raise FormulaError(msg)
        needs: list[str] = []
        knobs: dict[str, float] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.default is parameter.empty:
                needs.append(parameter.name)
            else:
                knobs[parameter.name] = parameter.default
        return cls(name, doc.splitlines()[0], tuple(needs), MappingProxyType(knobs), function)

    def tuned(self, knobs: Mapping[str, float]) -> Self:
        """The same formula with some knobs turned; an unknown knob is refused by name."""
        for knob in knobs:
            if knob not in self.knobs:
                have = ", ".join(f"{name} ({value:g})" for name, value in self.knobs.items())
                msg = f"no such knob {knob!r}; {self.name} has: {have or 'none'}"
                raise FormulaError(msg)
        return type(self)(
            self.name,
            self.says,
            self.needs,
            MappingProxyType({**self.knobs, **knobs}),
            self.compute,
        )

    def __call__(self, book: "Book") -> Value:
        """Work out the value from `book`; pass on the first Unknown among the inputs."""
        given: dict[str, float] = {}
        for need in self.needs:
            value = book[need]
            if isinstance(value, Unknown):
                return value
            given[need] = value
        try:
            answer = self.compute(**given, **self.knobs)
        except ZeroDivisionError:
            return Unknown(self.name, f"{self.name} divides by zero")
        except (ArithmeticError, ValueError) as error:
            return Unknown(self.name, f"{self.name} has no value here ({error})")
        if not math.isfinite(answer):
            return Unknown(self.name, f"{self.name} is not a finite number")
        return answer


class Book:
    """The facts and formulas of one window; each name is worked out once, when asked for."""

    def __init__(
        self,
        facts: Mapping[str, Value],
        formulas: Mapping[str, Formula] = MappingProxyType({}),
        reasons: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        # What overflowed on the way is unknown, so that no infinity gets into a report.
        self._values: dict[str, Value] = {
            name: value
            if isinstance(value, Unknown) or math.isfinite(value)
            else Unknown(name, f"{name} is not a finite number")
            for name, value in facts.items()
        }
        self._formulas = formulas
        self._reasons = reasons

    def __getitem__(self, name: str) -> Value:
        """Return the value of `name`, or the Unknown that says why there is none."""
        if name not in self._values:
            formula = self._formulas.get(name)
            self._values[name] = (
                formula(self)
                if formula
                else Unknown(name, self._reasons.get(name, f"no source gave {name}"))
            )
        return self._values[name]

    def number(self, name: str) -> float | None:
        """Return the value of `name`, or None where it is unknown."""
        value = self[name]
        return None if isinstance(value, Unknown) else value


def check(formulas: Iterable[Formula], facts: Iterable[str]) -> None:
    """Refuse a name without a unit, an input nobody gives, and formulas that need each other."""
    known = {formula.name: formula for formula in formulas}
    given = set(facts)
    for name in {*given, *known, *(need for f in known.values() for need in f.needs)}:
        if not UNITS.search(name):
            msg = f"{name!r} carries no unit; see UNITS for the endings there are"
            raise FormulaError(msg)

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            msg = f"formulas need each other in a circle: {' -> '.join((*path, name))}"
            raise FormulaError(msg)
        if name in given:
            return
        if name not in known:
            msg = f"{path[-1]} asks for {name!r}, which is neither a fact nor a formula"
            raise FormulaError(msg)
        for need in known[name].needs:
            visit(need, (*path, name))

    for name in known:
        visit(name, ())
