"""One file of the user's as a tree: who stands around a node, and where a value comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from ddpdoctor.lint.engine import imports

_DEPTH = 4
Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Text:
    """A parsed file."""

    file: str
    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    @cached_property
    def _imports(self) -> dict[str, str]:
        made = (n for n in ast.walk(self.tree) if isinstance(n, ast.Import | ast.ImportFrom))
        return {name: of for node in made for name, of in imports.of_import(node).items()}

    def resolve(self, node: ast.AST) -> str:
        """The dotted name of an expression, by what the file imports."""
        return imports.resolve(node, self._imports)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that a node stands in, innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def at(self, line: int) -> ast.stmt | None:
        """The innermost statement of a line."""
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.stmt)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        return max(found, key=lambda node: (node.lineno, node.col_offset), default=None)

    def block(self, node: ast.stmt) -> list[ast.stmt]:
        """The statement, and those that follow it in the same list of statements."""
        for _, value in ast.iter_fields(self.parents[node]):
            if isinstance(value, list) and node in value:
                return value[value.index(node) :]
        return [node]

    def is_in_a_loop(self, node: ast.stmt) -> bool:
        """Whether a loop of its function repeats a statement, or a comprehension in it a call."""
        for each in (node, *self.around(node)):
            if isinstance(each, Function):
                break
            if isinstance(each, ast.For | ast.AsyncFor | ast.While):
                return True
        is_simple = not hasattr(node, "body")
        return is_simple and any(isinstance(each, _COMPREHENSIONS) for each in ast.walk(node))

    def function(self, node: ast.AST) -> Function | None:
        """The function that a node stands in."""
        return next((each for each in self.around(node) if isinstance(each, Function)), None)

    def functions(self, name: str) -> list[Function]:
        """Those of this name, methods too."""
        return [n for n in ast.walk(self.tree) if isinstance(n, Function) and n.name == name]

    def origins(self, value: ast.expr, depth: int = _DEPTH) -> Iterator[ast.AST]:
        """Where a value is made: assignments, returned values and options, nearest first."""
        if depth == 0:
            return
        for each in ast.walk(value):
            yield from self._origin(each, depth)

    def _origin(self, value: ast.AST, depth: int) -> Iterator[ast.AST]:
        match value:
            case ast.Name(id=name):
                function = self.function(value)
                within = function if function is not None else self.tree
                if function is not None and name in _arguments(function):
                    yield from self._handed(function, name, depth)
                for assignment in _assigning(within, name, value):
                    yield assignment
                    yield from self.origins(assignment.value, depth - 1)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                for function in self.functions(name):
                    for node in ast.walk(function):
                        if isinstance(node, ast.Return) and node.value is not None:
                            yield node
                            yield from self.origins(node.value, depth - 1)
            case ast.Attribute(attr=name, ctx=ast.Load()):
                for node in ast.walk(self.tree):
                    if isinstance(node, ast.Assign) and _sets(node, name):
                        yield node
                        yield from self.origins(node.value, depth - 1)
                    elif isinstance(node, ast.Call) and _is_option(node, name):
                        yield node

    def _handed(self, function: Function, name: str, depth: int) -> Iterator[ast.AST]:
        """What callers in this file give for an argument."""
        for value in self.given(self.tree, function, name):
            yield value
            yield from self.origins(value, depth - 1)

    def given(self, within: ast.AST, function: Function, name: str) -> Iterator[ast.expr]:
        """What calls of a function give for an argument, in a part of this file."""
        if name not in _arguments(function):
            return
        position = _arguments(function).index(name)
        for call in ast.walk(within):
            if not isinstance(call, ast.Call) or called(call) != function.name:
                continue
            bound = position - (isinstance(call.func, ast.Attribute) and _is_method(function))
            yield from (k.value for k in call.keywords if k.arg == name)
            yield from call.args[bound : bound + 1] if 0 <= bound < len(call.args) else []


@lru_cache(maxsize=64)
def read(file: str) -> Text | None:
    """The file, or None where it cannot be read."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    text = Text(file, tree)
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            text.parents[child] = node
    return text


def _arguments(function: Function) -> list[str]:
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def _is_method(function: Function) -> bool:
    names = _arguments(function)
    return bool(names) and names[0] in ("self", "cls")


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _assigning(within: ast.AST, name: str, use: ast.AST) -> list[ast.Assign | ast.AugAssign]:
    """The assignments to a name, the nearest before its use first."""
    found: list[ast.Assign | ast.AugAssign] = []
    for node in ast.walk(within):
        targets = node.targets if isinstance(node, ast.Assign) else ()
        targets = [node.target] if isinstance(node, ast.AugAssign) else targets
        if any(
            isinstance(t, ast.Name) and t.id == name for each in targets for t in ast.walk(each)
        ):
            found.append(node)  # type: ignore[arg-type]
    line = getattr(use, "lineno", 0)
    return sorted(found, key=lambda node: (node.lineno > line, abs(line - node.lineno)))[:3]


def _sets(assignment: ast.Assign, attribute: str) -> bool:
    targets = (each for target in assignment.targets for each in ast.walk(target))
    return any(isinstance(each, ast.Attribute) and each.attr == attribute for each in targets)


def _is_option(call: ast.Call, name: str) -> bool:
    """Whether this call declares an option of the command line of that name."""
    if called(call) != "add_argument":
        return False
    words = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return any(word.lstrip("-").replace("-", "_") == name for word in words)
