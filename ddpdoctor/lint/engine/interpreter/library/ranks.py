"""Calls that concern all ranks: joining, groups, collectives, wrapping, starting."""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Callable
from dataclasses import replace

from ddpdoctor.lint.engine.interpreter import folding, lookups
from ddpdoctor.lint.engine.interpreter.library.call import Call, Handler
from ddpdoctor.lint.engine.interpreter.library.facts import inside, is_world, wrappers
from ddpdoctor.lint.engine.interpreter.machine import Left, Machine
from ddpdoctor.lint.engine.interpreter.objects import (
    binding,
    containers,
    hierarchy,
    indexing,
    keyed,
    members,
    memory,
)
from ddpdoctor.lint.engine.interpreter.store import MODELS, PERHAPS, SENT, TOLD
from ddpdoctor.lint.engine.interpreter.tree import Seq, events
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK,
    BY_RANK_LIKELY,
    FALSE,
    FIRST_HOST,
    LOCAL_RANK,
    NONE,
    NOTHING,
    RANK,
    RANKS,
    SAME,
    TRUE,
    UNKNOWN,
    Agreement,
    Const,
    Either,
    Func,
    Lib,
    Many,
    Place,
    Ref,
    Table,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    Why,
    has_identity,
    local,
    term,
    text,
)


def _collective(vm: Machine, call: Call) -> Value:
    values = call.roles()
    if "group" in values and _is_of_all(vm, values["group"]):
        values["group"] = NONE
    asynchronous = call.kwargs.get("async_op")
    if asynchronous is not None:
        values["async_op"] = asynchronous
    operation = call.effect.option("op") or call.last
    work = NONE
    if asynchronous is not None and not asynchronous.is_const(False):
        work = Value(vm.new(call.node, "torch.distributed.Work"))
    event = vm.emit("collective", operation, call.node, work=work, **values)
    group = values.get("group")
    subset = group is not None and not is_world(group)
    shared = values.get("shares")
    if shared is not None:
        new = UNKNOWN if subset and shared.agree.kind != "same" else SAME
        content = containers.content(vm, shared)
        sent = containers.held(content) if content is not None else ()
        if content is not None:
            event.values["sent"] = content
        memory.touch(vm, shared, new)
        event.values["filled"] = _filled(vm, shared, new, call.node)
        if new == SAME:
            for each in (shared, event.values["filled"], *sent):
                if not isinstance(each.what, Const):
                    vm.store.put((each.what, TOLD), Value(Const(operation), SAME))
            if call.effect.option("root"):
                root = values.get("root", Value(Const(0)))
                given = sent if content is not None else _made_of(vm, shared)
                _note_what_one_sends(vm, given, event.values["filled"], root)
    given_to_root = values.get("collects")
    if given_to_root is not None:
        agree = given_to_root.agree if given_to_root.agree.divergent else local("data", False)
        why = vm.why("only the root gets the sum", call.node)
        memory.touch(vm, given_to_root, agree, why)
        keyed.overwrite(vm, given_to_root.what, agree, why, call.node)
    filled = values.get("fills")
    if filled is not None:
        dealt = values.get("dealt", NONE if call.effect.option("dealt") else None)
        if _is_dealt_by_another(vm, dealt) or _is_one_for_all(vm, dealt):
            memory.touch(vm, filled, UNKNOWN)  # another rank decides it, for this one and for all
        else:
            why = vm.why("each rank gets its own part", call.node)
            memory.touch(vm, filled, local("shard", False), why)
    if call.effect.option("result") == "same":
        of = frozenset().union(*(wrappers(vm, each) for each in call.args))
        found = memory.fresh(vm, Value(Tensor(vm.site(call.node), of), SAME))
        if not subset:
            vm.store.put((found.what, TOLD), Value(Const(operation), SAME))
        if "gives" in values:  # copied, without its graph
            event.values["filled"] = found
        if "adds" in values:
            event.values["sum"] = found
        return found
    return work


