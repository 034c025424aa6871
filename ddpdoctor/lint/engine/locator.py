"""Which file of the tree an import leads to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from ddpdoctor.lint.engine.search_path import SearchPath

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_IMPORTED = re.compile(r"^(?:import|from) +(\w+)", re.M)
_ROOT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")


class Locator:
    """Finds modules beside the importing file, above its package, and in the project's root.

    And in what the file itself puts on `sys.path`.
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = tuple(dict.fromkeys(roots))
        self._found: dict[tuple[str, str], tuple[str, str] | None] = {}
        self._listings: dict[str, dict[str, bool]] = {}
        self._tops: dict[str, str] = {}
        self._inside: dict[str, bool] = {}
        self._added: dict[str, list[str]] = {}
        self._namesakes: dict[str, bool] = {}

    def locate(self, importer: str, name: str) -> tuple[str, str] | None:
        """(file, what is left of the dotted name), or None if the tree has no such module."""
        folder = str(PurePath(importer).parent)
        key = (folder, name)
        if key not in self._found:
            self._found[key] = self._search(folder, name)
        found = self._found[key]
        if found is not None and not name.startswith(".") and _is_one_file(found[0], importer):
            return None  # `from tqdm import tqdm` in a tqdm.py of the user's: the library's
        if self._found[key] is None and not name.startswith("."):
            return self._on_its_path(importer, folder, name)
        return self._found[key]

    def _on_its_path(self, importer: str, folder: str, name: str) -> tuple[str, str] | None:
        """What is found in a folder that the importing file puts on `sys.path`, or what it imports.

        As `import _init_paths` does, for all that is imported behind it.
        """
        if importer not in self._added:
            here = list(dict.fromkeys((folder, *self._roots)))
            text = _text(importer)
            start = "" if folder == "." else f"{folder}/"
            beside = [f"{start}{each}.py" for each in _IMPORTED.findall(text)]
            texts = {each: _text(each) for each in beside if self._is_file(each)}
            folders = [
                added
                for each, written in {importer: text, **texts}.items()
                for added in SearchPath(each, written, here, _above).folders
            ]
            self._added[importer] = list(dict.fromkeys(folders))
        for base in self._added[importer]:
            if found := self._below(base, name.split("."), own_package=False):
                return found
        return None

    def folder(self, importer: str, package: str) -> str | None:
        """The folder of a package, with a file of its own or not; of "" that of the importer."""
        own = str(PurePath(importer).parent)
        if not package:
            return own
        parts = package.lstrip(".").replace(".", "/")
        for base in [own] if package.startswith(".") else [self._top(own), own, *self._roots]:
            path = parts if base == "." else f"{base}/{parts}"
            if self._is_folder(path):
                return path
        return None

    def modules_in(self, folder: str) -> list[str]:
        """The names of the modules in a folder."""
        own = "" if folder == "." else folder
        files = sorted(name for name, is_file in self._listing(own).items() if is_file)
        return [each[:-3] for each in files if each.endswith(".py") and each != "__init__.py"]

    def is_near(self, importer: str, imported: str) -> bool:
        """Whether two files are of one project: below one root, of one package, or scripts."""
        path = PurePath(imported)
        if self._is_inside(str(path.parent)):
            return True
        one, other = (self._package(str(PurePath(path).parent)) for path in (importer, imported))
        return one == other or not one or not other

    def _is_inside(self, folder: str) -> bool:
        """Whether a folder is below a root; the project's environment is no part of it."""
        if folder not in self._inside:
            path = _named_fully(folder)
            roots = map(_named_fully, self._roots)
            is_own = _INSTALLED.isdisjoint(PurePath(folder).parts)
            self._inside[folder] = is_own and any(map(path.is_relative_to, roots))
        return self._inside[folder]

    def _package(self, folder: str) -> str:
        """The outermost package that holds this folder, "" for a folder of scripts."""
        top, found = self._top(folder), ""
        while folder != top:
            folder, found = _above(folder), folder
        return found

    def _search(self, folder: str, name: str) -> tuple[str, str] | None:
        level = len(name) - len(name.lstrip("."))
        parts = [part for part in name[level:].split(".") if part]
        if level:
            base = folder
            for _ in range(level - 1):
                base = _above(base)
            return self._below(base, parts, own_package=True)
        first: tuple[str, str] | None = None
        nearest = (self._top(folder), folder, *self._roots, *self._around(folder))
        for base_name in dict.fromkeys(nearest):
            found = self._below(base_name, parts, own_package=False)
            if found is not None and self._wants_its_namesake(*found, parts):
                continue
            if found is not None and not _is_below_a_module(*found):
                return found
            first = first or found
        return first

    def _wants_its_namesake(self, path: str, rest: str, parts: list[str]) -> bool:
        """Whether a module imports its own name: a library is called so, which others mean too."""
        name = parts[0]
        if PurePath(path).name != f"{name}.py" or rest != ".".join(parts[1:]):
            return False  # the files of a package may import each other by its name
        if path not in self._namesakes:
            self._namesakes[path] = name in _IMPORTED.findall(_text(path))
        return self._namesakes[path]

    def _around(self, folder: str) -> Iterator[str]:
        """The project's folders above this one: a script that is started there finds theirs."""
        while self._is_inside(above := _above(folder)) and above != folder:
            folder = above
            yield folder

    def _below(self, base: str, parts: list[str], *, own_package: bool) -> tuple[str, str] | None:
        # As the files to lint are named: without a dot in front.
        start = "" if base == "." else f"{base}/"
        if (
            parts
            and not self._is_folder(f"{start}{parts[0]}")
            and not self._is_file(f"{start}{parts[0]}.py")
        ):
            return self._itself(base, parts) if own_package else None
        for length in range(len(parts), 0, -1):
            stem = start + "/".join(parts[:length])
            for path in (f"{stem}.py", f"{stem}/__init__.py"):
                if self._is_file(path):
                    return path, ".".join(parts[length:])
        return self._itself(base, parts) if own_package else None

    def _itself(self, base: str, parts: list[str]) -> tuple[str, str] | None:
        package = "__init__.py" if base == "." else f"{base}/__init__.py"
        return (package, ".".join(parts)) if self._is_file(package) else None

    def _top(self, folder: str) -> str:
        """The folder above the outermost package that holds this one, a package itself or not."""
        if folder not in self._tops:
            top = folder
            while (above := _above(top)) != top and any(
                os.access(f"{each}/__init__.py", os.F_OK) for each in (top, above)
            ):
                top = above  # of a folder above, as /tmp or a home, no more is asked than this
            self._tops[folder] = top
        return self._tops[folder]

    def _is_folder(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return self._listing(folder).get(name) is False

    def _is_file(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return self._listing(folder).get(name) is True

    def _listing(self, folder: str) -> dict[str, bool]:
        """Name -> whether it is a file, for what a folder holds."""
        if folder not in self._listings:
            try:
                with os.scandir(folder or ".") as entries:
                    self._listings[folder] = {each.name: each.is_file() for each in entries}
            except (OSError, ValueError):
                self._listings[folder] = {}
        return self._listings[folder]


def _is_one_file(one: str, other: str) -> bool:
    return one == other or os.path.normpath(one) == os.path.normpath(other)


def _is_below_a_module(path: str, rest: str) -> bool:
    """Whether a module would have to hold another, which only packages do.

    As where `train/net.py` is named like the package that `train/main.py` imports its parts from.
    """
    return "." in rest and not path.endswith("__init__.py")


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def _named_fully(folder: str) -> PurePath:
    """A folder by its whole name, through links as they are written."""
    return PurePath(os.path.normpath(Path.cwd() / folder))


def _above(folder: str) -> str:
    """The folder that holds another, named as that one is; of the outermost itself."""
    path = PurePath(folder)
    if path.name in ("", "."):
        return folder if path.is_absolute() else ".."
    return f"{folder}/.." if path.name == ".." else str(path.parent)


def project_root(path: Path) -> Path | None:
    """The nearest folder at or above that looks like a project's root."""
    start = path if path.is_dir() else path.parent
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in _ROOT_MARKS):
            return folder
    return None
