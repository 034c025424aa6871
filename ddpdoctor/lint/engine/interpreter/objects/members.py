"""What `owner.name` is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace

from ddpdoctor.lint.engine.interpreter.machine import UNBOUND, Left, Machine, Made
from ddpdoctor.lint.engine.interpreter.names import hinted
from ddpdoctor.lint.engine.interpreter.objects import (
    binding,
    containers,
    hierarchy,
    indexing,
    keyed,
    memory,
)
from ddpdoctor.lint.engine.interpreter.store import PERHAPS, UNWRAPPED
from ddpdoctor.lint.engine.interpreter.tree import Seq
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK,
    EVERYONE,
    IS_LOCAL_MAIN,
    IS_MAIN,
    LOCAL_RANK,
    MODE,
    NODE_RANK,
    NONE,
    NOTHING,
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
    is_device,
    local,
    term,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import (
    COMPARISONS,
    KEEPS_ROWS,
    OF_THE_SHAPE,
    OF_THE_WRAPPER,
    PICKS_ROWS,
)

DDP = "torch.nn.parallel.DistributedDataParallel"
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


def set_by_launcher(name: str) -> str:
    """Why ranks differ in what this variable holds."""
    return f"the launcher sets {name}"


def of_environment(vm: Machine, name: str, node: ast.AST) -> Value:
    """What an environment variable of a launcher holds."""
    if name in ENVIRONMENT:
        text = replace(ENVIRONMENT[name], variable=name)
        return Value(text, BY_RANK, vm.why(set_by_launcher(name), node))
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
    type = made.type if made.cls < 0 else hierarchy.library_base(vm, made.cls)
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


def is_weight(vm: Machine, value: Value) -> bool:
    """Whether it is a weight of a library's layer."""
    return isinstance(value.what, Partial) and _with_gradient(vm, value.what) is not None


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


def parts(held: Callable[[Ref], dict[str, Value] | None], module: What) -> set[int]:
    """A module and all that its attributes hold, by number; `held` is what one object holds."""
    found: set[int] = set()
    stack: list[What] = [module]
    while stack:
        each = stack.pop()
        if isinstance(each, Ref) and each.number not in found:
            found.add(each.number)
            stack += [value.what for value in (held(each) or {}).values()]
        elif isinstance(each, Tuple):
            stack += [value.what for value in each.items]
        elif isinstance(each, Many):
            stack.append(each.element.what)
        elif isinstance(each, Either):
            stack += [value.what for value in each.options]
    return found


def switch(vm: Machine, module: Value, training: Value | None = None) -> None:
    """`module.train(training)`, with all its parts; without a mode, the one in which they begin."""
    for number in parts(vm.store.of, module.what):
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
        elif having := tuple(
            each
            for each in what.options
            if _may_have(vm, each.what, name) and not _is_asked_for(vm, what, each.what)
        ):
            owner = replace(owner, what=replace(what, options=having))
        read = _of_several(vm, owner, name, node)
        if name == "module" and any(vm.type_of(each) == DDP for each in what.options):
            return replace(read, why=vm.why(UNWRAPPED, node, read.why))
        return read
    if isinstance(what, Lib):
        return _of_library(vm, f"{what.name}.{name}", owner, node)
    if isinstance(what, ModuleRef):
        global_: Value = vm.program.of_module(vm, what.path, name)
        return global_
    if isinstance(what, Class):
        if name == "__name__":
            return Value(Const(vm.classes[what.number].name))
        found = hierarchy.class_attribute(vm, what.number, name)
        if found is not None:
            return hierarchy.bound_to(vm, found, None, owner, node)
        return Value(term("of", what, name), UNKNOWN)
    if isinstance(what, Ref):
        return _of_object(vm, owner, what, name, node)
    if isinstance(what, Func) and name == "__name__":
        return Value(Const(vm.functions[what.number].name.rpartition(".")[2]))
    if isinstance(what, Func | Partial):
        found = vm.store.get((what, name))
        if found is not None:
            return found
        if isinstance(what, Partial) and (whole := output_with(what)) is not None:
            return attribute(vm, Value(whole, owner.agree, owner.why), name, node)
        return Value(term("of", what, name), UNKNOWN)
    found = vm.store.get((what, name)) if what != NOTHING else None
    if found is not None:
        return found
    if name in _OF_A_KIND and owner.agree.cause == "data":
        return Value(term("of", what, name), UNKNOWN)  # the data of all is mostly of one kind
    if isinstance(what, Tensor):
        if name in ("T", "mT", "H", "mH"):
            return owner  # the same numbers, seen another way
        if name == "data":
            return Value(Tensor(what.site), owner.agree, owner.why)
        if name in memory.OF_SIZE:
            return Value(term("of", what, name), of_size(vm, owner), owner.why)
        return Value(Partial(owner, (), (("#", Value(Const(name))),)), owner.agree, owner.why)
    if isinstance(what, Const | Table | Tuple | Many):
        return Value(Partial(owner, (), (("#", Value(Const(name))),)), owner.agree, owner.why)
    if (looked_up := _looked_up(vm, what, name, node)) is not None:
        return looked_up
    if name == "type" and is_device(what) and isinstance(what.args[1], Const | Term):
        kind = what.args[1]  # alike, whichever its number is
        return Value(kind) if isinstance(kind, Const) else Value(term("of", kind, name), UNKNOWN)
    if name in memory.OF_SIZE and memory.is_changed(vm, what):
        return Value(term("of", what, name), of_size(vm, owner), owner.why)
    return (
        hinted(vm, Value(term("of", what, name), owner.agree, owner.why), name)
        if (owner.agree.kind != "same")
        else _field(vm, what, name)
    )


