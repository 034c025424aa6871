"""What is kept under keys: dictionaries, namespaces, and objects with items of their own."""

from __future__ import annotations

import ast
from dataclasses import replace

from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import (
    containers,
    hierarchy,
    indexing,
    members,
    memory,
)
from ddpdoctor.lint.engine.interpreter.store import MOST
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    SAME,
    UNKNOWN,
    Agreement,
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
    Why,
    blended,
    grown,
    how_many,
    mix,
    term,
)
from ddpdoctor.lint.engine.trees import keyword


def clear(vm: Machine, made: Value) -> None:
    """A dictionary that begins empty."""
    if vm.store.get((made.what, KEYS)) is not None:  # one was made here before
        known = keys(vm, made).what
        exact = isinstance(known, Tuple) and vm.store.get((made.what, "*")) is ABSENT
        items = known.items if isinstance(known, Tuple) else ()
        for name in [f"[{each.constant!r}]" for each in items] if exact else vm.store.of(made.what):
            vm.store.put((made.what, name), ABSENT)
    vm.store.put((made.what, KEYS), Value(Tuple(())))
    vm.store.put((made.what, "*"), ABSENT)


ABSENT = Value(Term("absent"), SAME)
KEYS = "#keys"
"""Of a dictionary: its keys."""


def keys(vm: Machine, made: Value) -> Value:
    """The keys of a dictionary."""
    found = vm.store.get((made.what, KEYS))
    return found if found is not None else Value(Many(Value(NOTHING, UNKNOWN)), UNKNOWN)


def entries(vm: Machine, made: Value) -> tuple[tuple[Value, Value], ...]:
    """(key, value) of all that a dictionary holds; none where its keys are open."""
    known = keys(vm, made).what
    items = known.items if isinstance(known, Tuple) else ()
    return tuple((key, get_key(vm, made, key)) for key in items)


def values(vm: Machine, dictionary: What) -> Tuple:
    """What a dictionary holds now, under whichever keys."""
    kept = vm.store.of(dictionary).items()
    return Tuple(
        tuple(each for name, each in kept if name[:1] in ("[", "*") and each.what != ABSENT.what)
    )


def _known_here(vm: Machine) -> Value:
    """What a function's names hold, and the attributes of the program's own objects among them."""
    names = list(vm.store.of(vm.frame.scope).values())
    own = [each for each in names if (made := vm.object(each)) is not None and made.cls >= 0]
    held = [inner for each in own for inner in vm.store.of(each.what).values()]
    return Value(Tuple((*names, *held)))


def set_item(vm: Machine, owner: Value, key: Value, value: Value, node: ast.AST) -> None:
    """`owner[key] = value`."""
    what = owner.what
    if isinstance(what, Lib):
        if isinstance(key.what, Const):
            vm.store.put((what, str(key.what.value)), value)
        if what.name == "os.environ":
            vm.emit("setenv", "os.environ", node, name=key, value=value)
        return
    is_module = vm.type_of(owner) == "torch.nn.Module"
    if is_module and isinstance(value.what, Term) and _is_part_of(value.what, what):
        key = Value(key.what)  # a part of it is put back in its place, which stays where it is
    inner = vm.store.get((what, memory.PARTS)) if is_module else None
    if inner is not None:
        set_item(vm, inner, key, value, node)
    if is_module or isinstance(what, Tensor | Term) or members.is_weight(vm, owner):
        given = {"given": _known_here(vm)} if key.is_const("lr") else {}
        vm.emit("set_item", "[]", node, owner=owner, key=key, value=value, **given)
    if is_module or vm.type_of(owner) in containers.CONTAINERS:
        found = containers.content(vm, owner)
        index = key.constant
        items = list(found.what.items) if found and isinstance(found.what, Tuple) else []
        if found is not None and isinstance(index, int) and -len(items) <= index < len(items):
            items[index] = value
            vm.store.put((what, "[]"), Value(Tuple(tuple(items)), found.agree, found.why))
            return
        put = Value(value.what, *blended([value, key]))
        found = found if found is not None else Value(Many(put))
        many = Many(containers.one_of(vm, [*containers.held(found), put]), how_many(found.what))
        vm.store.put((what, "[]"), Value(many, found.agree, found.why))
        return
    made = vm.object(owner)
    own = hierarchy.class_attribute(vm, made.cls, "__setitem__") if made and made.cls >= 0 else None
    if isinstance(what, Ref) and vm.type_of(owner) == "dict" and not is_run(vm, own):
        if key.agree.cause == "order" and _counts(value.what):
            vm.emit("number", "", node, owner=owner, key=key)
        elif value.agree.cause == "order" and _counts(key.what):
            vm.emit("number", "", node, owner=owner, key=value)
        if isinstance(value.what, Tensor):
            vm.emit("put", "[]", node, owner=owner, key=key, value=value)
        _set_key(vm, owner, key, value)
        return
    if own is not None:
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        call_value(vm, hierarchy.bound_to(vm, own, owner, NONE, node), [key, value], {}, node)
        return
    if isinstance(what, Term) and isinstance(key.constant, str):  # what is kept by others stays
        vm.store.put((what, f"[{key.constant!r}]"), value)
        return
    if isinstance(what, Term) and not isinstance(key.what, Const):
        _unsettle(vm, what)
    if isinstance(what, Tensor | Term):
        agree, why = blended([memory.current(vm, owner), value, key])
        is_whole = isinstance(key.what, Const)
        if is_whole and not memory.current(vm, owner).agree.divergent:
            agree, why = (value.agree, value.why) if value.agree.divergent else (agree, why)
        memory.change(vm, owner, agree, why, value, node)
        if isinstance(key.what, Const):
            vm.store.put((what, f"[{key.what.value!r}]"), value)


