"""Signals: one function, one derived number, its inputs named by its parameters."""

import inspect
from types import MappingProxyType, ModuleType

from boundby.core.formula import Formula
from boundby.core.signals import admission, clocks, host, progress


def _of(module: ModuleType) -> dict[str, Formula]:
    """Every public function that the module itself defines."""
    return {
        name: Formula.of(function)
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
    }


SIGNALS = MappingProxyType(
    {**_of(admission), **_of(clocks), **_of(host), **_of(progress), **_of(host)}
)
"""Every signal by name."""
