"""`for` and `while`: rounds, until nothing new comes of another."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from typing import Any

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.calls import call_function
from ddpdoctor.lint.engine.interpreter.expressions import evaluate
from ddpdoctor.lint.engine.interpreter.iteration import UNTIL, elements
from ddpdoctor.lint.engine.interpreter.machine import NUMBERED, Left, LoopRecord, Machine, Spent
from ddpdoctor.lint.engine.interpreter.objects import (
    binding,
    containers,
    hierarchy,
    keyed,
    members,
    memory,
)
from ddpdoctor.lint.engine.interpreter.rewriting import looping
from ddpdoctor.lint.engine.interpreter.statements import blocks
from ddpdoctor.lint.engine.interpreter.store import Key, State
from ddpdoctor.lint.engine.interpreter.tree import Loop, Seq
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    SAME,
    TRUE,
    UNKNOWN,
    Class,
    Const,
    Either,
    Func,
    Lib,
    Many,
    Partial,
    Ref,
    Table,
    Term,
    Tuple,
    Value,
    What,
    how_many,
)

_ROUNDS = 3
_YIELDS = (ast.Yield, ast.YieldFrom)
MAYBE = "maybe "
"""Before the names of scopes of which one is entered."""
OF_MEMBERS = ("wrap", "forward", "backward", "step", "collective")
"""What only those do who have joined."""


def run_loop(
    vm: Machine,
    node: ast.AST,
    count: Value,
    body: Callable[[], Value | None],
    *,
    once: bool = False,
    endless: bool = False,
    last: Callable[[], Value] | None = None,
) -> bool:
    """Run a body until nothing new comes of it, then go on from all the ways out of it.

    `last` is the count as the body has left it, where that may be another.
    """
    if count.agree.divergent and any(isinstance(x, _YIELDS) for x in ast.walk(node)):
        vm.store.put((vm.frame.scope, "#count"), count)
    outside, mask, begun = vm.out, vm.mask, vm.computations
    base = vm.store.open() + 1
    record = LoopRecord(base - 1, len(vm.conditions), count=count)
    seq = Seq()
    first: dict[Any, Value | None] = {}
    counted: dict[What, tuple[What, int | None]] = {}
    anew: frozenset[What] = frozenset()
    rounds = 1 if once else _rounds(vm)
    for turn in range(rounds):
        record = LoopRecord(base - 1, len(vm.conditions), count=count)
        vm.frame.loops.append(record)
        vm.store.open()
        seq = vm.out = Seq()
        vm.mask, calls = mask, len(vm.own)
        result: Value | None = None
        try:
            result = body()
        except Left:
            result = None
        except Spent:
            cut = Loop(node, vm.path, count, seq, vm.frame.name, begun=begun, is_cut=True)
            if vm.keeps_cut:
                outside.items.append(cut)
            raise
        finally:
            vm.out = outside
            inner = vm.store.since(base)
            vm.store.drop(base)
            vm.frame.loops.pop()
        states = [
            State(dict(each.writes.items()), each.conditions, each.mask)
            for each in record.continues
        ]
        if result is not None:
            states.append(State(inner, (), vm.mask))
        if not states:
            break
        heads = {key: vm.store.get(key) for state in states for key in state.writes}
        first = {**heads, **first}
        counted = dict(_counted(first, heads, states))
        anew = frozenset(_set_anew(vm, heads, states))
        passed = frozenset(vm.own[calls:])
        if not _settle(vm, states, vm.site(node, "loop"), passed) or turn == rounds - 1:
            break
    if seq.items:
        loop = Loop(
            node, vm.path, count, seq, vm.frame.name, begun=begun, counted=counted, anew=anew
        )
        outside.items.append(loop)
    head = vm.store.close()
    count = last() if last is not None else count
    if count.agree.divergent:  # in a round ranks have run as many; after the last one they have not
        head = {
            key: _left(vm, key, [first.get(key), each], count, node) for key, each in head.items()
        }
    vm.mask = mask
    ways = [] if endless else [State(head, (), mask)]
    for each in record.breaks:
        ways.append(State({**head, **each.writes}, each.conditions, each.mask))
    if not ways and vm.frame.yields:  # who takes one of them sees what was done until then
        vm.store.join([State(head, (), mask)], vm.site(node, "after"))
        vm.store.put((vm.frame.scope, "#count"), Value(NOTHING, UNKNOWN))  # there is always one
    if not ways:
        return False
    vm.store.join(ways, vm.site(node, "after"))
    return True


def _rounds(vm: Machine) -> int:
    """How often a body is run at most: less within others, once fuel gets short.

    What only comes about in a later round is not seen then, but what comes behind the loop is.
    """
    around = sum(len(frame.loops) for frame in vm.frames)
    short = sum(vm.fuel < vm.saving // each for each in (2, 4))
    nested = around if vm.fuel < vm.saving // 8 else max(around - 1, 0)
    return max(_ROUNDS - min(short, nested), 1)


def _begin_what_was_started(vm: Machine) -> None:
    """Run the processes of a loop, once no loop is around any more."""
    if vm.starting and not any(frame.loops for frame in vm.frames):
        started, vm.starting = vm.starting, {}
        for begin in started.values():
            begin()


def _counted(
    first: dict[Any, Value | None], heads: dict[Any, Value | None], states: list[State]
) -> Iterator[tuple[What, tuple[What, int | None]]]:
    """What a loop changes, with what it is in the first round, and what every round adds to it."""
    for key, head in heads.items():
        begun = first[key]
        if head is None or begun is None or not isinstance(head.what, Term):
            continue
        values = (state.writes.get(key, NONE) for state in states)
        added = {folding.added(head.what, each.what) for each in values}
        yield head.what, (begun.what, added.pop() if len(added) == 1 else None)


def _set_anew(vm: Machine, heads: dict[Any, Value | None], states: list[State]) -> Iterator[What]:
    """What a round, on some way through it, sets to what is no more and no less of it."""
    for key, head in heads.items():
        if head is None or not isinstance(head.what, Term):
            continue
        written = [state.writes[key] for state in states if key in state.writes]
        if not all(_goes_on(vm, head.what, each.what) for each in written):
            yield head.what


def _goes_on(vm: Machine, before: What, after: What, seen: frozenset[What] = frozenset()) -> bool:
    """Whether a value is more or less of what it was, on each way on which it may have come."""
    if folding.added(before, after) is not None:
        return True
    several = after.options if isinstance(after, Either) else ()
    ways = [each.what for each in several] or vm.store.ways.get(after, ())
    if not ways or after in seen:
        return False
    return all(_goes_on(vm, before, each, seen | {after}) for each in ways)


def _left(vm: Machine, key: Key, values: list[Value | None], count: Value, node: ast.AST) -> Value:
    """What is left of a variable by a loop that ranks run unequally often."""
    ways = [State({}, (count,)), State({})]
    return vm.store.joined(values, ways, [count], (vm.site(node, "loop"), key))


def _settle(vm: Machine, states: list[State], site: int, passed: frozenset[int]) -> bool:
    """Join what a round has written with what was there before; whether anything changed.

    The names of its own calls, `passed`, are others in each round.
    """
    keys: dict[Any, None] = {}
    for state in states:
        keys.update(dict.fromkeys(state.writes))
    ways = [State({}), *states]
    conditions = [each for state in ways for each in state.conditions if each.agree.divergent]
    changed = False
    for key in keys:
        old = vm.store.get(key)
        values = [old, *(state.writes.get(key, old) for state in states)]
        new = vm.store.joined(
            values, [State({}, w.conditions) for w in ways], conditions, (site, key)
        )
        if old is None or new != old:
            changed = changed or key[0] not in passed
            vm.either(new, values, vm.frame.call or _HERE)
        vm.store.put(key, new)
    return changed


_HERE = ast.Pass()


def for_(vm: Machine, node: ast.For | ast.AsyncFor) -> bool:
    """`for x in y: ...`."""
    lazily, vm.lazily = vm.lazily, frozenset() if node.orelse else makers(vm, node.iter)
    try:
        source = evaluate(vm, node.iter)
    finally:
        vm.lazily = lazily
    if (generator := _generator_of(vm, source, node)) is not None:
        return _through_its_yields(vm, node, source, generator)
    one, count = elements(vm, source, node.iter)
    content = containers.content(vm, source)
    if _is_empty(source, content):
        if not vm.was_seen_in(node.body):
            return blocks.run_block(vm, node.orelse) if node.orelse else True
        source = Value(NOTHING, UNKNOWN)
        one, count = elements(vm, source, node.iter)

    counts = [count]
    ended: list[tuple[Value, Value]] = []
    looked_up: dict[What, tuple[Value, Value]] = {}

    def body() -> Value | None:
        again, counts[0] = elements(vm, source, node.iter)
        binding.bind(vm, node.target, again)
        vm.frame.loops[-1].turn = again
        if not blocks.run_block(vm, node.body):
            return None
        ended[:] = [(again, memory.now_with_parts(vm, again))]
        kept = vm.frame.loops[-1].looked_up.items()
        looked_up.update({what: (one, memory.current(vm, one)) for what, one in kept})
        return NONE

    vm.emit("iterate", "for", node, over=source, element=one, content=content or source)
    if content is not None and _is_one_by_one(vm, node, content):
        return _one_by_one(vm, node, Value(count.what, SAME), _several(content))
    outside = len(vm.out.items)
    falls = run_loop(vm, node, count, body)
    _begin_what_was_started(vm)
    if falls and ended and content is not None and not _has(node, ast.Continue, *_WAYS_OUT):
        memory.touch_each(vm, content.what, *ended[0])
        for what, (before, after) in looked_up.items():
            if _are_the_same(keyed.keys(vm, Value(what)).what, content.what):
                memory.touch_each(vm, keyed.values(vm, what), before, after)
    loop = _loop_of(vm, node, outside)
    if loop is not None:
        loop.count = counts[0] if count.what == UNTIL else count
        number = how_many((content or source).what)
        loop.rounds = number.value if isinstance(number, Const) else 0
    if node.orelse and falls:
        return blocks.run_block(vm, node.orelse)
    return falls


def _are_the_same(one: What, other: What) -> bool:
    """Whether two are the same things, however many they are: what is put by its key stays one."""
    if isinstance(one, Many) and isinstance(other, Many):
        return one.element == other.element
    return one == other


def _is_empty(source: Value, content: Value | None) -> bool:
    """Whether a loop goes through nothing."""
    what = content.what if content is not None else source.what
    if isinstance(what, Term) and what.op == "range":
        bounds = [each.value for each in what.args if isinstance(each, Const)]
        known = len(bounds) == len(what.args) and all(type(each) is int for each in bounds)
        return known and 0 not in bounds[2:] and not range(*bounds)
    return isinstance(what, Tuple) and not what.items


def makers(vm: Machine, node: ast.expr) -> frozenset[int]:
    """The calls of a loop's head of which one may make the generator that it goes through."""
    if not isinstance(node, ast.Call):
        return frozenset()
    function = blocks.evaluate_quietly(vm, node.func).what
    effect = vm.library.find(function.name) if isinstance(function, Lib) else None
    hands_on = effect is not None and effect.does == "itself"
    hands_on = hands_on or isinstance(function, Func) or function == Lib("enumerate")
    inner = [makers(vm, each) for each in node.args] if hands_on else []
    return frozenset([id(node)]).union(*inner)


