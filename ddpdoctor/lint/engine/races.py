"""Files that one rank writes and every rank reads, with nothing between that makes them wait."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.module import Module, params
from ddpdoctor.lint.engine.rank import rank_guards
from ddpdoctor.lint.engine.trees import Function, argument, dotted, last_name, text

_STATE = re.compile(r"state_dict|model|ckpt|checkpoint|weights|best|ema|\bstate\b|optim", re.I)


@dataclass(frozen=True, slots=True)
class Race:
    """A load that may come too early."""

    load: ast.Call
    notes: tuple[str, ...]
    sure: bool
    of_state: bool
    """Whether what is written is a checkpoint."""


@dataclass(frozen=True, slots=True)
class _Access:
    """A call that reads or writes a file, by itself or through a function."""

    call: ast.Call
    paths: frozenset[str]
    """Expressions that may be the path."""
    sure: bool
    """Whether it is torch.save or torch.load itself."""
    said: str
    """What is read or written, as written."""


def races(module: Module) -> Iterator[Race]:
    """The loads that race with the save of another rank, in one function."""
    if not module.is_distributed:
        return
    saves = list(_accesses(module, "torch.save", "save"))
    for load in _accesses(module, "torch.load", "load"):
        guarded = rank_guards(module, load.call)
        if any(each.test.side == "main" and each.side == "main" for each in guarded):
            continue
        for save in saves:
            if race := _race(module, save, load):
                yield race
                break


def _race(module: Module, save: _Access, load: _Access) -> Race | None:
    if save.call is load.call or module.scope(save.call) is not module.scope(load.call):
        return None
    if save.call.lineno >= load.call.lineno or not save.paths & load.paths:
        return None
    branch = next((e for e in rank_guards(module, save.call) if e.guard.kind == "branch"), None)
    inside = module.callee(save.call)
    alone = module.project.effects["rank_save"].get(inside, ()) if inside else ()
    if branch is None and not alone:
        return None
    if branch is not None and module.inside(load.call, branch.guard.node):
        return None
    if _meets_between(module, save.call, load.call):
        return None
    where = f"written at line {save.call.lineno}"
    how = f"; it {branch.describe()}" if branch else ", on one rank"
    said = f"{save.said} {load.said}"
    of_state = bool(_STATE.search(said))
    return Race(load.call, (where + how, *alone), save.sure and load.sure, of_state)


def _accesses(module: Module, name: str, effect: str) -> Iterator[_Access]:
    position = 1 if effect == "save" else 0
    for call in module.calls:
        if module.names.get(call) == name:
            path = argument(call, position, "f")
            if path is not None:
                shown = frozenset({text(path, 200)})
                yield _Access(call, shown, True, text(module.statement(call), 300))
        elif (key := module.callee(call)) and key in module.project.effects[effect]:
            given = [*call.args, *(each.value for each in call.keywords)]
            paths = {text(each, 200) for each in given if _is_path(each)}
            own = _definition(module, call)
            said = text(call, 200)
            for inner in module.calls_of(name) if own else ():
                path = argument(inner, position, "f")
                if path is not None and module.function(inner) is own:
                    paths |= _seen_from_outside(module, call, path)
                    said += text(module.statement(inner), 300)
            yield _Access(call, frozenset(paths), False, said)


def _is_path(node: ast.expr) -> bool:
    shown = text(node, 200).lower()
    return any(word in shown for word in ("path", "file", "ckpt", "checkpoint", ".pt", "name"))


def _definition(module: Module, call: ast.Call) -> Function | None:
    """The only function of this file that a call can mean."""
    found = module.called.get(call, [])
    return found[0] if len(found) == 1 else None


def _seen_from_outside(module: Module, call: ast.Call, path: ast.expr) -> set[str]:
    """The path of a callee's own save or load, as its caller would write it."""
    name = dotted(path)
    if name.startswith("self.") and isinstance(call.func, ast.Attribute):
        holder = dotted(call.func.value)
        return {f"{holder}.{name.removeprefix('self.')}"} if holder else set()
    function = module.function(path)
    head = name.partition(".")[0]
    if not head or function is None or head in params(function) or module.binds(function, head):
        return set()
    return {name}


def _meets_between(module: Module, save: ast.Call, load: ast.Call) -> bool:
    for call in module.calls:
        between = save.lineno < call.lineno <= load.lineno and call is not load
        if between and (_meets(module, call) or _polls(module, call, save, load)):
            return True
    return _meets_inside(module, save, after=True) or _meets_inside(module, load, after=False)


def _meets(module: Module, call: ast.Call) -> bool:
    key = module.callee(call)
    if key and key in module.project.reaches:
        return True
    name = last_name(call.func)
    return (
        "barrier" in name or "sync" in name or any(call is each for each, _ in module.collectives)
    )


def _polls(module: Module, call: ast.Call, save: ast.Call, load: ast.Call) -> bool:
    """Whether a loop sleeps here until something has come: one that neither saves nor loads."""
    loops = [loop for loop in module.loops(call) if isinstance(loop, ast.While)]
    apart = (not module.inside(save, each) and not module.inside(load, each) for each in loops)
    return last_name(call.func) == "sleep" and any(apart)


def _meets_inside(module: Module, call: ast.Call, *, after: bool) -> bool:
    """Whether a called function meets the other ranks behind its save, or before its load."""
    key = module.callee(call)
    if key is None or key not in module.project.reaches:
        return False
    own = _definition(module, call)
    touches = [
        each.lineno
        for each in module.calls_of("torch.save" if after else "torch.load")
        if own and module.function(each) is own
    ]
    if not touches:
        return True  # somewhere in there
    return any(
        module.function(each) is own
        and (each.lineno > max(touches) if after else each.lineno < min(touches))
        and _meets(module, each)
        for each in module.calls
    )
