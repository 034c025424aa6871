"""Calls of what a library gives, by the tables of `libraries/`."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ddpdoctor.lint.engine.interpreter import objects
from ddpdoctor.lint.engine.interpreter.folding import is_coarse, is_equally_long
from ddpdoctor.lint.engine.interpreter.machine import Left, Machine
from ddpdoctor.lint.engine.interpreter.tree import Seq
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK,
    FALSE,
    MODE,
    NONE,
    NOTHING,
    OPEN,
    RANK,
    SAME,
    SAME_LIKELY,
    TRUE,
    UNKNOWN,
    WORLD,
    Agreement,
    Class,
    Const,
    Either,
    Func,
    Lib,
    Many,
    Partial,
    Place,
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
    mix,
    term,
    text,
)
from ddpdoctor.lint.engine.libraries import Effect
from ddpdoctor.lint.engine.libraries.torch import OF_THE_WRAPPER

_REASONS = {
    "clock": "clocks differ between ranks",
    "chance": "drawn from this process's own generator",
    "machine": "a property of this process or machine",
    "disk": "a file may be there for one rank and not yet for another",
}
PREPARED = "prepared"
"""Of the length of a loader: that of one rank's part."""
OF_THE_KIND = ("device", "dtype", "layout", "pin_memory", "requires_grad")
"""Arguments that say where a tensor lies and of which kind it is, not what is in it."""
_TENSOR_MAKERS = ("torch.", "torchvision.", "torchaudio.")
FLAGS = {
    "property": "property",
    "functools.cached_property": "property",
    "staticmethod": "staticmethod",
    "classmethod": "classmethod",
    "contextlib.contextmanager": "contextmanager",
    "contextlib.asynccontextmanager": "contextmanager",
}
"""Decorators that say what a function is."""
_NOT_TENSORS = ("torch.device", "torch.cuda.", "torch.nn.", "torch.utils.", "torch.backends.")


