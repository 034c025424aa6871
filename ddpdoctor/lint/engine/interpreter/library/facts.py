"""Calls that tell something or compute, and leave the ranks alone."""

from __future__ import annotations

import ast
import functools
import operator
from dataclasses import replace

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.folding import CLOCKED, is_coarse, is_of_seconds
from ddpdoctor.lint.engine.interpreter.library.call import Call, Handler, identity
from ddpdoctor.lint.engine.interpreter.library.sharding import PARTS_OF_STATE, is_whole
from ddpdoctor.lint.engine.interpreter.machine import BOUND, Left, Machine
from ddpdoctor.lint.engine.interpreter.objects import (
    containers,
    hierarchy,
    indexing,
    keyed,
    members,
    memory,
    paths,
)
from ddpdoctor.lint.engine.interpreter.store import SHUFFLED
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK,
    FALSE,
    NONE,
    NOTHING,
    RANK_IN,
    SAME,
    SAME_LIKELY,
    TRUE,
    UNKNOWN,
    Agreement,
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
    how_many,
    local,
    term,
    text,
)

REASONS = {
    "clock": "clocks differ between ranks",
    "chance": "drawn from this process's own generator",
    "machine": "a property of this process or machine",
    "disk": "a file may be there for one rank and not yet for another",
}


ASKED = "#asked"
"""Of a process group: it is asked for a rank or a size."""
PREPARED = "prepared"
"""Of the length of a loader: that of one rank's part."""


OF_THE_KIND = ("device", "dtype", "layout", "pin_memory", "requires_grad")
"""Arguments that say where a tensor lies and of which kind it is, not what is in it."""


_TENSOR_MAKERS = ("torch.", "torchvision.", "torchaudio.")


_SAME_PATH = ("os.path.abspath", "os.path.realpath", "os.path.expanduser", "os.path.normpath")
_NOT_TENSORS = ("torch.device", "torch.cuda.", "torch.nn.", "torch.utils.", "torch.backends.")


def asked(vm: Machine, call: Call) -> Value:
    """What a rank is told of itself and its job."""
    group = call.given("group")
    for each in group.what.options if group and isinstance(group.what, Either) else (group,):
        if each is not None and isinstance(each.what, Ref):
            vm.store.put((each.what, ASKED), TRUE)
    if call.effect.does == "rank" and group is not None and not is_world(group):
        said = vm.why(f"{text(call.node)} asks for the rank", call.node)
        made = group.what.number if isinstance(group.what, Ref) else vm.site(call.node)
        return Value(term(RANK_IN, made), BY_RANK, said)  # the group itself is given to nobody
    if call.effect.does == "world" and group is not None and not is_world(group):
        return Value(term("size", group.what), SAME)
    if call.name.endswith(".is_initialized"):
        vm.emit("ask", "is_initialized", call.node)
        if vm.apart:
            return FALSE
        if vm.starts and not vm.joined:
            vm.took_for_alone = True
            return replace(FALSE, why=vm.why("no process group has been joined yet", call.node))
    if call.effect.does in ("rank", "world") and call.name.startswith("torch.distributed."):
        vm.emit("query", call.last, call.node)
    if call.effect.does == "mode" and vm.joined:
        return TRUE
    if call.effect.does == "same":
        return Value(identity(vm, call.name, call.args, call.node), SAME)
    return members.of_rank(vm, call.effect.does, call.node, text(call.node))


def is_world(group: Value) -> bool:
    """Whether a group is that of all ranks."""
    return group.is_const(None) or (
        isinstance(group.what, Lib) and group.what.name.endswith(".WORLD")
    )


def _local(vm: Machine, call: Call) -> Value:
    cause = call.effect.option("cause")
    if call.name == "time.strftime" and is_coarse(call.first):
        return Value(term("strftime", vm.site(call.node)), SAME_LIKELY)
    why = vm.why(
        f"`{text(call.node)}`: {REASONS.get(cause, 'a value of this rank alone')}", call.node
    )
    op = CLOCKED if call.name == "time.strftime" and is_of_seconds(call.first) else "local"
    return Value(term(op, call.name, vm.site(call.node)), local(cause), why)


