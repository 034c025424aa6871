"""Functions that do nothing which anybody hears: run a few times, then not.

A deep model has its layers run hundreds of times, each time that a loop or a choice around it is:
what comes behind it in the program would not be reached. Once fuel gets short, a function that was
only ever seen to compute is taken for one of which nothing is known but what it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter.machine import Frame, FunctionInfo, Machine
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Exit, Node
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    Class,
    Const,
    Func,
    Lib,
    Partial,
    Ref,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
)

_ENOUGH = 3
"""How often it must have been seen to do no more."""
_COMPUTING = frozenset(
    {
        *("add_up", "bare_forward", "bare_method", "cut", "dropout", "iterate", "make", "turn"),
        *("put", "use"),
    }
)
_WITHIN_A_FORWARD = _COMPUTING | {"change", "keep", "set_attribute", "set_item"}
"""There they are events of a tensor's way through a module, elsewhere maybe of a model's state."""

Key = tuple[int, bool, tuple[object, ...]]
"""A function, whether it is within a forward, and what it is given that may decide what it does."""


@dataclass(frozen=True, slots=True)
class Known:
    """What stands for calls like one."""

    like: Key
    """With objects of the same classes."""
    same: Key
    """With the same objects: what one of them holds may decide, too."""


def known(
    vm: Machine, info: FunctionInfo, args: list[Value], kwargs: dict[str, Value]
) -> Known | None:
    """What stands for calls like this one; None where the rank may decide what it does."""
    given = (*args, *kwargs.values())
    if any(each.agree.kind == "rank" for each in given):
        return None
    is_within = any(map(_is_forward, vm.frames))
    like = tuple(_decisive(vm, each.what) for each in given)
    same = tuple(
        each.what if isinstance(each.what, Ref) else by
        for each, by in zip(given, like, strict=True)
    )
    return Known((info.number, is_within, like), (info.number, is_within, same))


def is_quiet(vm: Machine, call: Known) -> bool:
    """Whether such calls need not be followed any more."""
    least = vm.saving if call.like[1] else vm.saving // 3 * 2
    if vm.fuel >= least or vm.quiet.get(call.like, 0) < _ENOUGH:
        return False
    return vm.quiet.get(call.same, 0) > 0


def note(vm: Machine, call: Known, done: list[Node], result: Value, born: int = 0) -> None:
    """Such a call did this: see whether it is more than computing, until that is known.

    What it does to what it has made itself is computing, too: that was made after so many.
    """
    times = min(vm.quiet.get(call.like, 0), vm.quiet.get(call.same, 0))
    if 0 <= times < _ENOUGH:
        events = _WITHIN_A_FORWARD if call.like[1] else _COMPUTING
        own = frozenset(vm.born[born:])
        only = all(_computes(each, events, own) for each in done)
        only = only and _is_computed(vm, result.what, own)
        for key in {call.like, call.same}:
            vm.quiet[key] = vm.quiet.get(key, 0) + 1 if only else -1
        if only and vm.buffers:
            vm.read_buffers[call.same] = tuple(_buffers_in(vm, result))


def reminded(vm: Machine, call: Known, result: Value) -> Value:
    """What such a call gives, computed also of the buffers that it was seen to read."""
    made, buffers = vm.made.get(result.what), vm.read_buffers.get(call.same, ())
    if made is not None and buffers:
        made.of = (*made.of, *buffers)
    return result


def _buffers_in(vm: Machine, value: Value) -> Iterator[Value]:
    """The buffers that a value was computed from."""
    seen: set[What] = set()
    todo = [value]
    while todo and len(seen) < _FAR:
        each = todo.pop()
        if isinstance(each.what, Tuple):
            todo += each.what.items
        elif isinstance(each.what, Tensor | Term) and each.what not in seen:
            seen.add(each.what)
            if each.what in vm.buffers:
                yield each
            made = vm.made.get(each.what)
            todo += made.of if made is not None else ()


_FAR = 60
"""After so many steps back what a call has read is no more sought."""


def _is_forward(frame: Frame) -> bool:
    node = frame.function.node if frame.function is not None else None
    return isinstance(node, ast.FunctionDef) and node.name == "forward"


def _decisive(vm: Machine, what: What) -> object:
    if isinstance(what, Const | Func | Class | Lib | Partial):
        return what
    if isinstance(what, Ref):
        made = vm.objects[what.number]
        return made.cls if made.cls >= 0 else made.type
    return type(what)


_OF_ITS_OWN = {
    **dict.fromkeys(("keep", "set_attribute", "set_item", "take"), "owner"),
    "copy": "object",
}
"""Events that concern nobody else if they are of what was made there, or of a batch: of what."""


def _computes(node: Node, events: frozenset[str], own: frozenset[int]) -> bool:
    if isinstance(node, Event):
        of = node.values.get(_OF_ITS_OWN.get(node.kind, "")) or NONE
        is_own = isinstance(of.what, Ref) and of.what.number in own
        return is_own or of.agree.cause == "data" or node.kind in events
    if isinstance(node, Exit):
        return node.kind != "end"
    inside = [arm.body for arm in node.arms] if isinstance(node, Choice) else [node.body]
    return all(_computes(each, events, own) for seq in inside for each in seq.items)


def _is_computed(vm: Machine, what: What, own: frozenset[int]) -> bool:
    if isinstance(what, Tuple):
        return all(_is_computed(vm, each.what, own) for each in what.items)
    if isinstance(what, Ref) and what.number in own:
        return vm.objects[what.number].cls < 0 and vm.objects[what.number].type in _CONTAINERS
    return isinstance(what, Tensor | Term)


_CONTAINERS = ("dict", "list", "set")
