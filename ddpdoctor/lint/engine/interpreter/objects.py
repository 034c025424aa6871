"""Attributes, elements and the content of containers, and binding names to them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.machine import UNBOUND, Left, Machine
from ddpdoctor.lint.engine.interpreter.names import hinted
from ddpdoctor.lint.engine.interpreter.store import (
    OF_SOME,
    OR_NONE,
    PERHAPS,
    ROWS_OF,
    UNWRAPPED,
    Key,
    State,
)
from ddpdoctor.lint.engine.interpreter.tree import Seq
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK,
    FALSE,
    IS_LOCAL_MAIN,
    IS_MAIN,
    LOCAL_RANK,
    MODE,
    NODE_RANK,
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
    ModuleRef,
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
    has_identity,
    how_many,
    is_device,
    local,
    mix,
    term,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import KEEPS_ROWS, OF_THE_SHAPE, OF_THE_WRAPPER

MAX_ITEMS = 16
DDP = "torch.nn.parallel.DistributedDataParallel"
_CONTAINERS = ("list", "set")
OWN_PART = "each rank takes a part of its own"
OF_A_SET = "the order of a set differs between processes"
PARTS = "#parts"
"""The dictionary of a module that holds its parts in one."""


# --- what a value is now


def current(vm: Machine, value: Value) -> Value:
    """The value as it is after what was done to it in place."""
    what = value.what
    if what.__class__ is Tensor or what.__class__ is Term:
        memory = _memory(what)
        changed = vm.store.get((memory, "~"))
        if changed is not None and changed.what == memory:
            return changed if what is memory else Value(what, changed.agree, changed.why)
    return value


def now_with_parts(vm: Machine, value: Value) -> Value:
    """The same of a tuple with each of its parts."""
    if not isinstance(value.what, Tuple):
        return current(vm, value)
    parts = tuple(current(vm, each) for each in value.what.items)
    return Value(Tuple(parts), value.agree, value.why)


def touch_each(vm: Machine, content: What, one: Value, after: Value) -> None:
    """What was done in place to the element of a loop was done to each that it goes through."""
    items = content.items if isinstance(content, Tuple) else ()
    items = (content.element,) if isinstance(content, Many) else items
    if isinstance(one.what, Tuple) and isinstance(after.what, Tuple):
        rows = (each.what.items for each in items if isinstance(each.what, Tuple))
        columns = zip(*rows, strict=False)
        for column, each, new in zip(columns, one.what.items, after.what.items, strict=False):
            touch_each(vm, Tuple(column), each, new)
    elif after is not one:
        for each in items:
            touch(vm, each, after.agree, after.why)


def detached(what: What) -> Term:
    """A term without its graph; its memory is the same."""
    return term("detached", what)


def _memory(what: What) -> What:
    return what.args[0] if isinstance(what, Term) and what.op == "detached" else what


def touch(vm: Machine, value: Value, agree: Agreement, why: Any = None) -> None:
    """A tensor, a list or an unknown thing was changed in place: this is its agreement now."""
    what = _memory(value.what)
    if isinstance(what, Either):
        for each in what.options:
            touch(vm, each, agree, why)
    elif isinstance(what, Ref):
        content = vm.store.get((what, "[]"))
        if content is not None:
            element: What = NOTHING
            filled = Many(Value(element, agree, why), how_many(content.what))
            vm.store.put((what, "[]"), Value(filled, agree, why))
        else:
            vm.store.put((what, "~"), Value(what, agree, why))
    elif isinstance(what, Tensor | Term) and has_identity(what):
        if not agree.divergent:
            vm.store.put((what, _SIZED), Value(what, agree, why))
        elif vm.store.get((what, _SIZED)) is None:
            vm.store.put((what, _SIZED), value)
        vm.store.put((what, "~"), Value(what, agree, why))


def before_changes(vm: Machine, value: Value) -> Value:
    """What a thing was before anything was done in place to it: that makes no None of it."""
    return vm.store.get((_memory(value.what), _SIZED)) or value


_OF_SIZE = ("shape", "ndim", "dtype", "size")
_SIZED = "#sized"
"""Of a tensor that was changed in place: what it was before, and is as large as."""


def change(
    vm: Machine, owner: Value, agree: Agreement, why: Why | None, by: Value, node: ast.AST
) -> None:
    """A tensor is changed in place by a value; of a buffer that is an event of its own."""
    if isinstance(owner.what, Tensor):
        vm.emit("change", "", node, object=owner, by=by)
    if owner.what in vm.buffers:
        vm.emit("buffer", "", node, buffer=owner, by=by)
        if agree.divergent:  # until the next forward, or whoever sends it round
            agree, why = UNKNOWN, None
    touch(vm, owner, agree, why)


def fresh(vm: Machine, value: Value) -> Value:
    """A value that is made here anew, whatever was done to the last one made here."""
    if vm.store.get((value.what, "~")) is not None:
        vm.store.put((value.what, "~"), value)
        vm.store.put((value.what, _SIZED), value)
    return value


# --- attributes


ENVIRONMENT = {
    "RANK": RANK,
    "SLURM_PROCID": RANK,
    "OMPI_COMM_WORLD_RANK": RANK,
    "PMI_RANK": RANK,
    "PMIX_RANK": RANK,
    "MV2_COMM_WORLD_RANK": RANK,
    "LOCAL_RANK": LOCAL_RANK,
    "SLURM_LOCALID": LOCAL_RANK,
    "OMPI_COMM_WORLD_LOCAL_RANK": LOCAL_RANK,
    "MV2_COMM_WORLD_LOCAL_RANK": LOCAL_RANK,
    "GROUP_RANK": NODE_RANK,
    "SLURM_NODEID": NODE_RANK,
    "NODE_RANK": NODE_RANK,
}
"""What launchers set."""
_ALIKE = {
    "WORLD_SIZE": WORLD,
    "SLURM_NTASKS": WORLD,
    "SLURM_NPROCS": WORLD,
    "OMPI_COMM_WORLD_SIZE": WORLD,
}


def of_environment(vm: Machine, name: str, node: ast.AST) -> Value:
    """What an environment variable of a launcher holds."""
    if name in ENVIRONMENT:
        return Value(ENVIRONMENT[name], BY_RANK, vm.why(f"the launcher sets {name}", node))
    if name in _ALIKE:
        return Value(_ALIKE[name])
    written = vm.store.get((Lib("os.environ"), name))
    if written is not None:
        return written
    if name == "HOSTNAME":
        return Value(term("env", name), local("machine"), vm.why("hosts differ", node))
    return Value(term("env", name), SAME)


def presence(name: str) -> Value:
    """Whether an environment variable is there."""
    if name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        return Value(MODE)
    return Value(term("set", name), SAME)


def is_module(vm: Machine, value: Value) -> bool:
    """Whether a value is a module of torch's, of the user's, or a parameter."""
    made = vm.object(value)
    if made is None:
        return False
    type = made.type if made.cls < 0 else library_base(vm, made.cls)
    return type in MODULES


MODULES = ("torch.nn.Module", "torch.nn.Parameter")
A_MODULE = "#module"
"""Of something unknown: what was asked of it that modules alone have, such as its parameters."""
TRAINED = "#trained"
"""Of something unknown: whether its weights were said to be trained, last."""


def module_of(what: What) -> Ref | None:
    """The module whose weights are taken out of `state_dict()` or `parameters()`."""
    found = (weights_of(each) for each in within(what))
    return next((each for each in found if each is not None), None)


def weights_of(what: object) -> Ref | None:
    """The module whose weights these are, None of what is only computed from them."""
    return owner_of(what, *_WEIGHTS)


def note_use(vm: Machine, by: str, values: Iterable[Value], node: ast.AST) -> None:
    """What is computed from a module's parameters uses it, as its forward does."""
    if by in OF_THE_SHAPE or by.startswith("new_") or by.endswith("_like"):
        return
    for each in values:
        used = _with_gradient(vm, each.what)
        if used is not None:
            vm.emit("use", by, node, model=Value(used))


