"""What `owner[index]` is, and what is cut out of sequences."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import containers, hierarchy, keyed, members, memory
from ddpdoctor.lint.engine.interpreter.store import LET_IN, OF_SOME
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    RANK,
    SAME,
    UNKNOWN,
    WORLD,
    Agreement,
    Cause,
    Const,
    Either,
    Lib,
    Many,
    ModuleRef,
    Partial,
    Ref,
    Table,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    Why,
    blended,
    is_device,
    local,
    term,
    within,
)

OWN_PART = "each rank takes a part of its own"


def selected(vm: Machine, index: Value, found: list[Value]) -> Value:
    """Each rank's own of several."""
    if all(each.what == found[0].what for each in found):
        return found[0]
    if all(isinstance(each.what, Const) for each in found):
        return Value(Table(tuple(each.constant for each in found)), index.agree, index.why)
    agree, why = blended([*found, index])
    joined = containers.one_of(vm, list({each.what: each for each in found}.values()))
    return Value(joined.what, agree, why)


def take_out(vm: Machine, owner: Value, index: Value) -> None:
    """Take one of a list's things out of it."""
    found = containers.content(vm, owner)
    if found is None or not isinstance(found.what, Tuple) or not found.what.items:
        return
    items, at = list(found.what.items), index.constant
    rest: Tuple | Many = Many(containers.one_of(vm, items))
    if isinstance(at, int) and -len(items) <= at < len(items) and not vm.frame.loops:
        del items[at]
        rest = Tuple(tuple(items))
    vm.store.put((owner.what, "[]"), Value(rest, found.agree, found.why))


VERSION = Lib("sys.version_info")


def _under_a_name(vm: Machine, what: What, name: Value, node: ast.AST) -> Value | None:
    """What a module has under a name: `vars(module)[name]`, `globals()[name]`."""
    from ddpdoctor.lint.engine.interpreter import lookups

    if what == Lib("sys.modules"):
        return lookups.module_of(vm, name)
    if isinstance(what, Term) and what.op == "global" and what.args[1:] == ("__dict__",):
        what = ModuleRef(what.args[0])
    return lookups.of_module(vm, what, name, node)


