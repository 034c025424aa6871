"""`try`: what may be raised inside, and by which ranks."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ddpdoctor.lint.engine.interpreter.errors import catches, is_known
from ddpdoctor.lint.engine.interpreter.machine import UNSEEN, Machine, TryRecord
from ddpdoctor.lint.engine.interpreter.methods import TEXT_METHODS
from ddpdoctor.lint.engine.interpreter.objects import binding, keyed, members
from ddpdoctor.lint.engine.interpreter.rewriting import raising
from ddpdoctor.lint.engine.interpreter.statements import blocks, loops
from ddpdoctor.lint.engine.interpreter.store import State
from ddpdoctor.lint.engine.interpreter.tree import Arm, Choice, Exit, Seq, events, walk
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    OPEN,
    UNKNOWN,
    Cause,
    Class,
    Const,
    Func,
    Lib,
    Partial,
    Ref,
    Table,
    Term,
    Value,
    local,
    within,
)

EVERY_ERROR = Value(Lib("BaseException"))
_OF_FILES = {"FileNotFoundError", "NotADirectoryError", "IsADirectoryError"}
"""They ask for a file, as `os.path.exists` does."""
ANY_ERROR = frozenset({"Exception", "BaseException"})
_ALIKE_ERRORS = frozenset(
    [
        "ImportError",
        "ModuleNotFoundError",
        "AttributeError",
        "KeyError",
        "IndexError",
        "NameError",
        "TypeError",
        "NotImplementedError",
        "StopIteration",
        "KeyboardInterrupt",
        "SystemExit",
        "AssertionError",
    ]
)


def try_(vm: Machine, node: ast.Try) -> bool:
    """`try: ...`, with its handlers."""
    if _finds_its_key(vm, node):
        return blocks.run_block(vm, [*node.body, *node.orelse, *node.finalbody])
    before, outside, joined = vm.mask, vm.out, vm.joined
    condition = _exception(vm, node)
    depth = vm.store.depth
    record = TryRecord(depth, len(vm.conditions))
    vm.tries.append(record)
    arms: list[Arm] = []
    states: list[State] = []

    def run(body: Callable[[], bool], start: list[State]) -> None:
        vm.out, vm.mask = Seq(), before
        kept = vm.store.open() + 1
        if start:
            vm.store.join(start, vm.site(node, "raised"))
        vm.conditions.append(condition)
        falls = False
        try:
            falls = body()
        finally:
            vm.store.drop(kept)
            vm.conditions.pop()
            writes = vm.store.close()
            arms.append(Arm(before, vm.out, before))
            vm.out = outside
        if falls:
            states.append(State(writes, (condition,), vm.mask))

    try:
        run(lambda: _tried(vm, node), [])
    finally:
        vm.tries.pop()
    if vm.joined and not joined and not any(events(arms[0].body, *loops.OF_MEMBERS)):
        # Who has not come in keeps nobody waiting later: the others wait for it right there.
        condition = Value(NOTHING, UNKNOWN)
    elif _is_raised_alike(vm, node, arms[0].body):
        condition = Value(NOTHING, UNKNOWN)
    states = [State(each.writes, (condition,), each.mask) for each in states]
    raised = [State({}, ()), *record.raised]
    for handler in node.handlers:

        def handle(handler: ast.ExceptHandler = handler) -> bool:
            if handler.name:
                why = vm.why("an exception of this rank", handler)
                error = Value(NOTHING, local("exception", False), why)
                binding.give(vm, handler.name, error, handler)
            vm.emit("caught", "except", handler, kind=_kind(vm, handler))
            return blocks.run_block(vm, handler.body)

        run(handle, list(raised))
    vm.mask = before
    if len(arms) == 1:
        outside.items.extend(arms[0].body.items)
    elif any(arm.body.items for arm in arms):
        choice = Choice(condition, node, node, vm.path, arms, vm.frame.name)
        outside.items.append(choice)
    several = states if len(states) > 1 else []
    keys = dict.fromkeys(key for each in several for key in each.writes)
    ways = {key: [each.writes.get(key, vm.store.get(key)) for each in states] for key in keys}
    vm.store.join(states, vm.site(node, "try"))
    for key, way in ways.items():
        if (now := vm.store.get(key)) is not None:
            vm.either(now, way, node)
    falls = bool(states)
    if node.finalbody:
        falls = blocks.run_block(vm, node.finalbody) and falls
    return falls


def _is_raised_alike(vm: Machine, node: ast.Try, body: Seq) -> bool:
    """Whether it handles errors of the program's own alone, which all ranks raise or none."""
    if not all(isinstance(_kind(vm, each).what, Class) for each in node.handlers):
        return False
    ways = [way for each, way in walk(body) if isinstance(each, Exit) and each.kind == "raise"]
    choices = (step.node for way in ways for step in way if isinstance(step.node, Choice))
    return bool(ways) and all(_is_decided_alike(each.condition) for each in choices)