def _generator_of(vm: Machine, source: Value, node: ast.For | ast.AsyncFor) -> Func | None:
    """The generator's function, where a loop goes through one that nobody else goes through."""
    made = vm.object(source)
    if made is None:
        return None
    if made.type == "manager":
        function = vm.store.get((source.what, "function"))
        return function.what if function and isinstance(function.what, Func) else None
    if made.cls < 0 or node.orelse:
        return None
    found = hierarchy.class_attribute(vm, made.cls, "__iter__")
    if found is None or not isinstance(found.what, Func):
        return None
    if not vm.functions[found.what.number].is_generator:
        return None
    bound = members.attribute(vm, source, "__iter__", node.iter).what
    return bound if isinstance(bound, Func) else None


def _through_its_yields(
    vm: Machine, node: ast.For | ast.AsyncFor, source: Value, generator: Func
) -> bool:
    """A loop through a generator: the body runs where it yields, and goes on from there."""
    outer, mask = vm.frame, vm.mask
    numbered = vm.store.get((source.what, NUMBERED))
    depth = vm.store.open()
    record = LoopRecord(depth, len(vm.conditions))
    ran = False

    def on_yield(value: Value) -> Value:
        nonlocal ran
        ran = True
        inner = vm.frames
        vm.frames = inner[: inner.index(outer) + 1]
        outer.loops.append(record)
        try:
            one = Value(Tuple((numbered, value))) if numbered is not None else value
            binding.bind(vm, node.target, one)
            record.turn = one
            falls = blocks.run_block(vm, node.body)
        finally:
            vm.frames = inner
            outer.loops.pop()
        ways = [*record.continues, *([vm.state(depth, record.conditions)] if falls else [])]
        record.continues.clear()
        if not ways:
            raise Left
        if len(ways) > 1 or not falls:
            vm.store.join(ways, vm.site(node, "round"))
        return NONE

    falls = _ends(lambda: call_function(vm, generator, [], {}, node.iter, on_yield))
    if not ran:  # what it yields cannot be seen
        falls = _ends(lambda: on_yield(Value(NOTHING, UNKNOWN))) or falls
    written = vm.store.since(depth)
    vm.store.drop(depth)
    vm.mask = mask
    ways = [*record.breaks, *([State(written, (), mask)] if falls else [])]
    vm.store.join(ways, vm.site(node, "after"))
    return bool(ways)