def _pure(vm: Machine, call: Call) -> Value:
    given = call.with_owner
    if call.name in ("os.path.join", "pathlib.Path", "pathlib.PurePath"):
        return paths.joined_path(vm, given)
    if call.name in _SAME_PATH:
        return given[0] if given else NONE
    every = given + [value for word, value in call.kwargs.items() if word not in OF_THE_KIND]
    agree, why = blended([inside(vm, each) for each in every])
    if call.name.startswith(_DATA_SETS):
        _open_data_set(vm, call)
    made = computed(vm, call.name, every, agree, why, call.node)
    if call.name in _SPLITTING and len(call.args) > 1 and isinstance(made.what, Term | Tensor):
        vm.store.put((made.what, indexing.NUMBER), call.args[1])
    return made


_DATA_SETS = "torchvision.datasets."
"""Classes that have their data in a folder, into which they put it where they are told to."""


def _open_data_set(vm: Machine, call: Call) -> None:
    root, download = call.kwargs.get("root", call.first), call.kwargs.get("download", NONE)
    if root.is_const(None) or not isinstance(root.what, Const | Term) or root.agree.divergent:
        return
    path = Value(term("data", call.name, root.what), UNKNOWN)
    if download.is_const(True):
        vm.emit("download", call.last, call.node, path=path)
    elif download.is_const(None, False):
        vm.emit("read_data", call.last, call.node, path=path)


_SPLITTING = ("numpy.array_split", "torch.tensor_split")
"""What gives as many parts as it is told."""
SALTED = "hash() of a text is another in every process"
UNSALTED = "a hash that is not salted, such as zlib.crc32 of the encoded text"


def _salted(vm: Machine, call: Call) -> Value:
    """Of numbers it is alike everywhere, of texts it is not."""
    if _is_text(call.first):
        why = vm.why(SALTED, call.node)
        return Value(term("hash", call.first.what), local("chance"), why)
    return _pure(vm, call)


def _is_text(value: Value) -> bool:
    what = value.what
    if isinstance(what, Either):
        return all(map(_is_text, what.options))
    if isinstance(what, Term) and what.op == "item":
        return _is_split_text(what.args[0])
    is_term = isinstance(what, Term) and what.op in ("text", "path")
    return is_term or isinstance(value.constant, str | bytes)


def _is_split_text(what: What) -> bool:
    """Whether it is what `split` makes of a text: a tensor is split at numbers."""
    parts = what.args if isinstance(what, Term) else ()
    return "split" in parts and any(
        isinstance(each, Const) and isinstance(each.value, str) for each in parts
    )


def computed(
    vm: Machine, name: str, every: list[Value], agree: Agreement, why: Why | None, node: ast.AST
) -> Value:
    """The result of a computation: a tensor, or a value that its operands stand for."""
    members.note_use(vm, name.rpartition(".")[2], every, node)
    of = frozenset().union(*(wrappers(vm, each) for each in every))
    tensor = name.startswith(_TENSOR_MAKERS) and not name.startswith(_NOT_TENSORS)
    tensor = tensor or name.startswith("torch.nn.functional.")
    if of or tensor:
        kept = frozenset() if name.startswith("math.") or name.endswith("_like") else of
        made = memory.fresh(vm, Value(Tensor(vm.site(node), kept), agree, why))
        return vm.computed(made, name.rpartition(".")[2], _contents(vm, every), node)
    return memory.fresh(vm, Value(identity(vm, name, every, node), agree, why))


def _contents(vm: Machine, values: list[Value]) -> tuple[Value, ...]:
    """Values, and containers as what they hold now."""
    return tuple(containers.content(vm, each) or each for each in values)


def inside(vm: Machine, value: Value, depth: int = 2) -> Value:
    """A container as what it holds, and what that holds in turn."""
    found = containers.content(vm, value)
    if found is None:
        return memory.current(vm, value)
    items = containers.held(found)
    if vm.type_of(value) == "dict":
        items = (*items, *(each for _, each in keyed.entries(vm, value)))
    if depth:
        items = tuple(inside(vm, each, depth - 1) for each in items)
    agree, why = blended([found, *(memory.current(vm, each) for each in items)])
    return Value(value.what, agree, why)


