"""Running statements, in order, with every way in which they leave."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from typing import Any

from ddpdoctor.lint.engine.interpreter import folding, objects
from ddpdoctor.lint.engine.interpreter.calls import call_function, call_value
from ddpdoctor.lint.engine.interpreter.errors import catches, is_known
from ddpdoctor.lint.engine.interpreter.expressions import computed_by, evaluate
from ddpdoctor.lint.engine.interpreter.iteration import UNTIL, elements
from ddpdoctor.lint.engine.interpreter.library.python import FLAGS
from ddpdoctor.lint.engine.interpreter.machine import (
    NUMBERED,
    Left,
    LoopRecord,
    Machine,
    Path,
    Spent,
    TryRecord,
)
from ddpdoctor.lint.engine.interpreter.methods import TEXT_METHODS
from ddpdoctor.lint.engine.interpreter.rewriting import (
    looping,
    raising,
    suppressing,
)
from ddpdoctor.lint.engine.interpreter.store import Key, State
from ddpdoctor.lint.engine.interpreter.tree import Arm, Choice, Exit, Loop, Seq, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    FIRST_HOST,
    FORKED,
    GENERATORS,
    MODE,
    NONE,
    NOTHING,
    OPEN,
    SAME,
    TRUE,
    UNKNOWN,
    Cause,
    Class,
    Const,
    Either,
    Func,
    Lib,
    Many,
    Partial,
    Ref,
    Table,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    blended,
    how_many,
    local,
    within,
)

_ROUNDS = 3
_YIELDS = (ast.Yield, ast.YieldFrom)
MAYBE = "maybe "
"""Before the names of scopes of which one is entered."""
EVERY_ERROR = Value(Lib("BaseException"))
_OF_MEMBERS = ("wrap", "forward", "backward", "step", "collective")
"""What only those do who have joined."""
_OF_FILES = {"FileNotFoundError", "NotADirectoryError", "IsADirectoryError"}
"""They ask for a file, as `os.path.exists` does."""
_ALIKE_ERRORS = frozenset(
    [
        "ImportError",
        "ModuleNotFoundError",
        "AttributeError",
        "KeyError",
        "IndexError",
        "NameError",
        "TypeError",
        "NotImplementedError",
        "StopIteration",
        "KeyboardInterrupt",
        "SystemExit",
        "AssertionError",
    ]
)


def run_block(vm: Machine, body: list[ast.stmt]) -> bool:
    """Run statements; False where none of the ways through them reaches the end."""
    for statement in body:
        vm.burn()
        if vm.watched and (vm.path, statement.lineno) in vm.watched:
            vm.emit("stand", "", statement)
        handler = _HANDLERS.get(statement.__class__)
        if handler is None:
            continue
        try:
            if not handler(vm, statement):
                return False
        except Left:
            return False
    return True


def _way(vm: Machine, body: list[ast.stmt]) -> Callable[[], Value | None]:
    return lambda: NONE if run_block(vm, body) else None


# --- plain statements


def _expression(vm: Machine, node: ast.Expr) -> bool:
    value = evaluate(vm, node.value)
    if vm.type_of(value) == "torch.distributed.Work":
        vm.emit("dropped", "", node, work=value)
    return True


def _assign(vm: Machine, node: ast.Assign) -> bool:
    goes_on = _goes_on(node.targets[0], node.value)
    old = evaluate_quietly(vm, _loaded(node.targets[0])) if goes_on else NONE
    value = evaluate(vm, node.value)
    if goes_on and isinstance(value.what, Tensor):
        vm.emit("add_up", "", node, old=old, value=value)
    for target in node.targets:
        objects.bind(vm, target, value)
    return True


def _goes_on(target: ast.expr, value: ast.expr) -> bool:
    """Whether a variable or attribute is computed from itself, as a running average is."""
    if not isinstance(target, ast.Name | ast.Attribute) or isinstance(value, ast.Call | ast.Name):
        return False
    wanted = getattr(target, "id", None), getattr(target, "attr", None)
    return any(
        (getattr(each, "id", None), getattr(each, "attr", None)) == wanted
        for each in ast.walk(value)
        if each.__class__ is target.__class__
    )


def _annotated(vm: Machine, node: ast.AnnAssign) -> bool:
    if node.value is not None:
        objects.bind(vm, node.target, evaluate(vm, node.value))
    return True


def _augmented(vm: Machine, node: ast.AugAssign) -> bool:
    target = node.target
    load = ast.copy_location(_loaded(target), target)
    old, value = evaluate(vm, load), evaluate(vm, node.value)
    if vm.type_of(old) in ("list", "set") and isinstance(node.op, ast.Add | ast.BitOr):
        made = objects.concatenated(vm, node, old, value)
        merged = objects.content(vm, made)
        if merged is not None:
            vm.store.put((old.what, "[]"), merged)
        return True
    if isinstance(node.op, ast.BitOr) and vm.type_of(old) == "dict":
        objects.update(vm, old, value, node)
        return True
    if vm.watched:
        vm.emit("asked", node.op.__class__.__name__, node, owner=old, by=value)
    new = folding.binary(node.op, old, value)
    if isinstance(old.what, Tensor) and isinstance(new.what, Tensor):
        new = Value(Tensor(old.what.site, new.what.of), new.agree, new.why)
        objects.change(vm, new, new.agree, new.why, value, node)
    elif isinstance(new.what, Tensor):
        new = computed_by(vm, node, node.op.__class__.__name__, old, value, new)
    vm.emit(
        "add_up",
        ast.unparse(target) if isinstance(target, ast.Name) else "",
        node,
        old=old,
        value=value,
        owner=NONE if isinstance(target, ast.Name) else evaluate_quietly(vm, target.value),
    )
    objects.bind(vm, target, new)
    return True


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
    return target


def _delete(vm: Machine, node: ast.Delete) -> bool:
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            owner = evaluate(vm, target.value)
            if owner.what == Lib("os.environ"):
                vm.emit("unsetenv", "del", target, name=evaluate(vm, target.slice))
            elif vm.type_of(owner) == "list":
                vm.emit("take", "del", target, owner=owner)
        elif isinstance(target, ast.Attribute):
            objects.remove_attribute(vm, evaluate(vm, target.value), target.attr)
    return True


def _import(vm: Machine, node: ast.Import) -> bool:
    frame = vm.frame
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        wanted = alias.name if alias.asname else alias.name.partition(".")[0]
        vm.store.put((frame.scopes[0], name), vm.program.module(vm, frame.module, wanted))
        if not alias.asname and "." in alias.name:
            vm.program.module(vm, frame.module, alias.name)
    return True


def _import_from(vm: Machine, node: ast.ImportFrom) -> bool:
    frame = vm.frame
    base = "." * node.level + (node.module or "")
    for alias in node.names:
        if alias.name == "*":
            vm.program.import_all(vm, frame.module, base, frame.scopes[0])
        else:
            value = vm.program.imported(vm, frame.module, base, alias.name)
            vm.store.put((frame.scopes[0], alias.asname or alias.name), value)
    return True


def _global(vm: Machine, node: ast.Global) -> bool:
    for name in node.names:
        vm.frame.elsewhere[name] = vm.frame.module.scope
    return True


def _nonlocal(vm: Machine, node: ast.Nonlocal) -> bool:
    for name in node.names:
        for scope in vm.frame.scopes[1:]:
            if vm.store.get((scope, name)) is not None:
                vm.frame.elsewhere[name] = scope
                break
    return True


# --- definitions


def _function(vm: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    value = Value(vm.program.define(vm, node, node.name))
    for decorator in reversed(node.decorator_list):
        if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter"):
            vm.store.put((vm.frame.scopes[0], f"{node.name}.setter"), value)
            return True
        made = evaluate(vm, decorator)
        if isinstance(made.what, Lib) and not _is_known(vm, made.what.name):
            continue
        new = call_value(vm, made, [value], {}, decorator)
        if isinstance(new.what, Func | Ref) or (
            new.what.__class__.__name__ in ("Partial", "Either", "Class")
        ):
            value = new
    vm.store.put((vm.frame.elsewhere.get(node.name, vm.frame.scopes[0]), node.name), value)
    return True


def _is_known(vm: Machine, name: str) -> bool:
    """Whether anything is known of a library's decorator; others leave a function as it is."""
    return name in FLAGS or vm.library.find(name) is not None