def _note_what_one_sends(vm: Machine, sent: tuple[Value, ...], got: Value, root: Value) -> None:
    """Of the elements that the root has put into a list, the others with nothing in their place."""
    if not isinstance(number := root.constant, int) or not 0 <= number < RANKS:
        return
    for each in sent:
        own = [one for one in vm.store.options(each) if not isinstance(one.what, Const)]
        mine = (got, Value(Const(1 << number)))
        for one in (each, *(own if len(own) == 1 else ())):
            vm.store.put((one.what, SENT), Value(Tuple(mine)))


def _made_of(vm: Machine, tensor: Value, depth: int = 3) -> tuple[Value, ...]:
    """What a tensor was made of, however it was cast on its way: one number, else nothing."""
    made = vm.made.get(tensor.what)
    given = [each for each in made.of if not isinstance(each.what, Const)] if made else []
    if len(given) != 1 or depth == 0:
        return ()
    held = containers.content(vm, given[0])
    one = containers.held(held) if held is not None else given
    return (*one, *_made_of(vm, one[0], depth - 1)) if len(one) == 1 else ()


def _is_dealt_by_another(vm: Machine, given: Value | None) -> bool:
    """Whether a rank scatters nothing: it is not the root, whichever ranks come to this call."""
    if given is None:
        return False
    held = containers.content(vm, given)
    if held is None:
        return given.is_const(None)
    items = held.what.items if isinstance(held.what, Tuple) else ()
    items = (held.what.element,) if isinstance(held.what, Many) else items
    return bool(items) and all(each.is_const(None) for each in items)


def _is_one_for_all(vm: Machine, given: Value | None) -> bool:
    """Whether one thing is scattered, as often as there are ranks."""
    given = containers.if_any(given) if given is not None else NONE
    return vm.store.get((given.what, containers.ALIASED)) is not None


def _filled(vm: Machine, shared: Value, agree: Agreement, node: ast.AST) -> Value:
    """What a collective has written: a tensor, or the elements of a list."""
    options = shared.what.options if isinstance(shared.what, Either) else (shared,)
    lists = [each.what for each in options if vm.store.get((each.what, "[]")) is not None]
    if not lists:
        return shared
    element = memory.fresh(vm, Value(Tensor(vm.site(node, "gathered")), agree))
    content = Many(element, Term("many", (vm.site(node, "gathered"),)))  # on all ranks as many
    for each in lists:
        vm.store.put((each, "[]"), Value(content, agree))
    return element


def _is_of_all(vm: Machine, group: Value) -> bool:
    """Whether every rank is in a group: who makes it names none, or all that there are."""
    if isinstance(group.what, Either):
        return all(_is_of_all(vm, each) for each in group.what.options)
    if vm.type_of(group) != "torch.distributed.ProcessGroup":
        return is_world(group)
    ranks = vm.store.get((group.what, "ranks")) or NONE
    content = containers.content(vm, ranks)
    members = content.what if content is not None else ranks.what
    return ranks.is_const(None) or _counts_up_to(members) in vm.sizes


def _counts_up_to(members: What) -> What:
    """How far these count from 0, one by one: as a range, as a list of it, or named in one."""
    if isinstance(members, Many) and getattr(members.element.what, "op", "") == "counter":
        members = members.number
    if isinstance(members, Term) and members.op in ("list", "tuple", "len"):
        members = members.args[0]
    if not isinstance(members, Term) or members.op != "range" or members.args[:-1] not in _FROM_0:
        return NOTHING
    end: What = members.args[-1]
    return end


_FROM_0 = ((), (Const(0),))


def _group(vm: Machine, call: Call) -> Value:
    values = call.roles()
    if "use_local_synchronization" in call.kwargs:
        values["locally"] = call.kwargs["use_local_synchronization"]
    for word in ("timeout", "backend"):
        if word in call.kwargs:
            values[word] = call.kwargs[word]
    if "ranks" in values:
        held = inside(vm, values["ranks"])
        if held.agree.sure:  # a name alone may be the rank of another
            values["ranks"] = held
    made = vm.new(call.node, "torch.distributed.ProcessGroup")
    vm.emit("group", call.last, call.node, **values, made=Value(made))
    for role, value in values.items():
        vm.store.put((made, role), value)
    return Value(made)


def _told(vm: Machine, role: str, given: Value | None) -> str | None:
    """The number that a process joins with where it is written down, else None."""
    if given is None or given.is_const(-1):
        name = {"rank": "RANK", "size": "WORLD_SIZE"}[role]
        given = vm.store.get((Lib("os.environ"), name))
    is_written = given is not None and isinstance(given.constant, int | str)
    return str(given.constant) if given is not None and is_written else None


