"""Objects that write themselves into a file, or come out of one, by a method of a known name."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.library.call import Call
from ddpdoctor.lint.engine.interpreter.library.facts import inside
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import members
from ddpdoctor.lint.engine.interpreter.values import NONE, Lib, Value

OPENED = "#opened"
"""The path of a file that is open."""


def path_of(vm: Machine, given: Value) -> Value:
    """What is given for a path: an open file stands for its own."""
    return vm.store.get((given.what, OPENED)) or given


def note_file(
    vm: Machine,
    owner: Value | None,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> None:
    """Tell of the file that a method of this name writes or reads, if it does."""
    effect = vm.library.method(name)
    if effect is None:
        return
    roles = Call(name, effect, owner, args, kwargs, node).roles()
    if "path" not in roles:
        return  # it gives a text
    roles["path"] = path_of(vm, roles["path"])
    by, through = roles.pop("by", None), roles.pop("with", None)
    kind = effect.option("kind")
    if kind == "write" and owner is not None:
        roles |= {"object": owner, "content": inside(vm, owner)}
        if _is_a_model(vm, owner):
            kind, roles["model"] = "save", owner
    if through is not None and not isinstance(through.what, Lib):
        kind = "save_on_main"  # a function that knows of ranks, such as Accelerate's

    def done() -> Value:
        vm.emit(kind, name, node, **roles)
        return NONE

    if by is None:
        done()
    else:
        vm.choose(node, node, by, vm.ways(by, done, lambda: NONE))


def _is_a_model(vm: Machine, owner: Value) -> bool:
    """Whether it is a module, as far as anything that was done with it has shown."""
    what = owner.what
    asked = vm.store.get((what, members.A_MODULE)) is not None
    return asked or what in vm.wrapped or members.is_module(vm, owner)