def _unsettle(vm: Machine, owner: Term) -> None:
    """Forget the attributes of what is written to by an open name: its entries may be these."""
    for name in vm.store.of(owner):
        if name.isidentifier():
            vm.store.put((owner, name), Value(term("of", owner, name), UNKNOWN))


def _is_part_of(what: Term, container: What) -> bool:
    """Whether it was picked from a container of modules, whatever was done to it since."""
    return what.op == "picked" and what.args[0] == container


def is_run(vm: Machine, method: Value | None) -> bool:
    """Whether it is a function of the user's that is not being run already: it asks the library."""
    if method is None or not isinstance(method.what, Func):
        return False
    info, around = vm.functions[method.what.number], method.what.scopes
    return all(each.function is not info or each.around != around for each in vm.frames)


A_NUMBER = "#a number"
"""What is kept of a term that was made a number."""
PARSED = Term("parsed", (NOTHING,))
"""A whole number of which nothing else is known."""
_IN_A_LIST = ("item", "element", "list")


def _counts(what: What) -> bool:
    """Whether it counts the rounds of a loop, or what there is already."""
    return isinstance(what, Term) and what.op in ("counter", "len")


def is_number(vm: Machine, value: Value) -> bool:
    """Whether a value counts something, or is a number."""
    what = value.what
    if _counts(what) or isinstance(value.constant, int | float):
        return True
    if not isinstance(what, Term):
        return False
    if vm.store.get((what, A_NUMBER)) is not None:
        return True
    while what.op in _IN_A_LIST and isinstance(what.args[0], Term):
        what = what.args[0]
    return what.op == "range" or what == PARSED


def _is_one_of(vm: Machine, key: Value, keys: What) -> bool:
    """Whether a key is there already, as those are that a loop over the keys gives."""
    if isinstance(keys, Tuple):
        there = {each.what for each in keys.items}
        if all(each.what in there for each in vm.store.options(key)):
            return True
    what = key.what
    while isinstance(what, Term) and what.op in _TAKEN:
        what = what.args[0]
        if what == keys:
            return True
    return False


_TAKEN = ("element", "item", "result", "list")
_MOST_NAMED = 64
"""As many as a function may well be given by their names."""


def _set_key(vm: Machine, owner: Value, key: Value, value: Value) -> None:
    known = keys(vm, owner)
    if isinstance(key.what, Const):
        name = f"[{key.what.value!r}]"
        if vm.conditions and not isinstance(known.what, Tuple):  # on another way it may be there
            vm.store.begin((owner.what, name), get_key(vm, owner, key), (owner.what, KEYS))
        vm.store.put((owner.what, name), value)
    else:
        old = vm.store.get((owner.what, "*"))
        values = [value] if old is None or old == ABSENT else [old, value]
        # Which of several it is may be forgotten, not that one of them is None.
        tag = (owner.what, *values) if all(map(vm.store.is_something, values)) else None
        vm.store.put((owner.what, "*"), containers.one_of(vm, values, tag))
    if _is_one_of(vm, key, known.what):
        return
    agree, why = mix(known.agree, key.agree), known.why or key.why
    items = known.what.items if isinstance(known.what, Tuple) else ()
    if isinstance(known.what, Tuple) and isinstance(key.what, Const) and len(items) < _MOST_NAMED:
        vm.store.put((owner.what, KEYS), Value(Tuple((*items, key)), agree, why))
        return
    others = [known.what.element] if isinstance(known.what, Many) else list(items)
    many = Many(containers.one_of(vm, [*others, key]), grown(known.what))
    vm.store.put((owner.what, KEYS), Value(many, agree, why))