def _with_gradient(vm: Machine, what: What) -> Ref | None:
    """The module whose parameters these are themselves, with their graph."""
    if isinstance(what, Partial):
        layer = vm.object(what.callee)
        is_layer = layer is not None and layer.effect is not None and layer.effect.option("has")
        return Ref(layer.number) if layer is not None and is_layer else None
    one: object = what
    while isinstance(one, Term) and one.op in ("element", "item"):
        one = one.args[0]
    return owner_of(one, "parameters", "named_parameters")


_WEIGHTS = ("state_dict", "parameters", "named_parameters")


def owner_of(what: object, *methods: str) -> Ref | None:
    """The object that one of these methods of a library's was asked of, and has given this."""
    if not isinstance(what, Term) or what.op != "lib":
        return None
    is_asked = str(what.args[0]).rpartition(".")[2] in methods
    return next((each for each in what.args if is_asked and isinstance(each, Ref)), None)


def parts(held: dict[Ref, dict[str, Value]], module: What) -> set[int]:
    """A module and all that its attributes hold, by number."""
    found: set[int] = set()
    stack: list[What] = [module]
    while stack:
        each = stack.pop()
        if isinstance(each, Ref) and each.number not in found:
            found.add(each.number)
            stack += [value.what for value in held.get(each, {}).values()]
        elif isinstance(each, Tuple):
            stack += [value.what for value in each.items]
        elif isinstance(each, Many):
            stack.append(each.element.what)
        elif isinstance(each, Either):
            stack += [value.what for value in each.options]
    return found


def switch(vm: Machine, module: Value, training: Value | None = None) -> None:
    """`module.train(training)`, with all its parts; without a mode, the one in which they begin."""
    for number in parts(vm.store.held(), module.what):
        part = Ref(number)
        if is_module(vm, Value(part)) or vm.objects[number].type == DDP:
            vm.store.begin((part, TRAINING), TRUE)
            if training is not None:
                vm.store.put((part, TRAINING), training)


TRAINING = "training"


def default(vm: Machine, value: Value) -> Value | None:
    """What a setting of the command line is where nobody says it."""
    return vm.store.get((value.what, "default")) if isinstance(value.what, Term) else None


def attribute(vm: Machine, owner: Value, name: str, node: ast.AST) -> Value:
    """`owner.name`."""
    what = owner.what
    if isinstance(what, Either):
        if what.masks:
            vm.emit("of_some", name, node, owner=owner, ranks=Value(Const(vm.mask)))
        return vm.each(owner, lambda option: attribute(vm, option, name, node))
    if isinstance(what, Lib):
        return _of_library(vm, f"{what.name}.{name}", owner, node)
    if isinstance(what, ModuleRef):
        global_: Value = vm.program.of_module(vm, what.path, name)
        return global_
    if isinstance(what, Class):
        if name == "__name__":
            return Value(Const(vm.classes[what.number].name))
        found = class_attribute(vm, what.number, name)
        if found is not None:
            return _bound(vm, found, None, owner, node)
        return Value(term("of", what, name), UNKNOWN)
    if isinstance(what, Ref):
        return _of_object(vm, owner, what, name, node)
    if isinstance(what, Func) and name == "__name__":
        return Value(Const(vm.functions[what.number].name.rpartition(".")[2]))
    if isinstance(what, Func | Partial):
        found = vm.store.get((what, name))
        if found is not None:
            return found
        if isinstance(what, Partial) and (whole := _output_with(what)) is not None:
            return attribute(vm, Value(whole, owner.agree, owner.why), name, node)
        return Value(term("of", what, name), UNKNOWN)
    found = vm.store.get((what, name)) if what != NOTHING else None
    if found is not None:
        return found
    if isinstance(what, Tensor):
        if name in ("T", "mT", "H", "mH"):
            return owner  # the same numbers, seen another way
        if name == "data":
            return Value(Tensor(what.site), owner.agree, owner.why)
        if name in _OF_SIZE:
            return Value(term("of", what, name), of_size(vm, owner), owner.why)
        return Value(Partial(owner, (), (("#", Value(Const(name))),)), owner.agree, owner.why)
    if isinstance(what, Const | Table | Tuple | Many):
        return Value(Partial(owner, (), (("#", Value(Const(name))),)), owner.agree, owner.why)
    if name == "type" and is_device(what) and isinstance(what.args[1], Const | Term):
        kind = what.args[1]  # alike, whichever its number is
        return Value(kind) if isinstance(kind, Const) else Value(term("of", kind, name), UNKNOWN)
    if name in _OF_SIZE and vm.store.get((_memory(what), _SIZED)) is not None:
        return Value(term("of", what, name), of_size(vm, owner), owner.why)
    return (
        hinted(vm, Value(term("of", what, name), owner.agree, owner.why), name)
        if (owner.agree.kind != "same")
        else _field(vm, what, name)
    )


def _output_with(part: Partial) -> Tensor | None:
    """What a model has given that has such a part: `output.loss`, which no tensor has."""
    whole, name = part.callee.what, dict(part.named).get("#", NONE).constant
    if not isinstance(whole, Tensor) or not whole.of or name in _OF_A_TENSOR:
        return None
    return whole


def models_behind(value: Value) -> frozenset[int]:
    """The models whose forward a tensor comes from, or a part of what one has given."""
    what = value.what
    whole = _output_with(what) if isinstance(what, Partial) else what
    return whole.of if isinstance(whole, Tensor) else frozenset()


_ASIDE = "device dtype layout grad grad_fn names ndim itemsize nbytes real imag version"
_OF_A_TENSOR = frozenset(_ASIDE.split())
"""Attributes that any tensor has, and that have attributes of their own."""

ROWS = "#rows"
"""Of a batch and its parts: ranks have as many samples in it."""


def of_size(vm: Machine, tensor: Value) -> Agreement:
    """Whether ranks have a tensor as large: what is drawn, or done in place, is what is in it."""
    agree = (vm.store.get((_memory(tensor.what), _SIZED)) or tensor).agree
    return UNKNOWN if agree.cause == "chance" else agree


def rows(vm: Machine, tensor: Value) -> Agreement:
    """Whether ranks have as many rows of a tensor."""
    return SAME if _has_equal_rows(vm, tensor.what) else of_size(vm, tensor)


def _has_equal_rows(vm: Machine, what: What, depth: int = 8) -> bool:
    """Whether it is a batch of which ranks have as many samples, or computed of one row by row."""
    if vm.store.get((what, ROWS)) is not None:
        return True
    made = vm.made.get(what)
    if made is None or not depth:
        return False
    if made.by in KEEPS_ROWS:
        return bool(made.of) and _has_equal_rows(vm, made.of[0].what, depth - 1)
    return made.by in _ROW_BY_ROW and any(
        _has_equal_rows(vm, each.what, depth - 1) for each in made.of
    )


_ROW_BY_ROW = ("Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow")


def is_as_large(vm: Machine, part: Value) -> bool:
    """Whether it is a rank's own part of something, and the others' are as large."""
    return part.agree.kind == "rank" and vm.store.get((part.what, ROWS)) is not None


def _field(vm: Machine, what: What, name: str) -> Value:
    """A field of something that all ranks have alike."""
    return Value(term("of", what, name), SAME)


def _of_library(vm: Machine, name: str, owner: Value, node: ast.AST) -> Value:
    written = vm.store.get((owner.what, name.rpartition(".")[2]))
    if written is not None:
        return written
    if name in _OF_PYTHON:
        return Value(Const(_OF_PYTHON[name]))
    if name in ("torch.distributed.GroupMember.WORLD", "torch.distributed.group.WORLD"):
        return Value(Lib(name)) if vm.joined else NONE
    effect = vm.library.exact(name)
    if effect is not None and effect.option("read") == "attribute":
        return of_rank(vm, effect.does, node, name.removeprefix("mpi4py."))
    return Value(Lib(vm.library.home(name)))


_OF_PYTHON = {"six.PY3": True, "six.PY2": False, "sys.version_info.major": 3}
"""What is so under every Python that torch runs on."""