def _ends(run: Callable[[], Value]) -> bool:
    """Whether what is run comes to its end in any way."""
    try:
        run()
    except Left:
        return False
    return True


_FEW = 4
_LITTLE = 1500
"""So many nodes are gone through in no time: in short rounds, of more than a few things."""


def _is_one_by_one(vm: Machine, node: ast.For | ast.AsyncFor, content: Value) -> bool:
    """Whether a loop goes through a few things, each of its own kind, and through all of them."""
    items = _several(content)
    size = sum(1 for each in node.body for _ in ast.walk(each))
    most = max(_FEW, _LITTLE // size)
    if not 1 < len(items) <= most or vm.fuel < vm.enough:
        return False
    parted = [each.agree.divergent for each in items]
    if all(parted) or not all(_is_one_of_a_kind(node, node.target, each) for each in items):
        return False
    if content.agree.divergent and not any(parted):
        return False
    return not _has(node, ast.Break, *_YIELDS)


_WAYS_OUT = (ast.Break, ast.Return, *_YIELDS)


def _has(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(each, kinds) for each in ast.walk(node))


def _several(content: Value) -> tuple[Value, ...]:
    """The elements of a content, each alone."""
    one = content.what.element.what if isinstance(content.what, Many) else None
    return one.options if isinstance(one, Either) else containers.held(content)


def _is_one_of_a_kind(node: ast.For | ast.AsyncFor, target: ast.expr, value: Value) -> bool:
    """Whether it is a thing, or a name by which the loop, or what it calls, may ask for things."""
    if isinstance(value.what, Tuple) and isinstance(target, ast.Tuple):
        parts = zip(target.elts, value.what.items, strict=False)
        return any(_is_one_of_a_kind(node, *each) for each in parts)
    return isinstance(value.what, Ref | Func | Class | Partial) or (
        isinstance(value.constant, str) and _is_asked_for(node, target)
    )


def _is_asked_for(node: ast.For | ast.AsyncFor, target: ast.expr) -> bool:
    asked = (
        [each.slice] if isinstance(each, ast.Subscript) else each.args
        for each in ast.walk(node)
        if isinstance(each, ast.Subscript | ast.Call)
    )
    name = ast.unparse(target)
    return any(ast.unparse(each) == name for of in asked for each in of)


def _one_by_one(
    vm: Machine, node: ast.For | ast.AsyncFor, count: Value, items: tuple[Value, ...]
) -> bool:
    """A loop through a few things as what it does with each of them that is there, in order."""
    outside, call = vm.out, vm.frame.call
    try:
        for number, item in enumerate(items):
            vm.frame.call = vm.round_of(node, number)
            seq = vm.out = Seq()
            is_there = Value(NOTHING, item.agree, item.why) if item.agree.divergent else TRUE
            paths = vm.ways(is_there, functools.partial(_round, vm, node, item), lambda: NONE)
            falls = vm.choose(node, node.iter, is_there, paths)
            if seq.items:
                loop = Loop(node, vm.path, count, seq, vm.frame.name, rounds=len(items))
                outside.items.append(loop)
            if falls is None:
                return False
    finally:
        vm.out, vm.frame.call = outside, call
    return blocks.run_block(vm, node.orelse)


def _round(vm: Machine, node: ast.For | ast.AsyncFor, item: Value) -> Value | None:
    """What a loop does with one thing, until its body ends or goes on with the next."""
    mask, depth = vm.mask, vm.store.open()
    record = LoopRecord(depth, len(vm.conditions))
    vm.frame.loops.append(record)
    try:
        binding.bind(vm, node.target, Value(item.what) if item.agree.divergent else item)
        falls = blocks.run_block(vm, node.body)
    except Left:
        falls = False
    finally:
        written = vm.store.since(depth)
        vm.store.drop(depth)
        vm.frame.loops.pop()
    ways = [*record.continues, *([State(written, (), vm.mask)] if falls else [])]
    vm.mask = mask
    vm.store.join(ways, vm.site(node, "round"))
    return NONE if ways else None


def _loop_of(vm: Machine, node: ast.AST, outside: int) -> Loop | None:
    """What was told of a loop, if anything was done in it."""
    loop = vm.out.items[-1] if len(vm.out.items) > outside else None
    return loop if isinstance(loop, Loop) and loop.node is node else None


def while_(vm: Machine, node: ast.While) -> bool:
    """`while x: ...`."""
    if (loop := vm.program.written_out(node, looping)) is not None:
        return blocks.run_block(vm, [loop])
    first = blocks.evaluate_quietly(vm, node.test)
    known = vm.truth(first)
    if known is False and not isinstance(first.what, Table) and not vm.was_seen_in(node.body):
        return blocks.run_block(vm, node.orelse) if node.orelse else True
    seen: list[Value] = [first]

    def body() -> Value | None:
        condition = containers.truthy(vm, evaluate(vm, node.test), node.test)
        seen[0] = condition
        return NONE if blocks.run_block(vm, node.body) else None

    outside = len(vm.out.items)
    # Only what is written as a constant stays one: `while step < until` ends when step has grown.
    endless = known is True and isinstance(node.test, ast.Constant)
    falls = run_loop(vm, node, first, body, endless=endless, last=lambda: seen[0])
    if (loop := _loop_of(vm, node, outside)) is not None:  # it goes on as its body has left it
        loop.count = seen[0]
    if node.orelse and falls:
        return blocks.run_block(vm, node.orelse)
    return falls