def update(vm: Machine, owner: Value, other: Value, node: ast.AST | None = None) -> None:
    """`owner.update(other)`."""
    node = node or ast.Pass()
    if vm.store.get((owner.what, COUNTS)) is not None and vm.type_of(other) != "dict":
        _count(vm, owner, other, node)
        return
    if vm.type_of(other) == "dict" and isinstance(keys(vm, other).what, Tuple):
        for key in keys(vm, other).what.items:  # type: ignore[union-attr]
            set_item(vm, owner, key, get_key(vm, other, key), node)
        return
    if isinstance(other.what, Tuple) and (pairs := _pairs(other.what)) is not None:
        for key, value in pairs:
            set_item(vm, owner, key, value, node)
        return
    if isinstance(other.what, Many) and (pairs := _pairs(Tuple((other.what.element,)))) is not None:
        key = Value(pairs[0][0].what, *blended([pairs[0][0], other]))
        set_item(vm, owner, key, pairs[0][1], node)
        return
    for option in _told_options(vm, other):
        set_item(vm, owner, option, members.attribute(vm, other, str(option.constant), node), node)
    # What is in it is the rank's own; by which names it is there, is not known.
    is_of_data = other.agree.cause == "data"
    key = Value(NOTHING, UNKNOWN if is_of_data else other.agree, other.why)
    value = Value(NOTHING, other.agree)
    if members.owner_of(other.what, "named_parameters") is not None:
        pair = Value(term("element", other.what), other.agree, other.why)
        value = indexing.item(vm, pair, Value(Const(1)), node)
    if vm.type_of(other) == "dict":
        agree, why = blended([key, keys(vm, other)])
        key, value = Value(NOTHING, agree, why), get_key(vm, other, Value(NOTHING))
    set_item(vm, owner, key, value, node)


def _count(vm: Machine, owner: Value, things: Value, node: ast.AST) -> None:
    """What there is to be counted is the keys of a Counter."""
    content = containers.content(vm, things)
    held = containers.held(content) if content is not None else (Value(NOTHING),)
    for each in held:
        key = Value(each.what, *blended([containers.without_order(each), content or things]))
        set_item(vm, owner, key, Value(NOTHING, key.agree, key.why), node)


COUNTS = "#counts"
"""Of a dictionary: its values are how often each key was met."""


def put_all(vm: Machine, owner: Value, other: Value, node: ast.AST) -> None:
    """The same of something unknown, as settings out of a file: what is named is there since."""
    if vm.type_of(other) == NAMESPACE:
        for name in options(vm, other):
            value = members.attribute(vm, other, name, node)
            set_item(vm, owner, Value(Const(name)), value, node)
    elif vm.type_of(other) == "dict" and isinstance(keys(vm, other).what, Tuple):
        update(vm, owner, other, node)


def options(vm: Machine, namespace: Value) -> dict[str, Value]:
    """What the options of a command line hold: what was set since, else what the parser gives."""
    parser = vm.store.get((namespace.what, "#parser"))
    given = vm.store.of(parser.what).items() if parser is not None else ()
    own = vm.store.of(namespace.what).items()
    return {
        **{name.removeprefix("--"): value for name, value in given if name.startswith("--")},
        **{name: value for name, value in own if not name.startswith("#")},
    }


def may_have_more(vm: Machine, namespace: Value) -> bool:
    """Whether somebody unknown may have added to the options of a command line."""
    parser = vm.store.get((namespace.what, "#parser"))
    named = options(vm, namespace)
    made = [each for each in map(vm.object, (namespace, parser or NONE)) if each is not None]
    return (
        len(made) < 2
        or not named
        or any(not each.isidentifier() for each in named)
        or any(each.number in vm.handed for each in made)
        or any(isinstance(each.node, ast.Call) and keyword(each.node, "parents") for each in made)
    )


def _told_options(vm: Machine, namespace: Value) -> list[Value]:
    """The names of the options of a command line whose values are known to differ by the rank."""
    if vm.type_of(namespace) != NAMESPACE:
        return []
    return [
        Value(Const(name))
        for name, value in options(vm, namespace).items()
        if value.agree.divergent
    ]


