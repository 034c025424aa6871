"""Calls of what is Python's own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ddpdoctor.lint.engine.interpreter import lookups
from ddpdoctor.lint.engine.interpreter.folding import is_equally_long, is_span_of, is_text, negated
from ddpdoctor.lint.engine.interpreter.library.call import identity
from ddpdoctor.lint.engine.interpreter.library.facts import by_position, text_of
from ddpdoctor.lint.engine.interpreter.machine import KEPT, NUMBERED, Machine
from ddpdoctor.lint.engine.interpreter.objects import (
    binding,
    containers,
    hierarchy,
    indexing,
    keyed,
    members,
    memory,
)
from ddpdoctor.lint.engine.interpreter.store import GRADED, ROUNDS
from ddpdoctor.lint.engine.interpreter.tree import Seq
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK,
    BY_RANK_LIKELY,
    FALSE,
    MODE,
    NONE,
    NOTHING,
    OPEN,
    SAME,
    UNKNOWN,
    WORLD,
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
    blended,
    has_identity,
    local,
    term,
)
from ddpdoctor.lint.engine.libraries.torch import OF_THE_WRAPPER

FLAGS = {
    "property": "property",
    "functools.cached_property": "property",
    "functools.lru_cache": "cached",
    "functools.cache": "cached",
    "staticmethod": "staticmethod",
    "classmethod": "classmethod",
    "contextlib.contextmanager": "contextmanager",
    "contextlib.asynccontextmanager": "contextmanager",
}
"""Decorators that say what a function is."""


def of_python(
    vm: Machine, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """Call a builtin or something of the standard library that no table has."""
    if name in ("str", "repr", "format", "print"):
        args = [text_of(vm, each, node) for each in args]
    first = args[0] if args else NONE
    if name in ("int", "float", "str", "bool", "abs", "round", "repr"):
        return _converted(vm, name, args, kwargs, node)
    if name == "range":
        agree, why = blended(args)
        bounds = tuple(each.what for each in args)
        if len(args) == 3 and args[0].agree.kind == "rank" and not is_equally_long(bounds):
            agree = local("shard", agree.sure)
        elif agree.cause == "order":
            pass  # each rank comes to the same parts, in another order
        elif len(args) == 2 and agree.kind == "local" and is_span_of(*bounds):
            by = BY_RANK if agree.sure else BY_RANK_LIKELY  # another part, which is as large
            agree = replace(by, cause=agree.cause)
        return Value(term("range", *bounds), agree, why)
    if name in ("list", "tuple", "iter", "reversed"):
        return _as_list(vm, name, first, node) if args else containers.new_list(vm, node, ())
    if name in ("set", "frozenset"):
        return containers.new_set(vm, node, None if args else [], list(args))
    if name == "dict":
        made = Value(vm.new(node, "dict"))
        keyed.clear(vm, made)
        for each in args:
            keyed.update(vm, made, each, node)
        for word, value in kwargs.items():
            keyed.set_item(vm, made, Value(Const(word)), value, node)
        return made
    if name in ("zip", "enumerate", "map", "filter"):
        return _paired(vm, name, args, kwargs, node)
    if name == "next":
        return _next(vm, first, node)
    if name in lookups.IMPORTING and args:
        imported = lookups.module_of(vm, first)
        return imported if imported is not None else Value(identity(vm, name, args, node), UNKNOWN)
    if name == "globals":
        return Value(term("global", vm.path, "__dict__"), UNKNOWN)
    if name == "getattr" and len(args) >= 2 and isinstance(args[1].constant, str):
        if len(args) == 3 and _tested(vm, "hasattr", args[:2], node).is_const(False):
            return args[2]
        outside = vm.out
        try:
            if len(args) == 3 and members.lacks(vm, first, args[1].constant) is not None:
                vm.out = Seq()  # who has none is given the other
            return memory.current(vm, members.attribute(vm, first, args[1].constant, node))
        finally:
            vm.out = outside
    if name == "getattr" and len(args) >= 2:
        named = lookups.of_module(vm, first.what, args[1], node)
        if named is not None:
            return named
    if name == "setattr" and len(args) == 3:
        binding.set_named(vm, first, args[1], args[2], node)
        return NONE
    if name in ("isinstance", "issubclass", "hasattr", "callable", "type"):
        return _tested(vm, name, args, node)
    if name in _OF_A_KIND and (known := _is_of_a_kind(first, _OF_A_KIND[name])) is not None:
        return Value(Const(known))
    if name == "print":
        into = {"file": kwargs["file"]} if "file" in kwargs else {}
        vm.emit("print", name, node, **by_position(args, into))
        return NONE
    if name == "exec":
        _settings_may_change(vm)
        return NONE
    if name in ("super", "object"):
        return Value(NOTHING, SAME)
    if name in ("vars", "weakref.ref()"):
        return first
    if name == "functools.wraps()":
        innermost = vm.store.get((first.what, "__wrapped__")) or first
        vm.store.put((args[-1].what, "__wrapped__"), innermost)
        return args[-1]
    if name in ("os.environ.get", "os.getenv", "os.environ.pop", "os.environ.setdefault"):
        return _environment(vm, name, args, kwargs, node)
    if name == "os.environ.copy":
        made = Value(vm.new(node, "dict"))
        keyed.clear(vm, made)
        keyed.update(vm, made, Value(Lib("os.environ")))
        return made
    if name == "os.environ.items":
        return Value(NOTHING, SAME)
    if name == "os.environ.update":
        for each in args:
            if vm.type_of(each) == "dict" and isinstance(keyed.keys(vm, each).what, Tuple):
                for key in keyed.keys(vm, each).what.items:  # type: ignore[union-attr]
                    found = keyed.get_key(vm, each, key)
                    vm.emit("setenv", "os.environ", node, name=key, value=found)
        return NONE
    if name in _ON_LISTS and args:
        return _on_list(vm, name, args, node)
    if name == "collections.namedtuple":
        return _named_tuple(vm, args, kwargs, node)
    if name in ("dataclasses.replace", "copy.replace", "dataclasses.asdict") and args:
        return of_fields(vm, name, first, kwargs, node)
    if name == "dataclasses.field":
        return _default_of_field(kwargs)
    if name == "functools.lru_cache" and not isinstance(first.what, Func):
        return Value(Lib(name))  # how much it keeps; what it keeps is told then
    if name in FLAGS:
        if isinstance(first.what, Func):
            return Value(replace(first.what, flags=first.what.flags | {FLAGS[name]}))
        return first
    return _foreign(vm, name, args, kwargs, node)


def _named_tuple(vm: Machine, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    name, names = (args + [Value(NOTHING, UNKNOWN)] * 2)[:2]
    if isinstance(names.constant, str):
        found: list[object] = [*names.constant.replace(",", " ").split()]
    else:
        content = containers.content(vm, kwargs.get("field_names", names))
        exact = content is not None and isinstance(content.what, Tuple)
        found = (
            [each.constant for each in containers.held(content)] if content and exact else [None]
        )
    if not all(isinstance(each, str) for each in found):
        return Value(NOTHING, UNKNOWN)
    last = containers.content(vm, kwargs.get("defaults", NONE))
    defaults = containers.held(last) if last is not None else ()
    own = dict.fromkeys(map(str, found))
    for field, default in zip(reversed(list(own)), reversed(defaults), strict=False):
        own[field] = default
    made: Value = vm.program.define_named_tuple(vm, node, str(name.constant), own)
    return made


def of_fields(
    vm: Machine, name: str, first: Value, kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """Another instance of a dataclass or named tuple, or its fields as a dictionary."""
    from ddpdoctor.lint.engine.interpreter.calls import instantiate

    found, made = containers.fields(vm, first), vm.object(first)
    if not found or made is None:
        return Value(NOTHING, UNKNOWN)
    if name.endswith("replace"):
        return instantiate(vm, Class(made.cls), [], {**found, **kwargs}, node)
    entries = Value(vm.new(node, "dict"))
    keyed.clear(vm, entries)
    for key, value in found.items():
        keyed.set_item(vm, entries, Value(Const(key)), value, node)
    return entries


def _default_of_field(kwargs: dict[str, Value]) -> Value:
    """What a field of a dataclass begins with, or what makes that for each instance."""
    factory = kwargs.get("default_factory")
    if factory is not None:
        return Value(Partial(MADE_ANEW, (factory,)))
    return kwargs.get("default", Value(NOTHING, UNKNOWN))


MADE_ANEW = Value(Lib("dataclasses.field()"))


def _settings_may_change(vm: Machine) -> None:
    """Code that cannot be read may set every constant of this scope, alike on all ranks."""
    scope = vm.frame.scopes[0]
    names = set(vm.store.of(scope))
    for name in names:
        old = vm.store.get((scope, name))
        if old is not None and isinstance(old.what, Const):
            vm.store.put((scope, name), Value(term("setting", scope, name), old.agree, old.why))


_ON_LISTS = {
    "heapq.heappush": ("append",),
    "heapq.heappop": ("pop",),
    "heapq.heappushpop": ("append", "pop"),
    "heapq.heapreplace": ("append", "pop"),
    "bisect.insort": ("append",),
    "bisect.insort_left": ("append",),
    "bisect.insort_right": ("append",),
}
"""Functions that change a list, as its methods do."""


def _on_list(vm: Machine, name: str, args: list[Value], node: ast.AST) -> Value:
    from ddpdoctor.lint.engine.interpreter.methods import call_method

    result = NONE
    for method in _ON_LISTS[name]:
        given = args[1:2] if method == "append" else []
        result = call_method(vm, args[0], method, given, {}, node)
    return result


def _foreign(
    vm: Machine, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A function of a library that no table knows."""
    from ddpdoctor.lint.engine.interpreter.methods import call_unknown

    found = vm.program.found_by_name(vm, name)
    if found is not None:
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        return call_value(vm, found, args, kwargs, node)
    given = {word: value for word, value in kwargs.items() if word != _WHERE_IT_IS_KEPT}
    return call_unknown(vm, Value(Lib(name), UNKNOWN), args, given, node)