def wrappers(vm: Machine, value: Value) -> frozenset[int]:
    """The wrappers through which a value was computed."""
    found = containers.content(vm, value)
    if found is None:
        return members.models_behind(value)
    items = containers.held(found)
    if vm.type_of(value) == "dict":
        items = tuple(keyed.get_key(vm, value, each) for each in items)
    return frozenset().union(*map(members.models_behind, items))


def _bounds(vm: Machine, call: Call) -> Value:
    """Ranks that have agreed on the bound may have agreed on what each of them has."""
    from ddpdoctor.lint.engine.interpreter.iteration import elements

    if len(call.args) == 4 and indexing.numbers_twice(call.args[1].what, call.args[3].what):
        vm.emit("numbered_twice", "", call.node)
    if len(call.args) != 2:
        return _pure(vm, call)
    one, count = elements(vm, call.args[0], call.node)
    bound = call.args[1]
    vm.emit("bound", call.last, call.node, bound=bound)
    if bound.agree.divergent:
        count = bound
    elif count.agree.divergent:
        count = Value(NOTHING, UNKNOWN)
    return Value(Many(one), count.agree, count.why)


def _cycles(vm: Machine, call: Call) -> Value:
    """What has no end has as many rounds on each rank as it is asked for."""
    from ddpdoctor.lint.engine.interpreter.iteration import elements

    if len(call.args) != 1:
        return _pure(vm, call)
    one, _ = elements(vm, call.args[0], call.node)
    vm.emit("begin", call.last, call.node, over=call.args[0], element=one)
    return Value(Many(one), SAME)


def _count(vm: Machine, call: Call) -> Value:
    source = call.first
    content = containers.content(vm, source)
    if call.name == "len" and isinstance(source.what, Table):
        length = folding.on_each_rank(len, (source,))
        if length is not None:
            return length
    if content is None:
        agree, why = blended(
            [containers.without_order(each) for each in (*call.args, *call.kwargs.values())]
        )
        made = vm.object(source)
        if made is not None and made.type == "torch.utils.data.DataLoader":
            sampler = vm.store.get((source.what, "sampler"))
            known = sampler is not None and "DistributedSampler" in vm.type_of(sampler)
            part = (PREPARED,) if vm.store.get((source.what, "#prepared")) is not None else ()
            return Value(term("len", source.what, *part), SAME if known or part else UNKNOWN)
        told = own_length(vm, source, call.node) if call.name == "len" else None
        if told is not None:
            if isinstance(told.what, Term):
                vm.lengths[told.what] = source.what
            return told
        if call.name == "len" and (rows := _first_of_tensors(vm, source)) is not None:
            return Value(term("len", source.what), members.rows(vm, rows), rows.why)
        if call.name == "len" and isinstance(source.what, Tensor):
            return Value(term("len", source.what), members.rows(vm, source), source.why)
        if call.name == "len" and _is_shuffled(vm, memory.current(vm, source)):
            return Value(term("len", source.what), UNKNOWN)
        if call.name.endswith("sorted"):
            return _sorted(vm, call, Value(term("sorted", source.what), agree, why))
        if call.name in ("sum", "min", "max", "any", "all"):
            return computed(vm, call.name, list(call.args), agree, why, call.node)
        if call.name == "len" and agree.cause in containers.NOT_HOW_MANY:
            agree, why = UNKNOWN, None
        return Value(
            term(call.name, source.what, *(each.what for each in call.args[1:])), agree, why
        )
    plain = containers.without_order(content)
    items = [
        containers.without_order(memory.current(vm, each)) for each in containers.held(content)
    ]
    if call.name == "len":
        number = how_many(content.what)
        is_shuffled = vm.store.get((source.what, SHUFFLED)) == content or _is_shuffled(vm, plain)
        plain = Value(plain.what, UNKNOWN) if is_shuffled else plain
        if isinstance(number, Const):
            return Value(number, plain.agree, plain.why)
        return Value(term("len", source.what), plain.agree, plain.why)
    if call.name.endswith("sorted"):
        if (ordered := _in_order(content.what, items, call)) is not None:
            return containers.new_list_of(vm, call.node, Value(ordered, plain.agree, plain.why))
        element = containers.one_of(vm, items) if items else NONE
        agree, why = blended([plain, element])
        if (apart := sorted_apart(vm, call.kwargs.get("key"), element, call.node)) is not None:
            agree, why, element = apart.agree, apart.why, apart
        many = Many(element, how_many(content.what))
        return containers.new_list_of(vm, call.node, Value(many, agree, why))
    agree, why = blended([plain, *items, *call.args[1:]])
    of = frozenset().union(*map(members.models_behind, items))
    made_tensor = any(isinstance(each.what, Tensor) for each in items)
    is_all = call.name == "all"
    if (is_all or call.name == "any") and isinstance(content.what, Tuple) and not made_tensor:
        answers = (containers.truthy(vm, each, call.node) for each in items)
        told = functools.reduce(
            lambda a, b: folding.both(a, b, is_all), answers, Value(Const(is_all))
        )
        answer = vm.truth(told)
        whole = told.what if answer is None else Const(answer)
        return Value(whole, *blended([plain, told]))
    what = (
        Tensor(vm.site(call.node), of) if made_tensor else identity(vm, call.name, items, call.node)
    )
    return vm.computed(Value(what, agree, why), call.name, tuple(items), call.node)


