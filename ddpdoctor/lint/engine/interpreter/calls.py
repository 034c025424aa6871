"""Calls: of the user's functions and classes, and what decides which one it is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ddpdoctor.lint.engine.interpreter import lookups, methods, quiet
from ddpdoctor.lint.engine.interpreter.library.call import Call, is_starred, starred
from ddpdoctor.lint.engine.interpreter.library.dispatch import call_library
from ddpdoctor.lint.engine.interpreter.library.python import MADE_ANEW
from ddpdoctor.lint.engine.interpreter.machine import (
    MAX_CALLS,
    Frame,
    FunctionInfo,
    Left,
    Machine,
    Path,
)
from ddpdoctor.lint.engine.interpreter.objects import (
    binding,
    containers,
    hierarchy,
    indexing,
    keyed,
    members,
    memory,
)
from ddpdoctor.lint.engine.interpreter.store import OF_NUMBERS, State, Writes
from ddpdoctor.lint.engine.interpreter.tree import Arm, Called, Choice, Exit, Seq, events
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK,
    EVERYONE,
    IS_MAIN,
    NONE,
    NOTHING,
    TRUE,
    UNKNOWN,
    Class,
    Const,
    Either,
    Func,
    Lib,
    Many,
    Partial,
    Place,
    Ref,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    Why,
    blended,
    has_identity,
    term,
)
from ddpdoctor.lint.engine.libraries.torch import OF_THE_WRAPPER

Arguments = tuple[list[Value], dict[str, Value]]


def call(vm: Machine, node: ast.Call) -> Value:
    """The value of a call expression."""
    from ddpdoctor.lint.engine.interpreter.expressions import evaluate

    func = node.func
    if isinstance(func, ast.Name) and func.id == "super":
        return _super(vm, node)
    if isinstance(func, ast.Attribute):
        if _is_super(func.value):
            args, kwargs = arguments(vm, node)
            return _call_of_super(vm, func.attr, args, kwargs, node)
        owner = evaluate(vm, func.value)
        key = _default_key(vm, owner, node)
        if key is not None and (known := keyed.kept(vm, owner, key)) is not None:
            vm.note_read(owner, key)
            return known
        callee = memory.current(vm, members.attribute(vm, owner, func.attr, func))
        args, kwargs = arguments(vm, node, key)
        if vm.watched:
            vm.emit("asked", func.attr, node, owner=owner, by=args[0] if args else NONE)
        model = _wrapped(vm, owner, callee)
        if model is not None and not _is_of_every_module(callee, func.attr):
            vm.emit("bare_method", func.attr, node, model=model)
        elif model is None:
            _note_kept(vm, callee, node)
        if func.attr == "__setattr__" and (set_ := _set_by_name(vm, owner, callee, args, node)):
            return set_
        asks_size = isinstance(owner.what, Tensor) and func.attr in memory.ASKING_SIZE
        if asks_size or (isinstance(owner.what, Term) and _is_unknown(callee, owner)):
            return methods.call_method(vm, owner, func.attr, args, kwargs, node)
        return call_value(vm, callee, args, kwargs, node)
    callee = evaluate(vm, func)
    if callee.what == Lib("zip") and (columns := _columns(vm, node)) is not None:
        return columns
    args, kwargs = arguments(vm, node)
    _note_kept(vm, callee, node)
    return call_value(vm, callee, args, kwargs, node)


def _set_by_name(
    vm: Machine, owner: Value, callee: Value, args: list[Value], node: ast.AST
) -> Value | None:
    """`x.__setattr__(name, value)`, or `object.__setattr__(x, name, value)`: as `setattr` does."""
    if isinstance(callee.what, Func):
        return None
    whose, name, value = args if len(args) == 3 else [owner, *args, NONE, NONE][:3]
    binding.set_named(vm, whose, name, value, node)
    return NONE


def _default_key(vm: Machine, owner: Value, node: ast.Call) -> Value | None:
    """The key of `setdefault(key, ...)`: where it is there, what is handed besides is made in vain.

    Of what one place makes, round after round, one object is known: to make it again would be to
    begin anew with what is kept.
    """
    from ddpdoctor.lint.engine.interpreter.expressions import evaluate

    if getattr(node.func, "attr", "") != "setdefault" or len(node.args) != 2:
        return None
    if vm.type_of(owner) != "dict" or isinstance(node.args[0], ast.Starred):
        return None
    return evaluate(vm, node.args[0])


def _columns(vm: Machine, node: ast.Call) -> Value | None:
    """`zip(*rows)` of rows of nobody knows what number: as many columns as a row has parts."""
    from ddpdoctor.lint.engine.interpreter.expressions import evaluate

    is_plain = all(each.arg == "strict" for each in node.keywords)
    only = node.args[0] if len(node.args) == 1 and is_plain else None
    if not isinstance(only, ast.Starred):
        return None
    content = containers.content(vm, evaluate(vm, only.value))
    if content is None or not isinstance(content.what, Many):
        return None
    row, number = content.what.element, content.what.number
    if not isinstance(row.what, Tuple):
        return None
    columns = (Value(Many(each, number), content.agree, content.why) for each in row.what.items)
    return Value(Tuple(tuple(columns)))


def _wrapped(vm: Machine, owner: Value, callee: Value) -> Value | None:
    """The module inside of a wrapper of which a method is called, maybe through the wrapper."""
    bound = callee.what.bound if isinstance(callee.what, Func) else ()
    through = bound[:1] if vm.type_of(owner) == members.DDP else ()
    return next((each for each in (owner, *through) if each.what in vm.wrapped), None)


def _note_kept(vm: Machine, callee: Value, node: ast.AST) -> None:
    """Tell of a method of a wrapped module that is called by a name under which it was kept."""
    what = callee.what
    if isinstance(what, Func):
        owner, name = what.bound[:1], vm.functions[what.number].name.rpartition(".")[2]
    elif isinstance(what, Term) and what.op == "of" and _is_by_another_name(what.args[1], node):
        owner, name = (Value(what.args[0], callee.agree, callee.why),), what.args[1]
    else:
        return
    is_one = any(each.what in vm.wrapped for each in owner)
    if is_one and not _is_of_every_module(callee, name):
        vm.emit("bare_method", name, node, model=owner[0])


def _is_of_every_module(callee: Value, name: str) -> bool:
    """Whether torch gives it to any module, as `state_dict`: of these, `forward` alone runs it."""
    return name in OF_THE_WRAPPER and name != "forward" and not isinstance(callee.what, Func)


def _is_unknown(callee: Value, owner: Value) -> bool:
    """Whether a method is one of something unknown."""
    what = callee.what
    is_of = isinstance(what, Term) and (what.op == "of" or what == NOTHING)
    return is_of or not isinstance(what, Func | Class | Lib | Partial | Ref | Either)


def arguments(vm: Machine, node: ast.Call, first: Value | None = None) -> Arguments:
    """The arguments of a call, stars taken apart where they can be. `first` is known already."""
    from ddpdoctor.lint.engine.interpreter.expressions import evaluate

    args: list[Value] = [] if first is None else [first]
    for each in node.args[len(args) :]:
        if isinstance(each, ast.Starred):
            value = evaluate(vm, each.value)
            found = containers.content(vm, value)
            if found is not None and isinstance(found.what, Tuple):
                args.extend(found.what.items)
            else:
                args.append(Value(starred(value, found), value.agree, value.why))
        else:
            args.append(evaluate(vm, each))
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        value = evaluate(vm, keyword.value)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        else:
            _spread(vm, value, kwargs, keyword)
    return args, kwargs


def _spread(vm: Machine, value: Value, kwargs: dict[str, Value], node: ast.AST) -> None:
    if vm.type_of(value) == "dict":
        known = keyed.keys(vm, value)
        if isinstance(known.what, Tuple):
            for key in known.what.items:
                if isinstance(key.constant, str):
                    kwargs[key.constant] = keyed.get_key(vm, value, key)
            return
    if vm.type_of(value) == keyed.NAMESPACE:
        for name in keyed.options(vm, value):
            kwargs[name] = members.attribute(vm, value, name, node)
        if not keyed.may_have_more(vm, value):
            return
    kwargs["**"] = value


def call_value(
    vm: Machine, callee: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """Call a value."""
    vm.burn()
    what = callee.what
    if isinstance(what, Either):
        return _one_of_several(vm, callee, args, kwargs, node)
    if isinstance(what, Func):
        return call_function(vm, what, args, kwargs, node)
    if isinstance(what, Class):
        return instantiate(vm, what, args, kwargs, node)
    if isinstance(what, Lib):
        home, _, last = what.name.rpartition(".")
        if home == "pathlib.Path" and args:  # `Path.is_file(place)` is `place.is_file()`
            return methods.call_method(vm, args[0], last, args[1:], kwargs, node)
        return call_library(vm, what.name, None, args, kwargs, node)
    if isinstance(what, Partial):
        named = dict(what.named)
        method = named.pop("#", None)
        if method is not None:
            return methods.call_method(vm, what.callee, str(method.constant), args, kwargs, node)
        merged = {**named, **kwargs}
        return call_value(vm, what.callee, [*what.bound, *args], merged, node)
    if isinstance(what, Ref):
        return methods.call_object(vm, callee, args, kwargs, node)
    if (step := _step_of_autograd(vm, what, node)) is not None:
        _note_meetings(vm, step, args, kwargs, node)
        return methods.call_unknown(vm, callee, args, kwargs, node)
    if isinstance(what, Term) and what.op == "of" and _is_by_another_name(what.args[1], node):
        owner = Value(what.args[0], callee.agree, callee.why)
        return methods.call_method(vm, owner, what.args[1], args, kwargs, node)
    return methods.call_unknown(vm, callee, args, kwargs, node)


def _step_of_autograd(vm: Machine, what: What, node: ast.AST) -> Func | None:
    """The forward of a class of `torch.autograd.Function` whose `apply` this is."""
    match what:
        case Term(op="of", args=(Class(number=number), "apply")):
            if hierarchy.is_step_of_autograd(vm, number):
                found = hierarchy.class_attribute(vm, number, "forward") or NONE
                bound = hierarchy.bound_to(vm, found, None, Value(Class(number)), node)
                return bound.what if isinstance(bound.what, Func) else None
    return None


def _note_meetings(
    vm: Machine, step: Func, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> None:
    """Run a step's forward for what others see of it; what it gives is computed of all.

    That is what ranks say to each other and wait for, and what it leaves in objects.
    """
    context = Value(Term("context", (vm.site(node, "context"),)), UNKNOWN)
    outside, vm.out, depth = vm.out, Seq(), vm.store.open()
    is_through = False
    try:
        call_function(vm, step, [context, *args], kwargs, node)
        is_through = True
    except Left:
        pass
    finally:
        left = vm.store.since(depth) if is_through else {}
        vm.store.drop(depth)
        done, vm.out = vm.out, outside
    for key, value in left.items():
        vm.store.put(key, value)
    if is_through:
        vm.emit("apply_step", "apply", node, forward=Value(replace(step, bound=())))
    if any(True for _ in events(done, "collective", "wait")):
        outside.items.extend(done.items)


def _is_by_another_name(method: str, node: ast.AST) -> bool:
    """Whether a method is called as what it was kept as: `enter = model.no_sync`, `enter()`."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") != method


