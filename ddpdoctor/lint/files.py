"""Which files are meant: folders walked once, without following links in circles."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

_SUFFIXES = (".py", ".ipynb")
_SKIPPED = ("__pycache__", "node_modules", "site-packages", "__pypackages__")
# What is built lies beside that of which it is built.
_BUILT = ("build", "dist")
_BUILT_OF = ("setup.py", "setup.cfg", "pyproject.toml")
# By its name alone, `env` may as well hold the simulators of a project, or a part of it.
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")


def collect(paths: Iterable[str], exclude: Iterable[str] = ()) -> Iterator[str]:
    """The files below `paths`, in order, each once. A file named itself is always meant."""
    seen: set[str] = set()
    patterns = tuple(exclude)
    for path in paths:
        found = _below(path.rstrip("/") or "/", patterns) if Path(path).is_dir() else [path]
        for each in found:
            if each not in seen:
                seen.add(each)
                yield each


def is_source(path: str) -> bool:
    """Whether its name says that it is a Python file or a notebook."""
    return path.endswith(_SUFFIXES)


def _below(top: str, patterns: tuple[str, ...]) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and not _is_no_source(folder, name)
            and not _excluded(f"{folder}/{name}", name, patterns)
        )
        for name in sorted(names):
            path = f"{folder}/{name}" if folder != "." else name
            path = path.removeprefix("./")
            if is_source(name) and not _excluded(path, name, patterns):
                yield path


def _is_no_source(folder: str, name: str) -> bool:
    """Whether what lies in a folder was written by a tool, or comes from somewhere else."""
    beside = Path(folder)
    if name in _SKIPPED or any((beside / name / each).exists() for each in _ENVIRONMENT):
        return True
    return name in _BUILT and any((beside / each).exists() for each in _BUILT_OF)


def _excluded(path: str, name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, each) or fnmatch(path, each) for each in patterns)
