"""Which call of a library's is handled where."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.library import events, facts, ranks, sharding
from ddpdoctor.lint.engine.interpreter.library.call import Call, identity
from ddpdoctor.lint.engine.interpreter.library.files import note_file
from ddpdoctor.lint.engine.interpreter.library.python import of_python
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import members, memory
from ddpdoctor.lint.engine.interpreter.values import NONE, UNKNOWN, Lib, Tensor, Value


def _range(vm: Machine, call: Call) -> Value:
    """What it is told by name is about how it looks."""
    return of_python(vm, "range", call.args, {}, call.node)


def _tests(vm: Machine, call: Call) -> Value:
    """Of which kind something is, whatever is in it."""
    kind = Value(Lib(call.effect.option("type")))
    return of_python(vm, "isinstance", [call.first, kind], {}, call.node)


_HANDLERS = {
    **facts.HANDLERS,
    **ranks.HANDLERS,
    **events.HANDLERS,
    **sharding.HANDLERS,
    "range": _range,
    "tests": _tests,
}


def call_library(
    vm: Machine,
    name: str,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """Call something of a library by its dotted name; `owner` is the object of a method."""
    args = [memory.current(vm, each) for each in args]
    for each in (*(args[:1] if name.endswith("_") else ()), kwargs.get("out", NONE)):
        if isinstance(each.what, Tensor):  # `zeros_(x)` and `out=x` write into it
            vm.emit("change", "", node, object=each)
        elif name.startswith("torch.nn.init."):
            vm.emit("change", name.rpartition(".")[2], node, object=each)
    effect = vm.library.find(name)
    if effect is None:
        note_file(vm, None, name.rpartition(".")[2], args, kwargs, node)
        return of_python(vm, name, args, kwargs, node)
    call = Call(name, effect, owner, args, kwargs, node)
    if effect.does in _HANDLERS:
        return _HANDLERS[effect.does](vm, call)
    if effect.does in members.PROPERTIES:
        return facts.asked(vm, call)
    return Value(identity(vm, name, args, node), UNKNOWN)