def _looked_up(vm: Machine, what: What, name: str, node: ast.AST) -> Value | None:
    from ddpdoctor.lint.engine.interpreter.lookups import of_any_module

    return of_any_module(vm, what, name, node)


def _of_several(vm: Machine, owner: Value, name: str, node: ast.AST) -> Value:
    """An attribute of one of several: though unknown it is the same when it is asked again."""
    found: list[What] = []

    def asked(option: Value) -> Value:
        value = memory.current(vm, attribute(vm, option, name, node))
        found.append(value.what)
        return value

    read = vm.each(owner, asked)
    is_known = read.what != NOTHING or NOTHING in found or read.agree.kind != "same"
    return read if is_known else replace(read, what=term("one_of", *found))


def _may_have(vm: Machine, what: What, name: str) -> bool:
    """Whether there is such a name in it, if it is a module: one without is not meant."""
    text = vm.program.loader.text(what.path) if isinstance(what, ModuleRef) else None
    is_package = text is not None and text.path.endswith("__init__.py")
    return text is None or is_package or name in text.bindings or bool(text.stars)


def _is_asked_for(vm: Machine, several: Either, one: What) -> bool:
    """Whether it is a wrapper of which somebody unseen says that it is none, where it is meant."""
    if several.chosen is None or vm.type_of(Value(one)) != DDP:
        return False
    parts = (each for each in within(several.chosen.condition.what) if isinstance(each, Term))
    asked = (vm.made[each].of for each in parts if each.op == "result" and each in vm.made)
    return any(one in [each.what for each in of] for of in asked)


def output_with(part: Partial) -> Tensor | None:
    """What a model has given that has such a part: `output.loss`, which no tensor has."""
    whole, name = part.callee.what, dict(part.named).get("#", NONE).constant
    if not isinstance(whole, Tensor) or not whole.of or name in _OF_A_TENSOR:
        return None
    return whole


def models_behind(value: Value) -> frozenset[int]:
    """The models whose forward a tensor comes from, or a part of what one has given."""
    what = value.what
    whole = output_with(what) if isinstance(what, Partial) else what
    return whole.of if isinstance(whole, Tensor) else frozenset()


_ASIDE = "device dtype layout grad grad_fn names ndim itemsize nbytes real imag version"
_OF_A_TENSOR = frozenset(_ASIDE.split())
"""Attributes that any tensor has, and that have attributes of their own."""
_OF_A_KIND = ("dtype", "layout", "ndim")
"""Of these attributes the ones that no sample changes, be it as large as it may."""
ROWS = "#rows"
"""Of a batch and its parts: ranks have as many samples in it."""


def of_size(vm: Machine, tensor: Value) -> Agreement:
    """Whether ranks have a tensor as large: what is drawn, or done in place, is what is in it.

    That decides how much is picked by it.
    """
    agree = (vm.store.get((memory.storage(tensor.what), memory.SIZED)) or tensor).agree
    if agree.cause != "chance":
        return agree
    picked = number_of_rows(vm, tensor).agree
    return picked if picked.divergent else UNKNOWN


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


def number_of_rows(vm: Machine, tensor: Value) -> Value:
    """What agrees as the number of its rows does: what a rank's own numbers pick is its own."""
    made = vm.made.get(tensor.what)
    for _ in range(_MAX_STEPS):
        if made is None or not made.of:
            break
        columns = vm.made.get(made.of[0].what) if made.by == "item" else None
        if columns is not None and _gives_columns(columns):
            made = columns
        if (made.by in PICKS_ROWS or _gives_columns(made)) and made.of[0].agree.divergent:
            return Value(NOTHING, made.of[0].agree, made.of[0].why)
        if made.by == "item" and len(made.of) > 1 and is_mask(vm, made.of[1]):
            return Value(NOTHING, made.of[1].agree, made.of[1].why)
        if made.by not in _KEEPS_ROWS:
            break
        made = vm.made.get(made.of[0].what)
    return Value(NOTHING, SAME)


def _gives_columns(made: Made) -> bool:
    """Whether it gives the places of what is true, a tensor for each dimension."""
    if made.by == "nonzero":
        return any(each.is_const(True) for each in made.of[1:])
    return made.by == "where" and len(made.of) == 1