def _init(vm: Machine, call: Call) -> Value:
    values = call.roles()
    for word in ("timeout", "device_id", "store"):
        if word in call.kwargs:
            values[word] = call.kwargs[word]
    told = {"rank": values.get("rank"), "size": values.get("size")}
    if all(_told(vm, *each) == str(number) for number, each in enumerate(told.items())):
        values["alone"] = TRUE
    vm.emit("init", call.last, call.node, **values)
    vm.joined = True
    if "size" in values and has_identity(values["size"].what):
        vm.sizes.add(values["size"].what)
        _learn_size(vm, values["size"])
    rank = values.get("rank")
    of_one_host = rank is not None and (rank.what == LOCAL_RANK or _is_an_index(vm, rank))
    if of_one_host or _is_met_at_home(vm, values.get("method")):
        vm.there = FIRST_HOST  # two of them cannot join as the same, nor meet at each one's own
    if rank is not None and (_is_not_known(rank) or isinstance(rank.what, Term)):
        _learn_rank(vm, call.node, rank.what)
    elif rank is not None and rank.agree == BY_RANK_LIKELY and rank.why is not None:
        _believe(vm, rank.why.root, call.node)
    return NONE


def _is_an_index(vm: Machine, rank: Value) -> bool:
    """Whether ranks are numbered as one process has started them."""
    return rank.what == RANK and rank.why is not None and rank.why.root in vm.indexed


def _is_met_at_home(vm: Machine, method: Value | None) -> bool:
    """Whether ranks meet at an address that is each host's own: all of them are of one host."""
    if method is None or method.is_const(None, "env://"):
        at = vm.store.get((Lib("os.environ"), "MASTER_ADDR"))
        return at is not None and str(at.constant).startswith(_OWN_ADDRESSES)
    beginning = str(lookups.parts_of_text(method.what)[0])
    return beginning.removeprefix("tcp://").startswith(_OWN_ADDRESSES)


_OWN_ADDRESSES = ("localhost", "127.", "[::1]", "::1")


def _is_not_known(rank: Value) -> bool:
    """Whether it is not seen which number each rank has: it was computed of what is not known."""
    return rank.agree.kind == "unknown" or (
        rank.agree.kind == "rank" and not isinstance(rank.what, Table)
    )


def _learn_rank(vm: Machine, node: ast.AST, number: What) -> None:
    """Wherever it comes from: what a rank joins as is its rank, wherever that is kept."""
    names = [
        each.value
        for each in (node.keywords if isinstance(node, ast.Call) else ())
        if each.arg == "rank" and isinstance(each.value, ast.Name | ast.Attribute)
    ]
    said = vm.why(f"`{text(names[0]) if names else 'this'}` is the rank that it joins as", node)
    if isinstance(number, Term) and number.op not in folding.NUMERIC:
        vm.numbered.add(said)
    for key in vm.store.keys_of(number) if has_identity(number) else ():
        vm.store.put(key, Value(RANK, BY_RANK, said))
    for each in names:
        binding.bind(vm, each, Value(RANK, BY_RANK, said))


def _learn_size(vm: Machine, size: Value) -> None:
    """Wherever it comes from: ranks that have met were told one size, wherever that is kept."""
    if size.agree.kind == "local":
        for key in vm.store.keys_of(size.what):
            vm.store.put(key, Value(size.what, SAME))


def _believe(vm: Machine, guess: Why, node: ast.AST) -> None:
    """What was the rank by its name alone is the rank: one joins as it."""
    said = vm.why("it is the rank that it joins as", node, guess)
    vm.numbered.add(guess)
    for key, value in vm.store.guessed(guess):
        vm.store.put(key, Value(value.what, BY_RANK, said))


def _leave(vm: Machine, call: Call) -> Value:
    vm.emit("leave", call.last, call.node, **call.roles())
    return NONE


