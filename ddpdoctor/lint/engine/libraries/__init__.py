"""What libraries do, as data: one file per library, found by looking.

A file's `EFFECTS` has one line for each name: the dotted name (`pkg.*` stands for all below that are
not named), what it does, and with which of its arguments, as `role=parameter@position`:

    torch.distributed.all_reduce    collective shares=tensor@0 group=group@2

`*.name` is a method of that name, whatever has it. `WORDS` names what may be done.
`[tool.ddpdoctor]` takes lines of the same kind under `effects`.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

WORDS = {
    "collective": "every rank of the group must call it; `shares` are the arguments that it makes "
    "alike, `collects` those that the root alone gets, `result=same` says that its result is alike, "
    "and `adds` of what it may be the sum",
    "group": "makes a process group, which every rank must do",
    "init": "joins the process group",
    "leave": "leaves the process group",
    "rank": "the rank; `read=attribute` says that it is no function, here and below",
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
    "bounds": "goes through its first argument, and no further than its second says",
    "cycles": "goes through its first argument again and again, without an end",
    "new": "makes an object of a `type`; further words name the arguments that it keeps; of a "
    "module, `has` says what of its own, `#name` what decides its size, `holds` where its parts "
    "are, `runs=each` that it runs them",
    "part": "an attribute that holds an object of a `type`",
    "wraps": "wraps a module for data-parallel training; `has` says what it has beside what torch's "
    "has, `only=gradients` that it shares no buffers and sees itself which parameters take part",
    "shards": "shards a module over the ranks of a mesh, in place too",
    "spreads": "wraps a module that it shards over a `group`, by a `strategy`, gives all ranks "
    "rank 0's `weights` if told to, and `keeps` its parameters if told to",
    "forms": "tells a `module` that is sharded in which `form` it is to give its state",
    "gathers": "gets the state of a `model`, or sets it: every rank must call it where that one is "
    "sharded and the `options` ask for the whole, or where they have rank 0 spread it",
    "prepares": "wraps modules among its arguments, and hands all back in their order",
    "itself": "hands its first argument back",
    "refers": "a function that gives its first argument",
    "enters": "a context manager or decorator of this `scope`",
    "spawns": "starts the function `target` once per rank",
    "starts": "starts the process that it is a method of, one of the ranks if it is numbered",
    "calls": "calls the function `target`",
    "runs": "calls its first argument with what the command line gives",
    "hook": "keeps its first argument, a function that the method `of` calls before anything else; "
    "`hands` says with what: the bare `models` that were prepared, the `path`",
    "calls_on_main": "a decorator: rank 0 alone runs the function",
    "distinct": "a constant that is equal to itself alone",
    "salted": "alike everywhere of a number, another in every process of a text",
    "range": "as many numbers as `range` of the same has",
    "tests": "whether its first argument is of a `type`, as `isinstance` says it",
    "ends": "ends the process",
    "imports": "gives a `module`, or what has a `name` in it, and whether it is there",
    "event": "does what `kind` says: save, load, step, backward, ...; `then` what else, if it is "
    "`due`",
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


@cache
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


_INNER = re.compile(
    r"(torch\.utils\.data)\.(?:sampler|dataset|dataloader)\."
    r"|(timm\.utils)\.(?:cuda|distributed|model|model_ema|random)\."
)
"""Modules whose names are found in the package, too."""


class Library:
    """All tables together, and the user's own lines."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._lines = dict(_lines())
        self.own = tuple(own)
        """The user's own lines."""
        for line in self.own:
            effect = parse(line)
            self._lines[effect.name] = line
        self._known: dict[str, Effect | None] = {}
        self._asked_for: frozenset[str] = frozenset()

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

    def home(self, name: str) -> str:
        """A dotted name as users are told it: that of `torch.utils.data.sampler.Sampler` too."""
        inner = _INNER.match(name)
        if inner is None or name in self._lines:
            return name
        return f"{inner[1] or inner[2]}.{name[inner.end() :]}"

    def method(self, name: str) -> Effect | None:
        """What a method of this name does, whatever has it."""
        return self.exact(f"*.{name}")

    def calls_something(self, text: str) -> bool:
        """Whether a finding may be of a call in this text: of what leads to none, there is none."""
        asked = self._of_interest()
        return any(
            name in asked or (home and {f".{name}", f"{home[:-1]}.{name}"} & asked)
            for home, name in _calls(text)
        )

    def mentions_something(self, text: str) -> bool:
        """The same of the names alone: a call may be of another name that is given to it."""
        return not {_last(each) for each in self._of_interest()}.isdisjoint(_WORD.findall(text))

    def _of_interest(self) -> frozenset[str]:
        if not self._asked_for:
            effects = [parse(line) for name, line in self._lines.items() if not name.endswith("*")]
            self._asked_for = frozenset(_written(each) for each in effects if _begins(each))
        return self._asked_for

    def exact(self, name: str) -> Effect | None:
        """What this very name does."""
        return self.find(name) if name in self._lines else None


