"""The project as a whole: which functions lead to what concerns other ranks."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from ddpdoctor.lint.engine.locator import Locator
from ddpdoctor.lint.engine.survey import FunctionSurvey, Survey

Key = tuple[str, str]
"""(file, qualified name) of a function."""

OF_MANY_RANKS = frozenset(
    ("DistributedDataParallel", "DistributedSampler", "accelerate", "lightning", "deepspeed")
)
"""With one of these words in a project, files of other ranks are its files too."""


class Project:
    """The surveys of all files, resolved against each other."""

    def __init__(
        self,
        surveys: Iterable[Survey],
        locator: Locator | None = None,
        words: frozenset[str] = frozenset(),
    ) -> None:
        self.surveys = {each.path: each for each in surveys}
        self.locator = locator or Locator()
        self.words = words
        """Those of OF_MANY_RANKS that occur in any of the files."""
        self.imported = frozenset(self._imported())
        """The files that others import."""
        self.reaching = self._reaching()
        """The functions that do what concerns other ranks, themselves or through others."""

    def _imported(self) -> Iterator[str]:
        for each in self.surveys.values():
            for name in (*each.imports.values(), *each.stars):
                if place := self.locator.locate(each.path, name):
                    yield place[0]

    def _callable_names(self) -> set[str]:
        """Last names under which anything of the project can be called: a first sieve."""
        found = {name.rpartition(".")[2] for (_, name), _ in self._functions()}
        for each in self.surveys.values():
            found.update(name.rpartition(".")[2] for name in each.classes)
            found.update(each.imports)
            found.update(name.rpartition(".")[2] for name in each.imports.values())
        return found

    def _functions(self) -> Iterator[tuple[Key, FunctionSurvey]]:
        for path, each in self.surveys.items():
            for name, function in each.functions.items():
                yield (path, name), function

    def _reaching(self) -> frozenset[Key]:
        names = self._callable_names()
        callers: dict[Key, list[Key]] = defaultdict(list)
        for key, function in self._functions():
            for name in function.calls:
                if name.rpartition(".")[2] in names and (target := self.resolve(*key, name)):
                    callers[target].append(key)
        found = {key for key, function in self._functions() if function.acts}
        queue = deque(found)
        while queue:
            for key in callers.get(queue.popleft(), ()):
                if key not in found:
                    found.add(key)
                    queue.append(key)
        return frozenset(found)

    def lines_of_interest(self, path: str) -> frozenset[int]:
        """The lines of this file's functions that are among these."""
        functions = self.surveys[path].functions if path in self.surveys else {}
        return frozenset(
            function.line for name, function in functions.items() if (path, name) in self.reaching
        )

    def resolve(self, path: str, function: str, name: str) -> Key | None:
        """The function that a call by this (import-resolved) name reaches from inside another."""
        if path not in self.surveys:
            return None
        if name.startswith(("self.", "cls.")):
            return self._method_call(path, function, name.split(".")[1:])
        if name.startswith("super."):
            return self._of_the_bases(path, function, name.partition(".")[2])
        if "." not in name:
            prefix = function
            while prefix and prefix != "<module>":
                if f"{prefix}.{name}" in self.surveys[path].functions:
                    return (path, f"{prefix}.{name}")
                prefix = prefix.rpartition(".")[0]
        return self._named(path, name, 6)

    def _named(self, path: str, name: str, depth: int) -> Key | None:
        each = self.surveys.get(path)
        if each is None or depth == 0:
            return None
        if name in each.functions:
            return (path, name)
        if name in each.classes:
            return self._method(path, name, "__init__", depth)
        head, _, rest = name.rpartition(".")
        if head in each.classes:
            return self._method(path, head, rest, depth)
        first, dot, tail = name.partition(".")
        if first in each.imports and first:
            name = each.imports[first] + dot + tail
        elif not name.startswith(".") and not dot:
            return self._through_stars(path, name, depth)
        found = self.locator.locate(path, name)
        if found is None or not found[1] or (found[0] == path and found[1] == name):
            return None
        return self._named(found[0], found[1], depth - 1)

    def _through_stars(self, path: str, name: str, depth: int) -> Key | None:
        for star in self.surveys[path].stars:
            found = self.locator.locate(path, star)
            if found and not found[1] and (key := self._named(found[0], name, depth - 1)):
                return key
        return None

    def _class(self, path: str, name: str, depth: int = 6) -> tuple[str, str] | None:
        each = self.surveys.get(path)
        if each is None or depth == 0:
            return None
        if name in each.classes:
            return path, name
        first, dot, tail = name.partition(".")
        found = self.locator.locate(path, each.imports.get(first, first) + dot + tail)
        return self._class(found[0], found[1], depth - 1) if found and found[1] else None

    def _method(self, path: str, cls: str, name: str, depth: int) -> Key | None:
        each = self.surveys.get(path)
        if each is None or depth == 0 or cls not in each.classes:
            return None
        if f"{cls}.{name}" in each.functions:
            return (path, f"{cls}.{name}")
        for base in each.classes[cls].bases:
            place = self._class(path, base)
            if place and (key := self._method(*place, name, depth - 1)):
                return key
        return None

    def _of_the_bases(self, path: str, function: str, name: str) -> Key | None:
        """What `super().name()` calls in a method."""
        each, cls = self.surveys[path], function.rpartition(".")[0]
        for base in each.classes[cls].bases if cls in each.classes else ():
            place = self._class(path, base)
            if place and (key := self._method(*place, name, 6)):
                return key
        return None

    def _method_call(self, path: str, function: str, parts: list[str]) -> Key | None:
        each = self.surveys[path]
        cls = function
        while cls and cls not in each.classes:
            cls = cls.rpartition(".")[0]
        if not cls:
            return None
        if len(parts) == 1:
            return self._method(path, cls, parts[0], 6)
        built = each.classes[cls].types.get(parts[0]) if len(parts) == 2 else None
        place = self._class(path, built) if built else None
        return self._method(*place, parts[1], 6) if place else None

    def digest(self) -> str:
        """Changes whenever anything changes that a file learns from others beside what it runs."""
        facts = (sorted(self.reaching), sorted(self.words), sorted(self.imported))
        return hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()