def _wraps(vm: Machine, call: Call) -> Value:
    module = call.given("module") or Value(NOTHING, UNKNOWN)
    kwargs = call.kwargs
    if call.effect.option("only") == "gradients":
        kwargs = {**kwargs, "broadcast_buffers": FALSE, "learns_what_is_used": TRUE}
    made = wrap(vm, module, call.args, kwargs, call.node, "DistributedDataParallel")
    for word in filter(None, call.effect.option("has").split(",")):
        vm.store.put((made.what, word), Value(term("of", made.what, word), UNKNOWN))
    return made


def wrap(
    vm: Machine,
    module: Value,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    name: str,
) -> Value:
    """Wrap a module."""
    return wrap_in(vm, vm.new(node, members.DDP), module, kwargs, node, name)


def wrap_in(
    vm: Machine, made: Ref, module: Value, kwargs: dict[str, Value], node: ast.AST, name: str
) -> Value:
    """Make an object the wrapper of a module."""
    if isinstance(module.what, Either | Ref):
        module = vm.each(module, lambda each: _not_wrapped_here(vm, each, node))
    vm.objects[made.number].type = members.DDP
    vm.store.distributed.add(made.number)
    vm.store.put((made, "module"), module)
    members.switch(vm, module)
    if module.what != NOTHING:
        vm.wrapped[module.what] = made.number
    if "forward_sync_buffers" in kwargs:  # its name since torch 2.13
        kwargs = {**kwargs, "broadcast_buffers": kwargs["forward_sync_buffers"]}
    for word, value in kwargs.items():
        vm.store.put((made, f"#{word}"), value)
    named = {f"kw_{word}": each for word, each in kwargs.items()}
    vm.emit("wrap", name, node, module=module, wrapper=Value(made), **named)
    return Value(made)


def _not_wrapped_here(vm: Machine, module: Value, node: ast.AST) -> Value:
    """A module without the wrapper that it was given at the same place.

    Nobody wraps twice there: it is done in the first round, or on another way.
    """
    made = vm.object(module)
    if made is None or made.type != members.DDP or made.node is not node:
        return module
    return vm.store.get((module.what, "module")) or module


def _prepares(vm: Machine, call: Call) -> Value:
    found: list[Value] = []
    is_otherwise = _wraps_otherwise(vm, call.owner) or any(map(_is_deepspeeds, call.args))
    for number, each in enumerate(call.args):
        type = vm.type_of(each)
        options = each.what.options if isinstance(each.what, Either) else (each,)
        if all(_is_module(vm, one) for one in options) or _is_a_trained_one(vm, each):
            kept = (
                call.node.args[number]
                if isinstance(call.node, ast.Call) and number < len(call.node.args)
                else call.node
            )
            if call.owner is not None:
                vm.store.add((call.owner.what, MODELS), each)
            found.append(wrap(vm, each, [], {}, kept, call.last))
            is_partly = vm.store.get((each.what, members.TRAINED)) not in (None, TRUE)
            if is_partly or is_otherwise or _has_no_forward(vm, each):
                vm.store.put((found[-1].what, PERHAPS), each)
        elif type == "torch.utils.data.DataLoader":
            vm.store.put((each.what, "#prepared"), TRUE)
            vm.emit("prepare_loader", call.name, call.node, object=each)
            if (said := _says(vm, call.owner, "even_batches", False)) is not None:
                vm.store.put((each.what, "#uneven"), said)
            found.append(each)
        elif type.startswith("torch.optim.lr_scheduler."):
            alone = _says(vm, call.owner, "split_batches", True) is None
            if alone and _says(vm, call.owner, "step_scheduler_with_optimizer", False) is None:
                vm.emit("prepare_scheduler", "prepare", call.node, object=each)
            found.append(each)
        else:
            found.append(each)
    if call.name.endswith(("prepare_model", "setup_module")) and found:
        return found[0]
    return found[0] if len(found) == 1 else Value(Tuple(tuple(found)))


def _is_module(vm: Machine, value: Value) -> bool:
    made = vm.object(value)
    if made is None or made.cls < 0:
        return vm.type_of(value) == "torch.nn.Module"
    return hierarchy.library_base(vm, made.cls) == "torch.nn.Module"


def _has_no_forward(vm: Machine, module: Value) -> bool:
    """Whether nobody can run it as a model: without weights, which it may lack, none is wrapped."""
    made = vm.object(module)
    if made is None or made.cls < 0:
        return False
    return hierarchy.class_attribute(vm, made.cls, "forward") is None


