"""Evaluating expressions."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ddpdoctor.lint.engine.interpreter import folding, rewriting
from ddpdoctor.lint.engine.interpreter.calls import call
from ddpdoctor.lint.engine.interpreter.iteration import elements
from ddpdoctor.lint.engine.interpreter.library.facts import text_of
from ddpdoctor.lint.engine.interpreter.machine import KEPT, UNBOUND, Machine
from ddpdoctor.lint.engine.interpreter.names import hinted
from ddpdoctor.lint.engine.interpreter.objects import (
    binding,
    containers,
    hierarchy,
    indexing,
    keyed,
    members,
    memory,
    paths,
    texts,
)
from ddpdoctor.lint.engine.interpreter.store import NONE_UNSEEN, OR_NONE
from ddpdoctor.lint.engine.interpreter.tree import Seq
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    OPEN,
    SAME,
    UNKNOWN,
    WORLD,
    Class,
    Const,
    Either,
    Lib,
    Many,
    Ref,
    Table,
    Tensor,
    Term,
    Tuple,
    Value,
    Why,
    blended,
    how_many,
    local,
    term,
    within,
)

_BUILTINS = frozenset(dir(builtins))
_MAX_ITEMS = 12


def evaluate(vm: Machine, node: ast.expr | None) -> Value:
    """The value of an expression, with all that happens on the way."""
    if node is None:
        return NONE
    vm.fuel -= 1
    if vm.fuel < 0:
        vm.refuel()
    handler = _HANDLERS.get(node.__class__)
    if handler is None:
        return Value(NOTHING, UNKNOWN)
    return handler(vm, node)


def _constant(vm: Machine, node: ast.Constant) -> Value:
    return Value(Const(node.value))


def _name(vm: Machine, node: ast.Name) -> Value:
    if node.id in vm.unbound:
        _ask_for_its_value(vm, node)
    return look_up(vm, node.id)


def _ask_for_its_value(vm: Machine, node: ast.Name) -> None:
    """A name is read to which some ranks may have given no value."""
    for scope in vm.frame.scopes:
        if vm.store.get((scope, node.id)) is not None:
            lacking = vm.store.get((scope, UNBOUND + node.id))
            if lacking is not None and isinstance(lacking.what, Table):
                vm.emit("unbound", node.id, node, lacking=lacking)
            return


def look_up(vm: Machine, name: str) -> Value:
    """What a name stands for here."""
    frame = vm.frame
    for scope in frame.scopes:
        found = vm.store.get((scope, name))
        if found is not None:
            break
    else:
        scope, found = frame.module.scope, vm.program.global_of(vm, frame.module, name)
    if scope == frame.module.scope:
        found = vm.program.set_by_then(vm, frame.module, name) or found
    if found is not None:
        return memory.current(vm, found)
    if name == "__name__":
        return Value(Const(frame.module.name))
    if name == "__file__":
        return Value(Const(frame.module.path))
    if name in _BUILTINS:
        return Value(Lib(name))
    return hinted(vm, Value(term("name", frame.module.path, name), UNKNOWN), name)


def _attribute(vm: Machine, node: ast.Attribute) -> Value:
    owner = evaluate(vm, node.value)
    return memory.current(vm, members.attribute(vm, owner, node.attr, node))


def _binary(vm: Machine, node: ast.BinOp) -> Value:
    left, right = evaluate(vm, node.left), evaluate(vm, node.right)
    if isinstance(node.op, ast.Mult):
        for one, other, side in ((left, right, node.left), (right, left, node.right)):
            content = containers.content(vm, one)
            if content is not None and vm.type_of(one) == "list":
                return _repeated(vm, node, one, content, other, side)
    if isinstance(node.op, ast.Add) and vm.type_of(left) == "list":
        return containers.concatenated(vm, node, left, right)
    if isinstance(node.op, ast.Mod) and isinstance(left.constant, str):
        told_whole = folding.binary(node.op, left, right)
        if isinstance(told_whole.what, Const):
            return told_whole
        if isinstance(told_whole.what, Table) and OPEN not in told_whole.what.entries:
            return Value(Table(told_whole.what.entries), told_whole.agree, told_whole.why)
        items = right.what.items if isinstance(right.what, Tuple) else ()
        told = [text_of(vm, each, node) for each in items] or [text_of(vm, right, node)]
        pieces = texts.filled_by_percent(left.constant, told)
        agree, why = blended([left, right])
        whole = term("text", left.what, texts.piece(right))
        return texts.composed(pieces) if pieces else Value(whole, agree, why)
    if isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub) and "set" in (
        vm.type_of(left),
        vm.type_of(right),
    ):
        return containers.new_set(vm, node, None, [left, right])
    if isinstance(node.op, ast.BitOr) and vm.type_of(left) == vm.type_of(right) == "dict":
        made = Value(vm.new(node, "dict"))
        keyed.clear(vm, made)
        for each in (left, right):
            keyed.update(vm, made, each, node)
        return made
    if isinstance(node.op, ast.Div) and (paths.is_path(vm, left) or paths.is_of_text(right.what)):
        return paths.joined_path(vm, [left, right])
    if vm.watched:
        vm.emit("asked", node.op.__class__.__name__, node, owner=left, by=right)
    if isinstance(node.op, _DIVIDING) and WORLD in within(right.what):
        # What says how many there are, has cut none of them off.
        vm.evens_out |= not vm.frame.name.endswith("__len__")
    found = folding.binary(node.op, left, right)
    if found.agree.kind == "rank" and found.what != NOTHING:
        vm.by_rank.setdefault(found.what, (node, vm.path))
    if isinstance(node.op, ast.Div | ast.FloorDiv) and found.what != NOTHING:
        vm.divided.setdefault(found.what, (node, vm.path))
    return computed_by(vm, node, node.op.__class__.__name__, left, right, found)


_DIVIDING = (ast.Mod, ast.FloorDiv, ast.Div)


def computed_by(
    vm: Machine, node: ast.AST, by: str, left: Value, right: Value, found: Value
) -> Value:
    """A tensor of an operation is another one each time."""
    members.note_use(vm, by, (left, right), node)
    if not isinstance(found.what, Tensor):
        return found
    made = Value(Tensor(vm.site(node, "tensor"), found.what.of), found.agree, found.why)
    return vm.computed(memory.fresh(vm, made), by, (left, right), node)


def _repeated(
    vm: Machine, node: ast.BinOp, one: Value, content: Value, count: Value, side: ast.expr
) -> Value:
    agree, why = blended((content, count))
    made = vm.new(node, "list")
    item = content.what.items[0] if isinstance(content.what, Tuple) and content.what.items else None
    element = item or (content.what.element if isinstance(content.what, Many) else NONE)
    times = folding.concrete(count)
    items: Any = Many(element, Term("many", (made.number,)))
    exact = isinstance(times, int) and isinstance(count.what, Const)
    known = content.what.items if isinstance(content.what, Tuple) else ()
    if exact and known and 0 <= times * len(known) <= _MAX_ITEMS:
        items = Tuple(known * times)
    vm.store.put((made, "[]"), Value(items, agree, why))
    is_one = isinstance(content.what, Tuple) and len(content.what.items) == 1
    if is_one and isinstance(element.what, Tensor | Term | Ref):
        vm.store.put((made, containers.ALIASED), element)
    return Value(made, SAME)


def _unary(vm: Machine, node: ast.UnaryOp) -> Value:
    operand = evaluate(vm, node.operand)
    if isinstance(node.op, ast.Not):
        operand = containers.truthy(vm, operand, node)
        made = vm.object(operand)
        cls = made.cls if made is not None and vm.truth(operand) else -1
        if cls >= 0 and hierarchy.class_attribute(vm, cls, "__len__") is None:
            return Value(Const(False), operand.agree, operand.why)
    found = folding.unary(node.op, operand)
    return computed_by(vm, node, node.op.__class__.__name__, operand, NONE, found)


def _compare(vm: Machine, node: ast.Compare) -> Value:
    left = evaluate(vm, node.left)
    result: Value | None = None
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = _asked_among(vm, op, comparator)
        rest = left.what if isinstance(left.what, Term) and left.what.op == "Mod" else None
        if rest is not None and indexing.numbers_twice(right.what, rest.args[1]):
            vm.emit("numbered_twice", "", node)
        found = _one_comparison(vm, left, op, right)
        found = computed_by(vm, node, op.__class__.__name__, left, right, found)
        result = found if result is None else folding.both(result, found, True)
        left = right
    assert result is not None
    return result


def _asked_among(vm: Machine, op: ast.cmpop, node: ast.expr) -> Value:
    """What is compared with; a set that is written there nobody changes or goes through."""
    if isinstance(node, ast.Set) and isinstance(op, ast.In | ast.NotIn):
        return Value(Tuple(_items(vm, node.elts)))
    return evaluate(vm, node)


_OLDEST = (3, 8)
"""The oldest Python for which there is a torch with all that is spoken of here."""


def _one_comparison(vm: Machine, left: Value, op: ast.cmpop, right: Value) -> Value:
    if (known := _is_type(vm, left, op, right)) is not None:
        return known
    if left.what == indexing.VERSION and isinstance(op, ast.Gt | ast.GtE | ast.Lt | ast.LtE):
        asked = folding.concrete(right)
        if isinstance(asked, tuple) and asked <= _OLDEST:
            return Value(Const(isinstance(op, ast.Gt | ast.GtE)))
    if isinstance(op, ast.In | ast.NotIn):
        right = containers.if_any(right)  # of None nobody asks it
        vm.note_read(right, left)
        content = containers.content(vm, right)
        if content is not None:
            right = containers.without_order(content)
        name = left.constant
        if right.what == Lib("os.environ") and isinstance(name, str):
            found = members.presence(name)
            return found if isinstance(op, ast.In) else folding.negated(found)
    if right.is_const(None) and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        left = memory.before_changes(vm, left)
        options = vm.store.options(left)
        are_numbers = (isinstance(x.what, Term) and x.what.op == "call" for x in options)
        are_there = all(are_numbers) and all(map(folding.is_something, options))
        if are_there or left.what in vm.store.never_none:
            return Value(Const(isinstance(op, ast.IsNot | ast.NotEq)))
        is_told = isinstance(left.what, Either) and bool(left.what.masks)
        is_made = isinstance(left.what, Term) and left.what.op == "result"
        is_there = is_made and left.agree.cause in containers.NOT_HOW_MANY
        is_there = is_there or (left.agree.cause == "data" and _is_part_of_a_result(left.what))
        if is_there or vm.store.get((left.what, NONE_UNSEEN)) is not None:
            left = Value(left.what, UNKNOWN)
        elif not is_told and (given := vm.store.get((left.what, OR_NONE))) is not None:
            left = Value(left.what, given.agree, given.why)
        if isinstance(left.what, Lib) and not vm.is_known(left.what):
            left = Value(term("value", left.what.name), left.agree, left.why)
    if isinstance(op, ast.Eq | ast.NotEq) and _is_width(left.what) and _is_count(right):
        left = Value(left.what, UNKNOWN)  # of samples that are wide or narrow on all ranks
    return folding.compared(left, op, right)


def _is_part_of_a_result(what: object) -> bool:
    """Whether it has its place in what a call gave: which of these are None, no data decide."""
    if not (isinstance(what, Term) and what.op == "item" and isinstance(what.args[-1], Const)):
        return False
    whole = what.args[0]
    return isinstance(whole, Term) and whole.op in ("result", "call")


def _is_width(what: object) -> bool:
    """Whether it is how large a tensor is in any but its first dimension: `x.shape[1]`."""
    if not (isinstance(what, Term) and what.op == "item" and len(what.args) > 1):
        return False
    shape, index = what.args[:2]
    is_shape = isinstance(shape, Term) and shape.op == "of" and shape.args[1:] == ("shape",)
    return is_shape and isinstance(index, Const) and _is_count(Value(index))


def _is_count(value: Value) -> bool:
    return isinstance(value.constant, int) and value.constant > 0


def _is_type(vm: Machine, left: Value, op: ast.cmpop, right: Value) -> Value | None:
    """`type(model) in (DataParallel, DistributedDataParallel)` of a wrapper; None of all else."""
    if not (isinstance(left.what, Term) and left.what.op == "type" and len(left.what.args) == 1):
        return None
    asked = left.what.args[0]
    made = vm.object(Value(asked)) if isinstance(asked, Ref) else None
    several = containers.content(vm, right) if isinstance(op, ast.In | ast.NotIn) else None
    wanted = several.what.items if several and isinstance(several.what, Tuple) else (right,)
    if made is None or made.type != members.DDP:
        return None
    if not all(isinstance(each.what, Class | Lib) for each in wanted):
        return None
    mine = members.DDP.rpartition(".")[2]
    found = any(
        each.what == Class(made.cls)
        if isinstance(each.what, Class)
        else made.cls < 0 and isinstance(each.what, Lib) and each.what.name.endswith(f".{mine}")
        for each in wanted
    )
    return Value(Const(found == isinstance(op, ast.In | ast.Eq | ast.Is)))


def has_effect(node: ast.AST) -> bool:
    """Whether evaluating this may do anything: it calls."""
    return any(
        isinstance(each, ast.Call | ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)
        for each in ast.walk(node)
    )


def _boolean(vm: Machine, node: ast.BoolOp) -> Value:
    return _rest_of_boolean(vm, node, node.values)


def _rest_of_boolean(vm: Machine, node: ast.BoolOp, values: list[ast.expr]) -> Value:
    left = evaluate(vm, values[0])
    if len(values) == 1:
        return left
    is_and = isinstance(node.op, ast.And)
    asked = containers.truthy(vm, left, node)
    known = vm.truth(asked)
    if known is not None:
        return _rest_of_boolean(vm, node, values[1:]) if known == is_and else left
    left = asked
    if not any(has_effect(each) for each in values[1:]):
        before = vm.mask
        going = vm.ways(left, lambda: NONE, lambda: NONE)[0 if is_and else -1].mask
        vm.mask = before & going or before
        try:
            rest = containers.truthy(vm, _rest_of_boolean(vm, node, values[1:]), node)
        finally:
            vm.mask = before
        return _both(vm, left, rest, is_and)
    right: list[Value] = []

    def go_on() -> Value:
        right.append(_rest_of_boolean(vm, node, values[1:]))
        return right[0]

    def stay() -> Value:
        return left

    paths = vm.ways(left, go_on if is_and else stay, stay if is_and else go_on)
    vm.choose(node, values[0], left, paths)
    return _both(vm, left, containers.truthy(vm, right[0], node), is_and) if right else left


def _both(vm: Machine, left: Value, right: Value, is_and: bool) -> Value:
    """`left and right`, or `left or right`: what makes this several ranks says nothing of which."""
    if isinstance(left.what, Table) or isinstance(right.what, Table):
        left, right = vm.as_mode(left), vm.as_mode(right)
    result = folding.both(left, right, is_and)
    if result is left or result is right or not result.agree.divergent:
        return result
    what = result.what
    given = tuple(g for side in (left, right) for g in vm.given_by(side) if g[-1] is is_and)
    if given and isinstance(what, Table):
        return replace(result, what=replace(what, given=given))
    if given and isinstance(what, Term):
        vm.given[what] = given
    return result


def _conditional(vm: Machine, node: ast.IfExp) -> Value:
    condition = containers.truthy(vm, evaluate(vm, node.test), node.test)
    paths = vm.ways(condition, lambda: evaluate(vm, node.body), lambda: evaluate(vm, node.orelse))
    return vm.choose(node, node.test, condition, paths) or NONE


def _tuple(vm: Machine, node: ast.Tuple) -> Value:
    return Value(Tuple(_items(vm, node.elts)))


def _items(vm: Machine, nodes: list[ast.expr]) -> tuple[Value, ...]:
    found: list[Value] = []
    for each in nodes:
        if isinstance(each, ast.Starred):
            content = containers.content(vm, evaluate(vm, each.value))
            if content is not None and isinstance(content.what, Tuple):
                found.extend(content.what.items)
            else:
                found.append(Value(NOTHING, UNKNOWN))
        else:
            found.append(evaluate(vm, each))
    return tuple(found)


def _list(vm: Machine, node: ast.List) -> Value:
    items = _items(vm, node.elts)
    return containers.new_list(vm, node, items)


def _set(vm: Machine, node: ast.Set) -> Value:
    return containers.new_set(vm, node, list(_items(vm, node.elts)), [])


def _dict(vm: Machine, node: ast.Dict) -> Value:
    made = Value(vm.new(node, "dict"))
    keyed.clear(vm, made)
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            keyed.update(vm, made, evaluate(vm, value))
        else:
            keyed.set_item(vm, made, evaluate(vm, key), evaluate(vm, value), node)
    return made


def _subscript(vm: Machine, node: ast.Subscript) -> Value:
    owner = evaluate(vm, node.value)
    if isinstance(node.slice, ast.Slice):
        written = (node.slice.lower, node.slice.upper, node.slice.step)
        cut = [evaluate(vm, x) if x else NONE for x in written]
        if isinstance(owner.what, Table | Const):
            text = folding.on_each_rank(lambda x, *at: x[slice(*at)], (owner, *cut))
            if text is not None:
                return text
        vm.emit("cut", "", node, object=owner)
        known = indexing.cut(vm, owner, cut, node)
        if known is not None:
            return known
        parts = [each for each, x in zip(cut, written, strict=True) if x]
        return indexing.sliced(vm, owner, parts, node)
    bounds = _bounds_of_dimensions(vm, node.slice)
    if any(each.agree.kind == "rank" for each in bounds):
        return indexing.sliced(vm, owner, bounds, node, of_rows=_cuts_rows(node.slice))
    index = evaluate(vm, node.slice)
    if isinstance(index.what, Tuple) and vm.type_of(owner) != "dict":
        own = [each for each in (*index.what.items, *bounds) if each.agree.divergent]
        index = Value(index.what, *blended([index, *own]))
    if isinstance(owner.what, Table):
        one = folding.on_each_rank(operator.getitem, (owner, index))
        if one is not None:
            return one
    return memory.current(vm, indexing.item(vm, owner, index, node))


def _bounds_of_dimensions(vm: Machine, index: ast.expr) -> list[Value]:
    """What `x[:, a:b]` or `x[:, a]` is cut at, whichever dimension that is."""
    several = index.elts if isinstance(index, ast.Tuple) else []
    if not any(isinstance(each, ast.Slice) for each in several):
        return []
    bounds = (_written(each) if isinstance(each, ast.Slice) else [each] for each in several)
    return [evaluate(vm, each) for of in bounds for each in of]


def _written(cut: ast.Slice) -> list[ast.expr]:
    return [each for each in (cut.lower, cut.upper, cut.step) if each]


def _cuts_rows(index: ast.expr) -> bool:
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else None
    return isinstance(first, ast.Slice) and (first.lower or first.upper) is not None


def _lambda(vm: Machine, node: ast.Lambda) -> Value:
    return Value(vm.program.define(vm, node, "<lambda>"))


def _joined(vm: Machine, node: ast.JoinedStr) -> Value:
    return texts.composed([evaluate(vm, each) for each in node.values])


def _formatted_value(vm: Machine, node: ast.FormattedValue) -> Value:
    value = evaluate(vm, node.value)
    if value.agree.cause == "clock" and node.format_spec is not None:
        from ddpdoctor.lint.engine.interpreter import methods

        format = evaluate(vm, node.format_spec)
        if folding.is_of_a_time(format):
            return methods.call_method(vm, value, "strftime", [format], {}, node)
    return text_of(vm, value, node)


def _picked(
    vm: Machine, generator: ast.comprehension, content: Value | None
) -> tuple[Value, ...] | None:
    """The things that a comprehension takes one by one, where it is known which these are."""
    if content is None or not isinstance(content.what, Tuple):
        return None
    if len(content.what.items) > _MAX_ITEMS:
        return None
    found = []
    outside, vm.out = vm.out, Seq()
    try:
        for each in content.what.items if generator.ifs else ():
            binding.bind(vm, generator.target, each)
            takes = [folding.truth(evaluate(vm, condition)) for condition in generator.ifs]
            if None in takes:
                return None
            found += [each] if all(takes) else []
    finally:
        vm.out = outside
    return tuple(found) if generator.ifs else content.what.items


def _comprehension(vm: Machine, node: ast.AST) -> Value:
    generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
    element = node.key if isinstance(node, ast.DictComp) else node.elt  # type: ignore[attr-defined]
    frame = vm.frame
    scope = vm.own_scope()
    scopes = frame.scopes
    frame.scopes = (scope, *scopes)
    found: list[Value] = []
    outside: list[Value] = []
    counts: list[Value] = []
    orders: list[Value | None] = []
    try:
        first = evaluate(vm, generators[0].iter)
        content = containers.content(vm, first)
        unrolled = _picked(vm, generators[0], content) if len(generators) == 1 else None
        if unrolled is not None:
            for number, item in enumerate(unrolled):
                vm.frame.call, kept = node if number else vm.frame.call, vm.frame.call
                binding.bind(vm, generators[0].target, item)
                found.append(evaluate(vm, element))
                if isinstance(node, ast.DictComp):
                    outside.append(evaluate(vm, node.value))
                vm.frame.call = kept
        else:
            from ddpdoctor.lint.engine.interpreter.statements.loops import run_loop

            def body() -> Value:
                for number, each in enumerate(generators):
                    source = first if number == 0 else evaluate(vm, each.iter)
                    one, count = elements(vm, source, each.iter)
                    counts.append(count)
                    orders.append(containers.content(vm, source))
                    binding.bind(vm, each.target, one)
                    for condition in each.ifs:
                        decides = containers.without_order(evaluate(vm, condition))
                        if _keeps_as_many(decides, count):
                            decides = Value(decides.what, local("shard"), decides.why)
                        elif decides.agree.divergent and not folding.deals_rounds(decides.what):
                            kept = vm.why(KEPT, condition, decides.why)
                            decides = Value(decides.what, decides.agree, kept)
                        counts.append(decides)
                found.append(evaluate(vm, element))
                if isinstance(node, ast.DictComp):
                    outside.append(evaluate(vm, node.value))
                return NONE

            run_loop(vm, node, elements(vm, first, generators[0].iter)[1], body, once=True)
    finally:
        frame.scopes = scopes
    counted, counted_why = blended(counts)
    if unrolled is not None:
        if isinstance(node, ast.DictComp):
            made = Value(vm.new(node, "dict"))
            keyed.clear(vm, made)
            for key, value in zip(found, outside, strict=True):
                keyed.set_item(vm, made, key, value, node)
            return made
        if isinstance(node, ast.SetComp):
            return containers.new_set(vm, node, found, [])
        if isinstance(node, ast.GeneratorExp):
            return Value(Tuple(tuple(found)))
        return containers.new_list(vm, node, tuple(found))
    one = found[-1] if found else Value(NOTHING, UNKNOWN)
    if isinstance(node, ast.DictComp):
        made = Value(vm.new(node, "dict"))
        keyed.clear(vm, made)
        agree, why = blended([Value(NOTHING, counted, counted_why), one])
        key = Value(one.what, agree, why)
        keyed.set_item(vm, made, key, outside[-1] if outside else NONE, node)
        return made
    if isinstance(node, ast.SetComp):
        return containers.new_set(vm, node, [one], [])
    all_of_it = len(generators) == 1 and not generators[0].ifs
    as_many = how_many((content or first).what) if all_of_it else NOTHING
    for order in orders:
        if order is not None and order.agree.cause == "order" and not counted.divergent:
            counted, counted_why = order.agree, order.why
    content_value = Value(Many(one, as_many), counted, counted_why)
    if isinstance(node, ast.GeneratorExp):
        return content_value
    made = containers.new_list_of(vm, node, content_value)
    if isinstance(element, ast.Name) and isinstance(one.what, Tensor | Term):
        targets = {n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        if element.id not in targets:
            vm.store.put((made.what, containers.ALIASED), one)
    return made


def _keeps_as_many(condition: Value, count: Value) -> bool:
    """Whether each rank is dealt as much of what is gone through: `number % world == rank`."""
    return folding.deals_rounds(condition.what) and folding.is_for_all(count.what)


def _call(vm: Machine, node: ast.Call) -> Value:
    return call(vm, node)


def _walrus(vm: Machine, node: ast.NamedExpr) -> Value:
    value = evaluate(vm, node.value)
    binding.bind(vm, node.target, value)
    return value


def _await(vm: Machine, node: ast.Await) -> Value:
    return evaluate(vm, node.value)


def _yield(vm: Machine, node: ast.Yield) -> Value:
    value = evaluate(vm, node.value)
    frame = vm.frame
    own = [each for each in vm.conditions[frame.conditions :] if each.agree.kind == "rank"]
    if own and frame.on_yield is None:
        value = _dealt(value, own[0].why)
    counted = next((each for each in vm.conditions[frame.conditions :] if _of_own_data(each)), None)
    if counted is not None:
        counted = Value(counted.what, counted.agree, vm.why(KEPT, node, counted.why))
        vm.store.put((frame.scope, "#count"), counted)
    frame.yields.append(value)
    if frame.on_yield is not None:
        return frame.on_yield(value)
    vm.emit("yielded", "", node)
    return Value(NOTHING, UNKNOWN)


def _dealt(value: Value, why: Why | None) -> Value:
    """What a generator yields to some ranks and not to others, with all its parts."""
    what = value.what
    if isinstance(what, Tuple):
        what = Tuple(tuple(_dealt(each, why) for each in what.items))
    return value if value.agree.divergent else Value(what, local("data", False), why)


def _of_own_data(condition: Value) -> bool:
    return condition.agree.kind == "local" and condition.agree.cause in ("data", "shard")


def _yield_from(vm: Machine, node: ast.YieldFrom) -> Value:
    if vm.frame.on_yield is not None:
        return _yield_each(vm, node)
    source = evaluate(vm, node.value)
    one, count = elements(vm, source, node.value)
    content = containers.content(vm, source) or source
    vm.emit("iterate", "yield from", node, over=source, element=one, content=content)
    vm.frame.yields.append(one)
    if count.agree.divergent:
        vm.store.put((vm.frame.scope, "#count"), count)
    return Value(NOTHING, UNKNOWN)


def _yield_each(vm: Machine, node: ast.YieldFrom) -> Value:
    """What is yielded from another, as the loop that it is short for."""
    from ddpdoctor.lint.engine.interpreter.statements.blocks import run_block

    run_block(vm, [vm.program.written_out(node, rewriting.yielding)])
    return Value(NOTHING, UNKNOWN)


def _starred(vm: Machine, node: ast.Starred) -> Value:
    return evaluate(vm, node.value)


_HANDLERS: dict[type, Callable[[Machine, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.IfExp: _conditional,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.Lambda: _lambda,
    ast.JoinedStr: _joined,
    ast.FormattedValue: _formatted_value,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Call: _call,
    ast.NamedExpr: _walrus,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Starred: _starred,
}