def call_library(
    vm: Machine,
    name: str,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """Call something of a library by its dotted name; `owner` is the object of a method."""
    args = [objects.current(vm, each) for each in args]
    for each in (*(args[:1] if name.endswith("_") else ()), kwargs.get("out", NONE)):
        if isinstance(each.what, Tensor):  # `zeros_(x)` and `out=x` write into it
            vm.emit("change", "", node, object=each)
    effect = vm.library.find(name)
    if effect is None:
        return _of_python(vm, name, args, kwargs, node)
    handler = _HANDLERS.get(effect.does)
    if handler is not None:
        return handler(vm, name, effect, owner, args, kwargs, node)
    if effect.does in objects.PROPERTIES:
        return _asked(vm, name, effect, args, kwargs, node)
    return Value(_identity(vm, name, args, node), UNKNOWN)


def given(effect: Effect, role: str, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The argument that plays a role, None where it is not given."""
    for each, parameter, position in effect.parameters():
        if each == role:
            if parameter in kwargs:
                return kwargs[parameter]
            if 0 <= position < len(args) and not any(map(is_starred, args[: position + 1])):
                return args[position]
    return None


def starred(content: Value | None) -> Term:
    """`*rest` of nobody knows how many, by the element that stands for all."""
    element = content.what.element.what if content and isinstance(content.what, Many) else NOTHING
    return term("*", element)


def is_starred(value: Value) -> bool:
    """Whether an argument stands for nobody knows how many."""
    return isinstance(value.what, Term) and value.what.op == "*"


def roles(effect: Effect, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """All arguments that play a role."""
    found = {}
    for role, _, _ in effect.parameters():
        value = given(effect, role, args, kwargs)
        if value is not None:
            found[role] = value
    return found


def _identity(vm: Machine, name: str, args: list[Value], node: ast.AST) -> Term:
    parts = [each.what for each in args if isinstance(each.what, Const | Term | Ref | Lib)]
    return term("lib", name, *parts, vm.site(node) if len(parts) != len(args) else 0)


# --- plain facts


def _asked(
    vm: Machine,
    name: str,
    effect: Effect,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    group = given(effect, "group", args, kwargs)
    if effect.does == "rank" and group is not None and not _is_world(group):
        return Value(NOTHING, BY_RANK, vm.why(f"{text(node)} asks for the rank", node))
    if effect.does == "world" and group is not None and not _is_world(group):
        return Value(term("size", group.what), SAME)
    if name.endswith(".is_initialized"):
        vm.emit("ask", "is_initialized", node)
    if effect.does == "mode" and vm.joined:
        return TRUE
    if effect.does == "same":
        return Value(_identity(vm, name, args, node), SAME)
    return objects.of_rank(vm, effect.does, node, text(node))


def _is_world(group: Value) -> bool:
    return group.is_const(None) or (
        isinstance(group.what, Lib) and group.what.name.endswith(".WORLD")
    )


def _local(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    cause = effect.option("cause")
    if name == "time.strftime" and is_coarse(args[0] if args else NONE):
        return Value(term("strftime", vm.site(node)), SAME_LIKELY)
    why = vm.why(f"`{text(node)}`: {_REASONS.get(cause, 'a value of this rank alone')}", node)
    return Value(term("local", vm.site(node)), local(cause), why)


def _pure(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    if owner is not None:
        args = [owner, *args]
    every = [*args, *(value for word, value in kwargs.items() if word not in OF_THE_KIND)]
    flat = [inside(vm, each) for each in every]
    agree, why = blended(flat)
    if name in ("os.path.join", "pathlib.Path", "pathlib.PurePath"):
        return objects.joined_path(vm, args)
    if name in ("os.path.abspath", "os.path.realpath", "os.path.expanduser", "os.path.normpath"):
        return args[0] if args else NONE
    return _computed(vm, name, every, agree, why, node)


def _computed(
    vm: Machine, name: str, every: list[Value], agree: Agreement, why: Why | None, node: ast.AST
) -> Value:
    of = frozenset().union(*(_wrappers(vm, each) for each in every))
    tensor = name.startswith(_TENSOR_MAKERS) and not name.startswith(_NOT_TENSORS)
    tensor = tensor or name.startswith("torch.nn.functional.")
    if of or tensor:
        kept = frozenset() if name.startswith("math.") or name.endswith("_like") else of
        made = objects.fresh(vm, Value(Tensor(vm.site(node), kept), agree, why))
        return vm.computed(made, name.rpartition(".")[2], _contents(vm, every), node)
    return objects.fresh(vm, Value(_identity(vm, name, every, node), agree, why))


def _contents(vm: Machine, values: list[Value]) -> tuple[Value, ...]:
    """Values, and containers as what they hold now."""
    return tuple(objects.content(vm, each) or each for each in values)


def inside(vm: Machine, value: Value) -> Value:
    """A container as what it holds."""
    found = objects.content(vm, value)
    if found is None:
        return objects.current(vm, value)
    items = found.what.items if isinstance(found.what, Tuple) else [found.what.element]  # type: ignore[union-attr]
    agree, why = blended([found, *(objects.current(vm, each) for each in items)])
    return Value(value.what, agree, why)


def _wrappers(vm: Machine, value: Value) -> frozenset[int]:
    if isinstance(value.what, Tensor):
        return value.what.of
    found = objects.content(vm, value)
    if found is None:
        return frozenset()
    items = found.what.items if isinstance(found.what, Tuple) else (found.what.element,)  # type: ignore[union-attr]
    if vm.type_of(value) == "dict":
        items = tuple(objects.get_key(vm, value, each) for each in items)
    return frozenset().union(*(e.what.of for e in items if isinstance(e.what, Tensor)))


def _bounds(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """Ranks that have agreed on the bound may have agreed on what each of them has."""
    from ddpdoctor.lint.engine.interpreter.iteration import elements

    if len(args) != 2:
        return _pure(vm, name, effect, owner, args, kwargs, node)
    one, count = elements(vm, args[0], node)
    bound = args[1]
    if bound.agree.divergent:
        count = bound
    elif count.agree.divergent:
        count = Value(NOTHING, UNKNOWN)
    return Value(Many(one), count.agree, count.why)


def _count(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    source = args[0] if args else NONE
    content = objects.content(vm, source)
    if content is None:
        agree, why = blended([objects.without_order(each) for each in (*args, *kwargs.values())])
        made = vm.object(source)
        if made is not None and made.type == "torch.utils.data.DataLoader":
            sampler = vm.store.get((source.what, "sampler"))
            known = sampler is not None and "DistributedSampler" in vm.type_of(sampler)
            part = (PREPARED,) if vm.store.get((source.what, "#prepared")) is not None else ()
            return Value(term("len", source.what, *part), SAME if known or part else UNKNOWN)
        told = _own_length(vm, source, node) if name == "len" else None
        if told is not None:
            return told
        if name == "len" and isinstance(source.what, Tensor):
            return Value(term("len", source.what), objects.of_size(source), source.why)
        if name.endswith("sorted"):
            return Value(term("sorted", source.what), agree, why)
        if name in ("sum", "min", "max", "any", "all"):
            return _computed(vm, name, list(args), agree, why, node)
        return Value(term(name, source.what, *(each.what for each in args[1:])), agree, why)
    plain = objects.without_order(content)
    items = list(content.what.items) if isinstance(content.what, Tuple) else [content.what.element]  # type: ignore[union-attr]
    items = [objects.without_order(objects.current(vm, each)) for each in items]
    if name == "len":
        if isinstance(content.what, Tuple):
            return Value(Const(len(content.what.items)), plain.agree, plain.why)
        return Value(term("len", source.what), plain.agree, plain.why)
    if name.endswith("sorted"):
        element = objects._one_of(vm, items) if items else NONE
        agree, why = blended([plain, element])
        if (by_time := sorted_by_time(vm, kwargs.get("key"), element, node)) is not None:
            agree, why = by_time.agree, by_time.why
            element = by_time
        return objects.new_list_of(vm, node, Value(Many(element), agree, why))
    agree, why = blended([plain, *items, *args[1:]])
    of = frozenset().union(*(e.what.of for e in items if isinstance(e.what, Tensor)))
    made_tensor = any(isinstance(each.what, Tensor) for each in items)
    what = Tensor(vm.site(node), of) if made_tensor else _identity(vm, name, items, node)
    return vm.computed(Value(what, agree, why), name, tuple(items), node)


def _own_length(vm: Machine, value: Value, node: ast.AST) -> Value | None:
    """What an object of the user's says of its length."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    made = vm.object(value)
    if made is None or made.cls < 0:
        return None
    if objects.class_attribute(vm, made.cls, "__len__") is None:
        return None
    return call_value(vm, objects.attribute(vm, value, "__len__", node), [], {}, node)


def sorted_by_time(vm: Machine, key: Value | None, element: Value, node: ast.AST) -> Value | None:
    """An element of what is sorted by what a file system says of files, None of anything else."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    if key is None or key.is_const(None):
        return None
    told = call_value(vm, key, [element], {}, node)
    if told.agree.cause != "disk" or "os.path.getsize" in getattr(told.what, "args", ()):
        return None
    why = vm.why(f"the times that `{text(node)}` sorts by differ between machines", node)
    return Value(element.what, local("order"), why)


def _itself(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    if name == "functools.wraps":
        return Value(Partial(Value(Lib("functools.wraps()")), tuple(args[:1])))
    last = name.rpartition(".")[2]
    if owner is not None:
        if last in ("half", "float", "double", "bfloat16", "to", "cuda", "cpu"):
            vm.emit("convert", last, node, object=owner, **_by_position(args, kwargs))
            moved(vm, owner, last, args, kwargs)
        elif last in ("train", "eval"):
            mode = (args[0] if args else kwargs.get("mode", TRUE)) if last == "train" else FALSE
            objects.switch(vm, owner, mode)
        return args[0] if args and last == "scale" else owner
    found = args[0] if args else next(iter(kwargs.values()), NONE)
    if last == "convert_sync_batchnorm":
        vm.emit("sync_batchnorm", last, node, object=found)
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


def _by_position(args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    return {f"arg{number}": each for number, each in enumerate(args)} | {
        f"kw_{word}": each for word, each in kwargs.items()
    }


def _calls(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    if not args:
        return Value(NOTHING, UNKNOWN)
    first = args[0]
    if isinstance(first.what, Func):
        what = first.what
        named = (*what.named, *kwargs.items())
        return Value(replace(what, bound=(*what.bound, *args[1:]), named=named))
    return Value(Partial(first, tuple(args[1:]), tuple(kwargs.items())))


def _enters(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    scope = effect.option("scope")
    throws = given(effect, "throws", args, kwargs)
    if throws is not None and throws.is_const(True):
        scope = "plain"
    made = vm.new(node, "scope", kind=scope)
    vm.store.put((made, "scope"), Value(Const(scope)))
    if args:
        vm.store.put((made, "of"), args[0])
    for role, value in roles(effect, args, kwargs).items():
        vm.store.put((made, role), value)
    if args and isinstance(args[0].what, Func) and effect.option("scope") == "no_grad":
        from ddpdoctor.lint.engine.interpreter.methods import _decorated

        return _decorated(args, "no_grad")
    return Value(made)


def _ends(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:

    status = given(effect, "status", args, kwargs) or NONE
    vm.emit("ends", name, node, status=status)
    vm.leave("end", node, status)
    raise Left


# --- what concerns all ranks


def _collective(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    values = roles(effect, args, kwargs)
    asynchronous = kwargs.get("async_op")
    if asynchronous is not None:
        values["async_op"] = asynchronous
    operation = effect.option("op") or name.rpartition(".")[2]
    work = NONE
    if asynchronous is not None and not asynchronous.is_const(False):
        work = Value(vm.new(node, "torch.distributed.Work"))
    event = vm.emit("collective", operation, node, work=work, **values)
    group = values.get("group")
    subset = group is not None and not _is_world(group)
    shared = values.get("shares")
    if shared is not None:
        new = UNKNOWN if subset and shared.agree.kind != "same" else SAME
        objects.touch(vm, shared, new)
        event.values["filled"] = _filled(vm, shared, new, node)
    given_to_root = values.get("collects")
    if given_to_root is not None:
        agree = given_to_root.agree if given_to_root.agree.divergent else local("data", False)
        objects.touch(vm, given_to_root, agree, vm.why("only the root gets the sum", node))
    filled = values.get("fills")
    if filled is not None:
        objects.touch(vm, filled, local("data", False), vm.why("each rank gets its own part", node))
    if effect.option("result") == "same":
        of = frozenset().union(*(_wrappers(vm, each) for each in args))
        found = objects.fresh(vm, Value(Tensor(vm.site(node), of), SAME))
        if "gives" in values:  # copied, without its graph
            event.values["filled"] = found
        return found
    return work


def _filled(vm: Machine, shared: Value, agree: Agreement, node: ast.AST) -> Value:
    """What a collective has written: a tensor, or the elements of a list."""
    options = shared.what.options if isinstance(shared.what, Either) else (shared,)
    lists = [each.what for each in options if vm.store.get((each.what, "[]")) is not None]
    if not lists:
        return shared
    element = objects.fresh(vm, Value(Tensor(vm.site(node, "gathered")), agree))
    for each in lists:
        vm.store.put((each, "[]"), Value(Many(element), agree))
    return element


def _group(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    values = roles(effect, args, kwargs)
    if "use_local_synchronization" in kwargs:
        values["locally"] = kwargs["use_local_synchronization"]
    for word in ("timeout", "backend"):
        if word in kwargs:
            values[word] = kwargs[word]
    if "ranks" in values:
        held = inside(vm, values["ranks"])
        if held.agree.sure:  # a name alone may be the rank of another
            values["ranks"] = held
    vm.emit("group", name.rpartition(".")[2], node, **values)
    made = vm.new(node, "torch.distributed.ProcessGroup")
    for role, value in values.items():
        vm.store.put((made, role), value)
    return Value(made)


def _init(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    values = roles(effect, args, kwargs)
    for word in ("timeout", "device_id", "store"):
        if word in kwargs:
            values[word] = kwargs[word]
    vm.emit("init", name.rpartition(".")[2], node, **values)
    vm.joined = True
    rank = values.get("rank")
    if rank is not None and rank.agree.kind == "unknown":
        _learn_rank(vm, node)
    return NONE


def _learn_rank(vm: Machine, node: ast.AST) -> None:
    """Wherever it comes from: what a rank joins as is its rank."""
    for each in node.keywords if isinstance(node, ast.Call) else ():
        if each.arg == "rank" and isinstance(each.value, ast.Name | ast.Attribute):
            said = vm.why(f"`{text(each.value)}` is the rank that it joins as", node)
            objects.bind(vm, each.value, Value(RANK, BY_RANK, said))


def _leave(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    vm.emit("leave", name.rpartition(".")[2], node)
    return NONE


def _wraps(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    module = given(effect, "module", args, kwargs) or Value(NOTHING, UNKNOWN)
    return wrap(vm, module, args, kwargs, node, "DistributedDataParallel")


def wrap(
    vm: Machine,
    module: Value,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    name: str,
) -> Value:
    """Wrap a module."""
    made = vm.new(node, objects.DDP)
    vm.store.distributed.add(made.number)
    vm.store.put((made, "module"), module)
    objects.switch(vm, module)
    if module.what != NOTHING:
        vm.wrapped[module.what] = made.number
    for word, value in kwargs.items():
        vm.store.put((made, f"#{word}"), value)
    named = {f"kw_{word}": each for word, each in kwargs.items()}
    vm.emit("wrap", name, node, module=module, wrapper=Value(made), **named)
    return Value(made)


def _prepares(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    found: list[Value] = []
    for number, each in enumerate(args):
        type = vm.type_of(each)
        made = vm.object(each)
        is_module = type == "torch.nn.Module" or (
            made is not None
            and made.cls >= 0
            and objects.library_base(vm, made.cls) == "torch.nn.Module"
        )
        if is_module:
            kept = (
                node.args[number]
                if isinstance(node, ast.Call) and number < len(node.args)
                else node
            )
            found.append(wrap(vm, each, [], {}, kept, name.rpartition(".")[2]))
        elif type == "torch.utils.data.DataLoader":
            vm.store.put((each.what, "#prepared"), TRUE)
            vm.emit("prepare_loader", "prepare", node, object=each)
            if (said := _says(vm, owner, "even_batches", False)) is not None:
                vm.store.put((each.what, "#uneven"), said)
            found.append(each)
        elif type.startswith("torch.optim.lr_scheduler."):
            alone = _says(vm, owner, "split_batches", True) is None
            if alone and _says(vm, owner, "step_scheduler_with_optimizer", False) is None:
                vm.emit("prepare_scheduler", "prepare", node, object=each)
            found.append(each)
        else:
            found.append(each)
    if name.endswith(("prepare_model", "setup_module")) and found:
        return found[0]
    return found[0] if len(found) == 1 else Value(Tuple(tuple(found)))


def _says(vm: Machine, owner: Value | None, word: str, wanted: bool) -> Value | None:
    """Whether an accelerator, or its configuration of loaders, was told so; with the place."""
    config = vm.store.get((owner.what, "#dataloader_config")) if owner is not None else None
    for each in (owner, config):
        given_ = vm.store.get((each.what, f"#{word}")) if each is not None else None
        made = vm.object(each) if each is not None else None
        if given_ is not None and made is not None and given_.is_const(wanted):
            place = Place(made.path, getattr(made.node, "lineno", 1))
            return Value(NOTHING, local("data"), Why(objects.OWN_PART, place, None, made.node))
    return None


def _spawns(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    values = roles(effect, args, kwargs)
    vm.emit("spawn", name, node, **values)
    target = values.get("target")
    if target is not None:
        given_ = values.get("arguments")
        content = objects.content(vm, given_) if given_ is not None else None
        items = (
            list(content.what.items)
            if content is not None and isinstance(content.what, Tuple)
            else []
        )
        start(vm, target, items, node, first=not name.startswith("accelerate."))
    return Value(NOTHING, SAME)


def start(
    vm: Machine, target: Value, arguments: list[Value], node: ast.AST, *, first: bool = True
) -> None:
    """Run a function as each rank of a new job does."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    rank = Value(RANK, BY_RANK, vm.why("each process is given its number", node))
    joined, vm.joined = vm.joined, False
    # What one process has drawn, timed or found is the same for all that it hands it to.
    shared = [Value(each.what, SAME) if each.agree.kind == "local" else each for each in arguments]
    with contextlib.suppress(Left):
        call_value(vm, target, [rank, *shared] if first else shared, {}, node)
    vm.joined = joined


def _calls_on_main(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    if args and isinstance(args[0].what, Func):
        what = args[0].what
        return Value(replace(what, within=(*what.within, "#main")))
    if not args:
        return Value(Lib(name))
    return args[0]


# --- objects and events


def _new(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    type = effect.option("type", name)
    made = vm.new(node, type)
    values = roles(effect, args, kwargs)
    if type == "list":
        content = objects.content(vm, args[0]) if args else Value(Tuple(()))
        vm.store.put((made, "[]"), content or Value(Many(Value(NOTHING, UNKNOWN)), UNKNOWN))
        return Value(made)
    if type == "dict":
        result = Value(made)
        objects.clear(vm, result)
        if name.endswith("defaultdict") and args:
            vm.store.put((made, "~"), Value(NOTHING, UNKNOWN))
            vm.store.put((made, objects.FACTORY), args[0])
        elif args:
            objects.update(vm, result, args[0])
        return result
    vm.objects[made.number].effect = effect
    if holds := effect.option("holds"):
        _hold(vm, made, holds, args)
    for role, value in values.items():
        vm.store.put((made, role), value)
    if "DistributedSampler" in type:
        vm.store.distributed.add(made.number)
    for word, value in kwargs.items():
        vm.store.put((made, f"#{word}"), value)
    work = Value(made) if type == "torch.distributed.Work" else NONE
    if "**" in kwargs or any(each.what == Term("*") for each in args):
        values["rest"] = Value(Term("*"), UNKNOWN)
    if effect.option("has"):
        values |= _by_position(args, kwargs)
    event = vm.emit("new", name, node, object=Value(made), work=work, **values)
    result = Value(made)
    if type.startswith("torch.optim.lr_scheduler."):
        vm.store.put((made, "#given"), Value(Tuple((*args, *kwargs.values()))))
    if type == "torch.utils.data.DataLoader":
        from ddpdoctor.lint.engine.interpreter.reading import read_by_workers

        vm.workers[event] = read_by_workers(vm, values, node)
    if "Sampler" in type or "DataLoader" in type:
        return result
    agree, why = blended([inside(vm, each) for each in (*args, *kwargs.values())])
    if agree.divergent and type == "torch.utils.data.Dataset":
        return Value(made, agree, why)
    return result


def _hold(vm: Machine, made: Ref, holds: str, args: list[Value]) -> None:
    """The parts of a module that consists of others."""
    found = objects.content(vm, args[0]) if args and holds == "list" else None
    if holds == "dict" and args:
        vm.store.put((made, objects.PARTS), args[0])
    elif any(map(is_starred, args)):
        parts = [each.what.args[0] if is_starred(each) else each.what for each in args]  # type: ignore[union-attr]
        vm.store.put((made, "[]"), Value(Tuple(tuple(map(Value, parts)))))
    elif holds == "args" and vm.type_of(args[0] if args else NONE) != "dict":
        vm.store.put((made, "[]"), Value(Tuple(tuple(args))))
    elif holds == "list":
        vm.store.put((made, "[]"), found or Value(Tuple(()) if not args else Many(Value(NOTHING))))


def _done_later(vm: Machine, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Seq:
    """What a call will do that is made at the end; nothing of it has happened yet."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    outside, vm.out = vm.out, Seq()
    depth = vm.store.open()
    try:
        with contextlib.suppress(Left):
            call_value(vm, args[0], args[1:], kwargs, node)
        return vm.out
    finally:
        vm.out = outside
        vm.store.drop(depth)


_CHANCE = {"chance": "torch", "chance_python": "python", "chance_numpy": "numpy"}
_SEEDS = {"seed": "torch", "seed_python": "python", "seed_numpy": "numpy", "seed_cuda": "cuda"}


def _event(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    kind = effect.option("kind")
    values = roles(effect, args, kwargs)
    if kind == "save" and vm.type_of(values.get("path", NONE)) == "io.BytesIO":
        kind = "dump"  # no file, but this process's own memory
    if owner is not None:
        values["object"] = owner
    for number, each in enumerate(args):
        values.setdefault(f"arg{number}", each)
    for word, each in kwargs.items():
        values.setdefault(f"kw_{word}", each)
    if kind in _SEEDS or kind == "seed_all":
        _seed(vm, kind, values)
    if kind == "draw_own" and owner is not None:
        values["seed"] = vm.store.get((owner.what, "seed")) or NONE
    if kind == "start":
        values["rank"] = _rank_given(vm, values.get("env", NONE))
    if kind == "save" and vm.type_of(saved := values.get("object", NONE)) == "dict":
        values["keys"] = objects.keys(vm, saved)  # as they are now: a way may be taken back
    event = vm.emit(kind, name.rpartition(".")[2], node, **values)
    if owner is not None and "buffer" in values:
        _keep_buffer(vm, owner, values["name"], values["buffer"])
    result = effect.option("result")
    if kind == "at_exit" and args:
        vm.exits[event] = _done_later(vm, args, kwargs, node)
        return args[0]
    if result in _CHANCE:
        return _drawn(vm, name, values, args, _CHANCE[result], node)
    if kind == "draw_own":
        return _drawn(vm, name, {**values, "generator": owner or NONE}, args, "", node)
    if result == "disk":
        said = vm.why(f"`{text(node)}`: {_REASONS['disk']}", node)
        path = values.get("path", NONE)
        agree = local("disk") if path.agree.kind != "local" else path.agree
        return Value(term("disk", name, path.what, vm.site(node)), agree, said)
    if result == "listing":
        path = values.get("path", NONE)
        order = vm.why(f"the order of `{text(node)}` differs between machines", node)
        element = Value(term("listed", path.what), local("order"), order)
        return objects.new_list_of(vm, node, Value(Many(element), local("order"), order))
    if result == "same":
        return Value(_identity(vm, name, args, node), SAME)
    if result == "copy":
        return _copied(vm, args[0] if args else NONE, node)
    if result == "new":
        path = values.get("path", NONE)
        event.values["result"] = Value(term("loaded", path.what, vm.site(node)), SAME)
        return event.values["result"]
    if result == "file":
        path = values.get("path", NONE)
        made = vm.new(node, "file")
        vm.store.put((made, "path"), path)
        if "mode" in values:
            vm.store.put((made, "mode"), values["mode"])
        return Value(made)
    if result == "called" and args:
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        return call_value(vm, args[0], args[1:], {}, node)
    if result == "itself" and owner is not None:
        if kind == "seed_generator":
            vm.store.put((owner.what, "seed"), values.get("seed", NONE))
        return owner
    if result == "unwrap":
        first = args[0] if args else NONE
        if vm.type_of(first) == objects.DDP:
            return vm.store.get((first.what, "module")) or first
        return first
    if result == "pure":
        args = [owner, *args] if owner is not None else args
        agree, why = blended([inside(vm, each) for each in (*args, *kwargs.values())])
        return _computed(vm, name, list(args), agree, why, node)
    return Value(_identity(vm, name, args, node), SAME)


def _keep_buffer(vm: Machine, module: Value, name: Value, buffer: Value) -> None:
    if isinstance(name.constant, str):
        vm.store.put((module.what, name.constant), buffer)
        if isinstance(buffer.what, Tensor):
            vm.buffers.add(buffer.what)


def _rank_given(vm: Machine, environment: Value) -> Value:
    """The rank that a new process is given in its environment."""
    for name in ("RANK", "LOCAL_RANK"):
        found = vm.store.get((environment.what, f"[{name!r}]"))
        if found is not None and found != objects.ABSENT:
            return found
    return NONE


def _seed(vm: Machine, kind: str, values: dict[str, Value]) -> None:
    seed = values.get("seed", NONE)
    by_rank = values.get("by_rank") or values.get("offset")
    if by_rank is not None and not by_rank.is_const(False, 0):
        seed = Value(NOTHING, BY_RANK, seed.why)
    for each in ("torch", "python", "numpy") if kind == "seed_all" else (_SEEDS[kind],):
        vm.store.put((Lib("#generator"), each), seed)


def _drawn(
    vm: Machine,
    name: str,
    values: dict[str, Value],
    args: list[Value],
    of: str,
    node: ast.AST,
) -> Value:
    """A random draw: alike where the generator was seeded alike."""
    generator = values.get("generator")
    if generator is not None and not generator.is_const(None):
        seed = vm.store.get((generator.what, "seed")) or Value(NOTHING, UNKNOWN)
        seed = Value(NOTHING, UNKNOWN) if seed.is_const(None) else seed
    else:
        seed = vm.store.get((Lib("#generator"), of)) or Value(
            NOTHING,
            local("chance", vm.frame.module.is_entry),
            vm.why(f"`{text(node)}`: {_REASONS['chance']}", node),
        )
    if seed.agree.kind == "rank":
        seed = Value(seed.what, local("chance", seed.agree.sure), seed.why)
    if name.endswith(("shuffle",)) and args:
        _shuffle(vm, args[0], seed, node)
        return NONE
    agree, why = blended([seed, *args])
    if agree.kind == "rank":
        agree = local("chance", agree.sure)
    if name.startswith("torch."):
        size, said = blended([inside(vm, each) for each in args])
        if size.divergent and not name.endswith(("_like", "randperm")):  # as many as the rank has
            agree, why = local("data", size.sure), said
        return objects.fresh(vm, Value(Tensor(vm.site(node)), agree, why))
    return objects.fresh(vm, Value(term("drawn", vm.site(node)), agree, why))


def _shuffle(vm: Machine, value: Value, seed: Value, node: ast.AST) -> None:
    found = objects.content(vm, value)
    if found is None or not isinstance(value.what, Ref):
        objects.touch(vm, value, mix(value.agree, seed.agree), seed.why)
        return
    items = found.what.items if isinstance(found.what, Tuple) else [found.what.element]  # type: ignore[union-attr]
    element = objects._one_of(vm, items) if items else NONE
    agree, why = blended([found, seed])
    vm.store.put((value.what, "[]"), Value(Many(element), agree, why))


def _copied(vm: Machine, value: Value, node: ast.AST) -> Value:
    if not isinstance(value.what, Ref):
        return value
    old = vm.objects[value.what.number]
    made = vm.new(node, old.type, old.cls, f"copy{value.what.number}")
    for name, each in vm.store.of(value.what).items():
        vm.store.put((made, name), each)
    vm.store.put((made, "#copied"), value)
    return Value(made)


def forward(
    vm: Machine, model: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """Call a module: a wrapper, or one of the user's."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    values = {f"arg{number}": each for number, each in enumerate(args)}
    made = vm.object(model)
    is_wrapper = made is not None and made.type == objects.DDP
    assert isinstance(model.what, Ref)
    every = [objects.current(vm, each) for each in (*args, *kwargs.values())]
    module = model
    if is_wrapper:
        vm.emit("forward", "forward", node, model=model, **values)
        module = vm.store.get((model.what, "module")) or Value(NOTHING, UNKNOWN)
        for each in every:
            if each.agree.kind == "unknown":
                fed = vm.why("it is fed to the model: each rank has its own data", node)
                objects.touch(vm, each, local("data", False), fed)
    else:
        vm.emit("bare_forward", "forward", node, model=model, **values)
    inner = vm.object(module)
    result: Value | None = None
    if inner is not None and inner.effect is not None and inner.effect.option("runs") == "each":
        result = _one_after_another(vm, module, args, node)
    if inner is not None and inner.cls >= 0:
        method = objects.class_attribute(vm, inner.cls, "forward")
        if method is not None:
            bound = objects.attribute(vm, module, "forward", node)
            result = call_value(vm, bound, args, kwargs, node)
    of = frozenset({model.what.number}).union(*(_wrappers(vm, each) for each in every))
    agree, why = blended([objects.current(vm, each) for each in (*args, *kwargs.values())])
    if agree.kind in ("unknown", "same") and is_wrapper:
        agree = local("data", False)
        why = vm.why("each rank's model sees its own data", node)
    elif agree.cause == "chance" and is_wrapper:
        agree = local("data", agree.sure)  # what a rank has drawn for itself is its own data
    if "no_grad" in vm.scopes:
        of = frozenset()
    if result is not None and (isinstance(result.what, Tuple) or vm.type_of(result) == "dict"):
        return _marked(vm, result, of, agree, why, (model, *every), node)
    if result is not None and result.agree.divergent and result.agree.cause != "chance":
        agree, why = result.agree, result.why
    found = objects.fresh(vm, Value(Tensor(vm.site(node, "forward"), of), agree, why))
    return vm.computed(found, "forward", (model, *every), node)


def _one_after_another(
    vm: Machine, module: Value, args: list[Value], node: ast.AST
) -> Value | None:
    """The forward of a sequence of modules."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    found = objects.content(vm, module)
    if found is None:
        return None
    parts = found.what.items if isinstance(found.what, Tuple) else (found.what.element,)  # type: ignore[union-attr]
    for each in parts:
        args = [call_value(vm, each, args, {}, node)]
    return args[0] if args else None


def _marked(
    vm: Machine,
    result: Value,
    of: frozenset[int],
    agree: Agreement,
    why: Why | None,
    given: tuple[Value, ...],
    node: ast.AST,
) -> Value:
    if isinstance(result.what, Tuple):
        items = []
        for each in result.what.items:
            merged = agree if each.agree.cause == "chance" else mix(each.agree, agree)
            what = each.what
            if isinstance(what, Tensor | Term):
                site = what.site if isinstance(what, Tensor) else hash(what)
                what = Tensor(site, of)
            items.append(vm.computed(Value(what, merged, each.why or why), "forward", given, node))
        return Value(Tuple(tuple(items)), result.agree, result.why)
    known = objects.keys(vm, result).what
    for key in known.items if isinstance(known, Tuple) else ():
        one = objects.get_key(vm, result, key)
        if isinstance(one.what, Tensor):
            merged = agree if one.agree.cause == "chance" else mix(one.agree, agree)
            marked = Value(Tensor(one.what.site, of), merged, one.why or why)
            marked = vm.computed(marked, "forward", (one, *given), node)
            objects.set_item(vm, result, key, marked, node)
    return result


# --- Python's own


def _of_python(
    vm: Machine, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    first = args[0] if args else NONE
    if name in ("int", "float", "str", "bool", "abs", "round", "repr"):
        return _converted(vm, name, args, kwargs, node)
    if name == "range":
        agree, why = blended(args)
        span = term("range", *(each.what for each in args))
        if len(args) == 3 and args[0].agree.kind == "rank" and not is_equally_long(span.args):
            agree = local("shard", agree.sure)
        return Value(span, agree, why)
    if name in ("list", "tuple", "iter", "reversed"):
        return _as_list(vm, name, first, node) if args else objects.new_list(vm, node, ())
    if name in ("set", "frozenset"):
        return objects.new_set(vm, node, None if args else [], list(args))
    if name == "dict":
        made = Value(vm.new(node, "dict"))
        objects.clear(vm, made)
        for each in args:
            objects.update(vm, made, each)
        for word, value in kwargs.items():
            objects.set_item(vm, made, Value(Const(word)), value, node)
        return made
    if name in ("zip", "enumerate", "map", "filter"):
        return _paired(vm, name, args, kwargs, node)
    if name == "next":
        from ddpdoctor.lint.engine.interpreter.iteration import elements

        return elements(vm, first, node)[0]
    if name == "getattr" and len(args) >= 2 and isinstance(args[1].constant, str):
        if len(args) == 3 and _tested(vm, "hasattr", args[:2], node).is_const(False):
            return args[2]
        return objects.current(vm, objects.attribute(vm, first, args[1].constant, node))
    if name == "setattr" and len(args) == 3 and isinstance(args[1].constant, str):
        objects.set_attribute(vm, first, args[1].constant, args[2], node)
        return NONE
    if name in ("isinstance", "issubclass", "hasattr", "callable", "type"):
        return _tested(vm, name, args, node)
    if name == "print":
        vm.emit("print", name, node, **_by_position(args, {}))
        return NONE
    if name == "exec":
        _settings_may_change(vm)
        return NONE
    if name in ("super", "object"):
        return Value(NOTHING, SAME)
    if name == "vars":
        return first
    if name == "functools.wraps()":
        innermost = vm.store.get((first.what, "__wrapped__")) or first
        vm.store.put((args[-1].what, "__wrapped__"), innermost)
        return args[-1]
    if name in ("os.environ.get", "os.getenv", "os.environ.pop", "os.environ.setdefault"):
        return _environment(vm, name, args, kwargs, node)
    if name == "os.environ.copy":
        made = Value(vm.new(node, "dict"))
        objects.clear(vm, made)
        objects.update(vm, made, Value(Lib("os.environ")))
        return made
    if name == "os.environ.items":
        return Value(NOTHING, SAME)
    if name == "os.environ.update":
        for each in args:
            if vm.type_of(each) == "dict" and isinstance(objects.keys(vm, each).what, Tuple):
                for key in objects.keys(vm, each).what.items:  # type: ignore[union-attr]
                    found = objects.get_key(vm, each, key)
                    vm.emit("setenv", "os.environ", node, name=key, value=found)
        return NONE
    if name == "dataclasses.field":
        return _default_of_field(vm, kwargs, node)
    if name in ("functools.lru_cache", "functools.cache"):
        return first
    if name in FLAGS:
        if isinstance(first.what, Func):
            return Value(replace(first.what, flags=first.what.flags | {FLAGS[name]}))
        return first
    return _foreign(vm, name, args, kwargs, node)


def _default_of_field(vm: Machine, kwargs: dict[str, Value], node: ast.AST) -> Value:
    """What a field of a dataclass begins with."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    factory = kwargs.get("default_factory")
    if factory is not None:
        return call_value(vm, factory, [], {}, node)
    return kwargs.get("default", Value(NOTHING, UNKNOWN))


def _settings_may_change(vm: Machine) -> None:
    """Code that cannot be read may set every constant of this scope, alike on all ranks."""
    scope = vm.frame.scopes[0]
    names = set(vm.store.of(scope))
    for name in names:
        old = vm.store.get((scope, name))
        if old is not None and isinstance(old.what, Const):
            vm.store.put((scope, name), Value(term("setting", scope, name), old.agree, old.why))


def _foreign(
    vm: Machine, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A function of a library that no table knows."""
    from ddpdoctor.lint.engine.interpreter.methods import call_unknown

    found = vm.program.found_by_name(vm, name)
    if found is not None:
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        return call_value(vm, found, args, kwargs, node)
    return call_unknown(vm, Value(Lib(name), UNKNOWN), args, kwargs, node)


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "abs": abs,
    "round": round,
}


def _converted(
    vm: Machine, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    if not args:
        return Value(Const({"int": 0, "float": 0.0, "str": "", "bool": False}.get(name)))
    first = args[0]
    convert = _CONVERTERS.get(name, repr)
    if isinstance(first.what, Const) and len(args) == 1:
        try:
            return Value(Const(convert(first.what.value)), first.agree, first.why)
        except Exception:  # int("x") is the user's own error
            return Value(NOTHING, first.agree, first.why)
    if isinstance(first.what, Table):
        found = []
        for each in first.what.entries:
            try:
                found.append(OPEN if each is OPEN else convert(each))
            except Exception:  # int("cuda") is the user's own error
                found.append(OPEN)
        return Value(Table(tuple(found)), first.agree, first.why)
    if first.what in (WORLD, MODE) or (isinstance(first.what, Term) and name in ("int", "bool")):
        return first
    if name == "str":
        return (
            Value(first.what, first.agree, first.why)
            if isinstance(first.what, Term)
            else Value(NOTHING, first.agree, first.why)
        )
    content = objects.content(vm, first)
    if content is not None and name == "bool":
        plain = objects.without_order(content)
        return Value(NOTHING, plain.agree, plain.why)
    if isinstance(first.what, Tensor):
        made = Value(Tensor(vm.site(node), frozenset()), first.agree, first.why)
        return vm.computed(made, name, (first,), node)
    if name == "float" and isinstance(first.what, Term):
        return Value(objects.detached(first.what), first.agree, first.why)
    return Value(first.what if name in ("int", "float") else NOTHING, first.agree, first.why)


def _as_list(vm: Machine, name: str, first: Value, node: ast.AST) -> Value:
    from ddpdoctor.lint.engine.interpreter.iteration import elements

    found = objects.content(vm, first)
    if isinstance(first.what, Term) and first.what.op == "range" and len(first.what.args) == 1:
        return Value(term("list", first.what), first.agree, first.why)
    if found is None:
        one, count = elements(vm, first, node)
        found = Value(Many(one), count.agree, count.why)
        if isinstance(first.what, Term):
            return Value(term("list", first.what), first.agree, first.why)
    if name == "tuple":
        return found
    return objects.new_list_of(vm, node, found)


def _paired(
    vm: Machine, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    from ddpdoctor.lint.engine.interpreter.iteration import elements

    sources = args if name in ("zip", "enumerate") else args[1:]
    found = [elements(vm, each, node) for each in (sources[:1] if name == "enumerate" else sources)]
    counts, why = blended([count for _, count in found])
    orders = [objects.content(vm, each) for each in sources]
    for order in orders:
        if order is not None and order.agree.cause == "order" and not counts.divergent:
            counts, why = order.agree, order.why
    contents = [each.what if each is not None else None for each in orders]
    if name == "zip" and all(isinstance(each, Tuple) for each in contents):
        rows = zip(*(each.items for each in contents if isinstance(each, Tuple)), strict=False)
        return Value(Tuple(tuple(Value(Tuple(tuple(row))) for row in rows)), counts, why)
    if name == "enumerate":
        one = found[0][0] if found else NONE
        start = (args[1] if len(args) > 1 else kwargs.get("start", NONE)).constant
        first = (start,) if isinstance(start, int) and start else ()
        counter = Value(Term("counter", (vm.site(node), *first)), SAME)
        if contents and isinstance(contents[0], Tuple):
            numbered = [
                Value(Tuple((Value(Const(number)), each)))
                for number, each in enumerate(contents[0].items)
            ]
            return Value(Tuple(tuple(numbered)), counts, why)
        return Value(Many(Value(Tuple((counter, one)))), counts, why)
    if name == "zip":
        return Value(Many(Value(Tuple(tuple(one for one, _ in found)))), counts, why)
    one = found[0][0] if found else NONE
    if name == "map" and args:
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        one = call_value(vm, args[0], [each for each, _ in found], {}, node)
    return Value(Many(one), counts, why)


def _tested(vm: Machine, name: str, args: list[Value], node: ast.AST) -> Value:
    first = args[0] if args else NONE
    if name == "isinstance" and len(args) > 1:
        wanted = (
            [each.what for each in args[1].what.items]
            if isinstance(args[1].what, Tuple)
            else [args[1].what]
        )
        names = {each.name.rpartition(".")[2] for each in wanted if isinstance(each, Lib)}
        type = vm.type_of(first)
        if type and names & {"DistributedDataParallel", "DataParallel"}:
            return Value(Const(type.rpartition(".")[2] in names))
        if "DistributedSampler" in names and type:
            return Value(Const("DistributedSampler" in type))
        if (known := _is_instance(vm, first, wanted)) is not None:
            return Value(Const(known))
    if name == "hasattr" and len(args) > 1 and isinstance(args[1].constant, str):
        asked, type = args[1].constant, vm.type_of(first)
        if type == objects.DDP:
            own = asked in OF_THE_WRAPPER or vm.store.get((first.what, asked)) is not None
            return Value(Const(own))
        if asked == "module" and (type or objects.is_module(vm, first)):
            return Value(Const(vm.store.get((first.what, asked)) is not None))
    parts = [each.what for each in args if isinstance(each.what, Const | Term | Ref | Lib)]
    agree = UNKNOWN if first.agree.kind == "unknown" else SAME
    return Value(term(name, *parts), agree)


def _is_instance(vm: Machine, value: Value, wanted: Sequence[What]) -> bool | None:
    """Whether an object is of one of these classes, None where that is not known."""
    made = vm.object(value)
    if made is not None and made.type == objects.DDP:
        known = all(isinstance(each, Class | Lib) for each in wanted)
        own = any(isinstance(each, Lib) and each.name.endswith(_OF_DDP) for each in wanted)
        return False if known and not own else None
    if made is None or made.cls < 0 or not all(isinstance(each, Class) for each in wanted):
        return None
    mine = set(objects.bases(vm, made.cls))
    found = any(isinstance(each, Class) and each.number in mine for each in wanted)
    return found if found or objects.is_known(vm, made.cls) else None


_OF_DDP = ("DistributedDataParallel", "Module", "Joinable", "object")
"""The wrapper's own class, and its bases."""


def _environment(
    vm: Machine, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    variable = args[0].constant if args else OPEN
    if name == "os.environ.setdefault":
        if len(args) > 1:
            vm.emit("setenv", "setdefault", node, name=args[0], value=args[1])
        return args[1] if len(args) > 1 else NONE
    if not isinstance(variable, str):
        return Value(NOTHING, UNKNOWN)
    vm.emit("getenv", name, node, name=args[0], default=args[1] if len(args) > 1 else NONE)
    return objects.of_environment(vm, variable, node)


def _distinct(
    vm: Machine,
    name: str,
    effect: Effect,
    owner: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """A constant that is equal to itself alone."""
    return Value(Const(f"{name} {vm.site(node)}"))


_HANDLERS = {
    "distinct": _distinct,
    "local": _local,
    "pure": _pure,
    "count": _count,
    "bounds": _bounds,
    "itself": _itself,
    "calls": _calls,
    "enters": _enters,
    "ends": _ends,
    "collective": _collective,
    "group": _group,
    "init": _init,
    "leave": _leave,
    "wraps": _wraps,
    "prepares": _prepares,
    "spawns": _spawns,
    "calls_on_main": _calls_on_main,
    "new": _new,
    "event": _event,
}