def _is_decided_alike(condition: Value) -> bool:
    """Whether all ranks surely decide alike: whether a list is empty is not asked of the list."""
    is_of_a_thing = any(isinstance(each, Ref) for each in within(condition.what))
    return condition.agree.kind == "same" and not is_of_a_thing


def _finds_its_key(vm: Machine, node: ast.Try) -> bool:
    """Whether it asks nothing but one entry of a dictionary, which is there."""
    asked = getattr(node.body[0], "value", None) if len(node.body) == 1 else None
    if not isinstance(asked, ast.Subscript) or isinstance(asked.slice, ast.Slice):
        return False
    if any(kinds(each.type) != {"KeyError"} for each in node.handlers):
        return False
    owner, key = (blocks.evaluate_quietly(vm, each) for each in (asked.value, asked.slice))
    is_dict = vm.type_of(owner) == "dict" and isinstance(key.what, Const)
    return is_dict and keyed.kept(vm, owner, key) is not None


def _tried(vm: Machine, node: ast.Try) -> bool:
    """The body of a `try`. Where the rank decides who raises what is caught, those go on there."""
    for number, statement in enumerate(node.body):
        if isinstance(statement, ast.If) and any(map(_raised, (statement.body, statement.orelse))):
            decides = blocks.evaluate_quietly(vm, statement.test)
            handlers = tuple(_handler(vm, node, x) for x in (statement.body, statement.orelse))
            by_rank = decides.agree.kind == "rank" and isinstance(decides.what, Table)
            if by_rank and None not in handlers:
                return blocks.run_block(
                    vm, [vm.program.written_out(node, raising, number, handlers)]
                )
        if not blocks.run_block(vm, [statement]):
            return False
    return blocks.run_block(vm, node.orelse)


def _raised(body: list[ast.stmt]) -> ast.Raise | None:
    """What a block ends with, if that is an error."""
    last = body[-1] if body else None
    return last if isinstance(last, ast.Raise) else None


def _handler(vm: Machine, node: ast.Try, body: list[ast.stmt]) -> int | None:
    """The number of the handler that goes on with what a block raises; None if it is not known.

    -1 where it raises nothing.
    """
    error = _raised(body)
    if error is None:
        return -1
    raised = blocks.evaluate_quietly(vm, error.exc) if error.exc is not None else Value(NOTHING)
    for number, handler in enumerate(node.handlers):
        kind = _kind(vm, handler)
        if raised.what == NOTHING or not is_known(kind):
            return None
        if catches(vm, kind.what, raised.what):
            return None if any(isinstance(x, ast.Raise) for x in ast.walk(handler)) else number
    return None


def _kind(vm: Machine, handler: ast.ExceptHandler) -> Value:
    """What a handler catches."""
    return blocks.evaluate_quietly(vm, handler.type) if handler.type is not None else EVERY_ERROR


