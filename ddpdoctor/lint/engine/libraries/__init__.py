"""What libraries do, as data: one file per library, found by looking.

A file's `EFFECTS` has one line for each name: the dotted name (`pkg.*` stands for all below that are
not named), what it does, and with which of its arguments, as `role=parameter@position`:

    torch.distributed.all_reduce    collective shares=tensor@0 group=group@2

`WORDS` names what may be done. `[tool.ddpdoctor]` takes lines of the same kind under `effects`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

WORDS = {
    "collective": "every rank of the group must call it; `shares` are the arguments that it makes "
    "alike, `collects` those that the root alone gets, `result=same` says that its result is alike",
    "group": "makes a process group, which every rank must do",
    "init": "joins the process group",
    "leave": "leaves the process group",
    "rank": "the rank",
    "local_rank": "the rank on its node",
    "node_rank": "the number of the node",
    "main": "true on rank 0 alone",
    "local_main": "true on local rank 0 alone",
    "world": "how many ranks there are",
    "mode": "whether the job is distributed",
    "same": "alike on all ranks",
    "unknown": "nothing is known of it",
    "local": "this rank's own; `cause` says why",
    "pure": "alike if its arguments are",
    "count": "alike although its argument's order is not (a length, a sum, a sorted list)",
    "new": "makes an object of a `type`; further words name the arguments that it keeps; of a "
    "module, `has` says what of its own, `holds` where its parts are, `runs=each` that it runs them",
    "wraps": "wraps a module for data-parallel training",
    "prepares": "wraps modules among its arguments, and hands all back in their order",
    "itself": "hands its first argument back",
    "enters": "a context manager or decorator of this `scope`",
    "spawns": "starts the function `target` once per rank",
    "calls": "calls the function `target`",
    "calls_on_main": "a decorator: rank 0 alone runs the function",
    "ends": "ends the process",
    "event": "does what `kind` says: save, load, step, backward, ...",
}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a name of a library does."""

    name: str
    does: str
    options: tuple[tuple[str, str], ...] = ()

    def option(self, name: str, default: str = "") -> str:
        """A plain option such as `cause=clock`."""
        return next((value for key, value in self.options if key == name), default)

    def parameters(self) -> Iterable[tuple[str, str, int]]:
        """(role, parameter, position) of the arguments that matter; position -1: by name alone."""
        for role, value in self.options:
            name, at, position = value.partition("@")
            if at:
                yield role, name, int(position) if position else -1


class UnknownEffect(ValueError):
    """A line that says nothing that can be understood; the message names it."""


def parse(line: str) -> Effect:
    """One line of a table. Raises UnknownEffect."""
    name, *words = line.split() or [""]
    if not words or words[0] not in WORDS:
        known = ", ".join(WORDS)
        raise UnknownEffect(f"`{line.strip()}`: after the name comes one of {known}")
    options = []
    for word in words[1:]:
        key, equals, value = word.partition("=")
        _, at, position = value.partition("@")
        if not equals or not value or (at and position and not position.isdigit()):
            raise UnknownEffect(f"`{line.strip()}`: `{word}` is not role=parameter@position")
        options.append((key, value))
    return Effect(name, words[0], tuple(options))


class Library:
    """All tables together, and the user's own lines."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._lines = dict(_lines())
        for line in own:
            effect = parse(line)
            self._lines[effect.name] = line
        self._known: dict[str, Effect | None] = {}

    def find(self, name: str) -> Effect | None:
        """What a dotted name does, itself or by the nearest `*` above it."""
        if name in self._known:
            return self._known[name]
        line = self._lines.get(name)
        base = name
        while line is None and "." in base:
            base = base.rpartition(".")[0]
            line = self._lines.get(f"{base}.*")
        effect = parse(line) if line is not None else None
        self._known[name] = effect
        return effect

    def exact(self, name: str) -> Effect | None:
        """What this very name does."""
        return self.find(name) if name in self._lines else None


_CONCERNS_OTHERS = ("collective", "group", "init", "wraps", "prepares", "spawns")


def is_of_interest(name: str) -> bool:
    """Whether a name of a library has to do with other ranks."""
    found = _known().exact(name) if name else None
    return found is not None and found.does in _CONCERNS_OTHERS


@cache
def _known() -> Library:
    return Library()


@cache
def _lines() -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for each in pkgutil.iter_modules(__path__, f"{__name__}."):
        table: str = importlib.import_module(each.name).EFFECTS
        for line in table.splitlines():
            if line.strip():
                found[line.split(None, 1)[0]] = line
    return tuple(found.items())
