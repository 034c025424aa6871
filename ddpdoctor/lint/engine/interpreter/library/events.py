"""Calls that make an object, draw by chance, or do what a rule asks for in its order."""

from __future__ import annotations

import ast
import contextlib
import functools
from dataclasses import replace

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.library.call import (
    Call,
    Handler,
    identity,
    is_starred,
)
from ddpdoctor.lint.engine.interpreter.library.facts import REASONS, by_position, computed, inside
from ddpdoctor.lint.engine.interpreter.library.files import OPENED, path_of
from ddpdoctor.lint.engine.interpreter.library.streams import note_count
from ddpdoctor.lint.engine.interpreter.machine import Left, Machine
from ddpdoctor.lint.engine.interpreter.objects import containers, hierarchy, keyed, members, memory
from ddpdoctor.lint.engine.interpreter.store import MODELS, SHUFFLED
from ddpdoctor.lint.engine.interpreter.tree import Event, Seq
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK,
    EVERYONE,
    FORKED,
    GENERATORS,
    NONE,
    NOTHING,
    SAME,
    TRUE,
    UNKNOWN,
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
    how_many,
    local,
    mix,
    term,
    text,
    within,
)


def _new(vm: Machine, call: Call) -> Value:
    type = call.effect.option("type", call.name)
    made = vm.new(call.node, type)
    values = call.roles()
    if "seed" in values:  # a list of numbers is one as well
        values["seed"] = _told(vm, inside(vm, values["seed"]), call.node)
    if type == "list":
        content = containers.content(vm, call.args[0]) if call.args else Value(Tuple(()))
        vm.store.put((made, "[]"), content or Value(Many(Value(NOTHING, UNKNOWN)), UNKNOWN))
        return Value(made)
    if type == "dict":
        result = Value(made)
        keyed.clear(vm, result)
        if call.name.endswith("Counter"):
            vm.store.put((made, keyed.COUNTS), Value(Const(True)))
        if call.name.endswith("defaultdict") and call.args:
            keyed.make_defaults(vm, result, call.args[0], call.node)
        elif call.args:
            keyed.update(vm, result, call.args[0], call.node)
        for word, value in call.kwargs.items():
            keyed.set_item(vm, result, Value(Const(word)), value, call.node)
        return result
    if type == "argparse.Namespace":
        for word, value in call.kwargs.items():
            vm.store.put((made, word), value)
        return Value(made)
    vm.objects[made.number].effect = call.effect
    if holds := call.effect.option("holds"):
        _hold(vm, made, holds, call.args)
    for role, value in values.items():
        vm.store.put((made, role), value)
    if "DistributedSampler" in type:
        vm.store.distributed.add(made.number)
    for word, value in call.kwargs.items():
        vm.store.put((made, f"#{word}"), value)
    work = Value(made) if type == "torch.distributed.Work" else NONE
    if "**" in call.kwargs or any(each.what == Term("*") for each in call.args):
        values["rest"] = call.kwargs.get("**", Value(Term("*"), UNKNOWN))
    if call.effect.option("has"):
        values |= by_position(call.args, call.kwargs)
    event = vm.emit("new", call.name, call.node, object=Value(made), work=work, **values)
    result = Value(made)
    if type.startswith("torch.optim.lr_scheduler.") or type == "torch.utils.data.Dataset":
        vm.store.put((made, "#given"), Value(Tuple((*call.args, *call.kwargs.values()))))
    if type == members.LOADER:
        _read(vm, made, event)
    if "Sampler" in type or "DataLoader" in type:
        return result
    agree, why = blended([inside(vm, each) for each in (*call.args, *call.kwargs.values())])
    if agree.divergent and type == "torch.utils.data.Dataset":
        return Value(made, agree, why)
    return result


def _read(vm: Machine, loader: Ref, event: Event) -> None:
    """What the workers of a loader will do."""
    from ddpdoctor.lint.engine.interpreter.iteration import OWN
    from ddpdoctor.lint.engine.interpreter.reading import is_own, read_by_workers

    workers = vm.workers[event] = read_by_workers(vm, event.values, event.node)
    note_count(vm, loader, workers, event.node)
    if is_own(vm, event.values.get("dataset", NONE), workers):
        vm.store.put((loader, OWN), Value(Const(True)))