def _class(vm: Machine, node: ast.ClassDef) -> bool:
    value = vm.program.define_class(vm, node)
    for decorator in reversed(node.decorator_list):
        made = evaluate(vm, decorator)
        if isinstance(made.what, Func | Partial | Ref):
            new = call_value(vm, made, [value], {}, decorator)
            value = new if isinstance(new.what, Class) else value
    vm.store.put((vm.frame.scopes[0], node.name), value)
    return True


# --- leaving


def _return(vm: Machine, node: ast.Return) -> bool:
    frame, lazily = vm.frame, vm.lazily
    if id(frame.call) in lazily and node.value is not None:
        vm.lazily |= _makers(vm, node.value)
    try:
        value = evaluate(vm, node.value)
    finally:
        vm.lazily = lazily
    for loop in frame.loops:
        by = [each for each in vm.conditions[loop.conditions :] if each.agree.divergent]
        value = _of_the_round(value, frozenset(_parts(loop.turn)), by) if by else value
    plain = isinstance(node.value, ast.Name | ast.Constant | None)
    if value.agree.divergent and value.why is not None and not plain:
        said = f"{vm.frame.name}() returns it"
        value = Value(value.what, value.agree, vm.why(said, node, value.why))
    frame.returns.append((value, vm.state(frame.depth, frame.conditions)))
    vm.leave("return", node, value)
    return False


