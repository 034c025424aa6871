"""What is looked up by a name: of a module, in a folder of modules, of which nobody knows which.

Of a name that a setting has it is what it is where nobody says otherwise; else any of those that
may be meant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from ddpdoctor.lint.engine.interpreter.library.call import is_starred
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import containers, hierarchy, members
from ddpdoctor.lint.engine.interpreter.store import MOST
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    UNKNOWN,
    Class,
    Const,
    Either,
    Func,
    ModuleRef,
    Term,
    Value,
    What,
)

_MANY = 16
"""Definitions: who looks into a module of more may mean anything."""
_FEW = 2
"""Of those of which not even a part of the name is known: they stand for all."""


def of_module(vm: Machine, module: What, name: Value, node: ast.AST) -> Value | None:
    """The function or class that a module, or one of several, has under a name."""
    options = module.options if isinstance(module, Either) else (Value(module),)
    if not options or not all(isinstance(each.what, ModuleRef) for each in options):
        return None
    found: dict[What, Value] = {}
    for each in options:
        for one in _of_one(vm, each, name, node):
            found[one.what] = one
    return _any_of(vm, list(found.values()), name)


def _of_one(vm: Machine, module: Value, name: Value, node: ast.AST) -> Iterable[Value]:
    said = name.constant if isinstance(name.constant, str) else None
    usual = members.default(vm, name) if said is None else None
    wanted = said or (usual.constant if usual is not None else None)
    if isinstance(wanted, str):
        found = members.attribute(vm, module, wanted, node)
        return [found] if isinstance(found.what, Func | Class) else []
    assert isinstance(module.what, ModuleRef)
    names = [each for each in vm.program.defined_in(module.what.path) if _may_be(name.what, each)]
    made = [members.attribute(vm, module, each, node) for each in names[: 4 * _MANY]]
    return [each for each in made if isinstance(each.what, Func | Class)]


def module_of(vm: Machine, name: Value) -> Value | None:
    """The module of the project that has a name, or those that may be meant by it."""
    program: Any = vm.program
    importer = vm.frame.module
    if name.is_const(importer.name):  # sys.modules[__name__]
        return Value(ModuleRef(importer.path))
    if isinstance(name.constant, str):
        found: Value = program.module(vm, importer, name.constant)
        return found if isinstance(found.what, ModuleRef) else None
    pieces = parts_of_text(name.what)
    if not any(isinstance(each, str) for each in pieces):
        return None
    folder, dot, _ = pieces[0].rpartition(".") if isinstance(pieces[0], str) else ("", "", "")
    every = [f"{folder}{dot}{each}" for each in program.loader.beside(importer.path, folder)]
    named = [each for each in every if _may_be(name.what, each)]
    modules = [program.module(vm, importer, each) for each in named[: MOST + 1]]
    return _any_of(vm, [each for each in modules if isinstance(each.what, ModuleRef)], name)


def of_any_module(vm: Machine, module: What, name: str, node: ast.AST) -> Value | None:
    """What a module that nobody knows has under a name: what any file of the project has."""
    if not isinstance(module, Term) or module.op != "lib" or module.args[0] not in IMPORTING:
        return None
    program: Any = vm.program
    files = [each for each in program.loader.files if each != vm.path]
    having = [each for each in files if name in program.defined_in(each)]
    if not having or len(having) > _MANY:
        return None
    made = [members.attribute(vm, Value(ModuleRef(each)), name, node) for each in having]
    found = list({each.what: each for each in made if isinstance(each.what, Func | Class)}.values())
    several = _family(vm, found) or found
    return Value(Either(tuple(several[:_FEW])), UNKNOWN) if several else None


IMPORTING = ("importlib.import_module", "__import__")


def _any_of(vm: Machine, found: list[Value], name: Value) -> Value | None:
    """One of these, whichever."""
    if len(found) > MOST:
        found = _family(vm, found) or found
    if not found or len(found) > _MANY:
        return None
    agree, why = name.agree if name.agree.divergent else UNKNOWN, name.why
    return found[0] if len(found) == 1 else Value(Either(tuple(found)), agree, why)


def _family(vm: Machine, found: list[Value]) -> list[Value]:
    """Of many the class of which most others are kinds; else a few of these stand for all."""
    kinds: dict[What, list[Value]] = {}
    classes = [each for each in found if isinstance(each.what, Class)]
    for each in classes:
        for number in hierarchy.bases(vm, each.what.number):  # type: ignore[union-attr,arg-type]
            kinds.setdefault(Class(number), []).append(each)
    base, own = max(kinds.items(), key=lambda item: len(item[1]), default=(NOTHING, []))
    if len(own) < 2:
        return []
    return ([each for each in own if each.what == base] if len(own) > MOST else []) or own[:MOST]


def meant(
    vm: Machine, options: list[Value], args: list[Value], kwargs: dict[str, Value]
) -> list[Value]:
    """Those of several that can be called so: no other is meant. None of too many."""
    if not ("**" in kwargs or any(map(is_starred, args))):
        able = [each for each in options if _takes(vm, each, len(args), set(kwargs))]
        options = able or options
    return options if len(options) <= MOST else _family(vm, options)


def _takes(vm: Machine, callee: Value, positional: int, named: set[str]) -> bool:
    """Whether a function or class of the user's takes so many arguments, and those by name."""
    what = callee.what
    own = what
    if isinstance(what, Class):
        if _is_abstract(vm.classes[what.number].node):
            return False
        init = hierarchy.class_attribute(vm, what.number, "__init__")
        if init is None and _is_plain(vm, what.number):
            return not positional and not named
        own = init.what if init is not None else what
        positional += 1  # itself
    if not isinstance(own, Func):
        return True
    spec = vm.functions[own.number].node.args
    names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    positional += len(own.bound)
    given = {*names[:positional], *named, *(name for name, _ in own.named)}
    plain = names[: len(names) - len(spec.defaults)]
    only = [each.arg for each in spec.kwonlyargs]
    needed = [*plain, *(name for name, it in zip(only, spec.kw_defaults, strict=True) if not it)]
    fits = positional <= len(names) or spec.vararg is not None
    known = spec.kwarg is not None or named <= {*names, *only}
    return fits and known and set(needed) <= given


