"""`def` and `class`."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.calls import call_value
from ddpdoctor.lint.engine.interpreter.expressions import evaluate
from ddpdoctor.lint.engine.interpreter.library.python import FLAGS
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import binding
from ddpdoctor.lint.engine.interpreter.values import Class, Func, Lib, Partial, Ref, Value


def function(vm: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`def f(): ...`, and what its decorators make of it."""
    value = Value(vm.program.define(vm, node, node.name))
    for decorator in reversed(node.decorator_list):
        if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter"):
            vm.store.put((vm.frame.scopes[0], f"{node.name}.setter"), value)
            return True
        made = evaluate(vm, decorator)
        if isinstance(made.what, Lib) and not _is_known(vm, made.what.name):
            continue
        new = call_value(vm, made, [value], {}, decorator)
        if isinstance(new.what, Func | Ref) or (
            new.what.__class__.__name__ in ("Partial", "Either", "Class")
        ):
            value = new
    binding.give(vm, node.name, value, node)
    return True


def _is_known(vm: Machine, name: str) -> bool:
    """Whether anything is known of a library's decorator; others leave a function as it is."""
    return name in FLAGS or vm.library.find(name) is not None


def class_(vm: Machine, node: ast.ClassDef) -> bool:
    """`class A: ...`, and what its decorators make of it."""
    value = vm.program.define_class(vm, node)
    for decorator in reversed(node.decorator_list):
        made = evaluate(vm, decorator)
        if isinstance(made.what, Func | Partial | Ref):
            new = call_value(vm, made, [value], {}, decorator)
            value = new if isinstance(new.what, Class) else value
    binding.give(vm, node.name, value, node)
    return True