def _of_the_round(value: Value, turn: frozenset[What], by: list[Value]) -> Value:
    """A value of the round in which a rank leaves a loop, which its own condition decides."""
    if isinstance(value.what, Tuple):
        items = tuple(_of_the_round(each, turn, by) for each in value.what.items)
        return Value(Tuple(items), value.agree, value.why)
    if turn.isdisjoint(within(value.what)):
        return value
    agree, why = blended([value, *by])
    return Value(value.what, agree, why)


def _parts(value: Value) -> Iterator[What]:
    """What is no constant in a value, part by part."""
    if isinstance(value.what, Tuple):
        for each in value.what.items:
            yield from _parts(each)
    elif not isinstance(value.what, Const) and value.what != NOTHING:
        yield value.what


def _raise(vm: Machine, node: ast.Raise) -> bool:
    value = evaluate(vm, node.exc) if node.exc is not None else NONE
    if vm.tries:
        record = vm.tries[-1]
        record.raised.append(vm.state(record.depth, record.conditions))
    vm.leave("raise", node, value)
    return False


def _break(vm: Machine, node: ast.Break) -> bool:
    if vm.frame.loops:
        record = vm.frame.loops[-1]
        record.breaks.append(vm.state(record.depth, record.conditions))
    vm.leave("break", node)
    return False


def _continue(vm: Machine, node: ast.Continue) -> bool:
    if vm.frame.loops:
        record = vm.frame.loops[-1]
        record.continues.append(vm.state(record.depth, record.conditions))
    vm.leave("continue", node)
    return False


def _assert(vm: Machine, node: ast.Assert) -> bool:
    condition = objects.truthy(vm, evaluate(vm, node.test), node.test)
    if isinstance(condition.what, Table) and condition.what.ranks() == (FIRST_HOST, 0):
        vm.there = FIRST_HOST  # a job of one host, as it says itself
        return True

    def fail() -> None:
        vm.leave("assert", node)

    paths = vm.ways(condition, lambda: NONE, fail)
    return vm.choose(node, node.test, condition, paths) is not None


# --- branches


def _if(vm: Machine, node: ast.If) -> bool:
    condition = objects.truthy(vm, evaluate(vm, node.test), node.test)
    known = vm.truth(condition)
    if known is not None and vm.was_seen_in(node.orelse if known else node.body):
        condition = Value(NOTHING, UNKNOWN)
    if known is not None and (setting := _setting(vm, node, known)) is not None:
        condition = setting
    paths = vm.ways(condition, _way(vm, node.body), _way(vm, node.orelse))
    given = vm.given_by(condition) if condition.agree.divergent else ()
    for path in paths:
        path.given = tuple((what, holds) for what, holds, when in given if when is path.holds)
    return vm.choose(node, node.test, condition, paths) is not None


def _setting(vm: Machine, node: ast.If, known: bool) -> Value | None:
    """What a script's own `distributed = False` decides: people change it before they start it."""
    match node.test:
        case ast.Name(id=name):
            is_off, joining = not known, node.body
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            is_off, joining = known, node.orelse
        case _:
            return None
    if len(vm.frames) > 1 or not is_off or not joining:
        return None
    if not vm.joins(Path(None, EVERYONE, 0, _way(vm, joining))):
        return None
    vm.store.put((vm.frame.scopes[0], name), Value(MODE))
    return Value(MODE) if joining is node.body else folding.negated(Value(MODE))


def _match(vm: Machine, node: ast.Match) -> bool:
    subject = evaluate(vm, node.subject)
    condition = Value(NOTHING, subject.agree, subject.why)
    left = surely_left = EVERYONE
    paths = []
    for case in node.cases:
        might, surely = _matching(subject, case)
        came = left & might
        paths.append(Path(None, came, came & ~(surely & surely_left), _case(vm, case, subject)))
        left, surely_left = left & ~surely, surely_left & ~might
    paths.append(Path(None, left, left & ~surely_left, lambda: NONE))
    return vm.choose(node, node.subject, condition, paths) is not None


