"""What the source says about the way to a line: its conditions, its loops and how they are left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ddpdoctor.evidence import Place
from ddpdoctor.lint.engine.divergence import local_reason
from ddpdoctor.lint.engine.guards import Guard, guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import rank_guards, rank_test
from ddpdoctor.lint.engine.trees import dotted, last_name, text
from ddpdoctor.lint.reasons import node_at, read

_OURSELVES = f"{Path(__file__).parent.parent}/"
_PATIENTS = (f"{_OURSELVES}reproducers/", f"{_OURSELVES}stack/")
_LEAVING_CALLS = ("sys.exit", "exit", "quit", "os._exit")
Loop = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True, slots=True)
class Stand:
    """A line of the user's on the way to where a rank is, in its file."""

    module: Module
    node: ast.AST
    place: Place

    def at(self, node: ast.AST) -> Place:
        """Where in the same file a node stands."""
        line = getattr(node, "lineno", self.place.line)
        return Place(self.place.file, line, self.module.qualname(node))

    def function(self) -> ast.AST:
        """The function whose line this is."""
        return self.module.scope(self.node)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the way to a line that ranks may answer differently."""

    kind: Literal["rank", "local"]
    way: Literal["branch", "loop", "exit", "assert"]
    told: str
    """For people: "stands under `if rank == 0:` (train.py:85)"."""
    place: Place
    """The condition itself; for an exit, the statement that leaves."""
    leaves: Literal["", "continue", "break", "return", "raise", "exit"] = ""


class Sources:
    """The files that findings speak of, each read once."""

    def __init__(self) -> None:
        self._modules: dict[str, Module | None] = {}

    def stand(self, place: Place) -> Stand | None:
        """The call or statement on a line; None where the file cannot be read."""
        if place.file not in self._modules:
            self._modules[place.file] = None if _is_foreign(place.file) else read(place.file)
        module = self._modules[place.file]
        node = node_at(module, place.line) if module is not None else None
        return Stand(module, node, place) if module is not None and node is not None else None

    def way(self, place: Place | None, stack: tuple[Place, ...]) -> list[Stand]:
        """The lines that lead to a place, innermost first, as far as they can be read."""
        frames = stack or ((place,) if place is not None else ())
        stands = (self.stand(frame) for frame in reversed(frames))
        return [stand for stand in stands if stand is not None]

    def callers(self, stand: Stand) -> list[Stand]:
        """Calls in the same file of the function that a line is in: for lines without a stack."""
        function = stand.module.function(stand.node)
        if function is None:
            return []
        return [
            Stand(stand.module, call, stand.at(call))
            for call in stand.module.calls
            if last_name(call.func) == function.name and not stand.module.inside(call, function)
        ]


def conditions(stand: Stand, shared: Stand | None = None) -> Iterator[Condition]:
    """What ranks may answer differently on the way to a line, within its function, innermost first.

    Left out is what holds alike on the way to a `shared` line of the same function.
    """
    module = stand.module
    common = {_identity(g) for g in guards(module, shared.node)} if shared is not None else set()
    by_rank = {id(each.guard.test): each for each in rank_guards(module, stand.node)}
    for guard in guards(module, stand.node):
        if _identity(guard) in common:
            continue
        if (ranked := by_rank.get(id(guard.test))) is not None:
            told = ranked.describe().replace("(line ", f"({_name(stand)}:")
            yield _condition(stand, guard, "rank", told)
        elif reason := local_reason(module, guard.test):
            told = f"stands under `{text(guard.test)}` ({_name(stand)}:{guard.test.lineno})"
            if guard.kind == "exit":
                told = told.replace("stands under", "stands after an exit under")
            yield _condition(stand, guard, "local", f"{told}, and {reason}")


def _condition(stand: Stand, guard: Guard, kind: Literal["rank", "local"], told: str) -> Condition:
    at = guard.node if guard.kind == "exit" else guard.test
    return Condition(kind, guard.kind, told, stand.at(at), leaving(guard.node))


def leaving(node: ast.AST) -> Literal["", "continue", "break", "return", "raise", "exit"]:
    """How a statement leaves what follows it."""
    match node:
        case ast.Continue():
            return "continue"
        case ast.Break():
            return "break"
        case ast.Return():
            return "return"
        case ast.Raise():
            return "raise"
        case ast.Expr(value=ast.Call(func=func)) if dotted(func) in _LEAVING_CALLS:
            return "exit"
    return ""


def handled(stand: Stand, shared: Stand | None = None) -> ast.ExceptHandler | None:
    """The handler that lets a rank go on to the next round of a loop after an exception."""
    child = stand.node
    if not stand.module.loops(stand.node):
        return None
    for parent in stand.module.ancestors(stand.node):
        if isinstance(parent, ast.Try) and child in parent.body:
            for handler in parent.handlers:
                around = shared is not None and stand.module.inside(shared.node, *parent.body)
                if not around and leaving(handler.body[-1]) not in ("raise", "exit", "return"):
                    return handler
        if parent is stand.function():
            break
        child = parent
    return None


def is_tried(stand: Stand) -> bool:
    """Whether an exception that comes out of this line may be caught in its function."""
    child = stand.node
    for parent in stand.module.ancestors(stand.node):
        if isinstance(parent, ast.Try | ast.TryStar) and parent.handlers and child in parent.body:
            return True
        if isinstance(parent, ast.With) and "suppress" in map(_manager, parent.items):
            return True
        if parent is stand.function():
            break
        child = parent
    return False


def _manager(item: ast.withitem) -> str:
    call = item.context_expr
    return last_name(call.func) if isinstance(call, ast.Call) else ""


@dataclass(frozen=True, slots=True)
class Exit:
    """A statement under a condition that leaves a loop."""

    statement: ast.stmt
    test: ast.expr
    reason: str
    """Why ranks may differ in it; "" where the source does not say."""
    by_rank: bool


def exits(stand: Stand, loop: Loop) -> Iterator[Exit]:
    """The ways out of a loop before its end."""
    module = stand.module
    for node in module.within(loop):
        if isinstance(node, ast.stmt) and leaving(node) in ("break", "return", "exit"):
            around = module.loops(node)
            if leaving(node) == "break" and (not around or around[0] is not loop):
                continue
            inner = [g for g in guards(module, node) if module.inside(g.test, loop)]
            if inner and module.scope(node) is module.scope(loop):
                reasons = (local_reason(module, guard.test) for guard in inner)
                by_rank = any(rank_test(module, guard.test) for guard in inner)
                yield Exit(node, inner[0].test, next(filter(None, reasons), ""), by_rank)


def is_set(stand: Stand, iterable: ast.expr) -> bool:
    """Whether a loop goes through a set, whose order each process has for itself."""
    module = stand.module
    value = module.value(iterable)
    match value:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Name(id="list" | "tuple" | "enumerate"), args=[inner, *_]):
            return is_set(stand, inner)
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub(), right=right):
            return is_set(stand, left) or is_set(stand, right)
    return False


def is_fixed(stand: Stand, loop: Loop) -> bool:
    """Whether a loop runs equally often on every rank, unless it is left."""
    if isinstance(loop, ast.While):
        return isinstance(loop.test, ast.Constant)
    match loop.iter:
        case ast.Call(func=ast.Name(id="range" | "trange"), args=args):
            return not any(isinstance(each, ast.Call) for arg in args for each in ast.walk(arg))
        case ast.Call(func=func) if dotted(func).rpartition(".")[2] == "count":
            return True
    return False


def _is_foreign(file: str) -> bool:
    """Whether no user of ours wrote this file: a library, or what starts a rank."""
    if file.startswith(_PATIENTS):
        return False
    library = "/site-packages/" in file or "/lib/python" in file
    return library or file.startswith((_OURSELVES, "<"))


def _identity(guard: Guard) -> tuple[int, bool, str]:
    return id(guard.test), guard.holds, guard.kind


def _name(stand: Stand) -> str:
    return Path(stand.place.file).name
