"""Ways to tell a program otherwise, one file each: `transform` changes a program in place.

The first line of a module's docstring says what it does; each keeps the program's meaning.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from tests.lint.metamorphic.program import Program

Transform = Callable[[Program], None]


def all_transformations() -> dict[str, Transform]:
    """Every way by its name."""
    names = sorted(each.name for each in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}").transform for name in names}