def _matching(subject: Value, case: ast.match_case) -> tuple[int, int]:
    """Masks of the ranks that may match a case, and of those that do."""
    if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None:
        return EVERYONE, EVERYONE if case.guard is None else 0
    wanted = _wanted(case.pattern)
    entries = folding.entries(subject) if isinstance(subject.what, Table | Const) else None
    if wanted is None or entries is None:
        return EVERYONE, 0
    alike = [OPEN if each is OPEN else each in wanted for each in entries]
    surely, opened = Table(tuple(alike)).ranks()
    return surely | opened, surely if case.guard is None else 0


def _wanted(pattern: ast.pattern) -> list[Any] | None:
    """The constants that a pattern matches, where it matches such alone."""
    match pattern:
        case ast.MatchValue(ast.Constant(value)) | ast.MatchSingleton(value):
            return [value]
        case ast.MatchValue(ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value))):
            return [-value]
        case ast.MatchOr(patterns):
            some = [_wanted(each) for each in patterns]
            return None if None in some else [one for each in some if each for one in each]
    return None


def _case(vm: Machine, case: ast.match_case, subject: Value) -> Callable[[], Value | None]:
    def run() -> Value | None:
        _capture(vm, case.pattern, subject)
        if case.guard is None:
            return NONE if run_block(vm, case.body) else None
        condition = objects.truthy(vm, evaluate(vm, case.guard), case.guard)
        paths = vm.ways(condition, _way(vm, case.body), lambda: NONE)
        return vm.choose(case.guard, case.guard, condition, paths)

    return run


def _capture(vm: Machine, pattern: ast.pattern, subject: Value) -> None:
    """Bind the names of a pattern: to what they match, or to its parts, which are not known."""
    whole = pattern.name if isinstance(pattern, ast.MatchAs) else None
    for each in ast.walk(pattern):
        name = getattr(each, "name", None)
        if isinstance(name, str):
            part = Value(NOTHING, subject.agree, subject.why)
            vm.store.put((vm.frame.scopes[0], name), subject if name == whole else part)


# --- loops


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
    record = LoopRecord(base - 1, len(vm.conditions))
    seq = Seq()
    first: dict[Any, Value | None] = {}
    counted: dict[What, tuple[What, int | None]] = {}
    rounds = 1 if once else _rounds(vm)
    for turn in range(rounds):
        record = LoopRecord(base - 1, len(vm.conditions))
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
        passed = frozenset(vm.own[calls:])
        if not _settle(vm, states, vm.site(node, "loop"), passed) or turn == rounds - 1:
            break
    if seq.items:
        loop = Loop(node, vm.path, count, seq, vm.frame.name, begun=begun, counted=counted)
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
        added = {_added(head.what, each.what) for each in values}
        yield head.what, (begun.what, added.pop() if len(added) == 1 else None)


def _added(before: What, after: What) -> int | None:
    """The number by which a value is more than it was, None where it is another."""
    total = 0
    while after != before:
        if not isinstance(after, Term) or after.op not in ("Add", "Sub"):
            return None
        left, by = after.args
        if not isinstance(by, Const) or not isinstance(by.value, int):
            return None
        total += by.value if after.op == "Add" else -by.value
        after = left
    return total


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


def _for(vm: Machine, node: ast.For | ast.AsyncFor) -> bool:
    lazily, vm.lazily = vm.lazily, frozenset() if node.orelse else _makers(vm, node.iter)
    try:
        source = evaluate(vm, node.iter)
    finally:
        vm.lazily = lazily
    if (generator := _generator_of(vm, source, node)) is not None:
        return _through_its_yields(vm, node, source, generator)
    one, count = elements(vm, source, node.iter)
    content = objects.content(vm, source)
    if _is_empty(source, content):
        if not vm.was_seen_in(node.body):
            return run_block(vm, node.orelse) if node.orelse else True
        source = Value(NOTHING, UNKNOWN)
        one, count = elements(vm, source, node.iter)

    counts = [count]
    ended: list[tuple[Value, Value]] = []

    def body() -> Value | None:
        again, counts[0] = elements(vm, source, node.iter)
        objects.bind(vm, node.target, again)
        vm.frame.loops[-1].turn = again
        if not run_block(vm, node.body):
            return None
        ended[:] = [(again, objects.now_with_parts(vm, again))]
        return NONE

    vm.emit("iterate", "for", node, over=source, element=one, content=content or source)
    if content is not None and _is_one_by_one(vm, node, content):
        return _one_by_one(vm, node, Value(count.what, SAME), _several(content))
    outside = len(vm.out.items)
    falls = run_loop(vm, node, count, body)
    _begin_what_was_started(vm)
    if falls and ended and content is not None and not _has(node, ast.Continue, *_WAYS_OUT):
        objects.touch_each(vm, content.what, *ended[0])
    loop = _loop_of(vm, node, outside)
    if loop is not None:
        loop.count = counts[0] if count.what == UNTIL else count
        number = how_many((content or source).what)
        loop.rounds = number.value if isinstance(number, Const) else 0
    if node.orelse and falls:
        return run_block(vm, node.orelse)
    return falls


