"""Modules that are sharded over the ranks, and what is gathered for the state of one."""

from __future__ import annotations

from ddpdoctor.lint.engine.interpreter.library.call import Call, Handler, identity
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.values import (
    FALSE,
    NONE,
    NOTHING,
    TRUE,
    UNKNOWN,
    Lib,
    Tuple,
    Value,
)

_SHARDED = "#sharded"
"""Of a module: each of all ranks has a part of its parameters alone."""


def _shards(vm: Machine, call: Call) -> Value:
    made = Value(identity(vm, call.name, call.args, call.node), UNKNOWN)
    module = call.given("module")
    if module is not None and "ignored_params" not in call.kwargs:
        vm.emit("shard", call.last, call.node, module=module)
    if module is not None and _is_of_all_ranks(vm, call.given("mesh") or NONE):
        for each in (made, module):
            vm.store.put((each.what, _SHARDED), TRUE)
    return made


PARTS_OF_STATE = "fsdp_state_in_parts"
"""The scope in which FSDP gives each rank's own part."""
_IGNORING = {"ignored_modules", "ignored_states"}
_SPREAD = "#spread"
"""Of a module: whether its `state_dict()` gathers what each of all ranks has a part of."""


def _spreads(vm: Machine, call: Call) -> Value:
    if not call.roles().get("weights", FALSE).is_const(False, None):
        vm.emit("spread", call.last, call.node, **call.roles())
    if (call.given("keeps") or FALSE).is_const(False) and not _IGNORING & call.kwargs.keys():
        vm.emit("shard", call.last, call.node, module=call.first)
    made = Value(identity(vm, call.name, call.args, call.node), UNKNOWN)
    group, strategy = (call.given(each) or NONE for each in ("group", "strategy"))
    in_parts = strategy.is_const(None) or _is_named(strategy, *_IN_PARTS)
    if in_parts and group.is_const(None):  # else the members gather, whoever they are
        vm.store.put((made.what, _SPREAD), TRUE)
    return made


def _forms(vm: Machine, call: Call) -> Value:
    form = call.given("form") or NONE
    vm.store.put((call.first.what, _SPREAD), TRUE if is_whole(form) else FALSE)
    return Value(NOTHING, UNKNOWN)


_IN_PARTS = ("FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2")


def is_whole(form: Value) -> bool:
    """Whether FSDP is told to give the whole state, which it must gather."""
    return _is_named(form, "FULL_STATE_DICT")


def _is_named(value: Value, *names: str) -> bool:
    return isinstance(value.what, Lib) and value.what.name.rpartition(".")[2] in names


def gathers_its_state(vm: Machine, module: Value) -> bool:
    """Whether the state of a module that FSDP has wrapped is gathered from all ranks here."""
    is_spread = vm.store.get((module.what, _SPREAD))
    return is_spread is not None and is_spread.is_const(True) and PARTS_OF_STATE not in vm.scopes


def _is_of_all_ranks(vm: Machine, mesh: Value) -> bool:
    """Whether there is one row of a mesh, that of all ranks: of several, each gathers by itself."""
    shape = vm.store.get((mesh.what, "shape"))
    found = containers.content(vm, shape) if shape is not None else None
    is_row = found is not None and isinstance(found.what, Tuple) and len(found.what.items) == 1
    return is_row or mesh.is_const(None)


def _gathers(vm: Machine, call: Call) -> Value:
    options, model = call.given("options") or NONE, call.given("model") or NONE
    whole, spread = (vm.store.get((options.what, each)) or NONE for each in ("whole", "spread"))
    is_sharded = vm.store.get((model.what, _SHARDED)) is not None
    if (is_sharded and whole.is_const(True)) or (call.given("sets") and spread.is_const(True)):
        vm.emit("collective", call.last, call.node, work=NONE)
    return Value(identity(vm, call.name, call.args, call.node), UNKNOWN)


HANDLERS: dict[str, Handler] = {
    "shards": _shards,
    "spreads": _spreads,
    "forms": _forms,
    "gathers": _gathers,
}
