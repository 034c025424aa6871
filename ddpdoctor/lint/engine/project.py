"""The project as a whole: which function leads to a collective, through whom."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from ddpdoctor.lint.engine.locator import Locator
from ddpdoctor.lint.engine.survey import Callee, FunctionSurvey, Survey

Key = tuple[str, str]
"""(file, qualified name) of a function."""


EFFECTS = {
    "init": "calls init_process_group()",
    "sampler": "builds a DistributedSampler",
}


@dataclass(frozen=True, slots=True)
class Reach:
    """How a function comes to run a collective."""

    operation: str
    sure: bool
    """No condition on the way, but whether there is a process group at all."""
    chain: tuple[str, ...]
    """For people: "sync() calls barrier() (utils.py:12)", outermost first."""


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
        """Words of interest that occur anywhere in the project."""
        callers: dict[Key, list[tuple[Key, Callee]]] = defaultdict(list)
        callable_names = self._callable_names()
        for key, function in self._functions():
            for callee in function.calls:
                if callee.name.rpartition(".")[2] not in callable_names:
                    continue
                if (target := self.resolve(key[0], key[1], callee.name)) and target != key:
                    callers[target].append((key, callee))
        self.reaches = self._reaches(callers)
        self.effects = {effect: self._effects(effect, callers) for effect in EFFECTS}
        self.forwards = self._forwards(callers)
        self._lines = self._lines_by_path()
        self.notable = self._notable()
        """Last names under which notable functions are called: a quick sieve for calls."""

    def _notable(self) -> frozenset[str]:
        keys = [key for key, function in self._functions() if function.returns_rank]
        doing = [key for found in self.effects.values() for key in found]
        names = {name for _, name in (*keys, *doing, *self.reaches, *self.forwards)}
        last = {name.rpartition(".")[2] for name in names}
        makers = {name.split(".")[-2] for name in names if name.endswith(".__init__")}
        aliases = {
            alias
            for each in self.surveys.values()
            for alias, name in each.imports.items()
            if name.rpartition(".")[2] in last | makers
        }
        return frozenset(last | makers | aliases)

    def _callable_names(self) -> set[str]:
        """Last names under which anything of the project can be called: a first sieve."""
        found = {function.name.rpartition(".")[2] for _, function in self._functions()}
        for each in self.surveys.values():
            found.update(name.rpartition(".")[2] for name in each.classes)
            found.update(each.imports)
            found.update(name.rpartition(".")[2] for name in each.imports.values())
        return found

    def _functions(self) -> Iterator[tuple[Key, FunctionSurvey]]:
        for path, each in self.surveys.items():
            for name, function in each.functions.items():
                yield (path, name), function

    def _reaches(self, callers: dict[Key, list[tuple[Key, Callee]]]) -> dict[Key, Reach]:
        found: dict[Key, Reach] = {}
        for only_sure in (True, False):
            queue = deque(found)
            for key, function in self._functions():
                for operation, line, sure in function.collectives:
                    if key not in found and (sure or not only_sure):
                        step = f"{_short(key)}() calls {_call(operation)} ({_place(key, line)})"
                        found[key] = Reach(operation, sure, (step,))
                        queue.append(key)
            while queue:
                target = queue.popleft()
                for key, callee in callers.get(target, ()):
                    if key in found or (only_sure and not callee.sure):
                        continue
                    reach = found[target]
                    step = f"{_short(key)}() calls {_short(target)}() ({_place(key, callee.line)})"
                    sure = reach.sure and callee.sure
                    found[key] = Reach(reach.operation, sure, (step, *reach.chain))
                    queue.append(key)
        return found

    def _effects(
        self, effect: str, callers: dict[Key, list[tuple[Key, Callee]]]
    ) -> dict[Key, tuple[str, ...]]:
        """Function -> how it comes to do this, for people."""
        found: dict[Key, tuple[str, ...]] = {}
        for key, function in self._functions():
            if line := function.effects.get(effect):
                found[key] = (f"{_short(key)}() {EFFECTS[effect]} ({_place(key, line)})",)
        queue = deque(found)
        while queue:
            target = queue.popleft()
            for key, callee in callers.get(target, ()):
                if key not in found:
                    step = f"{_short(key)}() calls {_short(target)}() ({_place(key, callee.line)})"
                    found[key] = (step, *found[target])
                    queue.append(key)
        return found

    def _forwards(self, callers: dict[Key, list[tuple[Key, Callee]]]) -> dict[Key, set[str]]:
        """Function -> its parameters that it, or a function it hands them to, calls."""
        found = {key: set(f.called_params) for key, f in self._functions() if f.called_params}
        queue = deque(found)
        while queue:
            target = queue.popleft()
            for key, callee in callers.get(target, ()):
                new = {
                    mine
                    for theirs, mine in callee.params
                    if self.parameter(target, theirs) in found[target]
                } - found.get(key, set())
                if new:
                    found.setdefault(key, set()).update(new)
                    queue.append(key)
        return found

    def lines_of_interest(self, path: str) -> frozenset[int]:
        """The lines of this file's functions from which one of these is reached."""
        return self._lines.get(path, frozenset())

    def _lines_by_path(self) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = defaultdict(set)
        for key in (*self.reaches, *(key for keys in self.effects.values() for key in keys)):
            if (function := self.function(key)) is not None:
                found[key[0]].add(function.line)
        return {path: frozenset(lines) for path, lines in found.items()}

    def function(self, key: Key) -> FunctionSurvey | None:
        """The survey of a function."""
        each = self.surveys.get(key[0])
        return each.functions.get(key[1]) if each else None

    def parameter(self, key: Key, given: str) -> str:
        """The name of the parameter that a position ("0") or keyword fills."""
        function = self.function(key)
        if not given.isdigit() or function is None:
            return given
        params = function.params
        shift = 1 if params[:1] in (("self",), ("cls",)) else 0
        position = int(given) + shift
        return params[position] if position < len(params) else ""

    def resolve(self, path: str, function: str, name: str) -> Key | None:
        """The function that a call by this (import-resolved) name reaches from inside another."""
        if path not in self.surveys:
            return None
        if name.startswith(("self.", "cls.")):
            return self._method_call(path, function, name.split(".")[1:])
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

    def returns_rank(self, key: Key) -> bool:
        """Whether the function answers something that depends on the rank."""
        function = self.function(key)
        return function is not None and function.returns_rank

    def digest(self) -> str:
        """Changes whenever anything changes that rules learn from other files."""
        facts = (
            sorted(self.reaches.items(), key=lambda item: item[0]),
            sorted((effect, sorted(found.items())) for effect, found in self.effects.items()),
            sorted((key, sorted(params)) for key, params in self.forwards.items()),
            sorted(key for key, function in self._functions() if function.returns_rank),
            sorted(self.words),
        )
        return hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()


def _short(key: Key) -> str:
    return key[1] if key[1] != "<module>" else PurePath(key[0]).stem


def _call(operation: str) -> str:
    return operation if operation.endswith(")") else f"{operation}()"


def _place(key: Key, line: int) -> str:
    return f"{PurePath(key[0]).name}:{line}"
