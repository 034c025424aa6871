"""What assignments do: to names, to attributes, and to items."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.machine import UNBOUND, Machine
from ddpdoctor.lint.engine.interpreter.objects import (
    containers,
    hierarchy,
    indexing,
    keyed,
    members,
    memory,
)
from ddpdoctor.lint.engine.interpreter.store import ROWS_OF, TOLD, Key, State
from ddpdoctor.lint.engine.interpreter.values import (
    FALSE,
    NONE,
    NOTHING,
    TRUE,
    UNKNOWN,
    Class,
    Const,
    Either,
    Func,
    Many,
    ModuleRef,
    Ref,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    blended,
    within,
)


def bind(vm: Machine, target: ast.expr, value: Value) -> None:
    """Assign a value to a name, an attribute, an element, or several of them."""
    match target:
        case ast.Name(id=name):
            give(vm, name, value, target)
        case ast.Attribute(value=owner, attr=name):
            from ddpdoctor.lint.engine.interpreter.expressions import evaluate

            set_attribute(vm, evaluate(vm, owner), name, value, target)
        case ast.Subscript(value=owner, slice=index):
            from ddpdoctor.lint.engine.interpreter.expressions import evaluate

            made = evaluate(vm, owner)
            if isinstance(index, ast.Slice):
                bounds = [evaluate(vm, x) for x in (index.lower, index.upper, index.step) if x]
                own = [each for each in bounds if each.agree.divergent]
                agree, why = blended([memory.current(vm, made), value, *own])
                if vm.type_of(made) == "list":
                    vm.emit("take", "[:]", target, owner=made)
                memory.change(vm, made, agree, why, value, target)
            else:
                keyed.set_item(vm, made, evaluate(vm, index), value, target)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(vm, targets, value, target)
        case ast.Starred(value=inner):
            bind(vm, inner, value)


def give(vm: Machine, name: str, value: Value, node: ast.AST) -> None:
    """Give a name a value where it belongs: each rank that comes there has it from now on."""
    scope = vm.frame.elsewhere.get(name, vm.frame.scopes[0])
    _rebind(vm, (scope, name), value, node)
    if name in vm.unbound:
        vm.store.put((scope, UNBOUND + name), FALSE)


def set_attribute(vm: Machine, owner: Value, name: str, value: Value, node: ast.AST) -> None:
    """`owner.name = value`."""
    what = owner.what
    if isinstance(what, Either):
        if what.masks:
            vm.emit("of_some", name, node, owner=owner, ranks=Value(Const(vm.mask)))
        for option in what.options:
            set_attribute(vm, option, name, value, node)
        return
    if isinstance(what, ModuleRef):
        vm.store.put((vm.program.scope_of(vm, what.path), name), value)
        return
    if isinstance(what, Class):
        vm.store.put((vm.classes[what.number].scope, name), value)
        return
    if what == NOTHING or isinstance(what, Const | Tuple | Many):
        return
    if isinstance(what, Ref):
        made = vm.objects[what.number]
        if made.cls >= 0:
            found = hierarchy.class_attribute(vm, made.cls, f"{name}.setter")
            if found is not None:
                return
        if _set_as_item(vm, owner, Value(Const(name)), value, node):
            return
    if isinstance(what, Ref | Term | Tensor):
        vm.emit("set_attribute", name, node, owner=owner, value=value)
    old = vm.store.get((what, name))
    if old is not None and old.what in vm.buffers and isinstance(value.what, Tensor):
        vm.emit("buffer", name, node, buffer=old, by=value)
        vm.buffers[value.what] = what
    if old is None and vm.conditions and (before := members.begun(vm, owner, name)) is not None:
        vm.store.begin((what, name), before)  # on another way it is that
    _rebind(vm, (what, name), value, node)
    if name in vm.unbound:
        vm.store.put((what, UNBOUND + name), FALSE)


def remove_attribute(vm: Machine, owner: Value, name: str) -> None:
    """`del owner.name`: what was kept there is no part of it any more."""
    for each in owner.what.options if isinstance(owner.what, Either) else (owner,):
        is_kept = vm.store.get((each.what, name)) is not None
        if isinstance(each.what, Ref | Term) and (is_kept or vm.type_of(each) == keyed.NAMESPACE):
            vm.store.put((each.what, name), REMOVED)


REMOVED = Value(NOTHING, UNKNOWN)


def _set_as_item(vm: Machine, owner: Value, name: Value, value: Value, node: ast.AST) -> bool:
    """Whether an attribute of a dictionary of the user's is one of its entries."""
    made = vm.object(owner)
    if made is None or made.cls < 0 or made.type != "dict":
        return False
    if name.is_const("__dict__") and value.what == owner.what:
        vm.store.put((owner.what, members.ITSELF), TRUE)
        return True
    setter = hierarchy.class_attribute(vm, made.cls, "__setattr__")
    if vm.store.get((owner.what, members.ITSELF)) is None and setter is None:
        return False
    if not keyed.is_run(vm, setter):
        if setter is not None and isinstance(setter.what, Func):
            return False
        keyed.set_item(vm, owner, name, value, node)
        return True
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    assert setter is not None
    call_value(vm, hierarchy.bound_to(vm, setter, owner, NONE, node), [name, value], {}, node)
    return True


NAMED = "#named"
"""What an object keeps under names that are not known: the options of a file, of a dictionary."""