def _sorted(vm: Machine, call: Call, plain: Value) -> Value:
    """What is made of something of which no part is known: a list, where ranks sort it apart."""
    from ddpdoctor.lint.engine.interpreter.iteration import elements

    key = call.kwargs.get("key")
    if key is None or plain.agree.divergent:
        return plain
    element, _ = elements(vm, call.args[0], call.node)
    apart = sorted_apart(vm, key, element, call.node)
    if apart is None:
        return plain
    return containers.new_list_of(vm, call.node, Value(Many(apart), apart.agree, apart.why))


def _is_shuffled(vm: Machine, content: Value) -> bool:
    """Whether ranks have things in orders of their own, and else nothing of theirs: as many."""
    drawn = content.why.root.node if content.why is not None else None
    if content.agree.cause != "chance" or drawn is None:
        return False
    return vm.draws.get(drawn, "").endswith(("shuffle", "sample", "permutation"))


def _first_of_tensors(vm: Machine, data: Value) -> Value | None:
    """The first of the tensors that a data set of the library's consists of."""
    given = vm.store.get((data.what, "#given"))
    items = given.what.items if given is not None and isinstance(given.what, Tuple) else ()
    return items[0] if items and isinstance(items[0].what, Tensor) else None


def _in_order(content: What, items: list[Value], call: Call) -> Tuple | None:
    """Words whose order is known: those of a display, sorted by nothing but themselves."""
    if not isinstance(content, Tuple) or call.kwargs:
        return None
    by_word = {each.constant: each for each in items if isinstance(each.constant, str)}
    if len(by_word) < len(items):
        return None
    return Tuple(tuple(by_word[word] for word in sorted(by_word)))


def own_length(vm: Machine, value: Value, node: ast.AST) -> Value | None:
    """What an object of the user's says of its length."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    made = vm.object(value)
    if made is None or made.cls < 0:
        return None
    if hierarchy.class_attribute(vm, made.cls, "__len__") is None:
        return None
    return call_value(vm, members.attribute(vm, value, "__len__", node), [], {}, node)


def text_of(vm: Machine, value: Value, node: ast.AST) -> Value:
    """What is put into a text: of an object of the user's, what it says of itself there."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    if isinstance(value.what, Either):
        told = [text_of(vm, each, node) for each in value.what.options]
        found = containers.one_of(vm, told)
        is_plain = all(map(operator.is_, told, value.what.options))
        return value if is_plain else Value(found.what, *blended([found, value]))
    made = vm.object(value)
    if made is None or made.cls < 0:
        return value
    for name in ("__format__", "__str__", "__repr__"):
        if hierarchy.class_attribute(vm, made.cls, name) is not None:
            given = [Value(Const(""))] if name == "__format__" else []
            return call_value(vm, members.attribute(vm, value, name, node), given, {}, node)
    return value