_WHERE_IT_IS_KEPT = "cache_dir"
"""Of datasets, transformers, timm, ...: which says nothing of what they give."""


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
    if isinstance(first.what, Table) and first.what.variable and name == "bool":
        return containers.truthy(vm, first, node)
    if isinstance(first.what, Table):
        found = []
        for each in first.what.entries:
            try:
                found.append(OPEN if each is OPEN else convert(each))
            except Exception:  # int("cuda") is the user's own error
                found.append(OPEN)
        return Value(Table(tuple(found)), first.agree, first.why)
    if isinstance(first.what, Term) and name in ("int", "float", "round", "abs"):
        vm.store.put((first.what, keyed.A_NUMBER), Value(Const(True)))
    if first.what in (WORLD, MODE) or (isinstance(first.what, Term) and name in ("int", "bool")):
        return first
    if name == "str":
        return (
            Value(first.what, first.agree, first.why)
            if isinstance(first.what, Term)
            else Value(NOTHING, first.agree, first.why)
        )
    content = containers.content(vm, first)
    if content is not None and name == "bool":
        plain = containers.without_order(content)
        return Value(NOTHING, plain.agree, plain.why)
    if isinstance(first.what, Tensor):
        made = Value(Tensor(vm.site(node), frozenset()), first.agree, first.why)
        return vm.computed(made, name, (first,), node)
    if name == "float" and isinstance(first.what, Term):
        return Value(memory.detached(first.what), first.agree, first.why)
    if name == "int" and first.what == NOTHING:
        return Value(keyed.PARSED, first.agree, first.why)
    return Value(first.what if name in ("int", "float") else NOTHING, first.agree, first.why)