def _one_of_several(
    vm: Machine, callee: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    what = callee.what
    assert isinstance(what, Either)
    options = [each for each in what.options if not each.is_const(None)]
    if all(_sorts(each) for each in options):  # who holds one of these lists finds it sorted
        for each in options:
            call_value(vm, each, args, kwargs, node)
        return NONE
    chosen = what.chosen
    if chosen is None:
        options = lookups.meant(vm, options, args, kwargs)
    if not options:
        return methods.call_unknown(vm, Value(NOTHING, UNKNOWN), args, kwargs, node)
    ways = {each.what: partial(call_value, vm, each, args, kwargs, node) for each in options}
    if chosen is None or len(ways) < 2:
        paths = [Path(None, EVERYONE, EVERYONE, way) for way in ways.values()]
        is_known = callee.agree.divergent or vm.store.is_settled(callee.what)
        by = callee.agree if is_known else UNKNOWN
        return vm.choose(node, node, Value(NOTHING, by, callee.why), paths) or NONE
    yes = ways.pop(chosen.yes)
    (no,) = ways.values()
    paths = vm.ways(chosen.condition, yes, no)
    return vm.choose(node, chosen.test, chosen.condition, paths) or NONE


def _sorts(method: Value) -> bool:
    """Whether it is `sort` of a list."""
    what = method.what
    return isinstance(what, Partial) and dict(what.named).get("#", NONE).is_const("sort")


# --- functions


def call_function(
    vm: Machine,
    what: Func,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    on_yield: Callable[[Value], Value] | None = None,
) -> Value:
    """Run a function of the user's."""
    info = vm.functions[what.number]
    if vm.single and _is_alone(vm, what, args):
        return Value(NOTHING, UNKNOWN)
    on_yield = on_yield or _handed_on(vm, info)
    if "#main" in what.within:
        return _on_main(vm, what, args, kwargs, node)
    begins_later = "contextmanager" in what.flags or (info.is_generator and id(node) in vm.lazily)
    if begins_later and on_yield is None:
        return _manager(vm, what, args, kwargs, node)
    if "cached" in what.flags:
        return _kept(vm, what, args, kwargs, node)
    # A decorator's wrapper is another function each time that it is made.
    active = sum(each.function is info and each.around == what.scopes for each in vm.frames)
    likes = quiet.known(vm, info, [*what.bound, *args], {**dict(what.named), **kwargs})
    is_repeated = likes is not None and likes.like in vm.following
    if active >= 2 and is_repeated:
        return Value(NOTHING, UNKNOWN)  # which gives what the one gives that is followed
    if len(vm.frames) >= MAX_CALLS or active >= (_DEEPER if _goes_deeper(args) else 2):
        agree, why = blended([*args, *kwargs.values()])
        return Value(NOTHING, UNKNOWN if not agree.divergent else agree, why)
    if likes is not None and quiet.is_quiet(vm, likes):
        found = methods.call_unknown(vm, Value(NOTHING, UNKNOWN), args, kwargs, node)
        return quiet.reminded(vm, likes, found)
    outside = vm.out
    body = Seq()
    called = Called(node, vm.path, info.name, body, vm.frame.name, _is_handed_in(vm, node, info))
    outside.items.append(called)
    scopes, born = list(vm.scopes), len(vm.born)
    vm.scopes.extend(what.within)
    vm.out = body
    mask, following = vm.mask, vm.following
    if likes is not None:
        vm.following = (*following, likes.like)
    try:
        result = _run(
            vm, info, what, [*what.bound, *args], {**dict(what.named), **kwargs}, node, on_yield
        )
        if likes is not None:
            quiet.note(vm, likes, body.items, result, born)
        return result
    finally:
        vm.scopes[:] = scopes
        vm.out = outside
        vm.mask, vm.following = mask, following
        if not body.items and outside.items and outside.items[-1] is called:
            outside.items.pop()
        _see_through(called)


_DEEPER = 4
"""Within itself a function is followed so often at most."""


def _goes_deeper(args: list[Value]) -> bool:
    """Whether a call within itself has come to a tensor, or to what is no object of the program."""
    return any(isinstance(each.what, Tensor | Term) for each in args)


def _is_alone(vm: Machine, what: Func, args: list[Value]) -> bool:
    """Whether it is what another way starts as ranks, and this process runs as the only one."""
    return any(
        number == what.number and at < len(args) and type(args[at].constant) is int
        for number, at in vm.single
    )


def _is_handed_in(vm: Machine, node: ast.AST, info: FunctionInfo) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(function, ast.Name) or info.name.endswith(function.id):
        return False
    frame = vm.frame
    around = [each for each in frame.scopes[1:] if each != frame.module.scope]
    return any(vm.store.get((each, function.id)) is not None for each in around)


def _see_through(called: Called) -> None:
    """A function that does nothing but call another is that other, as far as the tree tells."""
    match called.body.items:
        case [Called() as inner]:
            called.name, called.body = inner.name, inner.body
        case [Called() as inner, Exit(kind="return", node=ast.Return(value=value))]:
            if value is inner.node:
                called.name, called.body = inner.name, inner.body


def _handed_on(vm: Machine, info: FunctionInfo) -> Callable[[Value], Value] | None:
    """What runs where a generator yields, of one that a decorator's wrapper makes in its place."""
    frame = vm.frame
    is_wrapper = frame.function is not None and not frame.function.is_generator
    return frame.on_yield if is_wrapper and info.is_generator else None


def _on_main(
    vm: Machine, what: Func, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A function that a decorator lets rank 0 alone run."""
    within = tuple(each for each in what.within if each != "#main")
    plain = replace(what, within=within)
    info = vm.functions[what.number]
    place = Place(info.module.path, info.node.lineno)
    why = Why("a decorator lets rank 0 alone run it", place, None, info.node)
    condition = Value(IS_MAIN, BY_RANK, why)
    paths = vm.ways(condition, lambda: call_function(vm, plain, args, kwargs, node), lambda: NONE)
    return vm.choose(node, node, condition, paths) or NONE


def _kept(
    vm: Machine, what: Func, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A function that is run once for the same arguments, and looked up from then on."""
    given = (what, *(each.what for each in args))
    found = vm.store.get((given, "#kept"))
    plain = replace(what, flags=what.flags - {"cached"})
    is_own = blended([*args, *kwargs.values()])[0].kind == "local"
    if is_own and vm.store.get((plain, "#meets")) is not None:
        return _looked_up(vm, plain, args, kwargs, node)
    if found is None:
        is_told = not kwargs and all(isinstance(each, Const) for each in given[1:])
        ran = vm.store.get((plain, "#ran"))
        all_told = is_told and (ran is None or ran.is_const(True))
        outside, vm.out = vm.out, Seq()
        try:
            found = call_function(vm, plain, args, kwargs, node)
        finally:
            body, vm.out = vm.out, outside
        if ran is None or all_told:
            outside.items.extend(body.items)
        elif body.items:  # for the same arguments, it was run before and is looked up here
            arms = [Arm(vm.mask, each, vm.mask) for each in (body, Seq())]
            unknown = Value(NOTHING, UNKNOWN)
            outside.items.append(Choice(unknown, node, node, vm.path, arms, vm.frame.name))
        vm.store.put((plain, "#ran"), Value(Const(all_told)))
        if any(True for _ in events(body, "collective")):
            vm.store.put((plain, "#meets"), TRUE)
        if not kwargs and has_identity(given[1:]):
            vm.store.put((given, "#kept"), found)
    return found


def _looked_up(
    vm: Machine, plain: Func, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A function that each rank runs for what is new to it alone, and what it gave at last."""
    info = vm.functions[plain.number]
    agree, of = blended([*args, *kwargs.values()])
    place = Place(info.module.path, info.node.lineno)
    why = Why("it is run for new arguments alone", place, of, info.node)
    is_new = Value(NOTHING, agree, why)
    run = partial(call_function, vm, plain, args, kwargs, node)
    vm.choose(node, node, is_new, vm.ways(is_new, run, lambda: NONE))
    return Value(NOTHING, agree, why)


def _manager(
    vm: Machine, what: Func, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A generator that runs when a `with` enters it, or a loop goes through it."""
    made = vm.new(node, "manager")
    bound = replace(what, bound=(*what.bound, *args), named=(*what.named, *kwargs.items()))
    vm.store.put((made, "function"), Value(bound))
    return Value(made)


def _run(
    vm: Machine,
    info: FunctionInfo,
    what: Func,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    on_yield: Callable[[Value], Value] | None,
) -> Value:
    from ddpdoctor.lint.engine.interpreter.expressions import evaluate
    from ddpdoctor.lint.engine.interpreter.statements.blocks import run_block

    vm.visited[id(info.node)] = info
    vm.files.add(info.module.path)
    scope = vm.own_scope()
    depth = vm.store.open()
    frame = Frame(
        scope,
        (scope, *what.scopes),
        info.module,
        info,
        node,
        depth,
        len(vm.conditions),
        info.name,
        args[0] if args and info.owner >= 0 else None,
        info.owner,
        on_yield=on_yield,
    )
    vm.frames.append(frame)
    outer_mask = vm.mask
    try:
        for name, value in bound_parameters(vm, info, args, kwargs, node).items():
            vm.store.put((scope, name), value)
        if isinstance(info.node, ast.Lambda):
            result: Value = evaluate(vm, info.node.body)
            states = [State(vm.store.since(depth), (), vm.mask)]
            values: list[Value | None] = [result]
        else:
            falls = run_block(vm, info.node.body)
            states = [state for _, state in frame.returns]
            values = [value for value, _ in frame.returns]
            # A generator that never ends is left where it yields.
            if falls or (frame.yields and not states and on_yield is None):
                states.append(vm.state(frame.depth, frame.conditions))
                values.append(NONE)
    finally:
        vm.frames.pop()
        vm.store.drop(depth)
    vm.mask = outer_mask
    if not states:
        raise Left
    ended = on_yield is not None or not info.is_generator
    if ended and scope not in vm.closed_over:  # nobody sees its names any more
        states = [replace(each, writes=_without(each.writes, scope)) for each in states]
    vm.store.join(states, vm.site(node, "call"))
    if info.is_generator and on_yield is None:
        return _generator(vm, frame, node)
    found = [State({}, state.conditions, state.mask) for state in states]
    from ddpdoctor.lint.engine.interpreter.store import divergent

    result = vm.store.joined(values, found, divergent(found), vm.site(node, "result"))
    return vm.either(result, values, node)


def _without(writes: Writes, scope: int) -> Writes:
    return {key: value for key, value in writes.items() if key[0] != scope}


def _generator(vm: Machine, frame: Frame, node: ast.AST) -> Value:
    made = vm.new(node, "generator")
    one = containers.one_of(vm, frame.yields)
    counts = vm.store.get((frame.scope, "#count"))
    vm.store.put((made, "yields"), one)
    vm.store.put((made, "count"), counts or Value(NOTHING))
    if _yields_in_a_row(frame):
        vm.store.put((made, "[]"), Value(Tuple(tuple(frame.yields))))
    return Value(made)


def _yields_in_a_row(frame: Frame) -> bool:
    """Whether a generator gives one thing after the other, each once, whatever is the case."""
    body = frame.function.node.body if frame.function is not None else None
    if not isinstance(body, list):
        return False
    plain = [each for each in body if isinstance(each, ast.Expr)]
    in_a_row = [each for each in plain if isinstance(each.value, ast.Yield)]
    inside = (node for statement in body for node in ast.walk(statement))
    every = [node for node in inside if isinstance(node, ast.Yield | ast.YieldFrom)]
    return len(in_a_row) == len(every) == len(frame.yields)


def _hidden(
    vm: Machine, info: FunctionInfo, name: str, batch: Value | None, default: Value | None
) -> Value:
    """A parameter that is not seen; a number or a text, where a file of settings may give it."""
    what = term("parameter", id(info.node), name)
    is_set = batch is not None and vm.store.is_number(batch.what)
    if batch is not None and is_set and (default is None or vm.store.is_number(default.what)):
        what = term("parameter", id(info.node), name, batch.what)
        vm.store.put((what, OF_NUMBERS), TRUE)
    return Value(what, UNKNOWN)


def bound_parameters(
    vm: Machine, info: FunctionInfo, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> dict[str, Value]:
    """Parameter -> value, as Python binds them; unknown where that cannot be seen."""
    spec = info.node.args
    names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    found: dict[str, Value] = {}
    stars = [each for each in args if is_starred(each)]
    hidden = bool(stars) or "**" in kwargs
    rest: list[Value] = []
    for position, value in enumerate(args):
        if is_starred(value):
            break
        if position < len(names):
            found[names[position]] = value
        else:
            rest.append(value)
    named = {each.arg for each in (*spec.args, *spec.kwonlyargs)}
    others: dict[str, Value] = {}
    for name, value in kwargs.items():
        if name in named:
            found[name] = value
        elif name != "**":
            others[name] = value
    if spec.vararg:
        found[spec.vararg.arg] = stars[0] if stars else Value(Tuple(tuple(rest)))
    if spec.kwarg:
        made = Value(vm.new(node, "dict", kind="kwargs"))
        keyed.clear(vm, made)
        for name, value in others.items():
            keyed.set_item(vm, made, Value(Const(name)), value, node)
        found[spec.kwarg.arg] = kwargs.get("**", made)
    batch = kwargs.get("**")
    spread = batch is not None and isinstance(batch.what, Tensor) and not stars
    for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        if parameter.arg not in found:
            default = info.defaults.get(parameter.arg)
            if batch is not None and spread and default is None and parameter.arg in named:
                key = Value(Const(parameter.arg))
                one = indexing.item(vm, batch, key, node)
                found[parameter.arg] = memory.current(vm, one)
            elif default is None or hidden:
                found[parameter.arg] = _hidden(
                    vm, info, parameter.arg, None if stars else batch, default
                )
            else:
                found[parameter.arg] = default
    return found


# --- classes


def instantiate(
    vm: Machine, what: Class, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """Make an instance of a class of the user's."""
    info = vm.classes[what.number]
    base = hierarchy.library_base(vm, what.number)
    is_dict = base == "dict"
    made = vm.new(node, base if is_dict else "", what.number, f"class{what.number}")
    self_ = Value(made)
    if is_dict:
        keyed.clear(vm, self_)
        keyed.begin(vm, self_)
    new = hierarchy.class_attribute(vm, what.number, "__new__")
    if new is not None and isinstance(new.what, Func):
        found = call_function(vm, new.what, [Value(what), *args], kwargs, node)
        if isinstance(found.what, Ref) and vm.objects[found.what.number].cls == what.number:
            self_ = found
    vm.emit("make", info.name, node, object=self_)
    init = hierarchy.class_attribute(vm, what.number, "__init__")
    if init is not None and isinstance(init.what, Func):
        call_function(vm, init.what, [self_, *args], kwargs, node)
    elif base == members.DDP:
        _wrap(vm, self_, args, kwargs, node)
    elif is_dict:
        _begin_dictionary(vm, self_, what.number, args, kwargs, node)
    elif base == members.LOADER:
        _derive(vm, self_, what.number, args, kwargs, node)
    elif containers.field_names(vm, what.number):
        _fill(vm, self_, what.number, args, kwargs, node)
    elif args or kwargs:
        _given(vm, self_, args, kwargs)
    return self_


def _wrap(
    vm: Machine, made: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> None:
    """What the wrapper's own initialiser does, of a class that derives from it."""
    from ddpdoctor.lint.engine.interpreter.library.ranks import wrap_in

    module = args[0] if args else kwargs.get("module", Value(NOTHING, UNKNOWN))
    if isinstance(made.what, Ref):
        wrap_in(vm, made.what, module, kwargs, node, "DistributedDataParallel")


def _begin_dictionary(
    vm: Machine,
    made: Value,
    number: int,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """What the initialiser of a dictionary does, or that of a defaultdict, of such a class."""
    if args and hierarchy.library_class(vm, number) == "collections.defaultdict":
        keyed.make_defaults(vm, made, args[0], node)
        args = args[1:]
    return methods.call_method(vm, made, "update", args, kwargs, node)


def _derive(
    vm: Machine,
    made: Value,
    number: int,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> None:
    """What the initialiser of a library's loader, sampler or container does for such a class."""
    from ddpdoctor.lint.engine.interpreter.library.events import derive

    base = hierarchy.library_base(vm, number)
    effect = vm.library.exact(hierarchy.library_class(vm, number))
    if effect is not None and (base in members.OF_DATA or effect.option("holds")):
        derive(vm, made, Call(base, effect, None, args, kwargs, node))


def _factory(vm: Machine, number: int, name: str) -> Value | None:
    """What makes a field of each instance that is not given it."""
    default = hierarchy.class_attribute(vm, number, name)
    what = default.what if default is not None else None
    is_one = isinstance(what, Partial) and what.callee == MADE_ANEW
    return what.bound[0] if is_one else None  # type: ignore[union-attr]


def _fill(
    vm: Machine,
    made: Value,
    number: int,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> None:
    """The fields of a dataclass or named tuple."""
    for position, name in enumerate(containers.field_names(vm, number)):
        if position < len(args):
            vm.store.put((made.what, name), args[position])
        elif name in kwargs:
            vm.store.put((made.what, name), kwargs[name])
        elif "**" in kwargs or any(is_starred(each) for each in args):
            vm.store.put((made.what, name), Value(term("field", made.what, name), UNKNOWN))
        elif (factory := _factory(vm, number, name)) is not None:
            vm.store.put((made.what, name), call_value(vm, factory, [], {}, node))
    post = hierarchy.class_attribute(vm, number, "__post_init__")
    if post is not None and isinstance(post.what, Func):
        call_function(vm, post.what, [made], {}, vm.objects[made.what.number].node)  # type: ignore[union-attr,index]


def _given(vm: Machine, made: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
    """What an instance of a class without an initialiser of its own was given."""
    for name, value in kwargs.items():
        vm.store.put((made.what, name), value)
    if args:
        vm.store.put((made.what, "#args"), Value(Tuple(tuple(args))))


# --- super


def _is_super(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def _super(vm: Machine, node: ast.Call) -> Value:
    return Value(Term("super"), UNKNOWN)


def _call_of_super(
    vm: Machine, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    frame = next((each for each in reversed(vm.frames) if each.owner >= 0), None)
    if frame is None or frame.bound is None:
        return Value(NOTHING, UNKNOWN)
    self_ = frame.bound
    made = vm.object(self_)
    number = made.cls if made is not None and made.cls >= 0 else frame.owner
    found = hierarchy.class_attribute(vm, number, name, after=frame.owner)
    if name == "__init__" and hierarchy.is_first_of_data(vm, frame.owner):
        found = None  # it comes before the others, and does not ask them in turn
    if found is not None and isinstance(found.what, Func):
        static = "staticmethod" in found.what.flags
        return call_function(vm, found.what, args if static else [self_, *args], kwargs, node)
    base = hierarchy.library_base(vm, frame.owner)
    if name == "__setattr__" and len(args) == 2:
        binding.set_named(vm, self_, args[0], args[1], node)
        return NONE
    if name == "__init__":
        if base == members.DDP:
            _wrap(vm, self_, args, kwargs, node)
        if vm.type_of(self_) == "dict":
            return _begin_dictionary(vm, self_, frame.owner, args, kwargs, node)
        _derive(vm, self_, frame.owner, args, kwargs, node)
        if base == "argparse.Namespace" or not base:
            for keyword, value in kwargs.items():
                if keyword == "**":
                    vm.store.put((self_.what, "#rest"), value)
                else:
                    vm.store.put((self_.what, keyword), value)
        return NONE
    if vm.type_of(self_) == "dict":
        return methods.call_method(vm, self_, name, args, kwargs, node)
    if base:
        return methods.call_method_of(vm, self_, base, name, args, kwargs, node)
    agree, why = blended([*args, *kwargs.values()])
    return Value(NOTHING, agree if agree.divergent else UNKNOWN, why)