def _of_object(vm: Machine, owner: Value, what: Ref, name: str, node: ast.AST) -> Value:
    found = vm.store.get((what, name))
    made = vm.objects[what.number]
    if found is not None and name == "module" and what.number in vm.store.distributed:
        return Value(found.what, found.agree, vm.why(UNWRAPPED, node, found.why))
    if found is not None:
        if (lacking := lacks(vm, owner, name)) is not None:
            vm.emit("unbound", name, node, lacking=lacking)
        is_data = made.cls >= 0 and isinstance(found.what, Tensor | Term)
        return of_one_of_several(owner, found) if is_data else found
    if made.cls >= 0:
        found = class_attribute(vm, made.cls, name)
        if found is not None:
            return _bound(vm, found, owner, Value(Class(made.cls)), node)
        base = library_base(vm, made.cls)
        getter = class_attribute(vm, made.cls, "__getattr__")
        if base in ("", "dict") and name not in _OF_A_DICT:
            got = _of_own_lookup(vm, owner, getter, name, node)
            if got is not None:
                return got
        if getter is not None and made.type == DDP and name not in OF_THE_WRAPPER:
            inner = vm.store.get((what, "module"))
            if inner is not None and _asks_the_module(vm, getter):
                return attribute(vm, inner, name, node)
            return Value(term("of", what, name), UNKNOWN)
        if base:
            return _of_type(vm, owner, base, name, node)
        value = Value(term("of", what, name), UNKNOWN)
        if (named := vm.store.get((what, NAMED))) is not None and named.agree.kind == "same":
            return hinted(vm, Value(value.what, SAME_LIKELY), name)
        return value if getter is not None else hinted(vm, value, name)
    if made.type == NAMESPACE:
        return owner if name == "__dict__" else _option(vm, what, name, node)
    if made.type == LOADER and name == "sampler" and vm.store.get((what, "#prepared")) is None:
        own = vm.new(made.node, SAMPLER, kind=f"sampler {what.number}")
        vm.store.put((own, OF_LOADER), owner)
        return Value(own)
    if (held := vm.store.get((what, PARTS))) is not None:  # modules in a dictionary, by their names
        part = vm.store.get((held.what, f"[{name!r}]"))
        if part is not None and part != ABSENT:
            return part
    return _of_type(vm, owner, made.type, name, node)


def lacks(vm: Machine, owner: Value, name: str) -> Value | None:
    """The ranks on which an object of the user's has no such attribute, where others have it."""
    made = vm.object(owner) if name in vm.unbound else None
    if made is None or made.cls < 0:
        return None
    lacking = vm.store.get((owner.what, UNBOUND + name))
    if lacking is None or not isinstance(lacking.what, Table):
        return None
    own = (class_attribute(vm, made.cls, each) for each in (name, "__getattr__"))
    return None if any(each is not None for each in own) else lacking


ITSELF = "#itself"
"""Of a dictionary whose attributes are its entries: `self.__dict__ = self`."""
_OF_A_DICT = frozenset(dir(dict))
_GETTING = (Lib("dict.__getitem__"), Lib("dict.get"))


def _of_own_lookup(
    vm: Machine, owner: Value, getter: Value | None, name: str, node: ast.AST
) -> Value | None:
    """What an object's `__getattr__`, or its entry of that name, is; None where it is not known."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    is_entry = vm.store.get((owner.what, ITSELF)) is not None
    if vm.type_of(owner) == "dict" and (is_entry or (getter and getter.what in _GETTING)):
        return item(vm, owner, Value(Const(name)), node)
    if getter is None or name.startswith("__") or not _is_run(vm, getter):
        return None
    outside, mask = vm.out, vm.mask
    vm.out = Seq()
    try:
        bound = _bound(vm, getter, owner, NONE, node)
        found = call_value(vm, bound, [Value(Const(name))], {}, node)
    except Left:
        return None
    finally:
        vm.out, vm.mask = outside, mask
    return found if found.what != NOTHING or found.agree.divergent else None


def _asks_the_module(vm: Machine, getter: Value) -> bool:
    """Whether a `__getattr__`, or what a decorator keeps of it, asks `self.module` by a name."""
    if not isinstance(getter.what, Func):
        return False
    kept = [value for scope in getter.what.scopes[:1] for value in vm.store.of(scope).values()]
    functions = [each.what for each in (getter, *kept) if isinstance(each.what, Func)]
    nodes = [each for func in functions for each in ast.walk(vm.functions[func.number].node)]
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and each.func.id == "getattr"
        and any(isinstance(arg, ast.Attribute) and arg.attr == "module" for arg in each.args)
        for each in nodes
    )


LOADER = "torch.utils.data.DataLoader"
SAMPLER = "torch.utils.data.Sampler"
"""A sampler of the library's that knows nothing of ranks and epochs."""
UNTOLD = (LOADER, SAMPLER, "torch.utils.data.BatchSampler")
"""What has no `set_epoch`."""
OF_DATA = (
    LOADER,
    "torch.utils.data.BatchSampler",
    "torch.utils.data.DistributedSampler",
    "torch.utils.data.distributed.DistributedSampler",
)
"""What users derive classes from that deal out samples."""
OF_LOADER = "#loader"
"""Of a sampler that a loader has made for itself: that loader."""


def _of_type(vm: Machine, owner: Value, type: str, name: str, node: ast.AST) -> Value:
    effect = vm.library.exact(f"{type}.{name}")
    if effect is not None and effect.does in PROPERTIES:
        return of_rank(vm, effect.does, node, f"{type.rpartition('.')[2]}.{name}")
    if effect is not None and effect.does == "part":
        part = Value(vm.new(node, effect.option("type")), SAME)
        vm.store.put((owner.what, name), part)
        return part
    told = (PERHAPS, NAMED)
    is_sure = type == DDP and all(vm.store.get((owner.what, each)) is None for each in told)
    if is_sure and name not in OF_THE_WRAPPER and not name.startswith("_"):
        vm.emit("not_there", name, node, wrapper=owner)
    return Value(Partial(owner, (), (("#", Value(Const(name))),)), owner.agree, owner.why)


PROPERTIES = ("rank", "local_rank", "node_rank", "main", "local_main", "world", "same", "mode")
_TABLES = {
    "rank": RANK,
    "local_rank": LOCAL_RANK,
    "node_rank": NODE_RANK,
    "main": IS_MAIN,
    "local_main": IS_LOCAL_MAIN,
}


def of_rank(vm: Machine, does: str, node: ast.AST, name: str) -> Value:
    """The rank, whether it is the main one, the world size."""
    if does in _TABLES:
        return Value(_TABLES[does], BY_RANK, vm.why(f"`{name}` asks for the rank", node))
    if does == "world":
        return Value(WORLD)
    if does == "mode":
        return Value(MODE)
    return Value(term("alike", name), SAME)


def _option(vm: Machine, namespace: Ref, name: str, node: ast.AST) -> Value:
    """A field of the command line's options."""
    parser = vm.store.get((namespace, "#parser"))
    found: Value | None = None
    if parser is not None:
        found = vm.store.get((parser.what, f"--{name}"))
    return found if found is not None else Value(term("of", namespace, name), SAME)


# --- classes


def bases(vm: Machine, number: int, depth: int = 12) -> Iterable[int]:
    """A class and its bases in the project, in the order in which attributes are looked for."""
    if depth == 0:
        return
    seen: dict[int, None] = {number: None}
    for base in vm.classes[number].bases:
        if isinstance(base.what, Class):
            seen.update(dict.fromkeys(bases(vm, base.what.number, depth - 1)))
    yield from seen


def class_attribute(vm: Machine, number: int, name: str, after: int = -1) -> Value | None:
    """An attribute of a class or its bases; `after` one of them, as `super()` asks."""
    order = list(bases(vm, number))
    if after in order:
        order = order[order.index(after) + 1 :]
    for each in order:
        found = vm.store.get((vm.classes[each].scope, name))
        if found is not None:
            return found
    return None


def library_base(vm: Machine, number: int) -> str:
    """The library type that a class derives from, "" where there is none that is known."""
    name = library_class(vm, number)
    effect = vm.library.exact(name) if name else None
    return effect.option("type", name) if effect else name


