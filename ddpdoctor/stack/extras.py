"""Optional dependencies: imported where they are used, and named in one line where they lack."""

from importlib import import_module
from typing import Any

from ddpdoctor.stack.errors import MissingExtraError


def need(module: str, extra: str) -> Any:
    """Import `module`; raise MissingExtraError, which says what to install, if it is not there."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{error.name} is not installed: pip install 'ddpdoctor[{extra}]'"
        ) from error
