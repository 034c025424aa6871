"""What a value is now: what was noted of it since it was made."""

from __future__ import annotations

import ast
from typing import Any

from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    Agreement,
    Either,
    Many,
    Ref,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    Why,
    has_identity,
    how_many,
    term,
)

PARTS = "#parts"
"""The dictionary of a module that holds its parts in one."""


def current(vm: Machine, value: Value) -> Value:
    """The value as it is after what was done to it in place."""
    what = value.what
    if what.__class__ is Tensor or what.__class__ is Term:
        memory = storage(what)
        changed = vm.store.get((memory, "~"))
        if changed is not None and changed.what == memory:
            return changed if what is memory else Value(what, changed.agree, changed.why)
    return value


def now_with_parts(vm: Machine, value: Value) -> Value:
    """The same of a tuple with each of its parts."""
    if not isinstance(value.what, Tuple):
        return current(vm, value)
    parts = tuple(current(vm, each) for each in value.what.items)
    return Value(Tuple(parts), value.agree, value.why)


def touch_each(vm: Machine, content: What, one: Value, after: Value) -> None:
    """What was done in place to the element of a loop was done to each that it goes through."""
    items = content.items if isinstance(content, Tuple) else ()
    items = (content.element,) if isinstance(content, Many) else items
    if isinstance(one.what, Tuple) and isinstance(after.what, Tuple):
        rows = (each.what.items for each in items if isinstance(each.what, Tuple))
        columns = zip(*rows, strict=False)
        for column, each, new in zip(columns, one.what.items, after.what.items, strict=False):
            touch_each(vm, Tuple(column), each, new)
    elif after is not one:
        for each in items:
            touch(vm, each, after.agree, after.why)


def detached(what: What) -> Term:
    """A term without its graph; its memory is the same."""
    return term("detached", what)


def storage(what: What) -> What:
    """The tensor whose memory it is."""
    return what.args[0] if isinstance(what, Term) and what.op == "detached" else what


def touch(vm: Machine, value: Value, agree: Agreement, why: Any = None) -> None:
    """A tensor, a list or an unknown thing was changed in place: this is its agreement now."""
    what = storage(value.what)
    if isinstance(what, Either):
        for each in what.options:
            touch(vm, each, agree, why)
    elif isinstance(what, Ref):
        content = vm.store.get((what, "[]"))
        if content is not None:
            element: What = NOTHING
            filled = Many(Value(element, agree, why), how_many(content.what))
            vm.store.put((what, "[]"), Value(filled, agree, why))
        else:
            vm.store.put((what, "~"), Value(what, agree, why))
    elif isinstance(what, Tensor | Term) and has_identity(what):
        if not agree.divergent:
            vm.store.put((what, SIZED), Value(what, agree, why))
        elif vm.store.get((what, SIZED)) is None:
            vm.store.put((what, SIZED), value)
        vm.store.put((what, "~"), Value(what, agree, why))
        made = vm.made.get(what)
        if made is not None and made.by in _OF_THE_SAME:
            touch(vm, made.of[0], agree, why)


_OF_THE_SAME = ("detach", "flatten", "ravel", "reshape", "squeeze", "unsqueeze", "view", "view_as")
"""What gives the same numbers in the same memory, in another shape or without their graph."""


def is_changed(vm: Machine, what: What) -> bool:
    """Whether anything was done in place to it."""
    return vm.store.get((storage(what), SIZED)) is not None


def before_changes(vm: Machine, value: Value) -> Value:
    """What a thing was before anything was done in place to it: that makes no None of it."""
    return vm.store.get((storage(value.what), SIZED)) or value


ASKING_SIZE = frozenset(("size", "dim", "element_size", "is_complex", "is_floating_point"))
"""What a tensor is asked that its numbers do not decide: how large it is, and of which kind."""
OF_SIZE = ASKING_SIZE | {"shape", "ndim", "dtype"}
SIZED = "#sized"
"""Of a tensor that was changed in place: what it was before, and is as large as."""


def change(
    vm: Machine,
    owner: Value,
    agree: Agreement,
    why: Why | None,
    by: Value,
    node: ast.AST,
    name: str = "",
) -> None:
    """A tensor is changed in place by a value; of a buffer that is an event of its own."""
    if isinstance(owner.what, Tensor):
        vm.emit("change", name, node, object=owner, by=by)
    if owner.what in vm.buffers:
        vm.emit("buffer", "", node, buffer=owner, by=by)
    touch(vm, owner, agree, why)


def fresh(vm: Machine, value: Value) -> Value:
    """A value that is made here anew, whatever was done to the last one made here."""
    if vm.store.get((value.what, "~")) is not None:
        vm.store.put((value.what, "~"), value)
        vm.store.put((value.what, SIZED), value)
    return value