def library_class(vm: Machine, number: int) -> str:
    """The library's class that a class derives from, by its own name."""
    for each in bases(vm, number):
        for base in vm.classes[each].bases:
            if isinstance(base.what, Lib):
                return base.what.name
    return ""


def is_first_of_data(vm: Machine, number: int) -> bool:
    """Whether the first base of a class is a loader or sampler of the library's."""
    base = vm.classes[number].bases[0].what if vm.classes[number].bases else None
    return isinstance(base, Lib) and library_base(vm, number) in OF_DATA


def is_known(vm: Machine, number: int) -> bool:
    """Whether all bases of a class are known: nothing else can give it attributes."""
    return all(
        isinstance(base.what, Class) or base.what == Lib("object")
        for each in bases(vm, number)
        for base in vm.classes[each].bases
    )


def _bound(vm: Machine, found: Value, owner: Value | None, cls: Value, node: ast.AST) -> Value:
    if isinstance(found.what, Either):
        return vm.each(found, lambda option: _bound(vm, option, owner, cls, node))
    what = found.what
    if not isinstance(what, Func):
        return found
    if "staticmethod" in what.flags:
        return found
    if "classmethod" in what.flags:
        return Value(replace(what, bound=(cls, *what.bound)))
    if owner is None:
        return found
    bound = replace(what, bound=(owner, *what.bound))
    if "property" in what.flags:
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        return call_value(vm, Value(bound), [], {}, node)
    return Value(bound)


# --- containers


def new_list(vm: Machine, node: ast.AST, items: tuple[Value, ...]) -> Value:
    """A list of these."""
    if len(items) <= MAX_ITEMS:
        return new_list_of(vm, node, Value(Tuple(items)))
    return new_list_of(vm, node, Value(Many(one_of(vm, items))))


def new_list_of(vm: Machine, node: ast.AST, content: Value) -> Value:
    """A list with this content."""
    made = vm.new(node, "list")
    if isinstance(content.what, Many) and content.what.number == NOTHING:
        many = Many(content.what.element, Term("many", (made.number,)))
        content = Value(many, content.agree, content.why)
    vm.store.put((made, "[]"), content)
    return Value(made)


def new_set(vm: Machine, node: ast.AST, items: list[Value] | None, sources: list[Value]) -> Value:
    """A set, whose order each process has for itself, unless it holds numbers alone."""
    found = list(items or [])
    for source in sources:
        content = globals()["content"](vm, source)
        if content is None:
            found.append(Value(NOTHING, source.agree, source.why))
        elif isinstance(content.what, Tuple):
            found.extend(content.what.items)
        elif isinstance(content.what, Many):
            found.append(content.what.element)
    made = vm.new(node, "set")
    agree, why = blended([without_order(each) for each in found])
    numbers = found and all(map(_is_number, found))
    if not numbers and not agree.divergent:
        agree = local("order", agree.kind == "same" or bool(sources) or items is not None)
        why = vm.why(OF_A_SET, node)
    element = one_of(vm, found) if found else Value(NOTHING, agree, why)
    vm.store.put((made, "[]"), Value(Many(element), agree, why))
    return Value(made)


def concatenated(vm: Machine, node: ast.AST, left: Value, right: Value) -> Value:
    """`left + right` of lists."""
    one, other = content(vm, left), content(vm, right)
    agree, why = blended([each for each in (one, other) if each is not None])
    items: list[Value] = []
    exact = True
    for each in (one, other):
        if each is None:
            items.append(Value(NOTHING, right.agree, right.why))
            exact = False
        elif isinstance(each.what, Tuple):
            items.extend(each.what.items)
        elif isinstance(each.what, Many):
            items.append(each.what.element)
            exact = False
    if exact and len(items) <= MAX_ITEMS:
        return new_list_of(vm, node, Value(Tuple(tuple(items)), agree, why))
    number = grown(one.what if one else NOTHING, how_many(other.what if other else NOTHING))
    return new_list_of(vm, node, Value(Many(one_of(vm, items), number), agree, why))


def one_of(vm: Machine, items: Iterable[Value]) -> Value:
    """What may be any of these."""
    found: list[Value | None] = list(items)
    if not found:
        return Value(NOTHING, UNKNOWN)
    return vm.store.joined(found, [State({})] * len(found), [], None)


def content(vm: Machine, value: Value) -> Value | None:
    """The elements of a tuple, list or set, as a Tuple or Many; None for anything else."""
    what = value.what
    if isinstance(what, Tuple | Many):
        return value
    if isinstance(what, Ref):
        found = vm.store.get((what, "[]"))
        if found is not None:
            return of_one_of_several(value, found)
        if vm.type_of(value) == "dict":
            return keys(vm, value)
        if (made := vm.objects[what.number]).cls >= 0 and is_named_tuple(vm, made.cls):
            return Value(Tuple(tuple(fields(vm, value).values())))
    if isinstance(what, Either):
        several = [content(vm, each) for each in what.options]
        by = [value] if value.agree.divergent else []
        whole = None not in several
        return vm.store.joined(several, [State({})] * len(several), by, what) if whole else None
    if isinstance(what, Const) and isinstance(what.value, tuple):
        return Value(Tuple(tuple(Value(Const(each)) for each in what.value)), value.agree)
    return None


def of_one_of_several(owner: Value, found: Value) -> Value:
    """What is read of something: the rank's own where that is one of those it goes through.

    How much is in it is not known then, unless that is written: each may have another number.
    """
    if owner.agree.cause != "data":
        return found
    what = found.what
    if isinstance(what, Tuple):
        items = tuple(of_one_of_several(owner, each) for each in what.items)
        return Value(Tuple(items), found.agree, found.why)
    if isinstance(what, Many):
        element = of_one_of_several(owner, what.element)
        count = UNKNOWN if found.agree.kind == "same" else found.agree
        return Value(Many(element, what.number), count, found.why)
    agree, why = blended([found, owner])
    return Value(what, agree, why)


def field_names(vm: Machine, number: int) -> tuple[str, ...]:
    """The fields of a dataclass or named tuple, in order."""
    classes = reversed(list(bases(vm, number)))
    return tuple(dict.fromkeys(name for each in classes for name in vm.classes[each].fields))


def fields(vm: Machine, value: Value) -> dict[str, Value]:
    """What is in the fields of an instance of one; nothing of anything else."""
    made = vm.object(value)
    names = field_names(vm, made.cls) if made is not None and made.cls >= 0 else ()
    return {name: attribute(vm, value, name, made.node) for name in names} if made else {}


def is_named_tuple(vm: Machine, number: int) -> bool:
    """Whether the instances of a class are tuples whose elements have names."""
    return library_base(vm, number).rpartition(".")[2] == "NamedTuple"


def held(content: Value) -> tuple[Value, ...]:
    """What `content` gave, as its elements; one for all where their number is open."""
    if isinstance(content.what, Tuple):
        return content.what.items
    return (content.what.element,) if isinstance(content.what, Many) else ()


def without_order(value: Value) -> Value:
    """The same, where nobody asks for its order."""
    what = value.what
    if isinstance(what, Tuple) and any(each.agree.cause == "order" for each in what.items):
        what = Tuple(tuple(without_order(each) for each in what.items))
    if value.agree.kind == "local" and value.agree.cause == "order":
        return Value(what, SAME if value.agree.sure else UNKNOWN)
    return value if what is value.what else Value(what, value.agree, value.why)


def truthy(vm: Machine, value: Value, node: ast.AST) -> Value:
    """A value as a condition: of a container whether it holds anything, as far as ranks differ."""
    if isinstance(value.what, Either):
        table = value.what.table(lambda each: False if each.is_const(None) else vm.truth(each))
        known = table and Table(tuple(OPEN if each is None else each for each in table.entries))
        return Value(known, value.agree, value.why) if known else value
    if (agreed := vm.store.as_condition(value)) is not value:
        return agreed
    if value.agree.kind == "local" and (given := _given(vm, value)) is not None:
        return Value(value.what, given.agree, given.why)
    made = vm.object(value)
    if made is not None and made.cls >= 0 and class_attribute(vm, made.cls, "__bool__"):
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        return call_value(vm, attribute(vm, value, "__bool__", node), [], {}, node)
    found = content(vm, value) if isinstance(value.what, Ref) else None
    if found is None or not found.agree.divergent or found.agree.cause in _MEANT_AS_MANY:
        return value
    return Value(term("filled", value.what), found.agree, found.why)