def _is_empty(source: Value, content: Value | None) -> bool:
    """Whether a loop goes through nothing."""
    what = content.what if content is not None else source.what
    if isinstance(what, Term) and what.op == "range":
        bounds = [each.value for each in what.args if isinstance(each, Const)]
        known = len(bounds) == len(what.args) and all(type(each) is int for each in bounds)
        return known and 0 not in bounds[2:] and not range(*bounds)
    return isinstance(what, Tuple) and not what.items


def _makers(vm: Machine, node: ast.expr) -> frozenset[int]:
    """The calls of a loop's head of which one may make the generator that it goes through."""
    if not isinstance(node, ast.Call):
        return frozenset()
    function = evaluate_quietly(vm, node.func).what
    effect = vm.library.find(function.name) if isinstance(function, Lib) else None
    hands_on = effect is not None and effect.does == "itself"
    hands_on = hands_on or isinstance(function, Func) or function == Lib("enumerate")
    inner = [_makers(vm, each) for each in node.args] if hands_on else []
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
    found = objects.class_attribute(vm, made.cls, "__iter__")
    if found is None or not isinstance(found.what, Func):
        return None
    if not vm.functions[found.what.number].is_generator:
        return None
    bound = objects.attribute(vm, source, "__iter__", node.iter).what
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
            objects.bind(vm, node.target, one)
            record.turn = one
            falls = run_block(vm, node.body)
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


def _is_one_by_one(vm: Machine, node: ast.For | ast.AsyncFor, content: Value) -> bool:
    """Whether a loop goes through a few things, each of its own kind, and through all of them."""
    items = _several(content)
    if not 1 < len(items) <= _FEW or vm.fuel < vm.enough:
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
    return one.options if isinstance(one, Either) else objects.held(content)


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
    return run_block(vm, node.orelse)


def _round(vm: Machine, node: ast.For | ast.AsyncFor, item: Value) -> Value | None:
    """What a loop does with one thing, until its body ends or goes on with the next."""
    mask, depth = vm.mask, vm.store.open()
    record = LoopRecord(depth, len(vm.conditions))
    vm.frame.loops.append(record)
    try:
        objects.bind(vm, node.target, Value(item.what) if item.agree.divergent else item)
        falls = run_block(vm, node.body)
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


def _while(vm: Machine, node: ast.While) -> bool:
    if (loop := vm.program.written_out(node, looping)) is not None:
        return run_block(vm, [loop])
    first = evaluate_quietly(vm, node.test)
    known = vm.truth(first)
    if known is False and not isinstance(first.what, Table) and not vm.was_seen_in(node.body):
        return run_block(vm, node.orelse) if node.orelse else True
    seen: list[Value] = [first]

    def body() -> Value | None:
        condition = objects.truthy(vm, evaluate(vm, node.test), node.test)
        seen[0] = condition
        return NONE if run_block(vm, node.body) else None

    outside = len(vm.out.items)
    # Only what is written as a constant stays one: `while step < until` ends when step has grown.
    endless = known is True and isinstance(node.test, ast.Constant)
    falls = run_loop(vm, node, first, body, endless=endless, last=lambda: seen[0])
    if (loop := _loop_of(vm, node, outside)) is not None:  # it goes on as its body has left it
        loop.count = seen[0]
    if node.orelse and falls:
        return run_block(vm, node.orelse)
    return falls


def evaluate_quietly(vm: Machine, node: ast.expr) -> Value:
    """A value without the events of its evaluation."""
    outside, vm.out = vm.out, Seq()
    depth = vm.store.open()
    try:
        return evaluate(vm, node)
    finally:
        vm.out = outside
        vm.store.drop(depth)


# --- with


def _with(vm: Machine, node: ast.With | ast.AsyncWith) -> bool:
    if _suppresses(vm, node.items[0].context_expr):
        return run_block(vm, [vm.program.written_out(node, suppressing)])
    return _enter(vm, node, list(node.items))


def _suppresses(vm: Machine, made: ast.expr) -> bool:
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name | ast.Attribute):
        return False
    return evaluate_quietly(vm, made.func).what == Lib("contextlib.suppress")


