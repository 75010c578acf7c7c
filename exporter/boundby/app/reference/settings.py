"""docs/settings.md: every setting with its variable, its default and what it accepts."""

import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from boundby.app.reference.markdown import code, page, table
from boundby.core.limit import Limit

INTRO = (
    "A TOML file (`--config FILE`), then `BOUNDBY_*` variables, then flags; the later wins.\n"
    "All mistakes are shown at once, each with its place and the nearest name.\n"
    "Nothing has to be set but the engine's address, and each value given lets it say more."
)

COMPARED = (("gt", "above"), ("ge", "from"), ("lt", "below"), ("le", "up to"))
"""How a bound's name in pydantic reads."""

HEADS = ("Key", "Variable", "Accepts", "Default", "Meaning")


def render(settings: type[BaseModel], prefix: str, limits: Iterable[Limit]) -> str:
    """Write the page for a settings model, its variables' prefix and the limits' knobs."""
    top, sections = [], []
    for name, info in settings.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            sections.append(_section(name, info.annotation, prefix))
        else:
            top.append(_row(name, (), info, prefix))
    return page(
        "# Settings",
        INTRO,
        table(HEADS, top),
        *sections,
        "## Knobs of limits",
        "Each limit's scores have knobs; set them in the table of its name.",
        table(
            ("Key", "Default"),
            (
                (code(f"limits.{limit.name}.{knob}"), f"{value:g}")
                for limit in limits
                for knob, value in _knobs(limit)
            ),
        ),
    )


def _section(name: str, model: type[BaseModel], prefix: str) -> str:
    rows = (_row(key, (name,), info, prefix) for key, info in model.model_fields.items())
    return "\n\n".join((f"## [{name}]", (model.__doc__ or "").strip(), table(HEADS, rows)))


def _row(name: str, place: tuple[str, ...], info: FieldInfo, prefix: str) -> tuple[str, ...]:
    return (
        code(".".join((*place, name))),
        code(prefix + "_".join((*place, name)).upper()),
        _accepts(info),
        _default(info.get_default(call_default_factory=True)),
        info.description or "",
    )


def _accepts(info: FieldInfo) -> str:
    bounds = [
        f"{words} {value:g}"
        for name, words in COMPARED
        for constraint in info.metadata
        if (value := getattr(constraint, name, None)) is not None
    ]
    return " ".join((_kind(info.annotation), " and ".join(bounds))).strip()


def _kind(annotation: Any) -> str:
    """Say a type in words."""
    origin = typing.get_origin(annotation)
    inner = [part for part in typing.get_args(annotation) if part is not types.NoneType]
    if origin is typing.Literal:
        return " or ".join(code(str(part)) for part in inner)
    if origin is typing.Annotated:
        return _kind(inner[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_kind(part) for part in inner)
    if origin is tuple:
        return f"a list, each {_kind(inner[0])}"
    if origin is dict:
        return "a table"
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    return "a path" if annotation is Path else words.get(annotation, str(annotation))


def _default(value: Any) -> str:
    if value is None or value in ((), {}):
        return "not set"
    return code(str(value).lower() if isinstance(value, bool) else str(value))


def _knobs(limit: Limit) -> Iterator[tuple[str, float]]:
    knobs = {knob: v for formula in limit.scores.values() for knob, v in formula.knobs.items()}
    yield from sorted(knobs.items())