def _given(vm: Machine, value: Value) -> Value | None:
    """How ranks agree on whether a part of something is there, of what may be None instead."""
    made = vm.made.get(value.what)
    is_part = isinstance(value.what, Term) or (made is not None and made.by == "item")
    return vm.store.get((value.what, OR_NONE)) if is_part else None


_MEANT_AS_MANY = ("order", "chance", "shard")
"""Of a local content: in another order, or other things that are meant to be as many."""
NOT_HOW_MANY = ("chance", "exception")
"""Of what is unknown otherwise: what is drawn, or could be read, decides what is in it alone."""


def clear(vm: Machine, made: Value) -> None:
    """A dictionary that begins empty."""
    if vm.store.get((made.what, "keys")) is not None:  # one was made here before
        known = keys(vm, made).what
        exact = isinstance(known, Tuple) and vm.store.get((made.what, "*")) is ABSENT
        items = known.items if isinstance(known, Tuple) else ()
        for name in [f"[{each.constant!r}]" for each in items] if exact else vm.store.of(made.what):
            vm.store.put((made.what, name), ABSENT)
    vm.store.put((made.what, "keys"), Value(Tuple(())))
    vm.store.put((made.what, "*"), ABSENT)


ABSENT = Value(Term("absent"), SAME)


def keys(vm: Machine, made: Value) -> Value:
    """The keys of a dictionary."""
    found = vm.store.get((made.what, "keys"))
    return found if found is not None else Value(Many(Value(NOTHING, UNKNOWN)), UNKNOWN)


def entries(vm: Machine, made: Value) -> tuple[tuple[Value, Value], ...]:
    """(key, value) of all that a dictionary holds; none where its keys are open."""
    known = keys(vm, made).what
    items = known.items if isinstance(known, Tuple) else ()
    return tuple((key, get_key(vm, made, key)) for key in items)


def things_in(vm: Machine, made: Value) -> list[Value]:
    """The objects that a dictionary of open keys has under those that are known."""
    kept = vm.store.of(made.what).items()
    return [each for name, each in kept if name.startswith("[") and isinstance(each.what, Ref)]


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
    inner = vm.store.get((what, PARTS)) if is_module else None
    if inner is not None:
        set_item(vm, inner, key, value, node)
    if is_module or isinstance(what, Tensor | Term):
        given = {"given": _known_here(vm)} if key.is_const("lr") else {}
        vm.emit("set_item", "[]", node, owner=owner, key=key, value=value, **given)
    if is_module or vm.type_of(owner) in _CONTAINERS:
        found = content(vm, owner)
        index = key.constant
        items = list(found.what.items) if found and isinstance(found.what, Tuple) else []
        if found is not None and isinstance(index, int) and -len(items) <= index < len(items):
            items[index] = value
            vm.store.put((what, "[]"), Value(Tuple(tuple(items)), found.agree, found.why))
            return
        put = Value(value.what, *blended([value, key]))
        found = found if found is not None else Value(Many(put))
        many = Many(one_of(vm, [*held(found), put]), how_many(found.what))
        vm.store.put((what, "[]"), Value(many, found.agree, found.why))
        return
    made = vm.object(owner)
    own = class_attribute(vm, made.cls, "__setitem__") if made and made.cls >= 0 else None
    if isinstance(what, Ref) and vm.type_of(owner) == "dict" and not _is_run(vm, own):
        if key.agree.cause == "order" and _counts(value.what):
            vm.emit("number", "", node, owner=owner, key=key)
        elif value.agree.cause == "order" and _counts(key.what):
            vm.emit("number", "", node, owner=owner, key=value)
        _set_key(vm, owner, key, value)
        return
    if own is not None:
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        call_value(vm, _bound(vm, own, owner, NONE, node), [key, value], {}, node)
        return
    if isinstance(what, Term) and isinstance(key.constant, str):  # what is kept by others stays
        vm.store.put((what, f"[{key.constant!r}]"), value)
        return
    if isinstance(what, Tensor | Term):
        agree, why = blended([current(vm, owner), value, key])
        is_whole = isinstance(key.what, Const)
        if is_whole and not current(vm, owner).agree.divergent:
            agree, why = (value.agree, value.why) if value.agree.divergent else (agree, why)
        change(vm, owner, agree, why, value, node)
        if isinstance(key.what, Const):
            vm.store.put((what, f"[{key.what.value!r}]"), value)


def _is_part_of(what: Term, container: What) -> bool:
    """Whether it was picked from a container of modules, whatever was done to it since."""
    return what.op == "picked" and what.args[0] == container


def _is_run(vm: Machine, method: Value | None) -> bool:
    """Whether it is a function of the user's that is not being run already: it asks the library."""
    if method is None or not isinstance(method.what, Func):
        return False
    info = vm.functions[method.what.number]
    return all(each.function is not info for each in vm.frames)


def _counts(what: What) -> bool:
    """Whether it counts the rounds of a loop, or what there is already."""
    return isinstance(what, Term) and what.op in ("counter", "len")


def _is_number(value: Value) -> bool:
    return _counts(value.what) or isinstance(value.constant, int | float)


def _set_key(vm: Machine, owner: Value, key: Value, value: Value) -> None:
    known = keys(vm, owner)
    if isinstance(key.what, Const):
        name = f"[{key.what.value!r}]"
        if vm.conditions and not isinstance(known.what, Tuple):  # on another way it may be there
            vm.store.begin((owner.what, name), get_key(vm, owner, key))
        vm.store.put((owner.what, name), value)
    else:
        old = vm.store.get((owner.what, "*"))
        values = [value] if old is None or old == ABSENT else [old, value]
        vm.store.put((owner.what, "*"), one_of(vm, values))
    agree, why = mix(known.agree, key.agree), known.why or key.why
    if isinstance(known.what, Tuple) and len(known.what.items) < MAX_ITEMS:
        if isinstance(key.what, Const) and key.what in [each.what for each in known.what.items]:
            return
        if isinstance(key.what, Const):
            items = (*known.what.items, key)
            vm.store.put((owner.what, "keys"), Value(Tuple(items), agree, why))
            return
    items = known.what.items if isinstance(known.what, Tuple) else ()
    others = [known.what.element] if isinstance(known.what, Many) else list(items)
    many = Many(one_of(vm, [*others, key]), grown(known.what))
    vm.store.put((owner.what, "keys"), Value(many, agree, why))


def update(vm: Machine, owner: Value, other: Value, node: ast.AST | None = None) -> None:
    """`owner.update(other)`."""
    node = node or ast.Pass()
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
        set_item(vm, owner, option, attribute(vm, other, str(option.constant), node), node)
    # What is in it is the rank's own; by which names it is there, is not known.
    is_of_data = other.agree.cause == "data"
    key = Value(NOTHING, UNKNOWN if is_of_data else other.agree, other.why)
    value = Value(NOTHING, other.agree)
    if owner_of(other.what, "named_parameters") is not None:
        pair = Value(term("element", other.what), other.agree, other.why)
        value = item(vm, pair, Value(Const(1)), node)
    if vm.type_of(other) == "dict":
        agree, why = blended([key, keys(vm, other)])
        key, value = Value(NOTHING, agree, why), get_key(vm, other, Value(NOTHING))
    set_item(vm, owner, key, value, node)


def options(vm: Machine, namespace: Value) -> dict[str, Value]:
    """What the options of a command line hold: what was set since, else what the parser gives."""
    parser = vm.store.get((namespace.what, "#parser"))
    given = vm.store.of(parser.what).items() if parser is not None else ()
    own = vm.store.of(namespace.what).items()
    return {
        **{name.removeprefix("--"): value for name, value in given if name.startswith("--")},
        **{name: value for name, value in own if not name.startswith("#")},
    }


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
    return found if current(vm, owner).agree.divergent == found.agree.divergent else None


