"""One file as the rules see it: an index over its tree, built in one pass."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ddpdoctor.lint.engine import imports as importing
from ddpdoctor.lint.engine.project import Key, Project
from ddpdoctor.lint.engine.source import Source
from ddpdoctor.lint.engine.survey import Survey, names_group
from ddpdoctor.lint.engine.trees import (
    CHILDREN,
    Function,
    dotted,
    last_name,
    targets,
)
from ddpdoctor.lint.engine.vocabulary import collective, is_wrapper

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


_P = ParamSpec("_P")
_T = TypeVar("_T")


def remembered(
    function: Callable[Concatenate[Module, _P], _T],
) -> Callable[Concatenate[Module, _P], _T]:
    """Ask a function once about the same of one module.

    Names that are bound to each other again and again would be followed exponentially often.
    """

    @wraps(function)
    def ask(module: Module, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        key = (function, args, tuple(kwargs.items()))
        if key not in module.answers:
            module.answers[key] = function(module, *args, **kwargs)
        answer: _T = module.answers[key]
        return answer

    return ask


class Module:
    """The tree of one file, who is whose parent, and what names mean."""

    def __init__(self, source: Source, own: Survey, project: Project) -> None:
        self.source = source
        self.path = source.path
        self.text = source.text
        self.survey = own
        self.project = project
        self.imports = own.imports
        self._scopes: dict[ast.AST, Scope] = {}
        self.answers: dict[object, Any] = {}
        """What `remembered` functions have said."""

    @property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return self.source.tree

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Node -> the node above it."""
        return self._index[0]

    @property
    def by_kind(self) -> dict[type, list[ast.AST]]:
        """Class of node -> its nodes, in the order of the source."""
        return self._index[1]

    @cached_property
    def _index(self) -> tuple[dict[ast.AST, ast.AST], dict[type, list[ast.AST]]]:
        # Not before it is wanted: most rules see from the text that a file does not concern them.
        parents: dict[ast.AST, ast.AST] = {}
        by_kind: dict[type, list[ast.AST]] = defaultdict(list)
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            kind = node.__class__
            by_kind[kind].append(node)
            below: list[ast.AST] = []
            for name in CHILDREN[kind]:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    below.extend([each for each in value if each is not None])
                elif value is not None:
                    below.append(value)
            for child in below:
                parents[child] = node
            stack.extend(reversed(below))
        return parents, by_kind

    # --- nodes

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.source.lines

    @cached_property
    def calls(self) -> list[ast.Call]:
        """All calls, in the order of the source."""
        return [node for node in self.by_kind[ast.Call] if isinstance(node, ast.Call)]

    @cached_property
    def names(self) -> dict[ast.Call, str]:
        """Call -> resolved dotted name of what it calls."""
        return {node: importing.resolve(node.func, self.imports) for node in self.calls}

    @cached_property
    def by_name(self) -> dict[str, list[ast.Call]]:
        """Resolved dotted name -> its calls."""
        found: dict[str, list[ast.Call]] = defaultdict(list)
        for node, name in self.names.items():
            if name:
                found[name].append(node)
        return found

    @cached_property
    def by_method(self) -> dict[str, list[ast.Call]]:
        """Last attribute -> calls of it: `step` -> `optimizer.step()`."""
        found: dict[str, list[ast.Call]] = defaultdict(list)
        for node in self.calls:
            if isinstance(node.func, ast.Attribute):
                found[node.func.attr].append(node)
        return found

    @cached_property
    def functions(self) -> list[Function]:
        """All functions and methods."""
        nodes = self.by_kind[ast.FunctionDef] + self.by_kind[ast.AsyncFunctionDef]
        return [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    @cached_property
    def callers(self) -> dict[Function, list[ast.Call]]:
        """Function of this file -> the calls in this file that reach it, by its name."""
        by_name: dict[str, list[Function]] = defaultdict(list)
        for function in self.functions:
            owner = self.parents.get(function)
            is_maker = isinstance(owner, ast.ClassDef) and function.name == "__init__"
            by_name[owner.name if is_maker else function.name].append(function)  # type: ignore[union-attr]
        found: dict[Function, list[ast.Call]] = defaultdict(list)
        for call in self.calls:
            first = dotted(call.func).partition(".")[0]
            if first in self.imports:
                continue
            for function in by_name.get(last_name(call.func), ()):
                is_method = isinstance(self.parents.get(function), ast.ClassDef)
                by_attribute = isinstance(call.func, ast.Attribute)
                if function.name == "__init__" or is_method == by_attribute:
                    found[function].append(call)
        return found

    @cached_property
    def called(self) -> dict[ast.Call, list[Function]]:
        """Call -> the functions of this file that it may reach, by its name."""
        found: dict[ast.Call, list[Function]] = defaultdict(list)
        for function, calls in self.callers.items():
            for call in calls:
                found[call].append(function)
        return found

    @cached_property
    def stands_alone(self) -> bool:
        """Whether this is a script that imports nothing of its project: nobody acts for it."""
        if '"__main__"' not in self.text and "'__main__'" not in self.text:
            return False
        names = (*self.imports.values(), *self.survey.stars)
        return not any(self.project.locator.locate(self.path, name) for name in names)

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of interest in what concerns this file: itself, or all of the project."""
        words = self.project.words
        return frozenset(w for w in words if w in self.text) if self.stands_alone else words

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        """All classes."""
        return [node for node in self.by_kind[ast.ClassDef] if isinstance(node, ast.ClassDef)]

    @cached_property
    def ifs(self) -> list[ast.If]:
        """All `if` statements."""
        return [node for node in self.by_kind[ast.If] if isinstance(node, ast.If)]

    def method_calls(self, *names: str) -> list[ast.Call]:
        """The calls `anything.name()` of any of these."""
        return [node for name in names for node in self.by_method.get(name, ())]

    def name_of(self, node: ast.AST | None) -> str:
        """The resolved dotted name of an expression, "" if it is not a plain chain."""
        return importing.resolve(node, self.imports) if node is not None else ""

    # --- surroundings

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent to the module."""
        parents = self.parents
        while (parent := parents.get(node)) is not None:
            yield parent
            node = parent

    def scope(self, node: ast.AST) -> Scope:
        """The function, lambda, class or module whose code this node is."""
        found = self._scopes.get(node)
        if found is None:
            above = (each for each in self.ancestors(node) if isinstance(each, _SCOPES))
            found = self._scopes[node] = next(above, self.tree)
        return found

    def function(self, node: ast.AST) -> Function | None:
        """The function around a node, lambdas and classes aside."""
        for each in self.ancestors(node):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                return each
        return None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class around a node."""
        for each in self.ancestors(node):
            if isinstance(each, ast.ClassDef):
                return each
        return None

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that a node is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next(each for each in self.ancestors(node) if isinstance(each, ast.stmt))

    def loops(self, node: ast.AST) -> list[ast.For | ast.AsyncFor | ast.While]:
        """The loops of the same function in whose body a node is, innermost first."""
        found = []
        child = node
        for each in self.ancestors(node):
            if isinstance(each, _SCOPES):
                break
            if isinstance(each, _LOOPS) and child in each.body:
                found.append(each)
            child = each
        return found

    def inside(self, node: ast.AST, *containers: ast.AST) -> bool:
        """Whether a node is one of these, or below one."""
        return node in containers or any(each in containers for each in self.ancestors(node))

    def qualname(self, node: ast.AST) -> str:
        """The qualified name of the function around a node (or of the function itself)."""
        parts = []
        for each in (node, *self.ancestors(node)):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                parts.append(each.name)
        return ".".join(reversed(parts)) or "<module>"

    def within(self, scope: ast.AST) -> Iterator[ast.AST]:
        """All nodes below a node."""
        stack = [scope]
        while stack:
            node = stack.pop()
            yield node
            for name in CHILDREN[node.__class__]:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    stack.extend(each for each in value if each is not None)
                elif value is not None:
                    stack.append(value)

    # --- names and values

    @cached_property
    def _bindings(self) -> dict[tuple[ast.AST, str], list[tuple[ast.stmt, ast.expr]]]:
        """(scope, "x" or "self.x") -> the statements that bind it, with the value."""
        found: dict[tuple[ast.AST, str], list[tuple[ast.stmt, ast.expr]]] = defaultdict(list)
        for kind in (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For):
            for node in self.by_kind[kind]:
                value = getattr(node, "value", None) or getattr(node, "iter", None)
                if value is None:
                    continue
                statement = self.statement(node)
                for target in targets(node):
                    key = dotted(target)
                    if key:
                        found[(self._owner(node, key), key)].append((statement, value))
        for item in self.by_kind[ast.withitem]:
            assert isinstance(item, ast.withitem)
            if item.optional_vars is not None and (key := dotted(item.optional_vars)):
                statement = self.statement(item)
                found[(self._owner(item, key), key)].append((statement, item.context_expr))
        return found

    def _owner(self, node: ast.AST, key: str) -> ast.AST:
        if key.startswith("self."):
            return self.class_of(node) or self.scope(node)
        return self.scope(node)

    def bindings(self, node: ast.AST, key: str) -> list[tuple[ast.stmt, ast.expr]]:
        """What a name ("x", "self.x") is bound to, seen from a node: own scope, then outer ones."""
        if key.startswith("self."):
            return self._bindings.get((self._owner(node, key), key), [])
        for each in self.ancestors(node):
            if isinstance(each, _SCOPES):
                if found := self._bindings.get((each, key)):
                    return found
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and key in params(each):
                    return []
        return []

    def binds(self, scope: ast.AST, key: str) -> bool:
        """Whether a scope itself binds a name."""
        return (scope, key) in self._bindings

    def value(self, node: ast.expr | None) -> ast.expr | None:
        """The expression itself, or what its name is bound to if that is unique."""
        seen = 0
        while isinstance(node, ast.Name | ast.Attribute) and seen < 5:
            found = self.bindings(node, dotted(node))
            if len(found) != 1 or isinstance(found[0][0], ast.For):
                break
            node = found[0][1]
            seen += 1
        return node

    # --- distributed facts

    @cached_property
    def collectives(self) -> list[tuple[ast.Call, str]]:
        """The calls of collectives over the default group, with the operation."""
        found = []
        for node, name in self.names.items():
            if name and (operation := collective(name)) and not names_group(node, operation):
                found.append((node, operation))
            elif is_wrapper(name):
                found.append((node, "DistributedDataParallel()"))
        return found

    @cached_property
    def wraps(self) -> list[ast.Call]:
        """The calls of DistributedDataParallel."""
        return [node for node, name in self.names.items() if is_wrapper(name)]

    def callee(self, node: ast.Call) -> Key | None:
        """The project's own function that a call reaches, if there is anything to know of it."""
        name = self.names.get(node, "")
        if not name or last_name(node.func) not in self.project.notable:
            return None
        where = self.qualname(node)
        head, _, rest = name.partition(".")
        function = self.survey.functions.get(where)
        if function and head in function.types and "." not in rest:
            name = f"{function.types[head]}.{rest}"
        return self.project.resolve(self.path, where, name)


def params(function: Function | ast.Lambda) -> list[str]:
    """The names of all parameters."""
    spec = function.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    every += [each for each in (spec.vararg, spec.kwarg) if each]
    return [each.arg for each in every]