_ASKED = ("rank", "num_replicas")
"""What a sampler asks the group for where it is not given."""


def derive(vm: Machine, own: Value, call: Call) -> None:
    """An object of a class of the user's is made as one of the library's, which its class derives.

    One that goes through its samples in its own way is not taken for that.
    """
    made = vm.object(own)
    if made is None or not isinstance(own.what, Ref):
        return
    if holds := call.effect.option("holds"):
        _hold(vm, own.what, holds, call.args)
        return
    values = call.roles()
    for role, value in values.items():
        if not (role in _ASKED and value.is_const(None)):
            vm.store.put((own.what, role), value)
    own_way = hierarchy.class_attribute(vm, made.cls, "__iter__")
    if own_way is not None and not _goes_on_with_the_base(vm, own_way):
        return
    made.type = call.name
    if "DistributedSampler" in call.name:
        vm.store.distributed.add(made.number)
    event = vm.emit("new", call.name, call.node, object=own, work=NONE, **values)
    if call.name == members.LOADER:
        _read(vm, own.what, event)


def _goes_on_with_the_base(vm: Machine, method: Value) -> bool:
    """Whether an `__iter__` goes through what the base's gives: it hands it on in another way."""
    method = vm.store.get((method.what, "__wrapped__")) or method
    if not isinstance(method.what, Func):
        return False
    asked = (
        each.func.value
        for each in ast.walk(vm.functions[method.what.number].node)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "__iter__"
    )
    supers = (each.func for each in asked if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Name) and each.id == "super" for each in supers)


_LAYERS = 4
"""To so many layers of a module a function is applied: what it does to one it does to others."""


def _apply(vm: Machine, module: Value, function: Value, node: ast.AST) -> None:
    """`module.apply(function)`, for the layers that have weights."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    found = [vm.objects[number] for number in sorted(members.parts(vm.store.of, module.what))]
    layers = [each for each in found if each.effect is not None and each.effect.option("has")]
    for each in layers[:_LAYERS]:
        call_value(vm, function, [Value(Ref(each.number))], {}, node)


def _hold(vm: Machine, made: Ref, holds: str, args: list[Value]) -> None:
    """The parts of a module that consists of others."""
    found = containers.content(vm, args[0]) if args and holds == "list" else None
    if holds == "dict" and args:
        vm.store.put((made, memory.PARTS), args[0])
    elif any(map(is_starred, args)):
        parts = [each.what.args[0] if is_starred(each) else each.what for each in args]  # type: ignore[union-attr]
        vm.store.put((made, "[]"), Value(Tuple(tuple(map(Value, parts)))))
    elif holds == "args" and vm.type_of(args[0] if args else NONE) != "dict":
        vm.store.put((made, "[]"), Value(Tuple(tuple(args))))
    elif holds == "list":
        vm.store.put((made, "[]"), found or Value(Tuple(()) if not args else Many(Value(NOTHING))))


def _done_later(vm: Machine, call: Call) -> Seq:
    """What a call will do that is made at the end, in the group that is joined by then."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    outside, vm.out = vm.out, Seq()
    joined, vm.joined = vm.joined, True
    depth = vm.store.open()
    try:
        with contextlib.suppress(Left):
            call_value(vm, call.args[0], call.args[1:], call.kwargs, call.node)
        return vm.out
    finally:
        vm.out, vm.joined = outside, joined
        vm.store.drop(depth)