def get_key(vm: Machine, owner: Value, key: Value) -> Value:
    """`owner[key]` of a dictionary."""
    if isinstance(key.what, Const):
        found = vm.store.get((owner.what, f"[{key.what.value!r}]"))
        if found is not None and found != ABSENT:
            return found
    elif isinstance(key.what, Table):
        found_keys = [vm.store.get((owner.what, f"[{each!r}]")) for each in key.what.entries]
        if all(each is not None for each in found_keys):
            return _selected(vm, key, [each for each in found_keys if each is not None])
    rest = vm.store.get((owner.what, "*"))
    known = keys(vm, owner)
    if not isinstance(key.what, Const) and isinstance(known.what, Tuple) and known.what.items:
        each_value = [get_key(vm, owner, each) for each in known.what.items]
        found = one_of(vm, each_value)
        if not isinstance(found.what, Either | Func | Class) and (said := default(vm, key)):
            usual = get_key(vm, owner, said)  # of many makers that which goes unless one is named
            found = usual if isinstance(usual.what, Func | Class) else found
        agree, why = blended([found, key])
        return Value(found.what, agree, why)
    if rest is not None and rest != ABSENT:
        agree, why = blended([rest, key])
        # Whatever it is, who asks for the same key again gets the same.
        same = rest.what == NOTHING and isinstance(key.what, Const)
        if isinstance(key.what, Const) and agree.cause in ("disk", "exception"):
            agree, why = UNKNOWN, None  # whether it was put there, and by which ranks: who knows
        return Value(term("item", owner.what, key.what) if same else rest.what, agree, why)
    made = vm.store.get((owner.what, "~"))
    agree, why = blended([made if made is not None else Value(NOTHING, UNKNOWN), key])
    return Value(term("item", owner.what, key.what), agree, why)


def make_defaults(vm: Machine, owner: Value, factory: Value, node: ast.AST) -> None:
    """A defaultdict begins with what makes its values, and one for all keys that are not known."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    vm.store.put((owner.what, "~"), Value(NOTHING, UNKNOWN))
    vm.store.put((owner.what, FACTORY), factory)
    begin(vm, owner)
    if _is_followed(factory):
        vm.store.put((owner.what, "*"), call_value(vm, factory, [], {}, node))


def _make_default(vm: Machine, owner: Value, key: Value, node: ast.AST) -> None:
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
        return
    set_item(vm, owner, key, made, node)


def _missing(vm: Machine, owner: Value, node: ast.AST) -> Value | None:
    """What a dictionary of the user's own class asks for what it lacks."""
    made = vm.object(owner)
    method = class_attribute(vm, made.cls, "__missing__") if made and made.cls >= 0 else None
    return None if method is None else _bound(vm, method, owner, NONE, node)


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


def _selected(vm: Machine, index: Value, found: list[Value]) -> Value:
    """Each rank's own of several."""
    if all(each.what == found[0].what for each in found):
        return found[0]
    if all(isinstance(each.what, Const) for each in found):
        return Value(Table(tuple(each.constant for each in found)), index.agree, index.why)
    agree, why = blended([*found, index])
    joined = one_of(vm, list({each.what: each for each in found}.values()))
    return Value(joined.what, agree, why)


def take_out(vm: Machine, owner: Value, index: Value) -> None:
    """Take one of a list's things out of it."""
    found = content(vm, owner)
    if found is None or not isinstance(found.what, Tuple) or not found.what.items:
        return
    items, at = list(found.what.items), index.constant
    rest: Tuple | Many = Many(one_of(vm, items))
    if isinstance(at, int) and -len(items) <= at < len(items) and not vm.frame.loops:
        del items[at]
        rest = Tuple(tuple(items))
    vm.store.put((owner.what, "[]"), Value(rest, found.agree, found.why))


VERSION = Lib("sys.version_info")


def _under_a_name(vm: Machine, what: What, name: Value, node: ast.AST) -> Value | None:
    """What a module has under a name: `vars(module)[name]`, `globals()[name]`."""
    from ddpdoctor.lint.engine.interpreter import lookups

    if what == Lib("sys.modules"):
        return lookups.module_of(vm, name)
    if isinstance(what, Term) and what.op == "global" and what.args[1:] == ("__dict__",):
        what = ModuleRef(what.args[0])
    return lookups.of_module(vm, what, name, node)


def item(vm: Machine, owner: Value, index: Value, node: ast.AST) -> Value:
    """`owner[index]`."""
    what = owner.what
    if isinstance(what, Either):
        if what.masks:
            vm.emit("of_some", "[]", node, owner=owner, ranks=Value(Const(vm.mask)))
        return vm.each(owner, lambda option: item(vm, option, index, node))
    if isinstance(what, Partial) and (whole := _output_with(what)) is not None:
        return item(vm, Value(whole, owner.agree, owner.why), index, node)
    if (named := _under_a_name(vm, what, index, node)) is not None:
        return named
    if what == VERSION and index.is_const(0):
        return Value(Const(3))
    if what == Lib("os.environ"):
        name = index.constant
        if isinstance(name, str):
            vm.emit("getenv", "os.environ", node, name=index)
            return of_environment(vm, name, node)
        return Value(NOTHING, UNKNOWN)
    if isinstance(what, Ref) and vm.type_of(owner) == "dict":
        cls = vm.objects[what.number].cls
        own = class_attribute(vm, cls, "__getitem__") if cls >= 0 else None
        if not _is_run(vm, own):
            _make_default(vm, owner, index, node)
            return of_one_of_several(owner, get_key(vm, owner, index))
    if is_module(vm, owner) and not _is_counted(index):
        return Value(term("picked", what, index.what), owner.agree, owner.why)
    held = vm.store.get((what, PARTS)) if isinstance(what, Ref) else None
    if held is not None:
        return item(vm, held, index, node)
    found = content(vm, owner)
    if found is not None:
        one = _of_content(vm, found, index)
        if (order := order_of(vm, one)) is not None:
            vm.emit("pick", "", node, order=order, index=index)
        if isinstance(index.what, Term) and index.what.op == "counter":
            vm.emit("turn", "", node, index=index, element=one)
        return one
    vm.note_read(owner, index)
    if (order := order_of(vm, current(vm, owner))) is not None:
        vm.emit("pick", "", node, order=order, index=index)
    # What is kept for each device has the same under each, as far as one knows: it is where it is.
    agree, why = blended([current(vm, owner), *([index] if not is_device(index.what) else [])])
    if isinstance(index.what, Const) and (part := put_under(vm, owner, index)) is not None:
        return part
    if isinstance(what, Ref) and vm.objects[what.number].cls >= 0:
        method = class_attribute(vm, vm.objects[what.number].cls, "__getitem__")
        if method is not None:
            from ddpdoctor.lint.engine.interpreter.calls import call_value

            bound = _bound(vm, method, owner, NONE, node)
            return call_value(vm, bound, [index], {}, node)
    shape = what.args[1] if isinstance(what, Term) and what.op == "of" else ""
    if isinstance(what, Term) and shape in ("shape", "size") and index.is_const(0):
        agree = rows(vm, Value(what.args[0], agree))
        return Value(term("item", what, index.what), agree, why if agree.divergent else None)
    is_equal_part = _is_one_of_equal_parts(vm, owner, index)
    if isinstance(what, Tensor):
        which = f"item {index.constant}" if isinstance(index.what, Const) else "item"
        made = fresh(vm, Value(Tensor(vm.site(node, which), what.of), agree, why))
        alike = vm.store.get((what, ROWS)) if isinstance(index.what, Const) else None
        alike = Value(NOTHING, SAME) if is_equal_part else alike
        if alike is not None:
            vm.store.put((made.what, ROWS), alike)
        return vm.computed(made, "item", (owner, index), node)
    one = Value(term("item", what, index.what) if what != NOTHING else NOTHING, agree, why)
    if is_equal_part and one.what != NOTHING:
        vm.store.put((one.what, ROWS), Value(NOTHING, SAME))
    return one


