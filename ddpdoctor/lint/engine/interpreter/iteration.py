"""What a loop goes through: the element, and whether ranks go equally often."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.machine import BY_SOME, KEPT, Left, Machine
from ddpdoctor.lint.engine.interpreter.objects import (
    containers,
    hierarchy,
    indexing,
    members,
    memory,
)
from ddpdoctor.lint.engine.interpreter.store import OF_OBJECTS
from ddpdoctor.lint.engine.interpreter.tree import Choice, Exit, Seq, walk
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK_LIKELY,
    NONE,
    NOTHING,
    SAME,
    UNKNOWN,
    WORLD,
    Const,
    Either,
    Many,
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
    local,
    term,
    within,
)

UNTIL = Term("until")
"""How often an iterator goes on that itself decides when to stop."""


PICKED = "#picked"
"""Of a loader: what a sampler of the user's picks for it."""
SAID = "#said"
"""Of a loader: how many a sampler of the user's says that it picks."""
ITERATED = "#iterated"
"""Of an iterator: what it goes through."""
OWN = "#own"
"""Of a loader: what it reads is the rank's own, or is picked by the rank."""


def elements(vm: Machine, value: Value, node: ast.AST) -> tuple[Value, Value]:
    """(one element for all, a value that agrees as the number of rounds does)."""
    one, count = _elements(vm, _there(vm, value), node)
    of_a_part = count.agree.cause == "shard"
    if one.agree.cause == "shard" or (of_a_part and not one.agree.cause):
        one = Value(one.what, local("data", False), value.why or count.why)
    if of_a_part and _leaves_a_rest(vm, count.why):
        count = Value(count.what, local("shard", False), count.why)
    elif of_a_part:  # meant to be equally large, and nobody knows better
        count = Value(count.what, UNKNOWN)
    return one, count


def _leaves_a_rest(vm: Machine, why: Why | None) -> bool:
    """Whether it comes of a part of as many as there happen to be."""
    chain = why.chain() if why is not None and not vm.evens_out else ()
    return any(id(each.node) in vm.unmeasured for each in chain)


def _there(vm: Machine, value: Value) -> Value:
    """What is gone through of something that may be None: nobody goes through that.

    Nor does it matter whether a rank goes through something itself, or through an iterator of it.
    """
    what = value.what
    if not isinstance(what, Either):
        return value
    there = [each for each in what.options if what.masks or not each.is_const(None)]
    rest = {
        each.what: each for each in (vm.store.get((one.what, ITERATED)) or one for one in there)
    }
    return next(iter(rest.values())) if len(rest) == 1 else value


def _elements(vm: Machine, value: Value, node: ast.AST) -> tuple[Value, Value]:
    content = containers.content(vm, value)
    what = value.what
    if content is not None:
        if isinstance(content.what, Tuple):
            one = _in_turn(vm, content.what.items, node)
        else:
            assert isinstance(content.what, Many)
            one = memory.now_with_parts(vm, content.what.element)
        agree, why = blended([one, content])
        count = containers.without_order(content)
        return Value(one.what, agree, why), Value(NOTHING, count.agree, count.why)
    if isinstance(what, Ref):
        made = vm.objects[what.number]
        if made.type == "torch.utils.data.DataLoader":
            return _of_loader(vm, what, node)
        if made.type == "manager":
            return _elements(vm, _run_through(vm, what, node), node)
        if made.type == "generator":
            kept = vm.store.get((what, "yields"))
            counted = vm.store.get((what, "count")) or Value(NOTHING, UNKNOWN)
            return kept or Value(NOTHING, UNKNOWN), counted
        if made.type == "itertools.count":
            return Value(Term("counter", (vm.site(node),)), SAME), Value(NOTHING, SAME)
        if made.cls >= 0:
            return _of_instance(vm, value, made.cls, node)
        if "DistributedSampler" in made.type:
            why = vm.why("the sampler deals each rank its own", node)
            return Value(term("element", what), local("data"), why), Value(NOTHING, SAME)
        return Value(Tensor(vm.site(node, "element")), value.agree, value.why), Value(
            NOTHING, value.agree, value.why
        )
    if isinstance(what, Term) and what.op == "range":
        is_span = value.agree.kind == "rank" and folding.is_equally_long(what.args)
        count = Value(what, SAME) if is_span else value
        if not is_span and indexing.left_over(vm, value):
            count = Value(what, local("data", False), vm.why(indexing.OWN_PART, node, value.why))
        own = local(value.agree.cause or "data", value.agree.sure) if is_span else SAME
        first = what.args[:1] if is_span else ()
        return Value(Term("counter", (vm.site(node), *first)), own, value.why), count
    if isinstance(what, Partial):
        return Value(NOTHING, UNKNOWN), Value(NOTHING, UNKNOWN)
    value = memory.current(vm, value)
    agree, why = value.agree, value.why
    count = containers.without_order(value)
    if isinstance(what, Tensor):
        if agree.divergent and _is_an_order(vm, value):
            agree = local("order", False)
        if (dealt := vm.store.get((what, indexing.OWN_ROWS))) is not None:
            agree, why = dealt.agree, dealt.why
        one = Value(Tensor(vm.site(node, "element"), what.of), agree, why)
        return vm.computed(one, "element", (value,), node), members.number_of_rows(vm, value)
    if isinstance(what, Table):
        return Value(NOTHING, agree, why), Value(NOTHING, agree, why)
    if count.agree.cause in containers.NOT_HOW_MANY:
        count = Value(count.what, UNKNOWN)
    if isinstance(what, Term) and what.op == "joined":
        count = Value(count.what, UNKNOWN)  # one or the other thing, which may be equally long
    if agree.kind == "same" and _is_one_of_objects(vm, what):
        agree = UNKNOWN  # be it the same one on all ranks: it may give each what is its own
    if count.agree == BY_RANK_LIKELY and _knows_how_many(vm, what):
        count = Value(count.what, UNKNOWN)  # who is told both may deal evenly
    return Value(term("element", what), agree, why), Value(NOTHING, count.agree, count.why)


