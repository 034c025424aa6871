"""Commands that need no pydantic to be told their own defaults.

typer has pydantic convert each value, also those that were not given, and to import it takes longer
than to lint a file. A version that does so in another way, or not at all, is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from typer.core import TyperCommand, TyperGroup


class _Sparing:
    def get_params(self, ctx: Any) -> Any:
        """Its parameters, and --help."""
        parameters = super().get_params(ctx)  # type: ignore[misc]
        for each in parameters:
            known = hasattr(each, "get_runtime_param") and hasattr(each, "type_descriptor")
            if known and "get_runtime_param" not in vars(each):
                each.get_runtime_param = partial(_Conversion, each.get_runtime_param)
        return parameters


class SparingCommand(_Sparing, TyperCommand):
    """A command that converts what has to be converted."""


class SparingGroup(_Sparing, TyperGroup):
    """A group of commands that does the same with its own options."""


class _Conversion:
    """Stands in for typer's own, which is made when there is something to convert."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        wanted = param.type_descriptor.annotation
        if value is None or (isinstance(wanted, type) and isinstance(value, wanted)):
            return value
        if wanted == list[str] and isinstance(value, (list, tuple)):
            return list(value)
        return self._make().coerce(value, param=param, ctx=ctx)
