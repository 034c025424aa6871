"""Acts after the import of a module of somebody else's, if it ever comes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class After(MetaPathFinder):
    """Finds one module as it would be found without us, and acts after its import."""

    def __init__(
        self,
        name: str,
        act: Callable[[ModuleType], object],
        before: Callable[[], object] | None = None,
    ) -> None:
        self._name, self._act, self._before = name, act, before

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As Python's own; once."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._act_after(spec.loader)
        return spec

    def _act_after(self, loader: Loader) -> None:
        original = loader.exec_module

        def execute(module: ModuleType) -> None:
            if self._before is not None:
                self._before()
            original(module)
            self._act(module)

        loader.exec_module = execute  # type: ignore[method-assign]