def _enter(vm: Machine, node: ast.With | ast.AsyncWith, items: list[ast.withitem]) -> bool:
    if not items:
        return run_block(vm, node.body)
    item = items[0]
    manager = evaluate(vm, item.context_expr)
    type = vm.type_of(manager)
    if type == "manager":
        return _through_generator(vm, node, items, manager)
    if names := _scopes(vm, manager):
        return _in_scope(vm, node, items, manager, names)
    made = vm.object(manager)
    entered = manager
    exit_: Value | None = None
    if made is not None and made.cls >= 0:
        if objects.class_attribute(vm, made.cls, "__enter__") is not None:
            entered = call_value(
                vm,
                objects.attribute(vm, manager, "__enter__", item.context_expr),
                [],
                {},
                item.context_expr,
            )
        if objects.class_attribute(vm, made.cls, "__exit__") is not None:
            exit_ = objects.attribute(vm, manager, "__exit__", item.context_expr)
    if item.optional_vars is not None:
        objects.bind(vm, item.optional_vars, entered)
    inside = vm.inside
    falls = _enter(vm, node, items[1:])
    if type == "contextlib.ExitStack":
        vm.inside = inside
        vm.emit("exit", type, node, stack=manager)
    if exit_ is not None:
        left = _taken_back(vm, falls)
        call_value(vm, exit_, [NONE, NONE, NONE], {}, item.context_expr)
        vm.out.items.extend(left)
    return falls


def _through_generator(
    vm: Machine, node: ast.With | ast.AsyncWith, items: list[ast.withitem], manager: Value
) -> bool:
    """The body of the `with` runs where the generator yields."""
    function = vm.store.get((manager.what, "function"))
    if function is None or not isinstance(function.what, Func):
        return _enter(vm, node, items[1:])
    outer = vm.frame
    ran: list[bool] = []
    left: list[Exit] = []

    def on_yield(value: Value) -> Value:
        inner = vm.frames
        position = inner.index(outer)
        kept, vm.frames = vm.frames, inner[: position + 1]
        if items[0].optional_vars is not None:
            objects.bind(vm, items[0].optional_vars, value)
        falls = True
        try:
            falls = _enter(vm, node, items[1:])
        finally:
            vm.frames = kept
        ran.append(falls)
        left.extend(_taken_back(vm, falls))
        return NONE

    call_function(vm, function.what, [], {}, items[0].context_expr, on_yield)
    vm.out.items.extend(left)
    return all(ran) if ran else _enter(vm, node, items[1:])


def _taken_back(vm: Machine, falls: bool) -> list[Exit]:
    """The exit with which the body of a `with` leaves: the manager's own exit comes before it."""
    items = vm.out.items
    if not falls and items and isinstance(items[-1], Exit) and items[-1].kind != "raise":
        return [items.pop()]  # type: ignore[list-item]
    return []


def _scopes(vm: Machine, manager: Value) -> list[str]:
    """The scope that a context manager enters, or those of which it enters one."""
    options = manager.what.options if isinstance(manager.what, Either) else (manager,)
    if not all(vm.type_of(each) == "scope" for each in options):
        return []
    kept = [vm.store.get((each.what, "scope")) for each in options]
    return list(dict.fromkeys(str(each.constant) if each else "" for each in kept))


def _in_scope(
    vm: Machine,
    node: ast.With | ast.AsyncWith,
    items: list[ast.withitem],
    manager: Value,
    names: list[str],
) -> bool:
    if items[0].optional_vars is not None:
        objects.bind(vm, items[0].optional_vars, manager)
    count, inside = len(vm.scopes), vm.inside
    if names == ["main_first"]:
        return _main_first(vm, node, items)
    name = names[0] if len(names) == 1 else f"{MAYBE}{' '.join(names)}"
    vm.scopes.append(name)
    of = vm.store.get((manager.what, "of")) or NONE
    if "fork_rng" in names:
        seeded = vm.store.get((GENERATORS, "torch")) or Value(NOTHING, local("chance", False))
        vm.store.put((GENERATORS, FORKED), seeded)
    entered = vm.emit("enter", name, items[0].context_expr, scope=manager, of=of)
    if "no_sync" in names:
        vm.inside = entered
    try:
        falls = _enter(vm, node, items[1:])
    finally:
        del vm.scopes[count:]
        vm.inside = inside
    vm.emit("exit", name, node, scope=manager)
    return falls


def _main_first(vm: Machine, node: ast.With | ast.AsyncWith, items: list[ast.withitem]) -> bool:
    vm.emit("collective", "main_process_first", node)
    vm.scopes.append("main_first")
    try:
        return _enter(vm, node, items[1:])
    finally:
        vm.scopes.pop()


# --- try


