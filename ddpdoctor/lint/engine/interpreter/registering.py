"""What the import of a module does beside binding names: it puts things into others' registries.

Names are looked for when they are asked for; who asks a registry names none of those who are in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from ddpdoctor.lint.engine.interpreter.loading import Text, base_of
from ddpdoctor.lint.engine.interpreter.machine import Machine

_MOST = 200
"""Modules: of more than so many nobody reads all registries."""


def register_for(vm: Machine, script: Text) -> None:
    """The same for all that a script imports, by whatever name or none."""
    for each in _imported(vm.program, script):
        register(vm, each)


def register(vm: Machine, path: str) -> None:
    """Run what the modules that an import loads put into registries of other modules."""
    program: Any = vm.program
    todo = [path]
    while todo and len(program.registered) < _MOST:
        each = todo.pop()
        if each in program.registered:
            continue
        program.registered.add(each)
        text = program.loader.text(each)
        if text is None:
            continue
        todo += (*_imported(program, text), *_packages(program, each))
        for name in _registered(program, text):
            program.global_of(vm, program.load(text), name)


def _packages(program: Any, path: str) -> Iterator[str]:
    """The packages that hold a module: Python has run each of them before it."""
    folder = PurePath(path).parent
    while folder.name and program.loader.text(str(folder / "__init__.py")) is not None:
        yield str(folder / "__init__.py")
        folder = folder.parent


def _imported(program: Any, text: Text) -> Iterator[str]:
    """The modules of the project that a module imports at its top."""
    for statement in text.tree.body:
        for name in _named(statement):
            found = program.loader.find(text.path, name)
            if found is not None and not found[1]:
                yield found[0]


def _named(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Import):
        return [each.name for each in statement.names]
    if not isinstance(statement, ast.ImportFrom):
        return []
    base = "." * statement.level + (statement.module or "")
    dot = "" if base.endswith(".") else "."
    inner = [f"{base}{dot}{each.name}" for each in statement.names if each.name != "*"]
    return [*([base] if base.strip(".") else []), *inner]


def _registered(program: Any, text: Text) -> Iterator[str]:
    """The definitions whose decorators come from another module of the project."""
    for statement in text.tree.body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef) and any(
            _is_foreign(program, text, base_of(each)) for each in statement.decorator_list
        ):
            yield statement.name


def _is_foreign(program: Any, text: Text, name: str) -> bool:
    for made in text.bindings.get(name, ()):
        if isinstance(made, ast.ImportFrom):
            base = "." * made.level + (made.module or "")
            dot = "" if base.endswith(".") else "."
            names = (base, f"{base}{dot}{name}")
            if any(each.strip(".") and program.loader.find(text.path, each) for each in names):
                return True
    return False