def _is_one_of_objects(vm: Machine, what: What) -> bool:
    """Whether it is one of several objects, such as the loaders of several data sets."""
    if isinstance(what, Either):
        return any(isinstance(each.what, Ref) for each in what.options)
    return vm.store.get((what, OF_OBJECTS)) is not None


def _knows_how_many(vm: Machine, what: object, depth: int = 4) -> bool:
    """Whether something unknown was told how many ranks there are, as a sampler is.

    So is what was made of such: a loader of a data set of the files that were dealt out.
    """
    parts = [each for each in within(what) if isinstance(each, Term) and each.op == "result"]
    told = [each for part in parts for each in (vm.made[part].of if part in vm.made else ())]
    return any(
        each.what == WORLD or (depth > 0 and _knows_how_many(vm, each.what, depth - 1))
        for each in told
    )


def _is_an_order(vm: Machine, tensor: Value) -> bool:
    """Whether it holds each number up to its length once: all ranks have the same ones in it."""
    made = vm.made.get(tensor.what)
    while made is not None and made.of and made.by in _AS_THEY_STAND:
        made = vm.made.get(made.of[0].what)
    return made is not None and made.by == "argsort"


_AS_THEY_STAND = ("tolist", "numpy", "cpu", "detach")


def _run_through(vm: Machine, made: Ref, node: ast.AST) -> Value:
    """What a generator gives to somebody else than a loop: it is run as a whole, once."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    found = vm.store.get((made, "#ran"))
    if found is None:
        found = call_value(vm, vm.store.get((made, "function")) or NONE, [], {}, node)
        vm.store.put((made, "#ran"), found)
    return found


def _in_turn(vm: Machine, items: tuple[Value, ...], node: ast.AST) -> Value:
    """One of several, of which the parts are remembered as well."""
    items = tuple(memory.now_with_parts(vm, each) for each in items)
    # Of names it is remembered which ones they are: one of them is no new key.
    tag = (vm.site(node), items) if all(isinstance(each.what, Const) for each in items) else None
    one = memory.fresh(vm, containers.one_of(vm, items, tag))
    vm.either(one, list(items), node)
    for number, each in enumerate(one.what.items if isinstance(one.what, Tuple) else ()):
        rows = [item.what.items for item in items if isinstance(item.what, Tuple)]
        vm.either(each, [row[number] for row in rows if number < len(row)], node)
    return one


def _of_loader(vm: Machine, loader: Ref, node: ast.AST) -> tuple[Value, Value]:
    sampler = vm.store.get((loader, "sampler")) or vm.store.get((loader, "batch_sampler"))
    prepared = vm.store.get((loader, "#prepared"))
    shards = prepared is not None or (
        sampler is not None and "DistributedSampler" in vm.type_of(sampler)
    )
    why = vm.why("each rank has its own data", node)
    site = vm.site(node, "batch")
    vm.batches[site] = loader
    if not shards and _is_read_in_order(vm, loader):
        one = Value(Tensor(site), UNKNOWN)  # each rank reads the same, unless its data are its own
    else:
        one = Value(Tensor(site), local("data", shards or _is_own_part(vm, loader)), why)
    if _has_equal_batches(vm, loader, shards=shards):
        vm.store.put((one.what, members.ROWS), Value(NOTHING, SAME))
    from ddpdoctor.lint.engine.interpreter.library.facts import own_length

    made = vm.object(sampler) if sampler is not None else None
    if sampler is not None and made is not None and made.cls >= 0:
        picked, count = elements(vm, sampler, node)
        vm.store.put((loader, PICKED), picked)
        if (said := own_length(vm, sampler, node)) is not None:
            vm.store.put((loader, SAID), said)
        if picked.agree.divergent:
            one = Value(one.what, local("data", picked.agree.sure), picked.why or why)
        if count.agree.kind == "local":
            return one, Value(NOTHING, count.agree, count.why)
    uneven = vm.store.get((loader, "#uneven")) or _left_over(vm, loader, sampler, node)
    if uneven is None and sampler is None and not shards:
        uneven = _kept_by_some(vm, loader, node)
    return one, uneven or Value(NOTHING, SAME if shards else UNKNOWN)


def _left_over(vm: Machine, loader: Ref, sampler: Value | None, node: ast.AST) -> Value | None:
    """That ranks have other numbers of batches, where some read what the others leave."""
    data = vm.store.get((loader, "dataset")) or NONE
    picked = [vm.store.get((data.what, "indices")), data]
    picked += [vm.store.get((sampler.what, "dataset"))] if sampler is not None else []
    found = next(
        (each for each in picked if each is not None and indexing.left_over(vm, each)), None
    )
    if found is None or drops_the_rest(vm, loader):
        return None
    return Value(NOTHING, local("data", False), vm.why(indexing.OWN_PART, node, found.why))


def _kept_by_some(vm: Machine, loader: Ref, node: ast.AST) -> Value | None:
    """That ranks have other numbers of batches, where each has kept some of its own data alone."""
    from ddpdoctor.lint.engine.interpreter import reading
    from ddpdoctor.lint.engine.interpreter.library.facts import own_length

    data = vm.store.get((loader, "dataset")) or NONE
    number = own_length(vm, data, node) if not reading.is_stream(vm, data) else None
    if number is None or number.agree.cause != "data" or number.why is None:
        return None
    if not any(why.text in (BY_SOME, KEPT) for why in number.why.chain()):
        return None
    return Value(NOTHING, local("data", False), number.why)


def drops_the_rest(vm: Machine, loader: Ref) -> bool:
    """Whether a loader may leave out a last batch: a sample more makes no batch more, as a rule."""
    cut_off, size = (vm.store.get((loader, each)) or NONE for each in ("drop_last", "batch_size"))
    return not cut_off.is_const(False, None) and not size.is_const(None, 1)


def _is_read_in_order(vm: Machine, loader: Ref) -> bool:
    """Whether it goes through all that there is, from the first on, as every other rank does."""
    told = {name: vm.store.get((loader, name)) or NONE for name in _PICKING}
    in_order = all(each.is_const(None, False) for each in told.values())
    return in_order and vm.store.get((loader, OWN)) is None


_PICKING = ("sampler", "batch_sampler", "shuffle")


def _is_own_part(vm: Machine, loader: Ref) -> bool:
    """Whether what a loader reads was picked by the rank, as `data[rank::world]` is."""
    read = vm.store.get((loader, "dataset"))
    if read is None or not read.agree.sure:
        return False
    return read.agree.kind == "rank" or read.agree.cause == "shard"


def _has_equal_batches(vm: Machine, loader: Ref, *, shards: bool) -> bool:
    """Whether ranks have as many samples in a batch: only the last of an epoch may be smaller."""
    own = ("batch_sampler", "collate_fn")
    if any(not (vm.store.get((loader, each)) or NONE).is_const(None) for each in own):
        return False
    size, drop_last = (vm.store.get((loader, each)) or NONE for each in ("batch_size", "drop_last"))
    return not size.agree.divergent and (shards or drop_last.is_const(True))


def _of_instance(vm: Machine, value: Value, cls: int, node: ast.AST) -> tuple[Value, Value]:
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    if hierarchy.class_attribute(vm, cls, "__iter__") is not None:
        method = members.attribute(vm, value, "__iter__", node)
        found = call_value(vm, method, [], {}, node)
        made = vm.object(found)
        if made is not None and made.type == "generator":
            return elements(vm, found, node)
        if containers.content(vm, found) is not None:
            return elements(vm, found, node)
        cls = made.cls if made is not None else -1
        if cls >= 0 and hierarchy.class_attribute(vm, cls, "__next__") is not None:
            return _of_iterator(vm, found, node)
        if found.agree.divergent:  # what makes another iterator on each rank gives it other things
            agree = local("shard", found.agree.sure)
            return Value(NOTHING, agree, found.why), Value(NOTHING, agree, found.why)
    base = hierarchy.library_base(vm, cls)
    if base == "torch.nn.Module":
        return Value(term("child", value.what), SAME), Value(NOTHING, SAME)
    return Value(Tensor(vm.site(node, "element")), UNKNOWN), Value(NOTHING, UNKNOWN)


def _of_iterator(vm: Machine, value: Value, node: ast.AST) -> tuple[Value, Value]:
    """One round of an iterator of the user's, which goes on until it raises StopIteration."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    outside, vm.out = vm.out, Seq()
    try:
        one = call_value(vm, members.attribute(vm, value, "__next__", node), [], {}, node)
    except Left:
        one = Value(NOTHING, UNKNOWN)
    ran, vm.out = vm.out, outside
    outside.items.extend(ran.items)
    agree, why = blended(_stopping(ran))
    return one, Value(UNTIL, agree, why)


def _stopping(ran: Seq) -> list[Value]:
    """The conditions by which it may raise StopIteration."""
    return [
        step.node.condition
        for node, way in walk(ran)
        if isinstance(node, Exit) and node.kind == "raise" and _is_stop(node.node)
        for step in way
        if isinstance(step.node, Choice)
    ]


def _is_stop(node: ast.AST) -> bool:
    error = getattr(node, "exc", None)
    error = error.func if isinstance(error, ast.Call) else error
    return isinstance(error, ast.Name) and error.id == "StopIteration"