def _handle_perhaps(vm: Machine, handler: Value, node: ast.AST) -> None:
    """What a signal's handler remembers, where the signal has reached this rank."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    if not isinstance(handler.what, Func):
        return
    reached = Value(NOTHING, local("signal"), vm.why("a signal reaches this rank alone", node))
    outside, vm.out = vm.out, Seq()
    try:
        handled = functools.partial(call_value, vm, handler, [NONE, NONE], {}, node)
        vm.choose(node, node, reached, vm.ways(reached, handled, lambda: NONE))
    finally:
        vm.out = outside


_CHANCE = {"chance": "torch", "chance_python": "python", "chance_numpy": "numpy"}
_SEEDS = {"seed": "torch", "seed_python": "python", "seed_numpy": "numpy", "seed_cuda": "cuda"}
_RESTORES = {"set_rng_state": "torch", "set_rng_python": "python", "set_rng_numpy": "numpy"}


def _hook(vm: Machine, call: Call) -> Value:
    """A function that a method of the same object calls."""
    if call.owner is not None and call.args:
        hook = Value(Tuple((call.first, Value(Const(call.effect.option("hands"))))))
        vm.store.add((call.owner.what, f"#hooks of {call.effect.option('of')}"), hook)
    return Value(identity(vm, call.name, call.args, call.node), SAME)


def _call_hooks(vm: Machine, call: Call, path: Value) -> None:
    """Those that were kept for this method."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    if call.owner is None:
        return
    hooks = vm.store.get((call.owner.what, f"#hooks of {call.name}"))
    models = vm.store.get((call.owner.what, MODELS))
    for each in hooks.what.items if hooks is not None and isinstance(hooks.what, Tuple) else ():
        if not isinstance(each.what, Tuple):
            continue
        function, hands = each.what.items
        content = models or Value(Tuple(()))
        known = {"models": containers.new_list_of(vm, call.node, content), "path": path}
        words = str(hands.constant).split(",")
        call_value(vm, function, [known.get(x, Value(NOTHING)) for x in words], {}, call.node)