def set_named(vm: Machine, owner: Value, name: Value, value: Value, node: ast.AST) -> None:
    """`setattr(owner, name, value)`, whatever the name is."""
    if isinstance(name.constant, str):
        set_attribute(vm, owner, name.constant, value, node)
    elif vm.type_of(owner) == members.DDP and (names := _one_of_these(vm, name.what)) is not None:
        for each in names:  # one after the other, in a loop
            set_attribute(vm, owner, each, Value(NOTHING, UNKNOWN), node)
    elif isinstance(owner.what, Ref) and not _set_as_item(vm, owner, name, value, node):
        before = vm.store.get((owner.what, NAMED))
        agree, why = blended([value, name, *([before] if before is not None else [])])
        vm.store.put((owner.what, NAMED), Value(NOTHING, agree, why))


def _one_of_these(vm: Machine, name: object) -> list[str] | None:
    """The names of which this is one, as it is taken of lists that are written down."""
    if not isinstance(name, Term) or name.op not in ("element", "or"):
        return None
    found: list[str] = []
    for each in name.args:
        items = containers.content(vm, Value(each)) if isinstance(each, Ref) else None
        if isinstance(each, Term) and (inner := _one_of_these(vm, each)) is not None:
            found += inner
        elif items is not None and isinstance(items.what, Tuple):
            found += [x.constant for x in items.what.items if isinstance(x.constant, str)]
        elif not isinstance(each, Const):
            return None
    return found


def _rebind(vm: Machine, key: Key, value: Value, node: ast.AST) -> None:
    """Keep a value; what was restored out of a file may be nowhere any more then."""
    old, made = vm.store.get(key), vm.object(value)
    vm.store.put(key, value)
    vm.store.set_at[key] = node, vm.place(node)
    lost = vm.object(old) if old is not None and old.what != value.what else None
    if old is None or lost is None or made is None or not vm.restored:
        return
    if lost.cls < 0 and lost.number not in vm.restored:  # nor has it parts of its own
        return
    if (lost.cls, lost.type) == (made.cls, made.type) and not _is_held(vm, old.what, key):
        attributes = {
            owner: {name: each for name, each in named.items() if not name.startswith("#")}
            for owner, named in vm.store.held().items()
        }
        mine, new = (members.parts(attributes.get, each.what) for each in (old, value))
        if not vm.restored.isdisjoint(mine - new) and lost.number not in new:
            vm.emit("replaced", key[1], node, object=old, by=value, parts=_refs(mine - new))


def _refs(numbers: set[int]) -> Value:
    return Value(Tuple(tuple(Value(Ref(each)) for each in sorted(numbers))))


def _is_held(vm: Machine, what: What, but: Key) -> bool:
    """Whether anything else than this name holds an object: another, or a name in sight."""
    sight = {scope for frame in vm.frames for scope in frame.scopes}
    return any(
        what in {value.what, *(each.what for each in containers.held(value))}
        for key, value in vm.store.now.items()
        if key != but and (isinstance(key[0], Ref) or key[0] in sight)
    )


def _stands_for_several(one: Value) -> bool:
    """Whether it comes of `zip(*rows)`, of nobody knows how many."""
    return any(isinstance(each, Term) and each.op == "*" for each in within(one.what))


def _of_length(vm: Machine, value: Value, number: int) -> Value | None:
    """Of what is one of several: the tuples that have so many elements. The others would raise."""
    kept = vm.store.get((value.what, ROWS_OF))
    rows = kept.what.items if kept is not None and isinstance(kept.what, Tuple) else ()
    fitting = [
        each for each in rows if isinstance(each.what, Tuple) and len(each.what.items) == number
    ]
    if not fitting:
        return None
    by = [value] if value.agree.divergent else []
    return vm.store.joined(list(fitting), [State({})] * len(fitting), by, value.what)


def _unpack(vm: Machine, targets: list[ast.expr], value: Value, node: ast.AST) -> None:
    star = next((i for i, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
    found = containers.content(vm, value) or (
        _of_length(vm, value, len(targets)) if star is None else None
    )
    if found is not None and isinstance(found.what, Tuple):
        items = found.what.items
        if star is None and len(items) == len(targets):
            for each, one in zip(targets, items, strict=True):
                bind(vm, each, indexing.in_order(found, one))
            return
        several = any(map(_stands_for_several, items))
        if star is not None and len(items) >= len(targets) - 1 and not several:
            behind = len(items) - (len(targets) - 1 - star)
            rest = Value(Tuple(items[star:behind]), found.agree, found.why)
            whole = [*items[:star], rest, *items[behind:]]
            for each, one in zip(targets, whole, strict=True):
                bind(vm, each, indexing.in_order(found, one))
            return
    for number, each in enumerate(targets):
        if isinstance(each, ast.Starred):
            bind(vm, each.value, Value(Many(indexing.item(vm, value, Value(NOTHING), node))))
        else:
            index = number if star is None or number < star else number - len(targets)
            one = indexing.item(vm, value, Value(Const(index)), node)
            bind(vm, each, one if found is None else _one_apart(vm, one, each))


def _one_apart(vm: Machine, one: Value, target: ast.expr) -> Value:
    """The tensor that a name gets of many: it is none of those that other names get."""
    if not isinstance(one.what, Tensor):
        return one
    mine = Value(Tensor(vm.site(target, "part"), one.what.of), one.agree, one.why)
    if (told := vm.store.get((one.what, TOLD))) is not None:
        vm.store.put((mine.what, TOLD), told)
    return vm.computed(mine, "item", (one,), target)