def _wraps_otherwise(vm: Machine, owner: Value | None) -> bool:
    """Whether an accelerator may hand models to another library, which wraps in its own."""
    given = (vm.store.get((owner.what, f"#{each}")) for each in _OTHERS) if owner else ()
    return any(each is not None and not each.is_const(None) for each in given)


_OTHERS = ("deepspeed_plugin", "fsdp_plugin", "megatron_lm_plugin")


def _is_deepspeeds(value: Value) -> bool:
    """Whether it stands for what a configuration of DeepSpeed makes: it is taken there alone."""
    by = value.what.args[0] if isinstance(value.what, Term) and value.what.args else None
    return isinstance(by, Lib) and by.name.rpartition(".")[2] in ("DummyOptim", "DummyScheduler")


def _is_a_trained_one(vm: Machine, value: Value) -> bool:
    """Whether something unknown is a module whose weights were not frozen: else none is wrapped.

    A part of what is frozen may be trained, as adapters are: who knows.
    """
    trained = vm.store.get((value.what, members.TRAINED)) or TRUE
    return vm.store.get((value.what, members.A_MODULE)) is not None and not trained.is_const(False)


def _says(vm: Machine, owner: Value | None, word: str, wanted: bool) -> Value | None:
    """Whether an accelerator, or its configuration of loaders, was told so; with the place."""
    config = vm.store.get((owner.what, "#dataloader_config")) if owner is not None else None
    for each in (owner, config):
        given_ = vm.store.get((each.what, f"#{word}")) if each is not None else None
        made = vm.object(each) if each is not None else None
        if given_ is not None and made is not None and given_.is_const(wanted):
            place = Place(made.path, getattr(made.node, "lineno", 1))
            return Value(NOTHING, local("data"), Why(indexing.OWN_PART, place, None, made.node))
    return None


def _spawns(vm: Machine, call: Call) -> Value:
    values = call.roles()
    vm.emit("spawn", call.name, call.node, **values)
    target = values.get("target")
    if target is not None:
        given_ = values.get("arguments")
        content = containers.content(vm, given_) if given_ is not None else None
        items = (
            list(content.what.items)
            if content is not None and isinstance(content.what, Tuple)
            else []
        )
        answered, many = vm.answered, values.get("processes")
        if many is not None and isinstance(many.what, Term):
            vm.answered = answered | {many.what: True}  # who is one of so many, knows of some
        start(vm, target, items, call.node, first=not call.name.startswith("accelerate."))
        vm.answered = answered
    return Value(NOTHING, SAME)


def _starts(vm: Machine, call: Call) -> Value:
    """A process of a loop that hands each its number: if it joins a group, it is a rank."""
    made = call.owner.what if call.owner is not None else None
    target, given_ = vm.store.get((made, "target")), vm.store.get((made, "arguments"))
    content = containers.content(vm, given_) if given_ is not None else None
    if target is None or given_ is None or content is None or not isinstance(content.what, Tuple):
        return NONE
    if any(_is_counted(each) for each in content.what.items):
        # What one loop starts runs beside the rest of it: once, after the loop.
        vm.starting[call.node] = functools.partial(_begin, vm, target, given_, call.node)
    return NONE


def _begin(vm: Machine, target: Value, given_: Value, node: ast.AST) -> None:
    """Run what a process does, and keep it if it joins a group."""
    content = containers.content(vm, given_)
    arguments = content.what.items if content and isinstance(content.what, Tuple) else ()
    outside, vm.out = vm.out, Seq()
    depth, begun = vm.store.open(), vm.out
    vm.keeps_cut = True  # all that there is stands in what the ranks do
    try:
        start(vm, target, list(arguments), node, first=False, told=_numbered)
    finally:
        writes, vm.out = vm.store.since(depth), outside
        vm.store.drop(depth)
        if any(True for _ in events(begun, "init")):
            for key, value in writes.items():
                vm.store.put(key, value)
            method = Value(Const("fork"))  # what cannot be pickled is told where it is said to be
            vm.emit("spawn", "start", node, target=target, arguments=given_, method=method)
            outside.items.extend(begun.items)