def loss_of(vm: Machine, closure: Value, node: ast.AST) -> Value | None:
    """What a step's closure gives, which is run before anything is stepped."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    if not isinstance(closure.what, Func | Partial):
        return None
    return call_value(vm, closure, [], {}, node)


def _event(vm: Machine, call: Call) -> Value:
    kind = call.effect.option("kind")
    values = call.roles()
    loss = loss_of(vm, values["closure"], call.node) if "closure" in values else None
    if loss is not None:
        values["gave"] = loss
    _call_hooks(vm, call, values.get("path", NONE))
    given = values.get("path", NONE)
    if (path := path_of(vm, given)) is not given:
        values |= {"path": path, "file": given}
    if kind == "save" and vm.type_of(values.get("path", NONE)) == "io.BytesIO":
        kind = "dump"  # no file, but this process's own memory
    if call.owner is not None:
        values["object"] = call.owner
    for number, each in enumerate(call.args):
        values.setdefault(f"arg{number}", each)
    for word, each in call.kwargs.items():
        values.setdefault(f"kw_{word}", each)
    if kind in _SEEDS or kind == "seed_all":
        _seed(vm, kind, values, call.node)
    if kind in _RESTORES:
        _restore(vm, _RESTORES[kind], values.get("state", NONE))
    if kind == "draw_own" and call.owner is not None:
        values["seed"] = vm.store.get((call.owner.what, "seed")) or NONE
    if kind == "start":
        values["rank"] = _rank_given(vm, values.get("env", NONE))
    if "content" in values:
        values["content"] = inside(vm, values["content"])  # as it is now: it may be filled anew
    if kind == "save" and vm.type_of(saved := values.get("object", NONE)) == "dict":
        values["keys"] = keyed.keys(vm, saved)  # as they are now: a way may be taken back
    if kind == "load_state" and call.owner is not None and isinstance(call.owner.what, Ref):
        state = within(values.get("state", NONE).what)
        if any(isinstance(each, Term) and each.op == "loaded" for each in state):
            vm.restored.add(call.owner.what.number)
    event = vm.emit(kind, call.last, call.node, **values)
    if then := call.effect.option("then"):
        _go_on(vm, call, then, values)
    if kind == "apply" and call.owner is not None:
        _apply(vm, call.owner, values.get("function", NONE), call.node)
    if call.owner is not None and "buffer" in values:
        _keep_buffer(vm, call.owner, values["name"], values["buffer"])
    result = call.effect.option("result")
    if kind == "handler" and len(call.args) > 1:
        _handle_perhaps(vm, call.args[1], call.node)
    if kind == "at_exit" and call.args:
        vm.exits[event] = _done_later(vm, call)
        return call.args[0]
    if result in _CHANCE:
        event.values["result"] = _drawn(vm, call, values, _CHANCE[result])
        return event.values["result"]
    if kind == "draw_own":
        _seed_by_chance(vm, call)
        return _drawn(vm, call, {**values, "generator": call.owner or NONE}, "")
    if result == "disk":
        said = vm.why(f"`{text(call.node)}`: {REASONS['disk']}", call.node)
        path = values.get("path", NONE)
        is_own = path.agree.kind == "local" and path.agree.cause != "order"
        agree = path.agree if is_own else local("disk")
        seen = Value(term("disk", call.name, path.what, vm.site(call.node)), agree, said)
        event.values["result"] = seen
        return seen
    if result == "listing":
        path = values.get("path", NONE)
        order = vm.why(f"the order of `{text(call.node)}` differs between machines", call.node)
        element = Value(term("listed", path.what), local("order"), order)
        return containers.new_list_of(vm, call.node, Value(Many(element), local("order"), order))
    if result == "own":  # of a worker, which the generator of its rank has seeded
        worker = Value(identity(vm, call.name, call.args, call.node), SAME)
        vm.store.put((worker.what, "seed"), Value(term("of", worker.what, "seed"), UNKNOWN))
        return worker
    if result == "same":
        return Value(identity(vm, call.name, call.args, call.node), SAME)
    if result == "copy":
        deep: dict[int, Value] | None = {} if call.name == "copy.deepcopy" else None
        copy = vm.each(call.first, lambda each: _copied(vm, each, call.node, deep))
        event.values["result"] = copy
        return copy
    if result == "new":
        path = values.get("path", NONE)
        loaded = _of_the_file(path, term("loaded", path.what, vm.site(call.node)))
        event.values["result"] = loaded
        return loaded
    if result == "file":
        path = values.get("path", NONE)
        made = vm.new(call.node, call.effect.option("type", "file"))
        vm.store.put((made, OPENED), path)
        if "mode" in values:
            vm.store.put((made, "mode"), values["mode"])
        return _of_the_file(path, made)
    if result == "called" and call.args:
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        return call_value(vm, call.args[0], call.args[1:], {}, call.node)
    if result == "itself" and call.owner is not None:
        if kind == "seed_generator":
            seed = values.get("seed", NONE)
            vm.store.put((call.owner.what, "seed"), _told(vm, seed, call.node))
        return call.owner
    if result == "unwrap":
        return vm.each(call.first, lambda each: _taken_off(vm, each))
    if result == "pure":
        asked = [word for _, word, _ in call.effect.parameters() if word in call.kwargs]
        every = [*call.with_owner, *(call.kwargs[word] for word in asked)]
        unasked = [each for word, each in call.kwargs.items() if word not in asked]
        agree, why = blended([inside(vm, each) for each in (*every, *unasked)])
        first = [_kind_of(values.get("type", NONE))] if kind == "device" else []
        return computed(vm, call.name, [*first, *every], agree, why, call.node)
    return loss or Value(identity(vm, call.name, call.args, call.node), SAME)


def _go_on(vm: Machine, call: Call, kind: str, values: dict[str, Value]) -> None:
    """What else is done by one call, where it is due."""

    def goes_on() -> Value:
        vm.emit(kind, call.last, call.node, **values)
        return NONE

    due = values.get("due", TRUE)
    vm.choose(call.node, call.node, due, vm.ways(due, goes_on, lambda: NONE))


def _of_the_file(path: Value, what: What) -> Value:
    """What is in a file: the rank's own where it is one of those that were dealt to it."""
    return Value(what, path.agree, path.why) if path.agree.cause == "data" else Value(what, SAME)


def _kind_of(device: Value) -> Value:
    """The kind of a device, which ranks that take one each by its number have in common."""
    if isinstance(device.what, Either) and not device.what.masks:
        return Value(NOTHING)  # it is decided by something else than the rank
    told = folding.entries(device) or ()
    kinds = {each.partition(":")[0] if isinstance(each, str) else "" for each in told}
    if len(kinds) != 1:
        return device
    kind = kinds.pop()
    return Value(Const(kind) if kind else NOTHING)


def _taken_off(vm: Machine, model: Value) -> Value:
    """What a model is without its wrapper, if it has one."""
    is_wrapper = vm.type_of(model) == members.DDP
    return (vm.store.get((model.what, "module")) if is_wrapper else None) or model