def is_mask(vm: Machine, index: Value) -> bool:
    """Whether an index is a tensor of truths, which picks as many rows as are true."""
    what = index.what
    made = vm.made.get(what)
    for _ in range(_MAX_STEPS):
        if made is None or made.by not in _OF_TRUTHS or not made.of:
            break
        what = made.of[0].what
        made = vm.made.get(what)
    by = made.by if made is not None else what.op if isinstance(what, Term) else ""
    return by in COMPARISONS


_MAX_STEPS = 16
_OF_TRUTHS = frozenset({"BitAnd", "BitOr", "Invert", "logical_and", "logical_or", "logical_not"})
_ROW_BY_ROW = ("Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow")
_KEEPS_ROWS = KEEPS_ROWS | {"numpy", "tolist", "USub", *_ROW_BY_ROW}


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
        return containers.of_one_of_several(owner, found) if is_data else found
    if made.cls >= 0:
        if vm.mask == EVERYONE and not vm.tries:
            vm.had.add((what, name))
        found = hierarchy.class_attribute(vm, made.cls, name)
        named = vm.store.get((what, binding.NAMED))
        if found is not None and named is not None and isinstance(found.what, Const):
            same = named.agree.kind == "same"  # it may be one of these names
            return Value(term("of", what, name), SAME_LIKELY if same else UNKNOWN)
        if found is not None:
            return hierarchy.bound_to(vm, found, owner, Value(Class(made.cls)), node)
        base = hierarchy.library_base(vm, made.cls)
        getter = hierarchy.class_attribute(vm, made.cls, "__getattr__")
        if base in ("", "dict") and name not in _OF_A_DICT:
            got = _of_own_lookup(vm, owner, getter, name, node)
            if got is not None:
                return got
        if getter is not None and made.type == DDP and name not in OF_THE_WRAPPER:
            inner = vm.store.get((what, "module"))
            if inner is not None and _asks_the_module(vm, getter):
                return attribute(vm, inner, name, node)
            return Value(term("of", what, name), UNKNOWN)
        if base == "object":  # which has no such thing: it was set, nobody knows to what
            return Value(term("of", what, name), owner.agree, owner.why)
        if base:
            return _of_type(vm, owner, base, name, node)
        value = Value(term("of", what, name), UNKNOWN)
        if named is not None and named.agree.kind == "same":
            return hinted(vm, Value(value.what, SAME_LIKELY), name)
        return value if getter is not None else hinted(vm, value, name)
    if made.type == keyed.NAMESPACE:
        return owner if name == "__dict__" else _option(vm, what, name, node)
    if made.type == LOADER and name == "sampler" and vm.store.get((what, "#prepared")) is None:
        own = vm.new(made.node, SAMPLER, kind=f"sampler {what.number}")
        vm.store.put((own, OF_LOADER), owner)
        return Value(own)
    if (
        held := vm.store.get((what, memory.PARTS))
    ) is not None:  # modules in a dictionary, by their names
        part = vm.store.get((held.what, f"[{name!r}]"))
        if part is not None and part != keyed.ABSENT:
            return part
    return _of_type(vm, owner, made.type, name, node)


def lacks(vm: Machine, owner: Value, name: str) -> Value | None:
    """The ranks on which an object of the user's has no such attribute, where others have it."""
    made = vm.object(owner) if name in vm.unbound else None
    if made is None or made.cls < 0:
        return None
    lacking = vm.store.get((owner.what, UNBOUND + name))
    if (owner.what, name) in vm.had or lacking is None or not isinstance(lacking.what, Table):
        return None
    own = (hierarchy.class_attribute(vm, made.cls, each) for each in (name, "__getattr__"))
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
        return indexing.item(vm, owner, Value(Const(name)), node)
    if getter is None or name.startswith("__") or not keyed.is_run(vm, getter):
        return None
    outside, mask = vm.out, vm.mask
    vm.out = Seq()
    try:
        bound = hierarchy.bound_to(vm, getter, owner, NONE, node)
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
    told = (PERHAPS, binding.NAMED)
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


def begun(vm: Machine, owner: Value, name: str) -> Value | None:
    """What an attribute is before it is set: its class has it, an option, or what was copied."""
    if isinstance(owner.what, Term) and owner.what.op == "copied":
        kept = vm.store.get((owner.what.args[0], name))
        return _field(vm, owner.what, name) if kept is not None else None
    made = vm.object(owner)
    if made is not None and made.cls >= 0:
        found = hierarchy.class_attribute(vm, made.cls, name)
        return found if found is not None and not isinstance(found.what, Func) else None
    parser = vm.store.get((owner.what, "#parser"))
    return vm.store.get((parser.what, f"--{name}")) if parser is not None else None


def _option(vm: Machine, namespace: Ref, name: str, node: ast.AST) -> Value:
    """A field of the command line's options."""
    found = begun(vm, Value(namespace), name)
    return found if found is not None else Value(term("of", namespace, name), SAME)
