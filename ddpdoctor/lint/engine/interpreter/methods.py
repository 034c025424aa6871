"""Methods of what is no class of the user's: containers, strings, tensors, library objects."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.folding import (
    CLOCKED,
    DATA_METHODS,
    is_coarse,
    is_of_seconds,
)
from ddpdoctor.lint.engine.interpreter.library.dispatch import call_library
from ddpdoctor.lint.engine.interpreter.library.events import loss_of
from ddpdoctor.lint.engine.interpreter.library.facts import (
    OF_THE_KIND,
    by_position,
    moved,
    sorted_apart,
    text_of,
)
from ddpdoctor.lint.engine.interpreter.library.files import note_file
from ddpdoctor.lint.engine.interpreter.library.forwards import forward
from ddpdoctor.lint.engine.interpreter.library.python import of_fields
from ddpdoctor.lint.engine.interpreter.library.sharding import gathers_its_state
from ddpdoctor.lint.engine.interpreter.machine import EITHER, Machine, Path
from ddpdoctor.lint.engine.interpreter.names import MAIN_NAME, RANK_CALL, hinted
from ddpdoctor.lint.engine.interpreter.objects import (
    containers,
    hierarchy,
    indexing,
    keyed,
    members,
    memory,
    paths,
    texts,
)
from ddpdoctor.lint.engine.interpreter.store import GRADED, LET_IN
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK_LIKELY,
    EVERYONE,
    NONE,
    NOTHING,
    OPEN,
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
    has_identity,
    how_many,
    is_device,
    local,
    mix,
    term,
    within,
)

_SELF_METHODS = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "detach",
        "clone",
        "contiguous",
        "requires_grad_",
        "train",
        "eval",
        "numpy",
        "view",
        "reshape",
        "squeeze",
        "unsqueeze",
    ]
)
_CONVERSIONS = ("to", "cuda", "cpu", "half", "float", "double", "bfloat16")
"""They give the tensor itself, or a copy where it is elsewhere or of another type."""
_ADDERS = ("add_module", "register_module", "register_parameter")
_GROWS = ("append", "insert", "extend")
TAKES = ("pop", "popleft", "remove", "clear")
_ADVANCES = ("__next__", "next")
"""Of an iterator; that of a loader's had the second for long."""
_CASES = ("lower", "upper", "strip", "rstrip", "lstrip")
TEXT_METHODS = frozenset(
    (
        *(*_CASES, "startswith", "endswith", "replace", "format", "removeprefix", "removesuffix"),
        *("split", "rsplit", "partition", "rpartition", "find", "count", "isdigit", "zfill"),
    )
)
_MAX_PARTS = 16
_LISTINGS = ("iterdir", "glob", "rglob")
_ARCCOS = ("acos", "arccos")
_DRAWN_IN_PLACE = ("cauchy_", "exponential_", "log_normal_", "normal_", "random_", "uniform_")
"""What fills a tensor with noise; of `bernoulli_` it becomes a mask, as that of a dropout."""
_PARTS_OF_MODULES = frozenset(
    {
        *("parameters", "named_parameters", "buffers", "named_buffers"),
        *("modules", "named_modules", "children", "named_children"),
    }
)
_SHARING = ("reduce", "gather", "sync", "broadcast", "all_")