def sorted_apart(vm: Machine, key: Value | None, element: Value, node: ast.AST) -> Value | None:
    """An element of what ranks sort by keys of their own, None of anything else.

    That is what a file system says of files, or what the rank decides of what all of them have.
    """
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    if key is None or key.is_const(None):
        return None
    told = call_value(vm, key, [element], {}, node)
    parts = told.what.items if isinstance(told.what, Tuple) else (told,)
    times = [each for each in parts if each.agree.cause == "disk" and not _is_size(each)]
    if times and element.agree.cause != "disk":  # else the key may be no more than the element
        why = vm.why(f"the times that `{text(node)}` sorts by differ between machines", node)
        return Value(element.what, local("order", False), why)  # a folder that all share has one
    if told.agree.kind == "rank" and not element.agree.divergent:
        why = vm.why(f"`{text(node)}` sorts by what the rank decides", node, told.why)
        return Value(element.what, local("order", told.agree.sure), why)
    return None


def _is_size(told: Value) -> bool:
    return "os.path.getsize" in getattr(told.what, "args", ())


def _itself(vm: Machine, call: Call) -> Value:
    if call.name == "functools.wraps":
        return Value(Partial(Value(Lib("functools.wraps()")), tuple(call.args[:1])))
    last = call.last
    if call.owner is not None:
        if last in ("half", "float", "double", "bfloat16", "to", "cuda", "cpu"):
            vm.emit(
                "convert", last, call.node, object=call.owner, **by_position(call.args, call.kwargs)
            )
            moved(vm, call.owner, last, call.args, call.kwargs)
        elif last in ("train", "eval"):
            mode = (
                (call.args[0] if call.args else call.kwargs.get("mode", TRUE))
                if last == "train"
                else FALSE
            )
            members.switch(vm, call.owner, mode)
            vm.emit("switch", last, call.node, object=call.owner, mode=mode)
        return call.args[0] if call.args and last == "scale" else call.owner
    found = call.args[0] if call.args else next(iter(call.kwargs.values()), NONE)
    if last == "convert_sync_batchnorm":
        vm.emit("sync_batchnorm", last, call.node, object=found)
    return found


def moved(
    vm: Machine, owner: Value, last: str, args: list[Value], kwargs: dict[str, Value]
) -> None:
    """Remember the device that a module was moved to."""
    device = args[0] if args else kwargs.get("device")
    if last in ("cuda", "cpu"):
        device = Value(Const(last))
    if device is not None and last in ("to", "cuda", "cpu"):
        vm.store.put((owner.what, "#device"), device)


