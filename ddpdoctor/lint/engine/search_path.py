"""The folders that a file puts on the path on which modules are searched for."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator

from ddpdoctor.lint.engine.trees import dotted

_DEPTH = 12
_AS_IT_IS = frozenset(("abspath", "realpath", "normpath", "Path", "PurePath", "str", "fspath"))
"""What gives the path that it is given, in another form."""
_OF_ITSELF = frozenset(("resolve", "absolute", "as_posix"))
"""The methods of a path that do."""


class SearchPath:
    """What one file adds to `sys.path`, as far as it is written in terms of places of the tree."""

    def __init__(self, file: str, text: str, here: list[str], above: Callable[[str], str]) -> None:
        self._file, self._here, self._above = file, here, above
        self._names: dict[str, list[ast.expr]] = {}
        self.folders: list[str] = []
        if "sys.path" not in text:
            return
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return
        for each in tree.body:
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                self._names[each.targets[0].id] = [each.value]
        for name, given in _given(tree):
            self._names.setdefault(name, []).append(given)
        found = (x for node in _added(tree) for x in self._places(node, _DEPTH))
        self.folders = list(dict.fromkeys(map(os.path.normpath, found)))

    def _places(self, node: ast.expr, depth: int) -> list[str]:
        """The paths that an expression may stand for; none where it asks for anything else."""
        if depth == 0:
            return []
        match node:
            case ast.Constant(value=str(text)):  # "core" is meant from where it is started
                return [] if text.startswith("/") else [f"{each}/{text}" for each in self._here]
            case ast.Name(id="__file__"):
                return [self._file]
            case ast.Name(id=name) if name in self._names:
                return [x for each in self._names[name] for x in self._places(each, depth - 1)]
            case ast.Attribute(value=of, attr="parent"):
                return self._outside(of, 1, depth)
            case ast.Subscript(ast.Attribute(value=of, attr="parents"), ast.Constant(int(number))):
                return self._outside(of, number + 1, depth)
            case ast.Subscript(value=of, slice=ast.Constant(0)) if dotted(of) == "sys.path":
                return [self._above(self._file)]
            case ast.Subscript(ast.Call(func=func, args=[of]), ast.Constant(0)) if _is(
                func, "split"
            ):
                return self._outside(of, 1, depth)
            case ast.BinOp(left, ast.Div(), ast.Constant(str(text))):
                return [f"{each}/{text}" for each in self._places(left, depth - 1)]
            case ast.Call(func=func, args=args):
                return self._called(func, args, depth - 1)
        return []

    def _called(self, func: ast.expr, args: list[ast.expr], depth: int) -> list[str]:
        if _is(func, "getcwd", "cwd"):
            return list(self._here)
        if isinstance(func, ast.Attribute) and func.attr in _OF_ITSELF:
            return self._places(func.value, depth)
        if args and _is(func, "dirname"):
            return self._outside(args[0], 1, depth)
        if len(args) == 1 and _is(func, *_AS_IT_IS):
            return self._places(args[0], depth)
        if args and _is(func, "join", "joinpath"):
            rest = "/".join(str(x.value) for x in args[1:] if isinstance(x, ast.Constant))
            if all(isinstance(each, ast.Constant) for each in args[1:]):
                return [f"{each}/{rest}" for each in self._places(args[0], depth)]
        return []

    def _outside(self, node: ast.expr, times: int, depth: int) -> list[str]:
        """The folder that holds what an expression stands for, or the one above that."""
        found = self._places(node, depth - 1)
        for _ in range(times):
            found = [self._above(os.path.normpath(each)) for each in found]
        return found


def _added(tree: ast.Module) -> Iterator[ast.expr]:
    """What is put on the path, wherever a file does it."""
    for each in ast.walk(tree):
        match each:
            case ast.Call(func=ast.Attribute(value=of, attr="append"), args=[one]):
                pass
            case ast.Call(func=ast.Attribute(value=of, attr="insert"), args=[_, one]):
                pass
            case _:
                continue
        if dotted(of) == "sys.path":
            yield one


def _given(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """What functions of a file are given by it, by the names of their parameters."""
    functions = {each.name: each.args for each in tree.body if isinstance(each, ast.FunctionDef)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and dotted(each.func) in functions:
            names = [arg.arg for arg in functions[dotted(each.func)].args]
            yield from zip(names, each.args, strict=False)


def _is(func: ast.expr, *names: str) -> bool:
    return dotted(func).rpartition(".")[2] in names