def _try(vm: Machine, node: ast.Try) -> bool:
    if _finds_its_key(vm, node):
        return run_block(vm, [*node.body, *node.orelse, *node.finalbody])
    before, outside, joined = vm.mask, vm.out, vm.joined
    condition = _exception(vm, node)
    depth = vm.store.depth
    record = TryRecord(depth, len(vm.conditions))
    vm.tries.append(record)
    arms: list[Arm] = []
    states: list[State] = []

    def run(body: Callable[[], bool], start: list[State]) -> None:
        vm.out, vm.mask = Seq(), before
        kept = vm.store.open() + 1
        if start:
            vm.store.join(start, vm.site(node, "raised"))
        vm.conditions.append(condition)
        falls = False
        try:
            falls = body()
        finally:
            vm.store.drop(kept)
            vm.conditions.pop()
            writes = vm.store.close()
            arms.append(Arm(before, vm.out, before))
            vm.out = outside
        if falls:
            states.append(State(writes, (condition,), vm.mask))

    try:
        run(lambda: _tried(vm, node), [])
    finally:
        vm.tries.pop()
    if vm.joined and not joined and not any(events(arms[0].body, *_OF_MEMBERS)):
        # Who has not come in keeps nobody waiting later: the others wait for it right there.
        condition = Value(NOTHING, UNKNOWN)
        states = [State(each.writes, (condition,), each.mask) for each in states]
    raised = [State({}, ()), *record.raised]
    for handler in node.handlers:

        def handle(handler: ast.ExceptHandler = handler) -> bool:
            if handler.name:
                why = vm.why("an exception of this rank", handler)
                error = Value(NOTHING, local("exception", False), why)
                vm.store.put((vm.frame.scopes[0], handler.name), error)
            vm.emit("caught", "except", handler, kind=_kind(vm, handler))
            return run_block(vm, handler.body)

        run(handle, list(raised))
    vm.mask = before
    if len(arms) == 1:
        outside.items.extend(arms[0].body.items)
    elif any(arm.body.items for arm in arms):
        choice = Choice(condition, node, node, vm.path, arms, vm.frame.name)
        outside.items.append(choice)
    several = states if len(states) > 1 else []
    keys = dict.fromkeys(key for each in several for key in each.writes)
    ways = {key: [each.writes.get(key, vm.store.get(key)) for each in states] for key in keys}
    vm.store.join(states, vm.site(node, "try"))
    for key, way in ways.items():
        if (now := vm.store.get(key)) is not None:
            vm.either(now, way, node)
    falls = bool(states)
    if node.finalbody:
        falls = run_block(vm, node.finalbody) and falls
    return falls


def _finds_its_key(vm: Machine, node: ast.Try) -> bool:
    """Whether it asks nothing but one entry of a dictionary, which is there."""
    asked = getattr(node.body[0], "value", None) if len(node.body) == 1 else None
    if not isinstance(asked, ast.Subscript) or isinstance(asked.slice, ast.Slice):
        return False
    if any(_kinds(each.type) != {"KeyError"} for each in node.handlers):
        return False
    owner, key = (evaluate_quietly(vm, each) for each in (asked.value, asked.slice))
    is_dict = vm.type_of(owner) == "dict" and isinstance(key.what, Const)
    return is_dict and objects.kept(vm, owner, key) is not None


def _tried(vm: Machine, node: ast.Try) -> bool:
    """The body of a `try`. Where the rank decides who raises what is caught, those go on there."""
    for number, statement in enumerate(node.body):
        if isinstance(statement, ast.If) and any(map(_raised, (statement.body, statement.orelse))):
            decides = evaluate_quietly(vm, statement.test)
            handlers = tuple(_handler(vm, node, x) for x in (statement.body, statement.orelse))
            by_rank = decides.agree.kind == "rank" and isinstance(decides.what, Table)
            if by_rank and None not in handlers:
                return run_block(vm, [vm.program.written_out(node, raising, number, handlers)])
        if not run_block(vm, [statement]):
            return False
    return run_block(vm, node.orelse)


def _raised(body: list[ast.stmt]) -> ast.Raise | None:
    """What a block ends with, if that is an error."""
    last = body[-1] if body else None
    return last if isinstance(last, ast.Raise) else None


def _handler(vm: Machine, node: ast.Try, body: list[ast.stmt]) -> int | None:
    """The number of the handler that goes on with what a block raises; None if it is not known.

    -1 where it raises nothing.
    """
    error = _raised(body)
    if error is None:
        return -1
    raised = evaluate_quietly(vm, error.exc) if error.exc is not None else Value(NOTHING)
    for number, handler in enumerate(node.handlers):
        kind = _kind(vm, handler)
        if raised.what == NOTHING or not is_known(kind):
            return None
        if catches(vm, kind.what, raised.what):
            return None if any(isinstance(x, ast.Raise) for x in ast.walk(handler)) else number
    return None


