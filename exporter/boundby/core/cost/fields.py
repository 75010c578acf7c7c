"""A config.json read field by field: typed, bounded, and every mistake named.

Errors: `ConfigError` < `ValueError`. Anything that a hostile or truncated file may hold (text
for a number, a negative, a number no model has) is refused with its field, never rounded.
"""

from collections.abc import Mapping
from typing import Any

MOST = 10_000_000
"""No size in a model is larger (vocabularies reach 300,000; experts' widths 60,000)."""

MOST_LAYERS = 1_000
"""No model has more layers (the deepest published has 126)."""


class ConfigError(ValueError):
    """A model's config cannot be read as sizes; names the field and what is wrong with it."""

    def __init__(self, *, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


def _shown(value: object) -> str:
    """Return `value` as it may appear in a message: short whatever it is."""
    if isinstance(value, int) and not -(10**20) < value < 10**20:
        return "a number of more than 20 digits"
    if isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")  # noqa: PLR2004  # a line's worth
    return f"a {type(value).__name__}"


class Fields:
    """One model's fields; remembers which were read, so that the others can be questioned."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self.read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        """Whether the config gives `name` a value; null counts as absent."""
        return self._config.get(name) is not None

    def raw(self, name: str) -> Any:
        """Return whatever is there, None included, and count it as read."""
        self.read.add(name)
        return self._config.get(name)

    def names(self) -> list[str]:
        """Return every name that the config holds."""
        return [str(name) for name in self._config]

    def optional(self, *names: str, least: int = 1, most: int = MOST) -> int | None:
        """Return the first of `names` that is there, as a whole number in range; None if none."""
        for name in names:
            value = self.raw(name)
            if value is None:
                continue
            if isinstance(value, float) and value.is_integer() and abs(value) <= most:
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigError(field=name, why=f"must be a whole number, not {_shown(value)}")
            if not least <= value <= most:
                raise ConfigError(
                    field=name, why=f"must be from {least} to {most}, not {_shown(value)}"
                )
            return value
        return None

    def count(
        self, *names: str, default: int | None = None, least: int = 1, most: int = MOST
    ) -> int:
        """Return the first of `names` that is there, else `default`, else refuse."""
        value = self.optional(*names, least=least, most=most)
        if value is not None:
            return value
        if default is None:
            also = f" (nor {' or '.join(names[1:])})" if names[1:] else ""
            raise ConfigError(
                field=names[0], why=f"is missing{also}; sizes cannot be worked out without it"
            )
        return default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a true-or-false field."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ConfigError(field=name, why=f"must be true or false, not {_shown(value)}")
        return value

    def word(self, name: str) -> str | None:
        """Return a field that holds a word."""
        value = self.raw(name)
        if value is not None and not isinstance(value, str):
            raise ConfigError(field=name, why=f"must be text, not {_shown(value)}")
        return value

    def per_layer(self, name: str, layers: int) -> list[Any] | None:
        """Return a list with an entry for each layer; other lengths are refused."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise ConfigError(field=name, why=f"must be a list, not {_shown(value)}")
        if len(value) != layers:
            raise ConfigError(field=name, why=f"has {len(value)} entries for {layers} layers")
        return list(value)

    def indices(self, name: str, layers: int) -> frozenset[int]:
        """Return a list of layer numbers."""
        value = self.raw(name)
        if value is None:
            return frozenset()
        if not isinstance(value, (list, tuple)) or len(value) > layers:
            raise ConfigError(
                field=name, why=f"must be a list of layer numbers, not {_shown(value)}"
            )
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in value):
            raise ConfigError(field=name, why="must hold layer numbers only")
        return frozenset(value)