def item(vm: Machine, owner: Value, index: Value, node: ast.AST) -> Value:
    """`owner[index]`."""
    what = owner.what
    if isinstance(what, Either):
        if what.masks:
            vm.emit("of_some", "[]", node, owner=owner, ranks=Value(Const(vm.mask)))
        return vm.each(owner, lambda each: memory.current(vm, item(vm, each, index, node)))
    if isinstance(what, Partial) and (whole := members.output_with(what)) is not None:
        return item(vm, Value(whole, owner.agree, owner.why), index, node)
    if (named := _under_a_name(vm, what, index, node)) is not None:
        return named
    if what == VERSION and index.is_const(0):
        return Value(Const(3))
    if what == Lib("os.environ"):
        name = index.constant
        if isinstance(name, str):
            vm.emit("getenv", "os.environ", node, name=index)
            return members.of_environment(vm, name, node)
        return Value(NOTHING, UNKNOWN)
    if isinstance(what, Ref) and vm.type_of(owner) == "dict":
        cls = vm.objects[what.number].cls
        own = hierarchy.class_attribute(vm, cls, "__getitem__") if cls >= 0 else None
        if not keyed.is_run(vm, own):
            keyed.make_default(vm, owner, index, node)
            return containers.of_one_of_several(owner, keyed.get_key(vm, owner, index))
    if members.is_module(vm, owner) and not _is_counted(index):
        return Value(term("picked", what, index.what), owner.agree, owner.why)
    held = vm.store.get((what, memory.PARTS)) if isinstance(what, Ref) else None
    if held is not None:
        return item(vm, held, index, node)
    found = containers.content(vm, owner)
    if found is not None:
        one = _of_content(vm, found, index)
        if (order := order_of(vm, one)) is not None:
            vm.emit("pick", "", node, order=order, index=index)
        if isinstance(index.what, Term) and index.what.op == "counter":
            vm.emit("turn", "", node, index=index, element=one)
        return one
    vm.note_read(owner, index)
    if (order := order_of(vm, memory.current(vm, owner))) is not None:
        vm.emit("pick", "", node, order=order, index=index)
    # What is kept for each device has the same under each, as far as one knows: it is where it is.
    agree, why = blended(
        [memory.current(vm, owner), *([index] if not is_device(index.what) else [])]
    )
    if isinstance(index.what, Const) and (part := keyed.put_under(vm, owner, index)) is not None:
        return part
    if isinstance(what, Ref) and vm.objects[what.number].cls >= 0:
        method = hierarchy.class_attribute(vm, vm.objects[what.number].cls, "__getitem__")
        if method is not None:
            from ddpdoctor.lint.engine.interpreter.calls import call_value

            bound = hierarchy.bound_to(vm, method, owner, NONE, node)
            return call_value(vm, bound, [index], {}, node)
    shape = what.args[1] if isinstance(what, Term) and what.op == "of" else ""
    if isinstance(what, Term) and shape in ("shape", "size") and index.is_const(0):
        agree = members.rows(vm, Value(what.args[0], agree))
        return Value(term("item", what, index.what), agree, why if agree.divergent else None)
    is_equal_part = _is_one_of_equal_parts(vm, owner, index)
    if isinstance(what, Tensor):
        which = f"item {index.constant}" if isinstance(index.what, Const) else "item"
        made = memory.fresh(vm, Value(Tensor(vm.site(node, which), what.of), agree, why))
        alike = vm.store.get((what, members.ROWS)) if isinstance(index.what, Const) else None
        alike = Value(NOTHING, SAME) if is_equal_part else alike
        if alike is not None:
            vm.store.put((made.what, members.ROWS), alike)
        return vm.computed(made, "item", (owner, index), node)
    one = Value(term("item", what, index.what) if what != NOTHING else NOTHING, agree, why)
    if is_equal_part and one.what != NOTHING:
        vm.store.put((one.what, members.ROWS), Value(NOTHING, SAME))
    return one


def _is_one_of_equal_parts(vm: Machine, owner: Value, index: Value) -> bool:
    """Whether it is `x.split(n // ranks)[rank]`: what is left over makes a part behind the last."""
    made = vm.made.get(owner.what)
    if made is None or made.by.rpartition(".")[2] != "split" or len(made.of) < 2:
        return False
    size = made.of[1].what
    return index.what == RANK and isinstance(size, Term) and size.op == "FloorDiv"


def _is_counted(index: Value) -> bool:
    """Whether an index is known, or a loop's counter: else the data picks one of several."""
    what = index.what
    return isinstance(what, Const | Table) or (isinstance(what, Term) and what.op == "counter")


def _of_content(vm: Machine, found: Value, index: Value) -> Value:
    number = index.constant
    what = found.what
    if isinstance(what, Tuple):
        if isinstance(number, int) and -len(what.items) <= number < len(what.items):
            one = what.items[number]
            return in_order(found, one)
        if isinstance(index.what, Table) and what.items:
            picked: list[Value] = []
            for each in index.what.entries:
                inside = isinstance(each, int) and -len(what.items) <= each < len(what.items)
                picked.append(what.items[each] if inside else what.items[-1])
            return selected(vm, index, picked)
        one = containers.one_of(vm, what.items)
    else:
        assert isinstance(what, Many)
        one = what.element
    agree, why = blended([one, index])
    return in_order(found, Value(one.what, agree, why))