def _is_one_of_equal_parts(vm: Machine, owner: Value, index: Value) -> bool:
    """Whether it is `x.split(n // ranks)[rank]`: what is left over makes a part behind the last."""
    made = vm.made.get(owner.what)
    if made is None or made.by.rpartition(".")[2] != "split" or len(made.of) < 2:
        return False
    size = made.of[1].what
    return index.what == RANK and isinstance(size, Term) and size.op == "FloorDiv"


def _is_counted(index: Value) -> bool:
    """Whether an index is known, or a loop's counter: else the data picks one of several."""
    what = index.what
    return isinstance(what, Const | Table) or (isinstance(what, Term) and what.op == "counter")


def _of_content(vm: Machine, found: Value, index: Value) -> Value:
    number = index.constant
    what = found.what
    if isinstance(what, Tuple):
        if isinstance(number, int) and -len(what.items) <= number < len(what.items):
            one = what.items[number]
            return _in_order(found, one)
        if isinstance(index.what, Table) and what.items:
            picked: list[Value] = []
            for each in index.what.entries:
                inside = isinstance(each, int) and -len(what.items) <= each < len(what.items)
                picked.append(what.items[each] if inside else what.items[-1])
            return _selected(vm, index, picked)
        one = one_of(vm, what.items)
    else:
        assert isinstance(what, Many)
        one = what.element
    agree, why = blended([one, index])
    return _in_order(found, Value(one.what, agree, why))


def order_of(vm: Machine, value: Value, depth: int = 3) -> Value | None:
    """What of a value depends on an order that each process or machine has for itself."""
    if value.agree.cause == "order":
        return value
    found = content(vm, value) if depth else None
    if found is None:
        return None
    if found.agree.cause == "order":
        return found
    items = held(found)
    ordered = (order_of(vm, each, depth - 1) for each in items)
    return next((each for each in ordered if each is not None), None)


def _in_order(found: Value, one: Value) -> Value:
    """An element that is picked by its place: another one where the order differs."""
    if isinstance(one.what, Term) and one.what.op == "counter":
        return one
    if found.agree.divergent and not one.agree.divergent:
        return Value(one.what if one.what != Term("joined") else NOTHING, found.agree, found.why)
    return one


def cut(vm: Machine, owner: Value, bounds: list[Value], node: ast.AST) -> Value | None:
    """`owner[a:b:c]`, where its things and the bounds are known."""
    found, at = content(vm, owner), [each.constant for each in bounds]
    if found is None or not isinstance(found.what, Tuple) or at[2] == 0:
        return None
    if not all(each is None or type(each) is int for each in at):
        return None
    part = Value(Tuple(found.what.items[slice(*at)]), found.agree, found.why)
    return new_list_of(vm, node, part) if vm.type_of(owner) == "list" else part


def sliced(
    vm: Machine, owner: Value, parts: list[Value], node: ast.AST, *, of_rows: bool = True
) -> Value:
    """`owner[a:b]`; without `of_rows` along another dimension."""
    found = content(vm, owner)
    by, reason = blended(parts)
    agree, why = blended([current(vm, owner), *parts])
    if by.kind == "rank":
        agree, why = local("shard", by.sure), vm.why(OWN_PART, node, reason)
        whole = found if found is not None else current(vm, owner)
        if of_rows and whole.agree.cause in ("order", "chance"):
            vm.emit("deal", "", node, order=whole)
        if _is_dealt_evenly(vm, owner.what, parts, node):
            agree, why = UNKNOWN, None  # another part, which is as large
    if found is not None:
        inner = found.what
        element = one_of(vm, inner.items) if isinstance(inner, Tuple) else inner.element  # type: ignore[union-attr]
        if by.kind != "rank":
            agree, why = blended([found, *parts])
            is_part = agree.cause == "shard"
            if by.kind == "same" and agree.divergent and agree.cause != "order" and parts:
                if is_part:  # of a rank's own part: these are its own, too
                    element = Value(element.what, agree, why)
                if not is_part or _has_an_end(node):
                    agree = UNKNOWN  # as many as all ranks have, where somebody has counted
        if vm.type_of(owner) == "list":
            return new_list_of(vm, node, Value(Many(element), agree, why))
        return Value(Many(element), agree, why)
    what = owner.what
    if isinstance(what, Tensor):
        made = fresh(vm, Value(Tensor(vm.site(node, "slice"), what.of), agree, why))
        return vm.computed(made, "slice", (owner,), node)
    return Value(term("slice", what, *(each.what for each in parts)), agree, why)


def _has_an_end(node: ast.AST) -> bool:
    cut = node.slice if isinstance(node, ast.Subscript) else None
    return not isinstance(cut, ast.Slice) or cut.upper is not None


def left_over(vm: Machine, numbers: Value) -> bool:
    """Whether it counts to an end that some ranks reckon in another way: to what others leave."""
    while (made := vm.made.get(numbers.what)) is not None and made.of and made.by in _AS_MANY:
        numbers = made.of[-1] if made.by == "arange" else made.of[0]
        if made.by == "arange":
            return vm.store.get((numbers.what, OF_SOME)) is not None
    what = numbers.what
    if not isinstance(what, Term) or what.op != "range" or len(what.args) != 2:
        return False
    return vm.store.get((what.args[1], OF_SOME)) is not None


_AS_MANY = ("arange", "int", "long", "to", "cpu", "numpy")


def _is_dealt_evenly(vm: Machine, what: What, parts: list[Value], node: ast.AST) -> bool:
    """Whether it is `parts[rank::world]` of as many parts as a multiple of the world.

    So is `parts[rank : many : world]`, where ranks have as many, and that is the multiple.
    """
    cut = node.slice if isinstance(node, ast.Subscript) else None
    if not isinstance(cut, ast.Slice) or len(parts) < 2 or cut.step is None:
        return False
    if parts[0].what != RANK or parts[-1].what != WORLD:
        return False
    if cut.upper is not None:
        return not parts[1].agree.divergent and folding.is_multiple(parts[1].what)
    number = vm.store.get((what, NUMBER))
    return number is not None and folding.is_multiple(number.what)


NUMBER = "#number"
"""Of what was split: into how many parts."""


# --- paths


def is_path(vm: Machine, value: Value) -> bool:
    """Whether a value is a path object."""
    return isinstance(value.what, Term) and value.what.op == "path"


def joined_path(vm: Machine, parts: list[Value]) -> Value:
    """A path from its parts, the same however it is written."""
    agree, why = blended(parts)
    found: list[Any] = []
    for each in parts:
        what = each.what
        if isinstance(what, Term) and what.op == "path":
            found.extend(what.args)
        elif isinstance(what, Const) and isinstance(what.value, str):
            found.extend(Const(piece) for piece in what.value.split("/") if piece)
        elif isinstance(what, Tuple | Many | Either):
            found.append(NOTHING)
        else:
            found.append(what)
    return Value(term("path", *found), agree, why)


# --- binding


def bind(vm: Machine, target: ast.expr, value: Value) -> None:
    """Assign a value to a name, an attribute, an element, or several of them."""
    match target:
        case ast.Name(id=name):
            frame = vm.frame
            scope = frame.elsewhere.get(name, frame.scopes[0])
            _rebind(vm, (scope, name), value, target)
            if name in vm.unbound:
                vm.store.put((scope, UNBOUND + name), FALSE)
        case ast.Attribute(value=owner, attr=name):
            from ddpdoctor.lint.engine.interpreter.expressions import evaluate

            set_attribute(vm, evaluate(vm, owner), name, value, target)
        case ast.Subscript(value=owner, slice=index):
            from ddpdoctor.lint.engine.interpreter.expressions import evaluate

            made = evaluate(vm, owner)
            if isinstance(index, ast.Slice):
                bounds = [evaluate(vm, x) for x in (index.lower, index.upper, index.step) if x]
                own = [each for each in bounds if each.agree.divergent]
                agree, why = blended([current(vm, made), value, *own])
                if vm.type_of(made) == "list":
                    vm.emit("take", "[:]", target, owner=made)
                change(vm, made, agree, why, value, target)
            else:
                set_item(vm, made, evaluate(vm, index), value, target)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(vm, targets, value, target)
        case ast.Starred(value=inner):
            bind(vm, inner, value)