def _keep_buffer(vm: Machine, module: Value, name: Value, buffer: Value) -> None:
    if isinstance(name.constant, str):
        vm.store.put((module.what, name.constant), buffer)
        if isinstance(buffer.what, Tensor):
            vm.buffers[buffer.what] = module.what


def _rank_given(vm: Machine, environment: Value) -> Value:
    """The rank that a new process is given in its environment."""
    for name in ("RANK", "LOCAL_RANK"):
        found = vm.store.get((environment.what, f"[{name!r}]"))
        if found is not None and found != keyed.ABSENT:
            return found
    return NONE


def _told(vm: Machine, seed: Value, node: ast.AST) -> Value:
    """A seed that ranks have each their own of, with the place where a generator gets it."""
    if not seed.agree.divergent:
        return seed
    return Value(seed.what, seed.agree, vm.why(SEEDED, node, seed.why))


SEEDED = "each rank seeds its generator otherwise"


def _seed(vm: Machine, kind: str, values: dict[str, Value], node: ast.AST) -> None:
    seed = values.get("seed", NONE)
    by_rank = values.get("by_rank") or values.get("offset")
    if by_rank is not None and not by_rank.is_const(False, 0):
        values["seed"] = seed = Value(NOTHING, BY_RANK, seed.why)
    for each in ("torch", "python", "numpy") if kind == "seed_all" else (_SEEDS[kind],):
        vm.store.put(_generator(vm, each), _told(vm, seed, node))


def _generator(vm: Machine, of: str) -> tuple[Lib, str]:
    """The generator of the process that a seed or a draw has to do with here."""
    return GENERATORS, FORKED if of == "torch" and "fork_rng" in vm.scopes else of


def _seed_by_chance(vm: Machine, call: Call) -> None:
    """What Python or NumPy is given no seed for begins otherwise in each process."""
    made = vm.object(call.owner) if call.owner is not None else None
    key = (call.owner.what if call.owner is not None else None, "seed")
    if made is None or made.effect is None or not (vm.store.get(key) or NONE).is_const(None):
        return
    if isinstance(made.node, ast.Call) and any(isinstance(x, ast.Starred) for x in made.node.args):
        return
    place = Place(made.path, getattr(made.node, "lineno", 1))
    why = Why(f"`{text(made.node)}`: each process seeds it otherwise", place, None, made.node)
    vm.store.put(key, Value(NOTHING, local("chance"), why))


def _drawn(vm: Machine, call: Call, values: dict[str, Value], of: str) -> Value:
    """A random draw: alike where the generator was seeded alike."""
    vm.draws[call.node] = call.name
    generator = values.get("generator")
    if values.get("shuffle", NONE).is_const(False):
        seed = Value(NOTHING)  # nothing is drawn
    elif generator is not None and not generator.is_const(None):
        made = vm.store.get((generator.what, "seed")) or Value(NOTHING, UNKNOWN)
        made = Value(NOTHING, UNKNOWN) if made.is_const(None) else made
        seed = made if isinstance(generator.what, Ref) else generator
    else:
        seed = vm.store.get(_generator(vm, of)) or Value(
            NOTHING,
            local("chance", vm.frame.module.is_entry),
            vm.why(f"`{text(call.node)}`: {REASONS['chance']}", call.node),
        )
        is_asked = call.effect.option("kind") == "get_rng_state"
        if not is_asked and "device" not in call.kwargs:  # that has a generator of its own
            _note_advance(vm, of, seed, call.node)
    if seed.agree.kind == "rank":
        seed = Value(seed.what, local("chance", seed.agree.sure), seed.why)
    if call.name.endswith("shuffle") and call.args:
        _shuffle(vm, call.args[0], seed, call.node)
        return NONE
    agree, why = blended([seed, *call.args])
    if agree.kind == "rank":
        agree = local("chance", agree.sure)
    what: What = term("drawn", vm.site(call.node))
    if call.name.startswith("torch."):
        what = Tensor(vm.site(call.node))
        size, said = blended([inside(vm, each) for each in call.args])
        whole = call.name.endswith(("_like", "randperm"))
        if size.divergent and not whole:  # as many as the rank has
            agree, why = local("data", size.sure), said
    vm.drawn[what] = call.name
    return memory.fresh(vm, Value(what, agree, why))