NAMESPACE = "argparse.Namespace"


def _pairs(rows: Tuple) -> list[tuple[Value, Value]] | None:
    """Keys and their values, where all rows are such pairs."""
    pairs = [row.what.items for row in rows.items if isinstance(row.what, Tuple)]
    if len(pairs) < len(rows.items) or any(len(pair) != 2 for pair in pairs):
        return None
    return [(key, value) for key, value in pairs]


def kept(vm: Machine, owner: Value, key: Value) -> Value | None:
    """What a dictionary surely holds under a key, or held in the round before."""
    name = f"[{key.what.value!r}]" if isinstance(key.what, Const) else "*"
    found = vm.store.get((owner.what, name))
    return found if found is not None and found != ABSENT else None


def put_under(vm: Machine, owner: Value, key: Value) -> Value | None:
    """What was put under a key of something unknown, unless all of it was changed since."""
    if not isinstance(owner.what, Tensor | Term) or not isinstance(key.what, Const):
        return None
    found = vm.store.get((owner.what, f"[{key.what.value!r}]"))
    changed = vm.store.get((owner.what, "~"))
    if found is None or (changed is None and isinstance(key.constant, str)):
        return found
    return found if memory.current(vm, owner).agree.divergent == found.agree.divergent else None


def overwrite(vm: Machine, what: What, agree: Agreement, why: Why | None, node: ast.AST) -> None:
    """A tensor has been written as a whole: what was put under its numbers is gone."""
    for name in vm.store.of(what) if isinstance(what, Tensor) else ():
        if name.startswith("["):
            vm.store.put((what, name), Value(Tensor(vm.site(node, name)), agree, why))


def get_key(vm: Machine, owner: Value, key: Value) -> Value:
    """`owner[key]` of a dictionary."""
    found = _found(vm, owner, key)
    for frame in vm.frames:
        for loop in frame.loops:
            if loop.turn is key or loop.turn.what == key.what != NOTHING:
                loop.looked_up.setdefault(owner.what, memory.current(vm, found))
    return found


def _found(vm: Machine, owner: Value, key: Value) -> Value:
    if isinstance(key.what, Const):
        found = vm.store.get((owner.what, f"[{key.what.value!r}]"))
        if found is not None and found != ABSENT:
            return found
    elif isinstance(key.what, Table):
        found_keys = [vm.store.get((owner.what, f"[{each!r}]")) for each in key.what.entries]
        if all(each is not None for each in found_keys):
            return indexing.selected(vm, key, [each for each in found_keys if each is not None])
    rest = vm.store.get((owner.what, "*"))
    known = keys(vm, owner)
    named = _named(known.what.items) if isinstance(known.what, Tuple) else []
    if not isinstance(key.what, Const) and named:
        each_value = [get_key(vm, owner, each) for each in named]
        found = containers.one_of(vm, each_value)
        for each in (found, *containers.held(found)):
            if isinstance(each.what, Either):
                vm.store.settle(each.what, key.agree.kind == "same")
        are_few = len({each.what for each in each_value}) <= MOST
        is_known = isinstance(found.what, Func | Class | Either) and are_few
        if not is_known:
            said = members.default(vm, key)
            usual = get_key(vm, owner, said) if said is not None else NONE
            if isinstance(usual.what, Func | Class):
                found = usual  # of many makers that which goes unless one is named
            elif some := _some_of_ranks(vm, each_value):
                found = Value(Either(some))
        agree, why = blended([found, key])
        return Value(found.what, agree, why)
    if rest is not None and rest != ABSENT:
        if not isinstance(key.what, Const) and vm.store.get((owner.what, FACTORY)) is not None:
            rest = containers.one_of(vm, [*values(vm, owner.what).items])
        agree, why = blended([rest, key])
        # Whatever it is, who asks for the same key again gets the same.
        same = rest.what == NOTHING and isinstance(key.what, Const)
        if isinstance(key.what, Const) and agree.cause in ("disk", "exception"):
            agree, why = UNKNOWN, None  # whether it was put there, and by which ranks: who knows
        return Value(term("item", owner.what, key.what) if same else rest.what, agree, why)
    made = vm.store.get((owner.what, "~"))
    agree, why = blended([made if made is not None else Value(NOTHING, UNKNOWN), key])
    return Value(term("item", owner.what, key.what), agree, why)