def order_of(
    vm: Machine, value: Value, depth: int = 3, causes: tuple[Cause, ...] = ("order",)
) -> Value | None:
    """What of a value depends on an order that each process or machine has for itself."""
    if value.agree.cause in causes:
        return value
    found = containers.content(vm, value) if depth else None
    if found is None:
        return None
    if found.agree.cause in causes:
        return found
    items = containers.held(found)
    ordered = (order_of(vm, each, depth - 1, causes) for each in items)
    return next((each for each in ordered if each is not None), None)


def in_order(found: Value, one: Value) -> Value:
    """An element that is picked by its place: another one where the order differs."""
    if isinstance(one.what, Term) and one.what.op == "counter":
        return one
    if found.agree.divergent and not one.agree.divergent:
        return Value(one.what if one.what != Term("joined") else NOTHING, found.agree, found.why)
    return one


def cut(vm: Machine, owner: Value, bounds: list[Value], node: ast.AST) -> Value | None:
    """`owner[a:b:c]`, where its things and the bounds are known."""
    found, at = containers.content(vm, owner), [each.constant for each in bounds]
    if found is None or not isinstance(found.what, Tuple) or at[2] == 0:
        return None
    if not all(each is None or type(each) is int for each in at):
        return None
    part = Value(Tuple(found.what.items[slice(*at)]), found.agree, found.why)
    return containers.new_list_of(vm, node, part) if vm.type_of(owner) == "list" else part


def _ends_apart(node: ast.AST, parts: list[Value]) -> bool:
    """Whether all ranks take from one place on, some more than others: nothing is dealt out."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return False
    written = (node.slice.lower, node.slice.upper, node.slice.step)
    there = [each for each in written if each is not None]
    apart = [each for each, part in zip(there, parts, strict=True) if part.agree.divergent]
    return apart == [node.slice.upper]


def _taken(vm: Machine, one: Value, own: tuple[Agreement, Why | None], node: ast.AST) -> Value:
    """One of a rank's part: that a tensor was changed before says nothing of which one it is."""
    items = one.what.items if isinstance(one.what, Tuple) else (one,)
    taken = list(items)
    for number, each in enumerate(items):
        if isinstance(each.what, Tensor) and vm.store.get((each.what, "~")) is not None:
            picked = Value(Tensor(vm.site(node, f"part {number}"), each.what.of), *own)
            taken[number] = vm.computed(picked, "element", (each,), node)
    if isinstance(one.what, Tuple):
        return Value(Tuple(tuple(taken)), one.agree, one.why)
    return taken[0]


def sliced(
    vm: Machine, owner: Value, parts: list[Value], node: ast.AST, *, of_rows: bool = True
) -> Value:
    """`owner[a:b]`; without `of_rows` along another dimension."""
    found = containers.content(vm, owner)
    by, reason = blended(parts)
    agree, why = blended([memory.current(vm, owner), *parts])
    own: tuple[Agreement, Why | None] | None = None  # of what is in it, where that says nothing
    if by.kind == "rank":
        agree, why = local("shard", by.sure), vm.why(OWN_PART, node, reason)
        whole = found if found is not None else memory.current(vm, owner)
        apart = order_of(vm, whole, causes=("order", "chance")) if of_rows else None
        if apart is not None and not _ends_apart(node, parts):
            vm.emit("deal", "", node, order=apart)
        if len(parts) == 2 and numbers_twice(*(each.what for each in parts)):
            vm.emit("numbered_twice", "", node)
        if _happens_to_have(vm, owner.what, parts, node):
            vm.unmeasured.add(id(node))
        if _is_dealt_evenly(vm, owner.what, parts, node):
            own = agree, why
            agree, why = UNKNOWN, None  # another part, which is as large
    if found is not None:
        inner = found.what
        element = containers.one_of(vm, inner.items) if isinstance(inner, Tuple) else inner.element  # type: ignore[union-attr]
        if by.kind == "rank":
            element = _taken(vm, element, own or (agree, why), node)
        if own is not None:
            element = Value(element.what, *own)
        if by.kind != "rank":
            agree, why = blended([found, *parts])
            is_part = agree.cause == "shard"
            if by.kind == "same" and agree.divergent and agree.cause != "order" and parts:
                if is_part:  # of a rank's own part: these are its own, too
                    element = Value(element.what, agree, why)
                if not is_part or _has_an_end(node):
                    agree = UNKNOWN  # as many as all ranks have, where somebody has counted
        if vm.type_of(owner) == "list":
            return containers.new_list_of(vm, node, Value(Many(element), agree, why))
        return Value(Many(element), agree, why)
    what = owner.what
    if isinstance(what, Tensor):
        made = memory.fresh(vm, Value(Tensor(vm.site(node, "slice"), what.of), agree, why))
        if own is not None:
            vm.store.put((made.what, OWN_ROWS), Value(NOTHING, *own))
        return vm.computed(made, "slice", (owner,), node)
    part = term("slice", what, *(each.what for each in parts))
    if own is not None:
        return Value(Many(Value(term("item", part), *own)), agree, why)
    return Value(part, agree, why)