def _exception(vm: Machine, node: ast.Try) -> Value:
    """Whether the body raises: this rank's own affair, unless the kind of error is all ranks'."""
    taken = {kind for handler in node.handlers for kind in kinds(handler.type)}
    if taken and (taken <= _ALIKE_ERRORS or _only_converts(vm, node)):
        return Value(NOTHING, UNKNOWN)
    cause: Cause = "disk" if taken and taken <= _OF_FILES else "exception"
    why = vm.why(UNSEEN, node.handlers[0] if node.handlers else node)
    return Value(NOTHING, local(cause, False), why)


def _only_converts(vm: Machine, node: ast.Try) -> bool:
    """Whether the body does nothing but what fails alike on all ranks.

    To import is that as well: what is installed is the same for all of them.
    """
    calls = [each for part in node.body for each in ast.walk(part) if isinstance(each, ast.Call)]
    imports = [each for each in node.body if isinstance(each, ast.Import | ast.ImportFrom)]
    if not calls:
        return bool(imports) and all(_imports_or_names(each) for each in node.body)
    return all(_is_alike(vm, each) for each in calls)


def _imports_or_names(node: ast.stmt) -> bool:
    """Whether a statement imports, or gives a name to a constant or to another name."""
    named = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Name)
    return named or isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)


def _is_alike(vm: Machine, call: ast.Call) -> bool:
    """Whether a call fails on all ranks or on none: a conversion, a question to the group.

    So does what is computed from nothing but what they hold alike, as the text of a file that was
    opened before is parsed.
    """
    function = call.func
    if not isinstance(function, ast.Name | ast.Attribute):
        return False
    what = blocks.evaluate_quietly(vm, function).what
    if isinstance(what, Func):
        return _looks_up(vm, what)
    if isinstance(what, Partial):
        return what.callee.constant is not OPEN  # a method of a constant, as `".".join` is
    if isinstance(what, Term) and what.op == "name" and not vm.frame.module.text.stars:
        return True  # nobody binds it: a shell has it, as IPython has get_ipython, or no rank has
    if not isinstance(what, Lib):
        return False
    effect = vm.library.find(what.name)
    if effect is not None and effect.does == "pure" and not what.name.startswith("torch."):
        given = [*call.args, *(each.value for each in call.keywords)]
        return not any(blocks.evaluate_quietly(vm, each).agree.divergent for each in given)
    return what in _CONVERTERS or (effect is not None and effect.does in members.PROPERTIES)


def _looks_up(vm: Machine, function: Func, depth: int = 3) -> bool:
    """Whether a function of the user's calls nothing but such itself, by their plain names.

    A decorator's calls what it was put on, which it has closed over.
    """
    node = vm.functions[function.number].node
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    inside = [each for part in body for each in ast.walk(part)]
    called = [each.func for each in inside if isinstance(each, ast.Call)]
    names = [each.id for each in called if isinstance(each, ast.Name)]
    methods = [each.attr for each in called if isinstance(each, ast.Attribute)]
    if not set(methods) <= TEXT_METHODS or len(names) + len(methods) != len(called):
        return False
    for name in names:
        closed = (vm.store.get((scope, name)) for scope in function.scopes)
        held = next((each.what for each in closed if each is not None), None)
        if Lib(name) not in _CONVERTERS and not (
            depth and isinstance(held, Func) and _looks_up(vm, held, depth - 1)
        ):
            return False
    return True


_CONVERTERS = {
    *map(Lib, ("int", "float", "str", "bool", "len", "isinstance", "getattr", "type", "hasattr")),
    *map(Lib, ("importlib.import_module", "__import__")),
    *(Lib(f"os.path.{name}") for name in ("basename", "dirname", "join", "split", "splitext")),
}


def kinds(node: ast.expr | None) -> set[str]:
    """The last names of what a handler takes."""
    if node is None:
        return {"BaseException"}
    if isinstance(node, ast.Tuple):
        return {kind for each in node.elts for kind in kinds(each)}
    return {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "?")}