def _kind(vm: Machine, handler: ast.ExceptHandler) -> Value:
    """What a handler catches."""
    return evaluate_quietly(vm, handler.type) if handler.type is not None else EVERY_ERROR


def _exception(vm: Machine, node: ast.Try) -> Value:
    """Whether the body raises: this rank's own affair, unless the kind of error is all ranks'."""
    kinds: set[str] = set()
    for handler in node.handlers:
        kinds |= _kinds(handler.type)
    if kinds and (kinds <= _ALIKE_ERRORS or _only_converts(vm, node)):
        return Value(NOTHING, UNKNOWN)
    cause: Cause = "disk" if kinds and kinds <= _OF_FILES else "exception"
    why = vm.why(
        "an exception may reach this rank alone", node.handlers[0] if node.handlers else node
    )
    return Value(NOTHING, local(cause, False), why)


def _only_converts(vm: Machine, node: ast.Try) -> bool:
    """Whether the body does nothing but what fails alike on all ranks.

    To import is that as well: what is installed is the same for all of them.
    """
    calls = [each for part in node.body for each in ast.walk(part) if isinstance(each, ast.Call)]
    imports = [each for each in node.body if isinstance(each, ast.Import | ast.ImportFrom)]
    if not calls:
        return bool(imports) and all(_imports_or_names(each) for each in node.body)
    return all(_is_alike(vm, each) for each in calls)


def _imports_or_names(node: ast.stmt) -> bool:
    """Whether a statement imports, or gives a name to a constant or to another name."""
    named = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Name)
    return named or isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)


def _is_alike(vm: Machine, call: ast.Call) -> bool:
    """Whether a call fails on all ranks or on none: a conversion, a question to the group.

    So does what is computed from nothing but what they hold alike, as the text of a file that was
    opened before is parsed.
    """
    function = call.func
    if not isinstance(function, ast.Name | ast.Attribute):
        return False
    what = evaluate_quietly(vm, function).what
    if isinstance(what, Func):
        return _looks_up(vm, what)
    if isinstance(what, Partial):
        return what.callee.constant is not OPEN  # a method of a constant, as `".".join` is
    if isinstance(what, Term) and what.op == "name" and not vm.frame.module.text.stars:
        return True  # nobody binds it: a shell has it, as IPython has get_ipython, or no rank has
    if not isinstance(what, Lib):
        return False
    effect = vm.library.find(what.name)
    if effect is not None and effect.does == "pure" and not what.name.startswith("torch."):
        given = [*call.args, *(each.value for each in call.keywords)]
        return not any(evaluate_quietly(vm, each).agree.divergent for each in given)
    return what in _CONVERTERS or (effect is not None and effect.does in objects.PROPERTIES)


def _looks_up(vm: Machine, function: Func, depth: int = 3) -> bool:
    """Whether a function of the user's calls nothing but such itself, by their plain names.

    A decorator's calls what it was put on, which it has closed over.
    """
    node = vm.functions[function.number].node
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    inside = [each for part in body for each in ast.walk(part)]
    called = [each.func for each in inside if isinstance(each, ast.Call)]
    names = [each.id for each in called if isinstance(each, ast.Name)]
    methods = [each.attr for each in called if isinstance(each, ast.Attribute)]
    if not set(methods) <= TEXT_METHODS or len(names) + len(methods) != len(called):
        return False
    for name in names:
        closed = (vm.store.get((scope, name)) for scope in function.scopes)
        held = next((each.what for each in closed if each is not None), None)
        if Lib(name) not in _CONVERTERS and not (
            depth and isinstance(held, Func) and _looks_up(vm, held, depth - 1)
        ):
            return False
    return True


_CONVERTERS = {
    *map(Lib, ("int", "float", "str", "bool", "len", "isinstance", "getattr", "type", "hasattr")),
    *map(Lib, ("importlib.import_module", "__import__")),
    *(Lib(f"os.path.{name}") for name in ("basename", "dirname", "join", "split", "splitext")),
}


def _kinds(node: ast.expr | None) -> set[str]:
    if node is None:
        return {"BaseException"}
    if isinstance(node, ast.Tuple):
        return {kind for each in node.elts for kind in _kinds(each)}
    return {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "?")}


_HANDLERS: dict[type, Callable[[Machine, Any], bool]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Assert: _assert,
    ast.If: _if,
    ast.Match: _match,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
}