def call_method(
    vm: Machine,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """`owner.name(...)`."""
    what = owner.what
    effect = vm.library.method(name)
    if effect is not None and effect.does == "collective":
        return call_library(vm, effect.name, owner, args, kwargs, node)
    if name == "state_dict" and gathers_its_state(vm, owner):
        vm.emit("collective", name, node, work=NONE)
    if owner.agree.cause == "clock" and name in ("date", "strftime"):
        format = args[0] if args else NONE
        if name == "date" or is_coarse(format):
            return Value(term(name, vm.site(node)), SAME_LIKELY)
        if is_of_seconds(format):
            return Value(term(CLOCKED, name, vm.site(node)), owner.agree, owner.why)
    if isinstance(what, Ref):
        made = vm.objects[what.number]
        if made.type in ("list", "set"):
            return _of_container(vm, owner, name, args, kwargs, node)
        if made.type == "dict":
            return _of_dict(vm, owner, name, args, kwargs, node)
        type = made.type if made.cls < 0 else hierarchy.library_base(vm, made.cls)
        return call_method_of(vm, owner, type, name, args, kwargs, node)
    if name in _NAMES and not args and owner.agree.cause == "data" and _is_unknown(what):
        return _named_within(vm, owner, name, node)
    if isinstance(what, Tensor):
        return _of_tensor(vm, owner, name, args, kwargs, node)
    if isinstance(what, Const | Table) or (isinstance(what, Term) and what.op in ("text", "env")):
        return _of_text(vm, owner, name, args, kwargs, node)
    if isinstance(what, Term) and what.op == "path":
        return _of_path(vm, owner, name, args, kwargs, node)
    if name == "sort" and isinstance(what, Term):
        _sort_unknown(vm, owner, kwargs.get("key"), node)
    if isinstance(what, Term) and name in memory.ASKING_SIZE and memory.is_changed(vm, what):
        return members.attribute(vm, owner, name, node)
    if isinstance(what, Term) and has_identity(what):
        _note_module(vm, what, name, args[0] if args else kwargs.get("requires_grad", TRUE))
        if args or kwargs:
            _may_set(vm, what)
    return call_duck(vm, owner, name, args, kwargs, node)


def _sort_unknown(vm: Machine, owner: Value, key: Value | None, node: ast.AST) -> None:
    """Sort a list of which no part is known: told of it, where ranks do it each in its own way."""
    from ddpdoctor.lint.engine.interpreter.iteration import elements

    apart = sorted_apart(vm, key, elements(vm, owner, node)[0], node)
    if apart is not None:
        memory.touch(vm, owner, apart.agree, apart.why)


def _may_set(vm: Machine, what: Term) -> None:
    """What a library's object is told may change its settings, as `cfg.merge_from_file(...)`."""
    todo, seen = [what], set[Term]()
    while todo:
        one = todo.pop()
        if one.op not in ("result", "copied") or one in seen:
            continue
        seen.add(one)
        for name, value in vm.store.of(one).items():
            if isinstance(value.what, Const) and name.isidentifier():
                vm.store.put((one, name), Value(term("of", one, name), SAME))
            elif isinstance(value.what, Term):
                todo.append(value.what)


def _note_module(vm: Machine, what: Term, method: str, trained: Value) -> None:
    """Remember of something unknown that it is a module, and whether it may have been frozen."""
    if method in _PARTS_OF_MODULES:
        vm.store.put((what, members.A_MODULE), Value(Const(method)))
    if method == "requires_grad_":
        vm.store.put((what, members.TRAINED), trained)


_NAMES = ("items", "keys")


def _is_unknown(what: What) -> bool:
    return isinstance(what, Tensor | Term) and what != NOTHING


def _named_within(vm: Machine, owner: Value, name: str, node: ast.AST) -> Value:
    """What holds a rank's own data goes by names of which nobody knows that they are its own."""
    what = owner.what
    key = Value(term("key", vm.site(node, "key")), UNKNOWN)
    if name == "keys":
        return Value(Many(key), UNKNOWN)
    site = vm.site(node, "value")
    held: What = Tensor(site, what.of) if isinstance(what, Tensor) else term("held", what, site)
    one = vm.computed(Value(held, owner.agree, owner.why), "item", (owner,), node)
    return Value(Many(Value(Tuple((key, one)))), UNKNOWN)


def call_method_of(
    vm: Machine,
    owner: Value,
    type: str,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """A method of a library's type."""
    if type == "torch.nn.parallel.DistributedDataParallel":
        if name in ("forward", "__call__"):
            return forward(vm, owner, args, kwargs, node)
        if name == "no_sync":
            return Value(_scope(vm, node, "no_sync", owner))
        if name == "join":
            return Value(_scope(vm, node, "join", owner))
        if vm.library.exact(f"{type}.{name}") is None:
            type = "torch.nn.Module"
    if type == "torch.distributed.Work":
        if isinstance(owner.what, Ref) and name != "wait":
            vm.handed.add(
                owner.what.number
            )  # who asks whether it is done waits in a way of its own
        return call_duck(vm, owner, name, args, kwargs, node)
    effect = vm.library.find(f"{type}.{name}")
    if effect is None and type in ("torch.nn.Module", "torch.nn.DataParallel"):
        effect = vm.library.find(f"torch.nn.Module.{name}")
    if effect is not None and effect.name != f"{type.partition('.')[0]}.*":
        return call_library(vm, f"{type}.{name}", owner, args, kwargs, node)
    if type == "contextlib.ExitStack" and name == "enter_context" and args:
        scope = vm.store.get((args[0].what, "scope")) or Value(Const(""))
        entered = vm.emit("enter", str(scope.constant), node, scope=args[0], stack=owner)
        if entered.name == "no_sync":
            vm.inside = entered
        return args[0]
    if type == "argparse.ArgumentParser" or type.startswith("argparse._"):
        return _of_parser(vm, owner, name, args, kwargs, node)
    if type == "torch.nn.Module" and name == "__call__":
        return forward(vm, owner, args, kwargs, node)
    if type == "typing.NamedTuple" and name in ("_replace", "_asdict"):
        return of_fields(vm, name, owner, kwargs, node)
    if name in _GROWS and containers.content(vm, owner) is not None:
        vm.emit("register", name, node, object=owner, arg0=args[-1] if args else NONE)
        return _of_container(vm, owner, name, args, kwargs, node)
    held = vm.store.get((owner.what, memory.PARTS))
    if held is not None and name in ("keys", "values", "items", "update"):
        return call_method(vm, held, name, args, kwargs, node)
    return call_duck(vm, owner, name, args, kwargs, node)


def _scope(vm: Machine, node: ast.AST, scope: str, of: Value) -> Ref:
    made = vm.new(node, "scope", kind=scope)
    vm.emit("scope", scope, node, of=of, scope=Value(made))
    vm.store.put((made, "scope"), Value(Const(scope)))
    vm.store.put((made, "of"), of)
    return made


def call_duck(
    vm: Machine,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """A method of something unknown, by what methods of this name do everywhere."""
    vm.note_read(owner, args[0] if args and name in ("get", "pop") else None)
    note_file(vm, owner, name, args, kwargs, node)
    put = keyed.put_under(vm, owner, args[0]) if args and name == "get" else None
    if put is not None:
        return put
    every = [memory.current(vm, each) for each in (owner, *args, *kwargs.values())]
    telling = [each for each in every[1:] if not _tells_where_or_whether(vm, each)]
    agree, why = blended([every[0], *(telling if name not in _CONVERSIONS else ())])
    if name == "backward" and not isinstance(owner.what, Lib):
        _go_backward(vm, owner, args, kwargs, node)
        return NONE
    if name == "zero_grad":
        vm.emit("zero_grad", "zero_grad", node, optimizer=owner)
        return NONE
    given = {f"arg{number}": each for number, each in enumerate(args)}
    if name == "step":
        loss = loss_of(vm, kwargs.get("closure", args[0] if args else NONE), node)
        vm.emit("step", "step", node, optimizer=owner, **given)
        return loss or Value(NOTHING, UNKNOWN)
    if name == "unscale_":
        vm.emit("unscale", name, node, object=owner, **given)
        return NONE
    if name in _ADDERS or (name in _GROWS and any(members.is_module(vm, each) for each in args)):
        vm.emit("register", name, node, object=owner, **given)
    if name == "requires_grad_":
        vm.emit("unfreeze", name, node, object=owner, **given)
    if name == "set_epoch":
        vm.emit("set_epoch", "set_epoch", node, sampler=owner)
        return NONE
    if name == "load_state_dict":
        state = args[0] if args else Value(NOTHING, UNKNOWN)
        vm.emit("load_state", "load_state_dict", node, object=owner, state=state)
        return Value(NOTHING, SAME)
    if name == "no_sync":
        return Value(_scope(vm, node, "no_sync", owner))
    if name == "wait":
        vm.emit("wait", "wait", node, work=owner)
        return NONE
    if name == "update" and isinstance(owner.what, Term):
        for each in args:
            keyed.put_all(vm, owner, each, node)
        for word, value in kwargs.items():
            keyed.set_item(vm, owner, Value(Const(word)), value, node)
    if RANK_CALL.match(name) or MAIN_NAME.match(name):
        return _hint_of_call(vm, name, Value(NOTHING, UNKNOWN))
    if name in _SELF_METHODS:
        moved(vm, owner, name, args, kwargs)
        if name in ("to", "cuda"):
            vm.emit("put", name, node, **by_position(args, kwargs))
        kept = members.module_of(owner.what)
        if kept is not None and name == "clone":
            vm.emit("copy", name, node, object=Value(kept))
        if isinstance(owner.what, Term) and (
            name == "clone" or (kept is not None and name in _CONVERSIONS)
        ):
            made = Value(term("copied", owner.what, vm.site(node)), agree, why)
            return vm.computed(memory.fresh(vm, made), name, (owner,), node)
        if name in ("detach", "numpy") and isinstance(owner.what, Term):
            return Value(memory.detached(owner.what), agree, why)
        return Value(owner.what, agree, why)
    if name in _LISTINGS and not isinstance(owner.what, Lib):
        listing = "os.listdir" if name == "iterdir" else "glob.glob"
        return call_library(vm, listing, None, [owner], {}, node)
    if name in _ARCCOS:
        vm.emit("arccos", name, node, of=owner)
    if name.endswith("_") and not name.endswith("__") and isinstance(owner.what, Term):
        given = {"given": args[0]} if args else {}
        vm.emit("change", name, node, object=owner, **given)
    if "sort" in name:
        agree, why = blended([containers.without_order(each) for each in every])
    if name == "state_dict":
        return Value(term("state", owner.what), SAME)
    is_unknown = agree.kind == "unknown" and not _is_settings(vm, owner)
    if is_unknown and name in DATA_METHODS and not _is_of_shared_tensors(vm, owner):
        agree = local("data", False)
        why = vm.why("a tensor holds this rank's own data", node)
    if any(word in name.lower() for word in _SHARING):
        agree, why = UNKNOWN, None
    if agree.divergent and name in _PARTS_OF_MODULES and not args:
        agree, why = UNKNOWN, None  # how many there are is its class's doing, whatever it was given
    _hand_over(vm, args, kwargs)
    if any(not isinstance(each.what, Const) for each in (*args, *kwargs.values())):
        _open_up(vm, owner, agree, why)
    members.note_use(vm, name, (owner, *args, *kwargs.values()), node)
    if name == "register_post_accumulate_grad_hook" and args:
        vm.emit("gradient_hook", name, node, weight=owner, hook=args[0])
    parts = [each.what for each in args]
    site = vm.site(node, "value")
    made = memory.fresh(vm, Value(term("call", name, owner.what, *parts, site), agree, why))
    return vm.computed(made, name, (owner, *args, *kwargs.values()), node)


def _open_up(vm: Machine, owner: Value, agree: Agreement, why: Why | None) -> None:
    """Forget the settings of an object that a library's method may set: a file is merged into it.

    That is one whose class derives from a library's of which nothing is known. What a rank alone
    hands over need not be what is set: then nobody knows whether the ranks agree.
    """
    agree, why = (UNKNOWN, None) if agree.divergent else (agree, why)
    made = vm.object(owner)
    base = hierarchy.library_class(vm, made.cls) if made is not None and made.cls >= 0 else ""
    if not base or vm.library.find(base) is not None or members.is_module(vm, owner):
        return
    todo, seen = [owner.what], set[What]()
    while todo:
        what = todo.pop()
        seen.add(what)
        for name, value in vm.store.of(what).items():
            inner = vm.object(value)
            if isinstance(value.what, Const):
                vm.store.put((what, name), Value(term("setting", what, name), agree, why))
            elif inner is None or inner.cls < 0 or value.what in seen:
                continue
            elif hierarchy.library_class(vm, inner.cls) == base:
                todo.append(value.what)


def _tells_where_or_whether(vm: Machine, value: Value) -> bool:
    """A device, or a yes or no of the rank: so it is told where to work, or who is to speak of it.

    What an unknown function makes is not another thing for that. A thing that some ranks have, and
    the others None in its place, is such a yes or no.
    """
    what = value.what
    if value.agree.kind != "rank":
        return False
    if isinstance(what, Either):
        return any(each.is_const(None) for each in what.options)
    if isinstance(what, Table):
        return all(entry is OPEN or isinstance(entry, bool) for entry in what.entries)
    is_asked = isinstance(what, Term) and what.op in _YES_OR_NO
    return is_asked or is_device(what) or vm.type_of(value) == "torch.device"


_YES_OR_NO = {"not", "and", "or", *(each.__name__ for each in ast.cmpop.__subclasses__())}


def _is_settings(vm: Machine, owner: Value) -> bool:
    """Whether it is no tensor: something of a library, or what NumPy has computed on some way.

    So is what something unknown has made of that.
    """
    if isinstance(owner.what, Lib):
        return True
    todo: list[Value] = [owner]
    seen: set[object] = set()
    while todo and len(seen) < _FAR:
        for each in within(todo.pop().what):
            if not isinstance(each, Term) or each in seen:
                continue
            if each.op == "lib" and str(each.args[0]).startswith("numpy."):
                return True
            seen.add(each)
            todo += vm.store.options(Value(each))
            todo += vm.made[each].of if each in vm.made else ()
    return False


_FAR = 100
"""So many things something is looked for in."""


def _is_of_shared_tensors(vm: Machine, owner: Value) -> bool:
    """Whether it was computed, nobody knows how, of tensors alone that all ranks have alike."""
    made = vm.made.get(owner.what)
    of = [each for each in made.of if not isinstance(each.what, Lib | Const)] if made else []
    whole = [each.what.element if isinstance(each.what, Many) else each for each in of]
    return bool(whole) and all(
        isinstance(each.what, Tensor) and each.agree.kind == "same" for each in whole
    )


def _hint_of_call(vm: Machine, name: str, value: Value) -> Value:
    table_name = name.removeprefix("get_")
    return hinted(vm, value, table_name)


def _hand_over(vm: Machine, args: list[Value], kwargs: dict[str, Value]) -> None:
    """What is handed to something unknown may be changed there."""
    for each in (*args, *kwargs.values()):
        vm.note_read(each)
        if isinstance(each.what, Ref):
            vm.handed.add(each.what.number)
        if isinstance(each.what, Ref) and vm.type_of(each) in ("list", "set"):
            content = vm.store.get((each.what, "[]"))
            if content is not None and content.agree.kind == "same":
                vm.store.put((each.what, "[]"), Value(content.what, UNKNOWN))


def call_object(
    vm: Machine, callee: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """`thing(...)` of an object."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    assert isinstance(callee.what, Ref)
    made = vm.objects[callee.what.number]
    if made.cls >= 0:
        method = hierarchy.class_attribute(vm, made.cls, "__call__")
        if method is not None:
            return call_value(
                vm, members.attribute(vm, callee, "__call__", node), args, kwargs, node
            )
        return forward(vm, callee, args, kwargs, node)
    if made.type in ("torch.nn.parallel.DistributedDataParallel", "torch.nn.Module"):
        return forward(vm, callee, args, kwargs, node)
    called = f"{made.type}.__call__"
    if (effect := vm.library.find(called)) is not None and effect.name == called:
        return call_library(vm, called, callee, args, kwargs, node)
    kept = vm.store.get((callee.what, "function"))
    if made.type == "scope":
        return _decorated(args, str(objects_scope(vm, callee)))
    if kept is not None:
        return call_value(vm, kept, args, kwargs, node)
    return call_unknown(vm, callee, args, kwargs, node)


def objects_scope(vm: Machine, value: Value) -> object:
    """The scope that a context manager enters."""
    kept = vm.store.get((value.what, "scope"))
    return kept.constant if kept is not None else ""


def _decorated(args: list[Value], scope: str) -> Value:
    """A function with a scope around each call."""
    if args and isinstance(args[0].what, Func):
        what = args[0].what
        return Value(replace(what, within=(*what.within, scope)))
    return args[0] if args else NONE


def call_unknown(
    vm: Machine, callee: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A call of something of which nothing is known."""
    every = [memory.current(vm, each) for each in (callee, *args, *kwargs.values())]
    kind = OF_THE_KIND if isinstance(callee.what, Lib) else ()  # where a library puts it
    said = [memory.current(vm, each) for word, each in kwargs.items() if word not in kind]
    telling = [*every[: 1 + len(args)], *said]
    telling = [each for each in telling if not _tells_where_or_whether(vm, each)]
    # Of parts that are as large on all ranks, what is made may be as much.
    agree, why = blended([each for each in telling if not members.is_as_large(vm, each)])
    name = ""
    if isinstance(node, ast.Call):
        func = node.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if RANK_CALL.match(name) or MAIN_NAME.match(name):
        return _hint_of_call(vm, name, Value(NOTHING, UNKNOWN))
    if isinstance(callee.what, Term) and callee.what.op == "picked":
        of, index = callee.what.args
        vm.emit("one_of_parts", name, node, of=Value(of), index=Value(index, callee.agree))
    wrapper = vm.wrapped.get(callee.what)
    if wrapper is not None:
        return wrapped_forward(vm, callee, wrapper, args, kwargs, node)
    wrappers = [
        each
        for each in (*args, *kwargs.values())
        if vm.type_of(each) == "torch.nn.parallel.DistributedDataParallel"
    ]
    if any(word in name.lower() for word in _SHARING):
        agree, why = UNKNOWN, None
    elif agree.kind == "local":
        agree = local(agree.cause, False)
    elif agree.kind == "rank":
        agree = BY_RANK_LIKELY
    elif wrappers and not name[:1].isupper():  # a class keeps it, and computes nothing yet
        agree = local("data", False)
        why = vm.why("it is computed from this rank's own data", node)
    else:
        agree = UNKNOWN
    made = frozenset().union(*map(members.models_behind, every))
    asked = callee.what.args[:1] if isinstance(callee.what, Term) and callee.what.op == "of" else ()
    members.note_use(vm, name, (*map(Value, asked), *args, *kwargs.values()), node)
    contents = tuple(containers.content(vm, each) or each for each in every)
    _hand_over(vm, args, kwargs)
    _may_run(vm, (*args, *kwargs.values()), node)
    if made:
        found = memory.fresh(vm, Value(Tensor(vm.site(node), made), agree, why))
        return vm.computed(found, name, contents, node)
    identity = term("result", callee.what if callee.what != NOTHING else "", vm.site(node))
    if name[:1].isupper():  # a class by its name, which keeps what it is given
        vm.store.put((identity, "#given"), Value(Tuple((*args, *kwargs.values()))))
    return vm.computed(memory.fresh(vm, Value(identity, agree, why)), name, contents, node)


def _may_run(vm: Machine, given: Iterable[Value], node: ast.AST) -> None:
    """Who is given a function may call it, as the other ranks may call it themselves."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    functions = [each for each in given if isinstance(each.what, Func)]
    if not any(each.agree.divergent for each in vm.conditions):
        return
    for each in functions:
        ways = (functools.partial(call_value, vm, each, [], {}, node), lambda: NONE)
        paths = [Path(None, EVERYONE, EVERYONE, way) for way in ways]
        vm.choose(node, node, Value(NOTHING, UNKNOWN), paths)


def wrapped_forward(
    vm: Machine,
    module: Value,
    wrapper: int,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """An unknown module that was wrapped is called itself, past its wrapper."""
    values = {f"arg{number}": each for number, each in enumerate(args)}
    vm.emit("bare_forward", "forward", node, model=module, **values)
    agree, why = blended([memory.current(vm, each) for each in (*args, *kwargs.values())])
    if not agree.divergent:
        agree = local("data", False)
        why = vm.why("it is fed to the model: each rank has its own data", node)
    of = frozenset() if vm.is_without_gradients else frozenset({-wrapper})
    made = memory.fresh(vm, Value(Tensor(vm.site(node, "forward"), of), agree, why))
    return vm.computed(made, "forward", (module, *args, *kwargs.values()), node)


# --- tensors


def _of_tensor(
    vm: Machine,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    made = owner.what
    assert isinstance(made, Tensor)
    owner = memory.current(vm, owner)
    if name == "backward":
        _note_graded(vm, owner)
        _go_backward(vm, owner, args, kwargs, node)
        return NONE
    agree, why = blended([owner, *args, *kwargs.values()])
    if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
        if name in ("fill_", "copy_", "zero_"):
            agree, why = blended([*args, *kwargs.values()])
        if name in _DRAWN_IN_PLACE:
            vm.emit("draw", name, node, **kwargs, result=owner)
        by = Value(args[0].what if args else NOTHING, *blended([*args, *kwargs.values()]))
        memory.change(vm, owner, agree, why, by, node, name)
        return memory.current(vm, owner)
    parts = args[0].constant if args else OPEN
    if name in ("chunk", "tensor_split") and isinstance(parts, int) and 0 < parts <= _MAX_PARTS:
        each = [vm.site(node, f"part{number}") for number in range(parts)]
        made_ = [memory.fresh(vm, Value(Tensor(site, made.of), agree, why)) for site in each]
        return Value(Tuple(tuple(vm.computed(one, name, (owner,), node) for one in made_)))
    if name == "size" and args and args[0].is_const(0):
        return Value(term("of", owner.what, name, 0), members.rows(vm, owner), why)
    if name in memory.ASKING_SIZE:
        return Value(term("of", owner.what, name), members.of_size(vm, owner), why)
    if name in _ARCCOS:
        vm.emit("arccos", name, node, of=owner)
    of = made.of
    if name in ("item", "tolist", "detach", "cpu", "numpy", "sample") or name.startswith("new_"):
        of = frozenset() if name != "cpu" else of
    if name in ("to", "cuda"):
        vm.emit("put", name, node, **by_position(args, kwargs))
    if name in ("to", "cuda", "cpu", "float", "contiguous"):  # itself, where it is such a one
        return owner
    found = memory.fresh(vm, Value(Tensor(vm.site(node, "tensor"), of), agree, why))
    return vm.computed(found, name, (owner, *args, *kwargs.values()), node)


# --- containers


def _go_backward(
    vm: Machine, loss: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> None:
    """Tell of a backward, and whether another one may go through its graph."""
    keeps = kwargs.get("retain_graph", args[1] if len(args) > 1 else NONE)
    vm.emit("backward", "backward", node, loss=loss, keeps=keeps)


def _note_graded(vm: Machine, value: Value, depth: int = 4) -> None:
    """Keep that it is a tensor, as nothing else goes backward, and what it was scaled from."""
    vm.store.put((value.what, GRADED), TRUE)
    made = vm.made.get(value.what)
    of = [each for each in made.of if isinstance(each.what, Tensor)] if made is not None else []
    if made is not None and depth and (made.by == EITHER or (made.by in _SCALED and len(of) == 1)):
        for each in of:
            _note_graded(vm, each, depth - 1)


_SCALED = ("Mult", "Div", "scale")


def _of_container(
    vm: Machine,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    found = containers.content(vm, owner)
    assert found is not None
    what = found.what
    if name in TAKES:
        vm.emit("take", name, node, owner=owner)
        if isinstance(what, Many):
            what = Many(what.element)
            vm.store.put((owner.what, "[]"), Value(what, found.agree, found.why))
    if name in ("append", "add", "appendleft", "insert"):
        value = args[-1] if args else NONE
        vm.emit("keep", name, node, owner=owner, value=_held(vm, value))
        inner = next((frame.loops[-1] for frame in reversed(vm.frames) if frame.loops), None)
        if inner is not None and len(vm.conditions) > inner.conditions:
            vm.store.put((owner.what, LET_IN), TRUE)
        agree = found.agree
        at = _place_of(name, args)
        if isinstance(what, Tuple) and len(what.items) < containers.MAX_ITEMS and at is not None:
            known = list(what.items)
            known.insert(at, value)
            items: Tuple | Many = Tuple(tuple(known))
            if vm.frame.loops:
                items = Many(containers.one_of(vm, [*what.items, value]), grown(what))
        else:
            old = list(what.items) if isinstance(what, Tuple) else [what.element]  # type: ignore[union-attr]
            items = Many(containers.one_of(vm, [*old, value]), grown(what))
        if vm.type_of(owner) == "set" and not keyed.is_number(vm, value):
            agree = mix(agree, local("order"))
            said = vm.why(containers.OF_A_SET, node)
            vm.store.put((owner.what, "[]"), Value(items, agree, found.why or said))
        else:
            vm.store.put((owner.what, "[]"), Value(items, agree, found.why))
        return NONE
    if name in ("extend", "update", "union", "intersection", "difference", "__add__"):
        if vm.type_of(owner) == "set":
            made = containers.new_set(vm, node, None, [owner, *args])
        else:
            made = containers.concatenated(vm, node, owner, args[0] if args else owner)
        if name in ("extend", "update"):
            vm.emit("keep", name, node, owner=owner, value=args[0] if args else NONE)
            merged = containers.content(vm, made)
            assert merged is not None
            vm.store.put((owner.what, "[]"), merged)
            return NONE
        return made
    if name == "sort":
        plain = _sorted(containers.without_order(found))
        element = plain.what.element if isinstance(plain.what, Many) else NONE
        apart = sorted_apart(vm, kwargs.get("key"), element, node)
        if apart is not None:
            plain = Value(Many(apart, how_many(what)), apart.agree, apart.why)
        vm.store.put((owner.what, "[]"), plain)
        return NONE
    if name in ("pop", "popleft", *_ADVANCES):
        index = args[0] if args else Value(Const(-1 if name == "pop" else 0))
        taken = indexing.item(vm, owner, index, node)
        indexing.take_out(vm, owner, index)
        return taken
    if name == "reverse":
        if isinstance(what, Tuple):
            vm.store.put((owner.what, "[]"), Value(Tuple(what.items[::-1]), found.agree, found.why))
        return NONE
    if name == "copy":
        return owner
    if name in ("index", "count"):
        if name == "index" and found.agree.cause == "order":
            vm.emit("number", name, node, owner=owner, key=found)
        agree, why = blended([found, *args])
        return Value(NOTHING, agree, why)
    if name == "clear":
        vm.store.put((owner.what, "[]"), Value(Tuple(())))
        return NONE
    return Value(NOTHING, found.agree, found.why)


def _place_of(name: str, args: list[Value]) -> int | None:
    """Where in a list such a call puts a thing."""
    at = {"append": containers.MAX_ITEMS, "appendleft": 0}.get(name)
    if name == "insert" and args and isinstance(args[0].constant, int):
        return args[0].constant
    return at


def _held(vm: Machine, value: Value) -> Value:
    """What is kept, a dictionary as what it holds now."""
    entries = keyed.entries(vm, value) if vm.type_of(value) == "dict" else ()
    return Value(Tuple(tuple(each for _, each in entries))) if entries else value


def _sorted(found: Value) -> Value:
    what = found.what
    if isinstance(what, Many):
        one = containers.without_order(what.element)
        return Value(Many(one, what.number), found.agree, found.why)
    return found


def _of_dict(
    vm: Machine,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    keys = keyed.keys(vm, owner)
    if name == "keys":
        return keys
    if name in ("values", "items"):
        agree, why = keys.agree, keys.why
        if isinstance(keys.what, Tuple):
            pairs = keyed.entries(vm, owner)
            chosen = [v if name == "values" else Value(Tuple((k, v))) for k, v in pairs]
            return Value(Tuple(tuple(chosen)), agree, why)
        element = keyed.any_value(vm, owner)
        if name == "items":
            assert isinstance(keys.what, Many)
            element = Value(Tuple((keys.what.element, element)))
        return Value(Many(element), agree, why)
    if name in ("get", "pop", "setdefault"):
        key = args[0] if args else Value(NOTHING, UNKNOWN)
        if isinstance(key.what, Const):
            known = vm.store.get((owner.what, f"[{key.what.value!r}]"))
            if known is not None and known != keyed.ABSENT:
                return known
            if isinstance(keys.what, Tuple):
                default = args[1] if len(args) > 1 else kwargs.get("default", NONE)
                if name == "setdefault":
                    keyed.set_item(vm, owner, key, default, node)
                return default
        if name == "setdefault" and len(args) > 1:
            keyed.set_item(vm, owner, key, args[1], node)
        return keyed.get_key(vm, owner, key)
    if name == "update":
        for each in args:
            keyed.update(vm, owner, each, node)
        for word, value in kwargs.items():
            keyed.set_item(vm, owner, Value(Const(word)), value, node)
        return NONE
    if name == "copy":
        return owner
    if name == "__getitem__" and args:
        return indexing.item(vm, owner, args[0], node)
    if name == "__setitem__" and len(args) == 2:
        keyed.set_item(vm, owner, args[0], args[1], node)
        return NONE
    agree, why = blended([keys, *args])
    return Value(NOTHING, agree, why)


def _of_text(
    vm: Machine,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    if name == "format":
        args = [text_of(vm, each, node) for each in args]
        kwargs = {word: text_of(vm, each, node) for word, each in kwargs.items()}
    agree, why = blended([owner, *args, *kwargs.values()])
    if name in TEXT_METHODS and not kwargs:
        made = folding.on_each_rank(functools.partial(_of_this_text, name), (owner, *args))
        if made is not None:
            return _parts_of_text(vm, made, node) or made
    if name == "format":
        pieces = texts.filled_by_format(owner.constant, args, kwargs)
        if pieces is not None:
            return texts.composed(pieces)
    if name == "join" and args:
        found = containers.content(vm, args[0])
        if found is not None:
            inner = containers.held(found)
            agree, why = blended([owner, found, *inner])
    parts = [each.what if isinstance(each.what, Const | Term) else NOTHING for each in args]
    keyed = [each.what for each in kwargs.values() if isinstance(each.what, Const | Term)]
    return Value(term("text", owner.what, name, *parts, *keyed), agree, why)


def _of_this_text(name: str, text: Any, *args: Any) -> Any:
    made = getattr(text, name)(*args)
    return tuple(made) if isinstance(made, list) else made


def _parts_of_text(vm: Machine, made: Value, node: ast.AST) -> Value | None:
    """The list of the parts of a text, where it has as many on each rank."""
    rows = [row for row in folding.entries(made) or () if isinstance(row, tuple)]
    if not rows or len(rows[0]) > containers.MAX_ITEMS or {*map(len, rows)} != {len(rows[0])}:
        return None
    parts = [folding.on_each_rank(operator.itemgetter(i), (made,)) for i in range(len(rows[0]))]
    return containers.new_list(vm, node, tuple(part or Value(NOTHING, UNKNOWN) for part in parts))


def _of_path(
    vm: Machine,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    agree, why = blended([owner, *args])
    if name in ("exists", "is_file", "is_dir", "stat"):
        return call_library(vm, "os.path.exists", None, [owner], {}, node)
    if name in (*_LISTINGS, "walk"):
        return _listed(vm, owner, name, node)
    if name in _ON_THE_DISK:
        kind, word, position = _ON_THE_DISK[name]
        given = kwargs.get(word, args[position] if len(args) > position else kwargs.get("**"))
        vm.emit(kind, f"Path.{name}", node, path=owner, **({word: given} if given else {}))
        return NONE
    if name == "replace" and len(args) > 1:  # in its name, as of a text
        return Value(term("path", owner.what, *(each.what for each in args)), agree, why)
    if name in ("rename", "replace"):
        return call_library(vm, "os.rename", None, [owner, *args], {}, node)
    if name in ("write_text", "write_bytes", "touch"):
        vm.emit("write", name, node, path=owner, object=args[0] if args else NONE)
        return NONE
    if name in ("read_text", "read_bytes"):
        vm.emit("read", name, node, path=owner)
        return Value(term("read", owner.what), owner.agree, owner.why)
    if name == "open":
        return call_library(vm, "open", None, [owner, *args], kwargs, node)
    if name in ("resolve", "absolute", "expanduser", "as_posix"):
        return owner
    if name == "joinpath":
        return paths.joined_path(vm, [owner, *args])
    return Value(term("path", owner.what, name), agree, why)


_ON_THE_DISK = {
    "mkdir": ("make_folder", "exist_ok", 2),
    "unlink": ("remove", "missing_ok", 0),
    "rmdir": ("remove", "", 0),
}
"""Method -> what it does, and the argument by which it is no error where it is done already."""


def _listed(vm: Machine, folder: Value, name: str, node: ast.AST) -> Value:
    """What is in a folder, as paths."""
    listing = {"iterdir": "os.listdir", "walk": "os.walk"}.get(name, "glob.glob")
    names = call_library(vm, listing, None, [folder], {}, node)
    found = containers.content(vm, names)
    assert found is not None
    assert isinstance(found.what, Many)
    one = found.what.element
    path = Value(term("path", one.what), one.agree, one.why)
    return containers.new_list_of(vm, node, Value(Many(path), found.agree, found.why))


# --- argparse


def _of_parser(
    vm: Machine,
    owner: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    if name == "add_argument":
        _add_option(vm, owner, args, kwargs, node)
        return Value(NOTHING, SAME)
    if name.startswith("parse_") and name.endswith("_args"):
        made = vm.new(node, "argparse.Namespace")
        vm.store.put((made, "#parser"), owner)
        vm.emit("parse", name, node, parser=owner)
        if "known" in name:
            return Value(Tuple((Value(made), Value(Term("rest"), SAME))))
        return Value(made)
    if name in ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers"):
        return owner
    if name == "add_parser":
        return owner
    if name == "set_defaults":
        if "**" in kwargs:  # of whichever options: these may be None then
            vm.store.never_none -= {each.what for each in vm.store.of(owner.what).values()}
        for word, value in kwargs.items():
            vm.store.put((owner.what, f"--{word}"), value)
    return Value(NOTHING, SAME)


def _add_option(
    vm: Machine, owner: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> None:
    names = [str(each.constant) for each in args if isinstance(each.constant, str)]
    long = next((each for each in names if each.startswith("--")), names[0] if names else "")
    dest = kwargs.get("dest")
    name = str(dest.constant) if dest else long.lstrip("-").replace("-", "_")
    default = kwargs.get("default", NONE)
    action = str(kwargs["action"].constant) if "action" in kwargs else ""
    value = Value(term("option", name, vm.site(node)), default.agree, default.why)
    if isinstance(default.what, Table) or (action, default.constant) in _ONE_WAY:
        value = Value(default.what, default.agree, default.why)
    elif name in ("local_rank", "local-rank") and not action:
        value = hinted(vm, Value(NOTHING, UNKNOWN), "local_rank")
    elif not action and default.is_const(None):
        value = hinted(vm, value, name) if name != "rank" or "type" in kwargs else value
    elif not action and isinstance(default.constant, int):
        value = hinted(vm, value, name)
    vm.store.put((owner.what, f"--{name}"), value)
    if isinstance(value.what, Term):
        vm.store.put((value.what, "default"), default)
        if default.constant is not None and not _ODD.intersection(kwargs) and _converts(kwargs):
            vm.store.never_none.add(value.what)
    vm.emit("option", name, node, default=default, parser=owner, value=value)


_ONE_WAY = (("store_true", True), ("store_false", False))
"""Switches that are as they are, whether they are given or not."""

_ODD = frozenset(["action", "nargs", "**"])


def _converts(kwargs: dict[str, Value]) -> bool:
    """Whether an option is a text as it was given, or a number or the like that Python reads."""
    return "type" not in kwargs or kwargs["type"].what in _READS


_READS = tuple(map(Lib, ("int", "float", "str", "bool", "pathlib.Path")))