def _some_of_ranks(vm: Machine, makers: list[Value]) -> tuple[Value, ...]:
    """Of many programs that a name chooses, a few of those of several ranks stand for all."""
    meeting: dict[What, Value] = {}
    for each in makers:
        own = vm.store.get((each.what, "__wrapped__")) or each
        if not isinstance(own.what, Func):
            return ()
        info = vm.functions[own.what.number]
        if info.module.text.meets_others(info.node):
            meeting[each.what] = each
    return tuple(meeting.values())[:_STAND_FOR_ALL]


_STAND_FOR_ALL = 2


def _named(given: tuple[Value, ...]) -> list[Value]:
    """These keys by name; of one that is this in one way and that in another, both."""
    each_one = (each.what.options if isinstance(each.what, Either) else (each,) for each in given)
    return [one for several in each_one for one in several if isinstance(one.what, Const)]


def any_value(vm: Machine, owner: Value) -> Value:
    """One of the values of a dictionary whose keys are open."""
    kept = vm.store.of(owner.what)
    named = [each for name, each in kept.items() if name.startswith("[") and each != ABSENT]
    if kept.get("*") == ABSENT and named:  # in one round or another of a loop, and by these names
        return containers.one_of(vm, named)
    unnamed = get_key(vm, owner, Value(NOTHING))
    return containers.one_of(vm, [*containers.things_in(vm, owner), unnamed])


def make_defaults(vm: Machine, owner: Value, factory: Value, node: ast.AST) -> None:
    """A defaultdict begins with what makes its values, and one for all keys that are not known."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    vm.store.put((owner.what, "~"), Value(NOTHING, UNKNOWN))
    vm.store.put((owner.what, FACTORY), factory)
    begin(vm, owner)
    if _is_followed(factory):
        vm.store.put((owner.what, "*"), call_value(vm, factory, [], {}, node))


def make_default(vm: Machine, owner: Value, key: Value, node: ast.AST) -> None:
    """What a defaultdict, or a class by its `__missing__`, puts under a key that is not there."""
    factory, given = vm.store.get((owner.what, FACTORY)), list[Value]()
    if factory is None and (factory := _missing(vm, owner, node)) is not None:
        given = [key]
    if factory is None or not _is_followed(factory):
        return
    made = vm.store.get((owner.what, "*")) or ABSENT
    if isinstance(key.what, Const):
        name = f"[{key.what.value!r}]"
        is_there = (vm.store.get((owner.what, name)) or ABSENT) != ABSENT
        if is_there or isinstance(keys(vm, owner).what, Many):
            return
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        vm.store.open()
        before = vm.computations
        made = call_value(vm, factory, given, {}, node)
        _date_back(vm, before, vm.store.get((owner.what, _SINCE)))
        vm.store.owners.pop(made.what, None)  # who looks for it later makes it then
        vm.store.begin_all({**vm.store.close(), (owner.what, name): made}, ABSENT)
    elif given:
        if made == ABSENT:
            from ddpdoctor.lint.engine.interpreter.calls import call_value

            call_value(vm, factory, given, {}, node)  # which puts it there by itself
        return
    set_item(vm, owner, key, made, node)


def _missing(vm: Machine, owner: Value, node: ast.AST) -> Value | None:
    """What a dictionary of the user's own class asks for what it lacks."""
    made = vm.object(owner)
    method = (
        hierarchy.class_attribute(vm, made.cls, "__missing__") if made and made.cls >= 0 else None
    )
    return None if method is None else hierarchy.bound_to(vm, method, owner, NONE, node)


def begin(vm: Machine, dictionary: Value) -> None:
    """Remember when it was made: what it lacks is looked for much later."""
    vm.store.put((dictionary.what, _SINCE), Value(Const(vm.computations)))


def _date_back(vm: Machine, after: int, to: Value | None) -> None:
    """What was computed since goes for as old as the dictionary: every later look finds it."""
    if to is None or not isinstance(to.constant, int):
        return
    for what in [what for what, made in vm.made.items() if made.order > after]:
        vm.made[what] = replace(vm.made[what], order=to.constant)


FACTORY = "#factory"
"""Of a defaultdict: what makes its values."""
_SINCE = "#since"
"""Of a dictionary: after how many computations it was made."""
_MAKERS = tuple(map(Lib, ("list", "set", "dict", "int", "float", "bool", "str")))


def _is_followed(factory: Value) -> bool:
    """Whether what it makes is a container, a zero, or something of the program's own."""
    return factory.what in _MAKERS or isinstance(factory.what, Class | Func | Partial)