def left_over(vm: Machine, numbers: Value) -> bool:
    """Whether it counts to an end that some ranks reckon in another way: to what others leave."""
    while (made := vm.made.get(numbers.what)) is not None and made.of and made.by in _AS_MANY:
        numbers = made.of[-1] if made.by == "arange" else made.of[0]
        if made.by == "arange":
            return vm.store.get((numbers.what, OF_SOME)) is not None
    what = numbers.what
    if not isinstance(what, Term) or what.op != "range" or len(what.args) != 2:
        return False
    return vm.store.get((what.args[1], OF_SOME)) is not None


_AS_MANY = ("arange", "int", "long", "to", "cpu", "numpy")


def _is_dealt_evenly(vm: Machine, what: What, parts: list[Value], node: ast.AST) -> bool:
    """Whether it is `parts[rank::world]` of as many parts as a multiple of the world.

    So is `parts[rank : many : world]`, where ranks have as many, and that is the multiple.
    """
    cut = node.slice if isinstance(node, ast.Subscript) else None
    if not isinstance(cut, ast.Slice) or len(parts) < 2 or cut.step is None:
        return False
    if parts[0].what != RANK or parts[-1].what != WORLD:
        return False
    if cut.upper is not None:
        return not parts[1].agree.divergent and folding.is_multiple(parts[1].what)
    number = vm.store.get((what, NUMBER))
    return number is not None and folding.is_multiple(number.what)


def numbers_twice(number: What, of: What) -> bool:
    """Whether it is `rank + worker` of `world * workers`, which several ranks' workers come to."""
    if not isinstance(number, Term) or not isinstance(of, Term):
        return False
    if (number.op, of.op) != ("Add", "Mult") or WORLD not in of.args:
        return False
    own = [each for each in number.args if each != RANK]
    several = [each for each in of.args if each != WORLD]
    if len(own) != 1 or len(several) != 1 or isinstance(several[0], Const):
        return False
    return not isinstance(own[0], Const) and not {RANK, WORLD} & {*within(own[0])}


def _happens_to_have(vm: Machine, what: What, parts: list[Value], node: ast.AST) -> bool:
    """Whether it is `parts[rank::world]`, to the end, of what a condition has let in one by one."""
    cut = node.slice if isinstance(node, ast.Subscript) else None
    if not isinstance(cut, ast.Slice) or cut.upper is not None or len(parts) != 2:
        return False
    return parts[1].what == WORLD and vm.store.get((what, LET_IN)) is not None


OWN_ROWS = "#own rows"
"""Of a tensor that was dealt out: whose its rows are, though ranks may have as many."""
NUMBER = "#number"
"""Of what was split: into how many parts."""


def _has_an_end(node: ast.AST) -> bool:
    """Whether what is written is no slice to the end."""
    cut = node.slice if isinstance(node, ast.Subscript) else None
    return not isinstance(cut, ast.Slice) or cut.upper is not None
