"""Lists, sets and tuples: how they are made, and what is in them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import hierarchy, keyed, members
from ddpdoctor.lint.engine.interpreter.store import OR_NONE, State
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    OPEN,
    SAME,
    UNKNOWN,
    Const,
    Either,
    Many,
    Ref,
    Table,
    Term,
    Tuple,
    Value,
    Why,
    blended,
    grown,
    how_many,
    local,
    term,
)

MAX_ITEMS = 16
CONTAINERS = ("list", "set")
ALIASED = "aliased"
"""What a list holds again and again."""
OF_A_SET = "the order of a set differs between processes"


def new_list(vm: Machine, node: ast.AST, items: tuple[Value, ...]) -> Value:
    """A list of these."""
    if len(items) <= MAX_ITEMS:
        return new_list_of(vm, node, Value(Tuple(items)))
    return new_list_of(vm, node, Value(Many(one_of(vm, items))))


def new_list_of(vm: Machine, node: ast.AST, content: Value) -> Value:
    """A list with this content."""
    made = vm.new(node, "list")
    if isinstance(content.what, Many) and content.what.number == NOTHING:
        many = Many(content.what.element, Term("many", (made.number,)))
        content = Value(many, content.agree, content.why)
    vm.store.put((made, "[]"), content)
    return Value(made)


def new_set(vm: Machine, node: ast.AST, items: list[Value] | None, sources: list[Value]) -> Value:
    """A set, whose order each process has for itself, unless it holds numbers alone."""
    found = list(items or [])
    begun: Why | None = None  # of a set that is made of another: where that was made
    for source in sources:
        content = globals()["content"](vm, source)
        if content is not None and content.why is not None and content.why.text == OF_A_SET:
            begun = begun or content.why
        if content is None:
            found.append(Value(NOTHING, source.agree, source.why))
        elif isinstance(content.what, Tuple):
            found.extend(content.what.items)
        elif isinstance(content.what, Many):
            found.append(content.what.element)
    made = vm.new(node, "set")
    agree, why = blended([without_order(each) for each in found])
    numbers = [keyed.is_number(vm, each) for each in found]
    # What nobody knows is of the kind of what is there besides.
    are_numbers = any(numbers) and all(
        known or each.what == NOTHING for known, each in zip(numbers, found, strict=True)
    )
    if not are_numbers and not agree.divergent:
        if items or sources:  # where nothing is in it yet, what is put in decides
            agree = local("order", agree.kind == "same" or bool(sources) or items is not None)
        why = begun or vm.why(OF_A_SET, node)
    element = one_of(vm, found) if found else Value(NOTHING, agree, why)
    vm.store.put((made, "[]"), Value(Many(element), agree, why))
    return Value(made)


def concatenated(vm: Machine, node: ast.AST, left: Value, right: Value) -> Value:
    """`left + right` of lists."""
    one, other = content(vm, left), content(vm, right)
    added = other or members.number_of_rows(vm, right)
    agree, why = blended([each for each in (one, added) if each is not None])
    items: list[Value] = []
    exact = True
    for each in (one, other):
        if each is None:
            items.append(Value(NOTHING, right.agree, right.why))
            exact = False
        elif isinstance(each.what, Tuple):
            items.extend(each.what.items)
        elif isinstance(each.what, Many):
            items.append(each.what.element)
            exact = False
    if exact and len(items) <= MAX_ITEMS:
        return new_list_of(vm, node, Value(Tuple(tuple(items)), agree, why))
    number = grown(one.what if one else NOTHING, how_many(other.what if other else NOTHING))
    return new_list_of(vm, node, Value(Many(one_of(vm, items), number), agree, why))


def one_of(vm: Machine, items: Iterable[Value], tag: object = None) -> Value:
    """What may be any of these; with a tag, what it may be is remembered."""
    found: list[Value | None] = list(items)
    if not found:
        return Value(NOTHING, UNKNOWN)
    return vm.store.joined(found, [State({})] * len(found), [], tag)


def if_any(value: Value) -> Value:
    """What may be nothing, where it is something."""
    options = value.what.options if isinstance(value.what, Either) else ()
    given = [each for each in options if not each.is_const(None)]
    return given[0] if len(given) == 1 else value


def content(vm: Machine, value: Value) -> Value | None:
    """The elements of a tuple, list or set, as a Tuple or Many; None for anything else."""
    what = value.what
    if isinstance(what, Tuple | Many):
        return value
    if isinstance(what, Ref):
        found = vm.store.get((what, "[]"))
        if found is not None:
            return of_one_of_several(value, found)
        if vm.type_of(value) == "dict":
            return keyed.keys(vm, value)
        if (made := vm.objects[what.number]).cls >= 0 and is_named_tuple(vm, made.cls):
            return Value(Tuple(tuple(fields(vm, value).values())))
    if isinstance(what, Either):
        several = [content(vm, each) for each in what.options]
        by = [value] if value.agree.divergent else []
        whole = None not in several
        return vm.store.joined(several, [State({})] * len(several), by, what) if whole else None
    if isinstance(what, Const) and isinstance(what.value, tuple):
        return Value(Tuple(tuple(Value(Const(each)) for each in what.value)), value.agree)
    return None


def of_one_of_several(owner: Value, found: Value) -> Value:
    """What is read of something: the rank's own where that is one that it comes to or picks.

    How much is in it is not known then, unless that is written: each may have another number.
    """
    if owner.agree.cause != "data" and owner.agree.kind != "rank":
        return found
    what = found.what
    if isinstance(what, Tuple):
        items = tuple(of_one_of_several(owner, each) for each in what.items)
        return Value(Tuple(items), found.agree, found.why)
    if isinstance(what, Many):
        element = of_one_of_several(owner, what.element)
        count = UNKNOWN if found.agree.kind == "same" else found.agree
        return Value(Many(element, what.number), count, found.why)
    agree, why = blended([found, owner])
    return Value(what, agree, why)


def field_names(vm: Machine, number: int) -> tuple[str, ...]:
    """The fields of a dataclass or named tuple, in order."""
    classes = reversed(list(hierarchy.bases(vm, number)))
    return tuple(dict.fromkeys(name for each in classes for name in vm.classes[each].fields))


def fields(vm: Machine, value: Value) -> dict[str, Value]:
    """What is in the fields of an instance of one; nothing of anything else."""
    made = vm.object(value)
    names = field_names(vm, made.cls) if made is not None and made.cls >= 0 else ()
    return {name: members.attribute(vm, value, name, made.node) for name in names} if made else {}


def is_named_tuple(vm: Machine, number: int) -> bool:
    """Whether the instances of a class are tuples whose elements have names."""
    return hierarchy.library_base(vm, number).rpartition(".")[2] == "NamedTuple"


def held(content: Value) -> tuple[Value, ...]:
    """What `content` gave, as its elements; one for all where their number is open."""
    if isinstance(content.what, Tuple):
        return content.what.items
    return (content.what.element,) if isinstance(content.what, Many) else ()


def without_order(value: Value) -> Value:
    """The same, where nobody asks for its order."""
    what = value.what
    if isinstance(what, Tuple) and any(each.agree.cause == "order" for each in what.items):
        what = Tuple(tuple(without_order(each) for each in what.items))
    if value.agree.kind == "local" and value.agree.cause == "order":
        return Value(what, SAME if value.agree.sure else UNKNOWN)
    return value if what is value.what else Value(what, value.agree, value.why)


def truthy(vm: Machine, value: Value, node: ast.AST) -> Value:
    """A value as a condition: of a container whether it holds anything, as far as ranks differ."""
    if isinstance(value.what, Either):
        table = value.what.table(lambda each: False if each.is_const(None) else vm.truth(each))
        known = table and Table(tuple(OPEN if each is None else each for each in table.entries))
        return Value(known, value.agree, value.why) if known else value
    if isinstance(value.what, Table) and value.what.variable:
        return members.presence(value.what.variable)
    if (agreed := vm.store.as_condition(value)) is not value:
        return agreed
    if value.agree.kind == "local" and (given := _given(vm, value)) is not None:
        return Value(value.what, given.agree, given.why)
    made = vm.object(value)
    if made is not None and made.cls >= 0 and hierarchy.class_attribute(vm, made.cls, "__bool__"):
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        return call_value(vm, members.attribute(vm, value, "__bool__", node), [], {}, node)
    found = content(vm, value) if isinstance(value.what, Ref) else None
    if found is None or not found.agree.divergent or found.agree.cause in _MEANT_AS_MANY:
        return value
    return Value(term("filled", value.what), found.agree, found.why)


def _given(vm: Machine, value: Value) -> Value | None:
    """How ranks agree on whether a part of something is there, of what may be None instead."""
    made = vm.made.get(value.what)
    is_part = isinstance(value.what, Term) or (made is not None and made.by == "item")
    return vm.store.get((value.what, OR_NONE)) if is_part else None


_MEANT_AS_MANY = ("order", "chance", "shard")
"""Of a local content: in another order, or other things that are meant to be as many."""
NOT_HOW_MANY = ("chance", "exception")
"""Of what is unknown otherwise: what is drawn, or could be read, decides what is in it alone."""


def things_in(vm: Machine, made: Value) -> list[Value]:
    """The objects that a dictionary of open keys has under those that are known."""
    kept = vm.store.of(made.what).items()
    return [each for name, each in kept if name.startswith("[") and isinstance(each.what, Ref)]