def _is_counted(value: Value) -> bool:
    """Whether a number is that of the round, or is counted on from it."""
    what = value.what
    if isinstance(what, Term) and what.op in ("Add", "Mult"):
        return any(isinstance(each, Term) and _is_counted(Value(each)) for each in what.args)
    return isinstance(what, Term) and what.op == "counter"


def _numbered(vm: Machine, value: Value, node: ast.AST) -> Value:
    """What a process of a loop is handed, as the ranks see it."""
    if _is_counted(value):
        return Value(RANK, BY_RANK, vm.why("each process is given its number", node))
    return _shared(vm, value, node)


def start(
    vm: Machine,
    target: Value,
    arguments: list[Value],
    node: ast.AST,
    *,
    first: bool = True,
    told: Callable[[Machine, Value, ast.AST], Value] | None = None,
) -> None:
    """Run a function as each rank of a new job does."""
    rank = Value(RANK, BY_RANK, vm.why("each process is given its number", node))
    if first:
        vm.indexed.add(rank.why)
    joined, vm.joined = vm.joined, False
    starts = vm.starts
    told = told or _shared
    shared = [told(vm, each, node) for each in arguments]
    options = target.what.options if isinstance(target.what, Either) else (target,)
    bound = [one for each in options for one in getattr(each.what, "bound", ())]
    handed = (*arguments, *bound)
    held = vm.store.held()
    for number in members.parts(held.get, Tuple(handed)):
        for name, value in held.get(Ref(number), {}).items():
            vm.store.put((Ref(number), name), told(vm, value, node))
    for each in handed:  # settings that nobody has seen made
        for name, value in vm.store.of(each.what).items() if isinstance(each.what, Term) else ():
            vm.store.put((each.what, name), told(vm, value, node))
    given_ = [rank, *shared] if first else shared
    _run_begun(vm, target, given_, node)
    vm.joined, vm.starts = joined, starts or first  # who starts ranks is none of them so far
    numbers = [at for at, each in enumerate(given_) if each.what == RANK]
    functions = [each.what.number for each in options if isinstance(each.what, Func)]
    vm.spawned += [(each, at) for each in functions for at in numbers[:1]]


def _run_begun(vm: Machine, target: Value, given_: list[Value], node: ast.AST) -> None:
    """Run what a process does from its beginning, where it is in no group yet.

    One that asks, and is never seen to join, joins in a way that nobody knows.
    """
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    took, vm.took_for_alone = vm.took_for_alone, False
    outside, fuel = vm.out, vm.fuel
    for vm.starts in (True, False):
        depth, vm.out, is_in_vain = vm.store.open(), Seq(), False
        try:
            with contextlib.suppress(Left):
                call_value(vm, target, given_, {}, node)
            is_in_vain = vm.starts and vm.took_for_alone and not vm.joined
        finally:
            writes, begun, vm.out = vm.store.since(depth), vm.out, outside
            vm.store.drop(depth)
            if not is_in_vain:  # also where it was cut short
                outside.items.extend(begun.items)
                for key, value in writes.items():
                    vm.store.put(key, value)
        if not is_in_vain:
            break
        vm.took_for_alone, vm.fuel = False, fuel
    vm.took_for_alone |= took


def _shared(vm: Machine, value: Value, node: ast.AST) -> Value:
    """What one process has drawn, timed or found is the same for all that it hands it to."""
    what = value.what
    if isinstance(what, Tuple):
        what = Tuple(tuple(_shared(vm, each, node) for each in what.items))
    return (
        Value(what, SAME) if value.agree.kind in ("local", "unknown") else replace(value, what=what)
    )


def _calls_on_main(vm: Machine, call: Call) -> Value:
    if call.args and isinstance(call.args[0].what, Func):
        what = call.args[0].what
        return Value(replace(what, within=(*what.within, "#main")))
    if not call.args:
        return Value(Lib(call.name))
    return call.args[0]


HANDLERS: dict[str, Handler] = {
    "collective": _collective,
    "group": _group,
    "init": _init,
    "leave": _leave,
    "wraps": _wraps,
    "prepares": _prepares,
    "spawns": _spawns,
    "starts": _starts,
    "calls_on_main": _calls_on_main,
}
