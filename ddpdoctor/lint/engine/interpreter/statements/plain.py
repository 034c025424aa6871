"""Statements that compute, bind and import."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.expressions import computed_by, evaluate
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import binding, containers, keyed, memory
from ddpdoctor.lint.engine.interpreter.statements import blocks
from ddpdoctor.lint.engine.interpreter.values import (
    GRADIENTS,
    NONE,
    Const,
    Lib,
    Tensor,
    Value,
)


def expression(vm: Machine, node: ast.Expr) -> bool:
    """`f(x)`, for what it does."""
    value = evaluate(vm, node.value)
    if vm.type_of(value) == "torch.distributed.Work":
        vm.emit("dropped", "", node, work=value)
    if (mode := vm.store.get((value.what, "mode"))) is not None and vm.type_of(value) == "scope":
        vm.store.put((GRADIENTS, "mode"), mode)
    return True


def assign(vm: Machine, node: ast.Assign) -> bool:
    """`x = value`."""
    goes_on = vm.program.written_out(node, _goes_on)
    old = blocks.evaluate_quietly(vm, _loaded(node.targets[0])) if goes_on else NONE
    value = evaluate(vm, node.value)
    if goes_on and isinstance(value.what, Tensor):
        vm.emit("add_up", "", node, old=old, value=value)
    elif goes_on and (more := folding.added(old.what, value.what)):
        vm.emit("add_up", "", node, old=old, value=Value(Const(more)))
    for target in node.targets:
        binding.bind(vm, target, value)
    return True


def _goes_on(node: ast.Assign) -> bool:
    """Whether a variable or attribute is computed from itself, as a running average is."""
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Name | ast.Attribute) or isinstance(value, ast.Call | ast.Name):
        return False
    wanted = getattr(target, "id", None), getattr(target, "attr", None)
    return any(
        (getattr(each, "id", None), getattr(each, "attr", None)) == wanted
        for each in ast.walk(value)
        if each.__class__ is target.__class__
    )


def annotated(vm: Machine, node: ast.AnnAssign) -> bool:
    """`x: T = value`."""
    if node.value is not None:
        binding.bind(vm, node.target, evaluate(vm, node.value))
    return True


def augmented(vm: Machine, node: ast.AugAssign) -> bool:
    """`x += value`."""
    target = node.target
    load = ast.copy_location(_loaded(target), target)
    old, value = evaluate(vm, load), evaluate(vm, node.value)
    if vm.type_of(old) in ("list", "set") and isinstance(node.op, ast.Add | ast.BitOr):
        made = containers.concatenated(vm, node, old, value)
        merged = containers.content(vm, made)
        if merged is not None:
            vm.store.put((old.what, "[]"), merged)
        return True
    if isinstance(node.op, ast.BitOr) and vm.type_of(old) == "dict":
        keyed.update(vm, old, value, node)
        return True
    if vm.watched:
        vm.emit("asked", node.op.__class__.__name__, node, owner=old, by=value)
    new = folding.binary(node.op, old, value)
    if isinstance(old.what, Tensor) and isinstance(new.what, Tensor):
        new = Value(Tensor(old.what.site, new.what.of), new.agree, new.why)
        memory.change(vm, new, new.agree, new.why, value, node)
    elif isinstance(new.what, Tensor):
        new = computed_by(vm, node, node.op.__class__.__name__, old, value, new)
    vm.emit(
        "add_up",
        ast.unparse(target) if isinstance(target, ast.Name) else "",
        node,
        old=old,
        value=value,
        owner=NONE if isinstance(target, ast.Name) else blocks.evaluate_quietly(vm, target.value),
        key=blocks.evaluate_quietly(vm, target.slice)
        if isinstance(target, ast.Subscript)
        else NONE,
    )
    binding.bind(vm, target, new)
    return True


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
    return target


def delete(vm: Machine, node: ast.Delete) -> bool:
    """`del x`."""
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            owner = evaluate(vm, target.value)
            if owner.what == Lib("os.environ"):
                vm.emit("unsetenv", "del", target, name=evaluate(vm, target.slice))
            elif vm.type_of(owner) == "list":
                vm.emit("take", "del", target, owner=owner)
        elif isinstance(target, ast.Attribute):
            binding.remove_attribute(vm, evaluate(vm, target.value), target.attr)
    return True


def import_(vm: Machine, node: ast.Import) -> bool:
    """`import a.b as c`."""
    frame = vm.frame
    for alias in node.names:
        bind = vm.program.module if alias.asname else vm.program.package
        name = alias.asname or alias.name.partition(".")[0]
        binding.give(vm, name, bind(vm, frame.module, alias.name), node)
    return True


def import_from(vm: Machine, node: ast.ImportFrom) -> bool:
    """`from a import b as c`."""
    frame = vm.frame
    base = "." * node.level + (node.module or "")
    for alias in node.names:
        if alias.name == "*":
            vm.program.import_all(vm, frame.module, base, frame.scopes[0])
        else:
            value = vm.program.imported(vm, frame.module, base, alias.name)
            binding.give(vm, alias.asname or alias.name, value, node)
    return True


def global_(vm: Machine, node: ast.Global) -> bool:
    """`global x`."""
    for name in node.names:
        vm.frame.elsewhere[name] = vm.frame.module.scope
    return True


def nonlocal_(vm: Machine, node: ast.Nonlocal) -> bool:
    """`nonlocal x`."""
    for name in node.names:
        for scope in vm.frame.scopes[1:]:
            if vm.store.get((scope, name)) is not None:
                vm.frame.elsewhere[name] = scope
                break
    return True