def by_position(args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """Arguments by the names that an event has for them."""
    return {f"arg{number}": each for number, each in enumerate(args)} | {
        f"kw_{word}": each for word, each in kwargs.items()
    }


def _calls(vm: Machine, call: Call) -> Value:
    if not call.args:
        return Value(NOTHING, UNKNOWN)
    first = call.args[0]
    given = vm.why(BOUND, call.node)
    own = [(word, Value(e.what, e.agree, e.why or given)) for word, e in call.kwargs.items()]
    if isinstance(first.what, Func):
        what = first.what
        named = (*what.named, *own)
        return Value(replace(what, bound=(*what.bound, *call.args[1:]), named=named))
    return Value(Partial(first, tuple(call.args[1:]), tuple(own)))


def _runs(vm: Machine, call: Call) -> Value:
    """A function is called with what the command line gives, which is alike on all ranks."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value
    from ddpdoctor.lint.engine.interpreter.program import unknown_arguments

    what = call.first.what
    inner = (vm.store.get((what, "__wrapped__")) or call.first).what
    if not isinstance(what, Func) or not isinstance(inner, Func):
        return Value(identity(vm, call.name, call.args, call.node), SAME)
    given = unknown_arguments(vm, vm.functions[inner.number], skip=len(what.bound))
    given = {name: each for name, each in given.items() if name not in dict(what.named)}
    alike = {name: Value(e.what, SAME) if e.agree == UNKNOWN else e for name, e in given.items()}
    return call_value(vm, call.first, [], alike, call.node)


def _refers(vm: Machine, call: Call) -> Value:
    """Who calls it gets what it was given."""
    return Value(Partial(Value(Lib("weakref.ref()")), (call.first,)))


def _enters(vm: Machine, call: Call) -> Value:
    scope = call.effect.option("scope")
    throws = call.given("throws")
    if throws is not None and throws.is_const(True):
        scope = "plain"
    form = call.given("form")
    if form is not None and not is_whole(form):
        scope = PARTS_OF_STATE
    enabled = call.given("enabled")
    if enabled is not None:
        ways = vm.ways(enabled, lambda: _scope(vm, call, scope), lambda: _scope(vm, call, "plain"))
        return vm.choose(call.node, _asked(call, "enabled"), enabled, ways) or NONE
    if (
        call.args
        and isinstance(call.args[0].what, Func)
        and call.effect.option("scope") == "no_grad"
    ):
        from ddpdoctor.lint.engine.interpreter.methods import _decorated

        return _decorated(call.args, "no_grad")
    return _scope(vm, call, scope)


def _scope(vm: Machine, call: Call, scope: str) -> Value:
    made = vm.new(call.node, "scope", kind=scope)
    vm.store.put((made, "scope"), Value(Const(scope)))
    if call.args:
        vm.store.put((made, "of"), call.args[0])
    for role, value in call.roles().items():
        vm.store.put((made, role), value)
    if scope == "no_sync":
        vm.emit("scope", scope, call.node, of=call.first, scope=Value(made))
    return Value(made)


def _asked(call: Call, role: str) -> ast.AST:
    """The argument that plays a role, as it is written."""
    for each, parameter, position in call.effect.parameters():
        if each == role and isinstance(call.node, ast.Call):
            named = (word.value for word in call.node.keywords if word.arg == parameter)
            return next(named, None) or call.node.args[position]
    return call.node


def _ends(vm: Machine, call: Call) -> Value:
    roles = call.roles()
    if "process" in roles:  # another one, unless it is asked for its own number
        is_own = getattr(roles["process"].what, "args", ())[:1] == ("os.getpid",)
        if not is_own or "signal" not in roles or roles["signal"].what not in _DEADLY:
            return Value(NOTHING, UNKNOWN)
    takes_status = any(role == "status" for role, _, _ in call.effect.parameters())
    status = roles.get("status", NONE if takes_status else Value(NOTHING, UNKNOWN))
    vm.emit("ends", call.name, call.node, status=status)
    vm.leave("end", call.node, status)
    raise Left


_DEADLY = (Const(9), Lib("signal.SIGKILL"), Lib("signal.Signals.SIGKILL"))
"""What no process outlives: for all other signals there may be a handler."""


def _distinct(vm: Machine, call: Call) -> Value:
    """A constant that is equal to itself alone."""
    return Value(Const(f"{call.name} {vm.site(call.node)}"))


def _imports(vm: Machine, call: Call) -> Value:
    """What is imported if it is there, and whether it is, which all ranks find alike."""
    module, name = call.given("module"), call.given("name")
    if module is None or not isinstance(module.constant, str):
        return Value(identity(vm, call.name, call.args, call.node), UNKNOWN)
    inside = f".{name.constant}" if name is not None and name.constant else ""
    is_there = Value(identity(vm, call.name, call.args, call.node), SAME)
    return Value(Tuple((Value(Lib(f"{module.constant}{inside}")), is_there)))


HANDLERS: dict[str, Handler] = {
    "distinct": _distinct,
    "local": _local,
    "pure": _pure,
    "salted": _salted,
    "count": _count,
    "bounds": _bounds,
    "cycles": _cycles,
    "itself": _itself,
    "calls": _calls,
    "refers": _refers,
    "runs": _runs,
    "enters": _enters,
    "ends": _ends,
    "imports": _imports,
}