# --- what is worth to be run

_CONCERNS_OTHERS = ("collective", "group", "init", "wraps", "prepares", "spawns")
_TELLS_RANKS = ("rank", "main", "mode")
_ASKED_FOR = frozenset(
    [
        "arccos",
        "at_exit",
        "average",
        "backward",
        "checkpoint",
        "clip",
        "empty_cache",
        "grad",
        "load",
        "load_state",
        "make_folder",
        "recv",
        "remove",
        "rename",
        "save",
        "save_on_main",
        "schedule",
        "seed",
        "seed_all",
        "seed_cuda",
        "seed_generator",
        "seed_numpy",
        "seed_python",
        "send",
        "set_device",
        "set_epoch",
        "split",
        "split_numpy",
        "start",
        "step",
    ]
)
"""Events that rules begin with; others only say more about these."""
_CALL = re.compile(r"\b(\w++)\(")
_WORD = re.compile(r"\w+")
_MADE = ("torch.utils.data.", "torch.distributed.", "multiprocessing.")
"""Types whose making rules begin with."""


def _calls(text: str) -> Iterator[tuple[str, str]]:
    """("home.", "name") of each call; one pass, however long a word is."""
    for match in _CALL.finditer(text):
        end = begin = match.start()
        if text[end - 1 : end] == ".":
            begin -= 1
            while begin > 0 and text[begin - 1] in ")]":
                begin -= 1
            while begin > 0 and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
                begin -= 1
        yield text[begin:end], match[1]


def is_of_interest(name: str) -> bool:
    """Whether a name of a library has to do with other ranks."""
    found = _known().exact(name) if name else None
    return found is not None and found.does in _CONCERNS_OTHERS


def calls_something(text: str) -> bool:
    """The same by the tables alone."""
    return _known().calls_something(text)


@cache
def libraries_of_ranks() -> re.Pattern[bytes]:
    """The packages and wrappers of several ranks: a file with none of these is of one process."""
    found: set[str] = set()
    for effect in _effects():
        package, _, rest = effect.name.partition(".")
        if effect.does == "wraps" or "Distributed" in effect.option("type"):
            found.add(_last(effect.name))
        elif effect.does in (*_CONCERNS_OTHERS, *_TELLS_RANKS):
            found.add(rest.partition(".")[0] if package == "torch" else package)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(found)))})".encode())


def _begins(effect: Effect) -> bool:
    if effect.does == "event":
        return effect.option("kind") in _ASKED_FOR
    if effect.does == "enters":
        return effect.option("scope") == "no_sync"
    made = effect.does == "new" and effect.option("type").startswith(_MADE)
    return made or effect.does in _CONCERNS_OTHERS


def _written(effect: Effect) -> str:
    """How a call of it looks: a method by its name, a plain word with its module before it."""
    owner, name = _last(effect.name.rpartition(".")[0]), _last(effect.name)
    if owner == "*" or owner[:1].isupper():
        return f".{name}"
    return f"{owner}.{name}" if effect.does == "event" and owner else name


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _effects() -> list[Effect]:
    return [parse(line) for name, line in _lines() if not name.endswith("*")]


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
