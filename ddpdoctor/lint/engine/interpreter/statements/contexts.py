"""`with`: what is entered, and left again."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.calls import call_function, call_value
from ddpdoctor.lint.engine.interpreter.expressions import evaluate
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import binding, hierarchy, members
from ddpdoctor.lint.engine.interpreter.rewriting import suppressing
from ddpdoctor.lint.engine.interpreter.statements import blocks, loops
from ddpdoctor.lint.engine.interpreter.tree import Exit
from ddpdoctor.lint.engine.interpreter.values import (
    FORKED,
    GENERATORS,
    NONE,
    NOTHING,
    Either,
    Func,
    Lib,
    Value,
    What,
    local,
)


def with_(vm: Machine, node: ast.With | ast.AsyncWith) -> bool:
    """`with a, b: ...`."""
    if _suppresses(vm, node.items[0].context_expr):
        return blocks.run_block(vm, [vm.program.written_out(node, suppressing)])
    return _enter(vm, node, list(node.items))


def _suppresses(vm: Machine, made: ast.expr) -> bool:
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name | ast.Attribute):
        return False
    return blocks.evaluate_quietly(vm, made.func).what == Lib("contextlib.suppress")


def _enter(vm: Machine, node: ast.With | ast.AsyncWith, items: list[ast.withitem]) -> bool:
    if not items:
        return blocks.run_block(vm, node.body)
    item = items[0]
    manager = evaluate(vm, item.context_expr)
    type = vm.type_of(manager)
    # Where it may be another one, or none: what this one does is done by somebody.
    generators = (each for each in vm.store.options(manager) if vm.type_of(each) == "manager")
    if (generator := next(generators, None)) is not None:
        return _through_generator(vm, node, items, generator)
    if names := _scopes(vm, manager):
        return _in_scope(vm, node, items, manager, names)
    made = vm.object(manager)
    entered = manager
    exit_: Value | None = None
    if made is not None and made.cls >= 0:
        if hierarchy.class_attribute(vm, made.cls, "__enter__") is not None:
            entered = call_value(
                vm,
                members.attribute(vm, manager, "__enter__", item.context_expr),
                [],
                {},
                item.context_expr,
            )
        if hierarchy.class_attribute(vm, made.cls, "__exit__") is not None:
            exit_ = members.attribute(vm, manager, "__exit__", item.context_expr)
    if item.optional_vars is not None:
        binding.bind(vm, item.optional_vars, entered)
    inside = vm.inside
    falls = _enter(vm, node, items[1:])
    if type == "contextlib.ExitStack":
        vm.inside = inside
        vm.emit("exit", type, node, stack=manager)
    if exit_ is not None:
        left = _taken_back(vm, falls)
        call_value(vm, exit_, [NONE, NONE, NONE], {}, item.context_expr)
        vm.out.items.extend(left)
    return falls


def _through_generator(
    vm: Machine, node: ast.With | ast.AsyncWith, items: list[ast.withitem], manager: Value
) -> bool:
    """The body of the `with` runs where the generator yields."""
    function = vm.store.get((manager.what, "function"))
    if function is None or not isinstance(function.what, Func):
        return _enter(vm, node, items[1:])
    outer = vm.frame
    ran: list[bool] = []
    left: list[Exit] = []

    def on_yield(value: Value) -> Value:
        inner = vm.frames
        position = inner.index(outer)
        kept, vm.frames = vm.frames, inner[: position + 1]
        if items[0].optional_vars is not None:
            binding.bind(vm, items[0].optional_vars, value)
        falls = True
        try:
            falls = _enter(vm, node, items[1:])
        finally:
            vm.frames = kept
        ran.append(falls)
        left.extend(_taken_back(vm, falls))
        return NONE

    call_function(vm, function.what, [], {}, items[0].context_expr, on_yield)
    vm.out.items.extend(left)
    return all(ran) if ran else _enter(vm, node, items[1:])


def _taken_back(vm: Machine, falls: bool) -> list[Exit]:
    """The exit with which the body of a `with` leaves: the manager's own exit comes before it."""
    items = vm.out.items
    if not falls and items and isinstance(items[-1], Exit) and items[-1].kind != "raise":
        return [items.pop()]  # type: ignore[list-item]
    return []


def _scopes(vm: Machine, manager: Value) -> list[str]:
    """The scope that a context manager enters, or those of which it enters one."""
    options = manager.what.options if isinstance(manager.what, Either) else (manager,)
    if not all(vm.type_of(each) == "scope" for each in options):
        return []
    return list(dict.fromkeys(_scope(vm, each.what) for each in options))


def _scope(vm: Machine, manager: What) -> str:
    kept, mode = vm.store.get((manager, "scope")), vm.store.get((manager, "mode"))
    if mode is not None and isinstance(mode.constant, bool):
        return "enable_grad" if mode.constant else "no_grad"
    return str(kept.constant) if kept else ""


def _in_scope(
    vm: Machine,
    node: ast.With | ast.AsyncWith,
    items: list[ast.withitem],
    manager: Value,
    names: list[str],
) -> bool:
    if items[0].optional_vars is not None:
        binding.bind(vm, items[0].optional_vars, manager)
    count, inside = len(vm.scopes), vm.inside
    if names == ["main_first"]:
        return _main_first(vm, node, items)
    name = names[0] if len(names) == 1 else f"{loops.MAYBE}{' '.join(names)}"
    vm.scopes.append(name)
    of = vm.store.get((manager.what, "of")) or NONE
    if "fork_rng" in names:
        seeded = vm.store.get((GENERATORS, "torch")) or Value(NOTHING, local("chance", False))
        vm.store.put((GENERATORS, FORKED), seeded)
    entered = vm.emit("enter", name, items[0].context_expr, scope=manager, of=of)
    if "no_sync" in names:
        vm.inside = entered
    try:
        falls = _enter(vm, node, items[1:])
    finally:
        del vm.scopes[count:]
        vm.inside = inside
    vm.emit("exit", name, node, scope=manager)
    return falls


def _main_first(vm: Machine, node: ast.With | ast.AsyncWith, items: list[ast.withitem]) -> bool:
    vm.emit("collective", "main_process_first", node)
    vm.scopes.append("main_first")
    try:
        return _enter(vm, node, items[1:])
    finally:
        vm.scopes.pop()