def _as_list(vm: Machine, name: str, first: Value, node: ast.AST) -> Value:
    from ddpdoctor.lint.engine.interpreter.iteration import ITERATED, elements

    found = containers.content(vm, first)
    if isinstance(first.what, Term) and first.what.op == "range" and len(first.what.args) == 1:
        return Value(term("list", first.what), first.agree, first.why)
    if found is None:
        one, count = elements(vm, first, node)
        found = Value(Many(one), count.agree, count.why)
        if name == "iter":
            vm.emit("begin", name, node, over=first, element=one)
        if isinstance(first.what, Term):
            return Value(term("list", first.what), first.agree, first.why)
    if name == "reversed" and isinstance(found.what, Tuple):
        found = Value(Tuple(found.what.items[::-1]), found.agree, found.why)
    if name == "tuple":
        return found
    made = containers.new_list_of(vm, node, found)
    if name == "iter":
        vm.store.put((made.what, ITERATED), first)
    return made


def _next(vm: Machine, source: Value, node: ast.AST) -> Value:
    from ddpdoctor.lint.engine.interpreter.iteration import elements

    found = containers.content(vm, source)
    if isinstance(source.what, Ref) and found is not None and containers.held(found):
        first = Value(Const(0))
        one = indexing.item(vm, source, first, node)
        indexing.take_out(vm, source, first)
        return one
    made = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if isinstance(source.what, Tuple) and source.what.items and isinstance(made, ast.GeneratorExp):
        return source.what.items[0]
    return elements(vm, source, node)[0]