APART = "some ranks alone draw here from the generator of all"
_BEFORE = "#before"


def _note_advance(vm: Machine, of: str, seed: Value, node: ast.AST) -> None:
    """Where some ranks alone draw from a generator that all have seeded alike, it is so no more."""
    if _by_some(vm) and not seed.agree.divergent:
        home, name = _generator(vm, of)
        vm.store.put((home, name + _BEFORE), seed)
        apart = local("chance", seed.agree.sure)
        vm.store.put((home, name), Value(NOTHING, apart, vm.why(APART, node)))


def _restore(vm: Machine, of: str, state: Value) -> None:
    """A generator is set back: by some ranks alone, to what it was before they drew from it."""
    home, name = _generator(vm, of)
    before = vm.store.get((home, name + _BEFORE)) if _by_some(vm) else None
    vm.store.put((home, name), before or state)


def _by_some(vm: Machine) -> bool:
    """Whether some ranks alone come here, or go through more of something than others."""
    loops = (loop for frame in vm.frames for loop in frame.loops)
    return vm.mask != EVERYONE or any(loop.count.agree.kind == "rank" for loop in loops)


def _shuffle(vm: Machine, value: Value, seed: Value, node: ast.AST) -> None:
    found = containers.content(vm, value)
    if found is None or not isinstance(value.what, Ref):
        memory.touch(vm, value, mix(value.agree, seed.agree), seed.why)
        return
    items = containers.held(found)
    element = containers.one_of(vm, items) if items else NONE
    agree, why = blended([found, seed])
    shuffled = Value(Many(element, how_many(found.what)), agree, why)
    vm.store.put((value.what, "[]"), shuffled)
    if not found.agree.divergent:
        vm.store.put((value.what, SHUFFLED), shuffled)


def _copied(
    vm: Machine, value: Value, node: ast.AST, deep: dict[int, Value] | None = None
) -> Value:
    """A copy; where it is `deep`, of the parts of a model too, each copied once."""
    if isinstance(value.what, Term):
        return Value(term("copied", value.what, vm.site(node)), value.agree, value.why)
    if not isinstance(value.what, Ref):
        return value
    number = value.what.number
    old = vm.objects[number]
    made = vm.new(node, old.type, old.cls, f"copy{number}")
    copy = Value(made)
    if deep is not None:
        deep[number] = copy
    # What the last copy was given since is not in this one: options lie with the parser.
    given = keyed.options(vm, value) if vm.type_of(value) == keyed.NAMESPACE else {}
    for name, each in {**given, **vm.store.of(value.what)}.items():
        vm.store.put((made, name), each if deep is None else _part(vm, each, node, deep))
    return copy


def _part(vm: Machine, value: Value, node: ast.AST, deep: dict[int, Value]) -> Value:
    """What a copied thing holds: a layer is copied with it, or a list of layers."""
    what = value.what
    if isinstance(what, Tuple):
        items = tuple(_part(vm, each, node, deep) for each in what.items)
        return Value(Tuple(items), value.agree, value.why)
    if isinstance(what, Many):
        element = _part(vm, what.element, node, deep)
        return Value(Many(element, what.number), value.agree, value.why)
    if isinstance(what, Either):
        made = {each.what: _part(vm, each, node, deep) for each in what.options}
        chosen = what.chosen and replace(what.chosen, yes=made[what.chosen.yes].what)
        options = tuple(made[each.what] for each in what.options)
        return Value(Either(options, what.masks, chosen), value.agree, value.why)
    if not isinstance(what, Ref) or not _is_layer(vm, what):
        return value
    return deep.get(what.number) or _copied(vm, value, node, deep)


def _is_layer(vm: Machine, what: Ref) -> bool:
    made = vm.objects[what.number]
    base = hierarchy.library_base(vm, made.cls) if made.cls >= 0 else made.type
    is_layer = base.startswith("torch.nn.") and "parallel" not in base
    return is_layer or base in ("list", "dict")


HANDLERS: dict[str, Handler] = {
    "new": _new,
    "event": _event,
    "hook": _hook,
}