def set_attribute(vm: Machine, owner: Value, name: str, value: Value, node: ast.AST) -> None:
    """`owner.name = value`."""
    what = owner.what
    if isinstance(what, Either):
        if what.masks:
            vm.emit("of_some", name, node, owner=owner, ranks=Value(Const(vm.mask)))
        for option in what.options:
            set_attribute(vm, option, name, value, node)
        return
    if isinstance(what, ModuleRef):
        vm.store.put((vm.program.scope_of(vm, what.path), name), value)
        return
    if isinstance(what, Class):
        vm.store.put((vm.classes[what.number].scope, name), value)
        return
    if what == NOTHING or isinstance(what, Const | Tuple | Many):
        return
    if isinstance(what, Ref):
        made = vm.objects[what.number]
        if made.cls >= 0:
            found = class_attribute(vm, made.cls, f"{name}.setter")
            if found is not None:
                return
        if made.cls >= 0 and made.type == "dict" and _set_as_item(vm, owner, name, value, node):
            return
    if isinstance(what, Ref | Term | Tensor):
        vm.emit("set_attribute", name, node, owner=owner, value=value)
    old = vm.store.get((what, name))
    if old is not None and old.what in vm.buffers and isinstance(value.what, Tensor):
        vm.emit("buffer", name, node, buffer=old, by=value)
        vm.buffers[value.what] = what
    _rebind(vm, (what, name), value, node)
    if name in vm.unbound:
        vm.store.put((what, UNBOUND + name), FALSE)


def remove_attribute(vm: Machine, owner: Value, name: str) -> None:
    """`del owner.name`: what was kept there is no part of it any more."""
    for each in owner.what.options if isinstance(owner.what, Either) else (owner,):
        is_kept = vm.store.get((each.what, name)) is not None
        if isinstance(each.what, Ref | Term) and (is_kept or vm.type_of(each) == NAMESPACE):
            vm.store.put((each.what, name), REMOVED)


REMOVED = Value(NOTHING, UNKNOWN)


def _set_as_item(vm: Machine, owner: Value, name: str, value: Value, node: ast.AST) -> bool:
    """Whether an attribute of a dictionary of the user's is one of its entries."""
    if name == "__dict__" and value.what == owner.what:
        vm.store.put((owner.what, ITSELF), TRUE)
        return True
    made = vm.object(owner)
    setter = class_attribute(vm, made.cls, "__setattr__") if made is not None else None
    if vm.store.get((owner.what, ITSELF)) is None and setter is None:
        return False
    if not _is_run(vm, setter):
        if setter is not None and isinstance(setter.what, Func):
            return False
        set_item(vm, owner, Value(Const(name)), value, node)
        return True
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    assert setter is not None
    call_value(vm, _bound(vm, setter, owner, NONE, node), [Value(Const(name)), value], {}, node)
    return True


NAMED = "#named"
"""What an object keeps under names that are not known: the options of a file, of a dictionary."""


def set_named(vm: Machine, owner: Value, name: Value, value: Value, node: ast.AST) -> None:
    """`setattr(owner, name, value)`, whatever the name is."""
    if isinstance(name.constant, str):
        set_attribute(vm, owner, name.constant, value, node)
    elif vm.type_of(owner) == DDP and (names := _one_of_these(vm, name.what)) is not None:
        for each in names:  # one after the other, in a loop
            set_attribute(vm, owner, each, Value(NOTHING, UNKNOWN), node)
    elif isinstance(owner.what, Ref):
        before = vm.store.get((owner.what, NAMED))
        agree, why = blended([value, name, *([before] if before is not None else [])])
        vm.store.put((owner.what, NAMED), Value(NOTHING, agree, why))


def _one_of_these(vm: Machine, name: object) -> list[str] | None:
    """The names of which this is one, as it is taken of lists that are written down."""
    if not isinstance(name, Term) or name.op not in ("element", "or"):
        return None
    found: list[str] = []
    for each in name.args:
        items = content(vm, Value(each)) if isinstance(each, Ref) else None
        if isinstance(each, Term) and (inner := _one_of_these(vm, each)) is not None:
            found += inner
        elif items is not None and isinstance(items.what, Tuple):
            found += [x.constant for x in items.what.items if isinstance(x.constant, str)]
        elif not isinstance(each, Const):
            return None
    return found


def _rebind(vm: Machine, key: Key, value: Value, node: ast.AST) -> None:
    """Keep a value; what was restored out of a file may be nowhere any more then."""
    old, made = vm.store.get(key), vm.object(value)
    vm.store.put(key, value)
    lost = vm.object(old) if old is not None and old.what != value.what else None
    if old is None or lost is None or made is None or not vm.restored:
        return
    if lost.cls < 0 and lost.number not in vm.restored:  # nor has it parts of its own
        return
    if (lost.cls, lost.type) == (made.cls, made.type) and not _is_held(vm, old.what, key):
        attributes = {
            owner: {name: each for name, each in named.items() if not name.startswith("#")}
            for owner, named in vm.store.held().items()
        }
        mine, new = (parts(attributes, each.what) for each in (old, value))
        if not vm.restored.isdisjoint(mine - new) and lost.number not in new:
            vm.emit("replaced", key[1], node, object=old, by=value, parts=_refs(mine - new))


def _refs(numbers: set[int]) -> Value:
    return Value(Tuple(tuple(Value(Ref(each)) for each in sorted(numbers))))


def _is_held(vm: Machine, what: What, but: Key) -> bool:
    """Whether anything else than this name holds an object: another, or a name in sight."""
    sight = {scope for frame in vm.frames for scope in frame.scopes}
    return any(
        what in {value.what, *(each.what for each in held(value))}
        for key, value in vm.store.now.items()
        if key != but and (isinstance(key[0], Ref) or key[0] in sight)
    )


def _stands_for_several(one: Value) -> bool:
    """Whether it comes of `zip(*rows)`, of nobody knows how many."""
    return any(isinstance(each, Term) and each.op == "*" for each in within(one.what))


def _of_length(vm: Machine, value: Value, number: int) -> Value | None:
    """Of what is one of several: the tuples that have so many elements. The others would raise."""
    kept = vm.store.get((value.what, ROWS_OF))
    rows = kept.what.items if kept is not None and isinstance(kept.what, Tuple) else ()
    fitting = [
        each for each in rows if isinstance(each.what, Tuple) and len(each.what.items) == number
    ]
    if not fitting:
        return None
    by = [value] if value.agree.divergent else []
    return vm.store.joined(list(fitting), [State({})] * len(fitting), by, value.what)


def _unpack(vm: Machine, targets: list[ast.expr], value: Value, node: ast.AST) -> None:
    star = next((i for i, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
    found = content(vm, value) or (_of_length(vm, value, len(targets)) if star is None else None)
    if found is not None and isinstance(found.what, Tuple):
        items = found.what.items
        if star is None and len(items) == len(targets):
            for each, one in zip(targets, items, strict=True):
                bind(vm, each, _in_order(found, one))
            return
        several = any(map(_stands_for_several, items))
        if star is not None and len(items) >= len(targets) - 1 and not several:
            behind = len(items) - (len(targets) - 1 - star)
            rest = Value(Tuple(items[star:behind]), found.agree, found.why)
            whole = [*items[:star], rest, *items[behind:]]
            for each, one in zip(targets, whole, strict=True):
                bind(vm, each, _in_order(found, one))
            return
    for number, each in enumerate(targets):
        if isinstance(each, ast.Starred):
            bind(vm, each.value, Value(Many(item(vm, value, Value(NOTHING), node))))
        else:
            index = number if star is None or number < star else number - len(targets)
            bind(vm, each, item(vm, value, Value(Const(index)), node))