def _is_plain(vm: Machine, number: int) -> bool:
    """Whether a class without an initialiser is made of nothing."""
    new = hierarchy.class_attribute(vm, number, "__new__")
    return new is None and hierarchy.is_known(vm, number) and not containers.field_names(vm, number)


def _is_abstract(node: ast.ClassDef) -> bool:
    """Whether a class leaves methods to those that derive from it, and is never made itself."""
    marks = (mark for each in node.body for mark in getattr(each, "decorator_list", ()))
    return any("abstract" in ast.unparse(mark) for mark in marks)


def _may_be(name: What, word: str) -> bool:
    """Whether a name of which parts are known may be this one: `kind + "Trainer"`."""
    pieces = parts_of_text(name)
    at = 0
    for number, piece in enumerate(pieces):
        if not isinstance(piece, str):
            continue
        if number == len(pieces) - 1:
            return word.endswith(piece) and len(word) - len(piece) >= at
        at = word.find(piece, at)
        if at < 0 or (number == 0 and at > 0):
            return False
        at += len(piece)
    return not word.startswith("_")


def parts_of_text(what: What) -> list[object]:
    """A text as what it is put together of: what is known of it, None for what is not."""
    if isinstance(what, Const) and isinstance(what.value, str):
        known = _FILLED_IN.split(what.value)  # "models.%s": what it is filled in with, who knows
        pieces: list[object] = [it for each in known for it in (each, None) if it != ""]
        return pieces[:-1] or [None]
    if isinstance(what, Term) and what.op == "Mod" and isinstance(what.args[0], Const):
        return parts_of_text(what.args[0])
    if isinstance(what, Term) and what.op in ("Add", "text"):
        by = next((each for each in what.args if isinstance(each, str)), "format")
        if by == "format":
            return [piece for each in what.args for piece in parts_of_text(each)]
    return [None]


_FILLED_IN = re.compile(r"%[sd]|\{\w*\}")
