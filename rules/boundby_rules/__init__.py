"""The limits we judge by: one module, one limit, exported as LIMIT.

There is no list to edit: every module here is found and loaded. Strangers' limits come through
the entry-point group `boundby.limits`, as these do.
"""

import pkgutil
from importlib import import_module

from boundby.core.limit import Limit

LIMITS: tuple[Limit, ...] = tuple(
    import_module(f"{__name__}.{module.name}").LIMIT
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name)
)
"""Every limit of this package, by name."""
