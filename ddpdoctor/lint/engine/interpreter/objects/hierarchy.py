"""The classes of the program: their bases, and what instances get of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import members
from ddpdoctor.lint.engine.interpreter.values import Class, Either, Func, Lib, Value


def bases(vm: Machine, number: int, depth: int = 12) -> Iterable[int]:
    """A class and its bases in the project, in the order in which attributes are looked for."""
    if depth == 0:
        return
    seen: dict[int, None] = {number: None}
    for base in vm.classes[number].bases:
        if isinstance(base.what, Class):
            seen.update(dict.fromkeys(bases(vm, base.what.number, depth - 1)))
    yield from seen


def class_attribute(vm: Machine, number: int, name: str, after: int = -1) -> Value | None:
    """An attribute of a class or its bases; `after` one of them, as `super()` asks."""
    order = list(bases(vm, number))
    if after in order:
        order = order[order.index(after) + 1 :]
    for each in order:
        found = vm.store.get((vm.classes[each].scope, name))
        if found is not None:
            return found
    return None


def library_base(vm: Machine, number: int) -> str:
    """The library type that a class derives from, "" where there is none that is known."""
    name = library_class(vm, number)
    effect = vm.library.exact(name) if name else None
    return effect.option("type", name) if effect else name


def library_class(vm: Machine, number: int) -> str:
    """The library's class that a class derives from, by its own name."""
    for each in bases(vm, number):
        for base in vm.classes[each].bases:
            if isinstance(base.what, Lib):
                return base.what.name
    return ""


def is_step_of_autograd(vm: Machine, number: int) -> bool:
    """Whether a class is a `torch.autograd.Function`, by whichever of its names."""
    name = library_class(vm, number)
    return name.startswith("torch.autograd.") and name.endswith("Function")


def is_first_of_data(vm: Machine, number: int) -> bool:
    """Whether the first base of a class is a loader or sampler of the library's."""
    base = vm.classes[number].bases[0].what if vm.classes[number].bases else None
    return isinstance(base, Lib) and library_base(vm, number) in members.OF_DATA


def is_known(vm: Machine, number: int) -> bool:
    """Whether all bases of a class are known: nothing else can give it attributes."""
    return all(
        isinstance(base.what, Class) or base.what == Lib("object")
        for each in bases(vm, number)
        for base in vm.classes[each].bases
    )


def bound_to(vm: Machine, found: Value, owner: Value | None, cls: Value, node: ast.AST) -> Value:
    """What a class has, as it is asked of an owner: a method knows it."""
    if isinstance(found.what, Either):
        return vm.each(found, lambda option: bound_to(vm, option, owner, cls, node))
    what = found.what
    if not isinstance(what, Func):
        return found
    if "staticmethod" in what.flags:
        return found
    if "classmethod" in what.flags:
        return Value(replace(what, bound=(cls, *what.bound)))
    if owner is None:
        return found
    bound = replace(what, bound=(owner, *what.bound))
    if "property" in what.flags:
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        return call_value(vm, Value(bound), [], {}, node)
    return Value(bound)