def _numbered(vm: Machine, source: Value, one: Value, count: int, node: ast.AST) -> list[Value]:
    """The first so many of what can be gone through: those of a tensor each by its number."""
    if not isinstance(source.what, (Tensor, Term)):
        return [one] * count
    return [indexing.item(vm, source, Value(Const(number)), node) for number in range(count)]


def _paired(
    vm: Machine, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    from ddpdoctor.lint.engine.interpreter.iteration import elements

    sources = args if name in ("zip", "enumerate") else args[1:]
    start = (args[1] if len(args) > 1 else kwargs.get("start", NONE)).constant
    counter = Value(
        Term("counter", (vm.site(node), *(() if start in (None, 0) else (start,)))), SAME
    )
    begun = _begun(vm, sources[0], node) if name == "enumerate" and sources else None
    if begun is not None:
        vm.store.put((begun.what, NUMBERED), counter)
        return begun
    found = [elements(vm, each, node) for each in (sources[:1] if name == "enumerate" else sources)]
    counts, why = blended([count for _, count in found])
    if name == "zip" and any(map(_counts_alike, sources)):
        counts, why = UNKNOWN, None  # no more rounds than the ranks have agreed on
    orders = [containers.content(vm, each) for each in sources]
    for order in orders:
        if order is not None and order.agree.cause == "order" and not counts.divergent:
            counts, why = order.agree, order.why
    contents = [each.what if each is not None else None for each in orders]
    if name == "zip" and (known := [each.items for each in contents if isinstance(each, Tuple)]):
        columns = [
            content.items
            if isinstance(content, Tuple)
            else _numbered(vm, source, one, min(map(len, known)), node)
            for source, content, (one, _) in zip(sources, contents, found, strict=True)
        ]
        rows = zip(*columns, strict=False)
        return Value(Tuple(tuple(Value(Tuple(tuple(row))) for row in rows)), counts, why)
    if name == "enumerate":
        one = found[0][0] if found else NONE
        if contents and isinstance(contents[0], Tuple):
            numbered = [
                Value(Tuple((Value(Const(number)), each)))
                for number, each in enumerate(contents[0].items)
            ]
            return Value(Tuple(tuple(numbered)), counts, why)
        rounds = _rounds(vm, sources[:1])
        return Value(Many(Value(Tuple((counter, one))), rounds), counts, why)
    if name == "zip":
        together = Value(Tuple(tuple(one for one, _ in found)))
        return Value(Many(together, _rounds(vm, sources)), counts, why)
    one = found[0][0] if found else NONE
    if args and not args[0].is_const(None):
        from ddpdoctor.lint.engine.interpreter.calls import call_value

        told = call_value(vm, args[0], [each for each, _ in found], {}, node)
        if name == "map":
            one = told
        else:
            told = containers.without_order(told)
            told = Value(NOTHING, told.agree, vm.why(KEPT, node, told.why))
            counts, why = blended([Value(NOTHING, counts, why), told])
    return Value(Many(one), counts, why)


def _rounds(vm: Machine, sources: list[Value]) -> Term:
    """How often one goes through these, where nobody can have put anything into them since."""
    fixed = all(
        has_identity(each.what)
        and containers.content(vm, each) is None
        and vm.type_of(each) not in ("manager", "generator")
        for each in sources
    )
    return term(ROUNDS, *(each.what for each in sources)) if fixed and sources else NOTHING


def _counts_alike(source: Value) -> bool:
    return isinstance(source.what, Term) and source.what.op == "range" and source.agree == SAME


def _begun(vm: Machine, source: Value, node: ast.AST) -> Value | None:
    """The generator that a loop goes through by number, made there by an object of the user's."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    made = vm.object(source)
    if made is None or made.type == "manager":
        return source if made is not None else None
    if made.cls < 0 or id(node) not in vm.lazily:
        return None
    found = hierarchy.class_attribute(vm, made.cls, "__iter__")
    inner = vm.store.get((found.what, "__wrapped__")) or found if found is not None else NONE
    if not isinstance(inner.what, Func) or not vm.functions[inner.what.number].is_generator:
        return None
    begun = call_value(vm, members.attribute(vm, source, "__iter__", node), [], {}, node)
    return begun if vm.type_of(begun) == "manager" else None


_OF_A_KIND = {"inspect.isclass": Class, "inspect.isfunction": Func}


def _is_of_a_kind(value: Value, kind: type[Class | Func]) -> bool | None:
    """Whether it is a class, or a function, of the user's; None where nobody knows what it is."""
    several = value.what.options if isinstance(value.what, Either) else (value,)
    if not all(isinstance(each.what, Class | Func) for each in several):
        return None
    told = {isinstance(each.what, kind) for each in several}
    return told.pop() if len(told) == 1 else None


def _tested(vm: Machine, name: str, args: list[Value], node: ast.AST) -> Value:
    first = args[0] if args else NONE
    if name == "callable" and isinstance(first.what, Class | Func):
        return Value(Const(True))
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
        if type == members.DDP:
            own = asked in OF_THE_WRAPPER or vm.store.get((first.what, asked)) is not None
            return Value(Const(own))
        if asked == "set_epoch" and _is_told_no_epoch(vm, first):
            vm.emit("lacks", asked, node, object=first)
            return FALSE
        if (lacking := members.lacks(vm, first, asked)) is not None:
            return negated(lacking)
        if (known := _has(vm, first, asked)) is not None:
            if not known and asked == "set_epoch":
                vm.emit("lacks", asked, node, object=first)
            return Value(Const(known))
        if asked == "module" and (type or members.is_module(vm, first)):
            return Value(Const(vm.store.get((first.what, asked)) is not None))
    parts = [each.what for each in args if isinstance(each.what, Const | Term | Ref | Lib)]
    agree = UNKNOWN if first.agree.kind == "unknown" else SAME
    return Value(term(name, *parts), agree)


def _has(vm: Machine, value: Value, name: str) -> bool | None:
    """Whether a constant or an object of the user's has an attribute, None where nobody knows."""
    if value.constant is not OPEN:
        return hasattr(value.constant, name)
    if vm.type_of(value) == keyed.NAMESPACE:
        return _has_option(vm, value, name)
    made = vm.object(value)
    if made is None or made.cls < 0 or not hierarchy.is_known(vm, made.cls):
        return None
    own = (hierarchy.class_attribute(vm, made.cls, each) for each in (name, "__getattr__"))
    kept = vm.store.get((value.what, name))
    if kept is binding.REMOVED:
        return None
    if kept is not None or any(each is not None for each in own):
        return True
    return None if hasattr(object, name) or _may_be_set(vm, made.cls, name) else False


def _has_option(vm: Machine, namespace: Value, name: str) -> bool | None:
    """Whether a command line has this option, None where somebody unknown may have added to it."""
    if name in keyed.options(vm, namespace):
        return True
    texts = [frame.module.text.source.text for frame in vm.frames]
    is_set = any(word in text for text in texts for word in ("setattr(", "__dict__", "vars("))
    return None if is_set or keyed.may_have_more(vm, namespace) else False


def _is_told_no_epoch(vm: Machine, sampler: Value) -> bool:
    """Whether it is a sampler or loader of torch's, or derived from one, without `set_epoch`."""
    made = vm.object(sampler)
    if made is None or vm.store.get((sampler.what, "#prepared")) is not None:
        return False
    if made.cls < 0:
        return made.type in members.UNTOLD
    is_own = hierarchy.class_attribute(vm, made.cls, "set_epoch") is not None
    is_of_torch = hierarchy.library_base(vm, made.cls) in members.UNTOLD
    return is_of_torch and not is_own and not _may_be_set(vm, made.cls, "set_epoch")


def _may_be_set(vm: Machine, number: int, name: str) -> bool:
    """Whether anything in the project sets such an attribute, or one whose name is not known."""
    sources = {
        vm.classes[each].module.path: vm.classes[each] for each in hierarchy.bases(vm, number)
    }
    texts = [info.module.text.source.text for info in sources.values()]
    texts += [frame.module.text.source.text for frame in vm.frames]
    return any(f".{name} =" in each or "setattr(" in each or "__dict__" in each for each in texts)


def _is_instance(vm: Machine, value: Value, wanted: Sequence[What]) -> bool | None:
    """Whether an object is of one of these classes, None where that is not known."""
    if isinstance(value.what, Either):
        told = {_is_instance(vm, each, wanted) for each in value.what.options}
        return told.pop() if len(told) == 1 else None
    if Lib("torch.Tensor") in wanted and vm.store.get((value.what, GRADED)) is not None:
        return True  # nothing else has a backward
    made = vm.object(value)
    builtin = _builtin_of(vm, value)
    if builtin is not None:
        known = all(isinstance(each, Class) or each in _KNOWN_KINDS for each in wanted)
        is_one = Lib(builtin) in wanted or (builtin == "bool" and Lib("int") in wanted)
        return is_one if known or is_one else None
    if made is not None and made.type == members.DDP:
        known = all(isinstance(each, Class | Lib) for each in wanted)
        named = {each.name.rpartition(".")[2] for each in wanted if isinstance(each, Lib)}
        own = not named.isdisjoint(_OF_DDP)
        mine = set(hierarchy.bases(vm, made.cls)) if made.cls >= 0 else set()
        if any(isinstance(each, Class) and each.number in mine for each in wanted):
            return True  # a wrapper of the user's own, derived from the library's
        return own if known or own else None
    if made is not None and made.type in _NO_CONTAINERS and set(wanted) <= {*_BUILTINS}:
        return False
    if is_text(value.what) and set(wanted) <= {*_BUILTINS} - {Lib("str")}:
        return False
    if isinstance(value.what, Class | Func) and set(wanted) <= {*_BUILTINS, Lib("type")}:
        return isinstance(value.what, Class) and Lib("type") in wanted
    if made is None or made.cls < 0 or not all(isinstance(each, Class) for each in wanted):
        return None
    mine = set(hierarchy.bases(vm, made.cls))
    found = any(isinstance(each, Class) and each.number in mine for each in wanted)
    return found if found or hierarchy.is_known(vm, made.cls) else None


def _builtin_of(vm: Machine, value: Value) -> str | None:
    """The type of what is of Python's own, None of anything else."""
    made = vm.object(value)
    if made is not None and made.cls < 0 and made.type in ("list", "dict", "set"):
        return made.type
    if isinstance(value.what, Tuple) or value.constant is not OPEN:
        return "tuple" if isinstance(value.what, Tuple) else type(value.constant).__name__
    return None


_NO_CONTAINERS = ("generator", "manager", members.LOADER)
"""What is gone through like a list, and is none."""
_BUILTINS = tuple(map(Lib, ("list", "dict", "set", "tuple", "str", "int", "float", "bool")))
_KNOWN_KINDS = (*_BUILTINS, *map(Lib, ("torch.Tensor", "numpy.ndarray", "torch.nn.Module")))
"""What is of Python's own is one of the first, and none of the others."""
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
    return members.of_environment(vm, variable, node)
