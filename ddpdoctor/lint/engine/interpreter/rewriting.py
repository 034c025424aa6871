"""Statements that are short for others, written out."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence


def yielding(node: ast.YieldFrom) -> ast.For:
    """The loop for which a `yield from` is short."""
    one = ast.Name("#yielded", ast.Store())
    handed_on = ast.Expr(ast.Yield(ast.Name("#yielded", ast.Load())))
    loop = ast.For(one, node.value, [handed_on], [])
    for each in (loop, one, *ast.walk(handed_on)):
        ast.copy_location(each, node)
    return loop


def suppressing(node: ast.With | ast.AsyncWith) -> ast.Try:
    """The `try` for which `with contextlib.suppress(...)` is short, its first manager that."""
    first, *others = node.items
    assert isinstance(first.context_expr, ast.Call)
    kinds = ast.Tuple(first.context_expr.args, ast.Load())
    inner = ast.copy_location(ast.With(others, node.body), node)
    handler = ast.ExceptHandler(kinds, None, [ast.Pass()])
    found = ast.Try([inner] if others else node.body, [handler], [], [])
    for each in (found, kinds, handler, *handler.body):
        ast.copy_location(each, first.context_expr)
    return found


def raising(node: ast.Try, number: int) -> ast.If | None:
    """What an `if` in the body of a `try` that raises what is caught there comes to.

    Who raises does what the handler does, and the others go on: None where it does not raise, or it
    cannot be said who catches that.
    """
    branch, rest = node.body[number], [*node.body[number + 1 :], *node.orelse]
    if not isinstance(branch, ast.If):
        return None
    ways = [_way(node, body, rest) for body in (branch.body, branch.orelse)]
    if not any(caught for caught, _ in ways) or any(way is None for _, way in ways):
        return None
    return ast.copy_location(ast.If(branch.test, ways[0][1] or [], ways[1][1] or []), branch)


def _way(
    node: ast.Try, body: list[ast.stmt], rest: list[ast.stmt]
) -> tuple[bool, list[ast.stmt] | None]:
    """Whether a branch ends in what is caught, and what it comes to."""
    last = body[-1] if body else None
    if not isinstance(last, ast.Raise):
        return False, [*body, *rest]
    handler = _catching(node.handlers, last)
    if handler is None or any(isinstance(each, ast.Raise) for each in ast.walk(handler)):
        return True, None
    bound: list[ast.stmt] = []
    if handler.name and last.exc is not None:
        name = ast.copy_location(ast.Name(handler.name, ast.Store()), handler)
        bound = [ast.copy_location(ast.Assign([name], last.exc), handler)]
    return True, [*body[:-1], *bound, *handler.body]


def _catching(handlers: Sequence[ast.ExceptHandler], node: ast.Raise) -> ast.ExceptHandler | None:
    """The handler of an error of Python's own, where each before it is known not to catch it."""
    made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    error = _of_python(made)
    if error is None:
        return None
    for handler in handlers:
        listed = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        kinds = [BaseException if each is None else _of_python(each) for each in listed]
        if any(kind is not None and issubclass(error, kind) for kind in kinds):
            return handler
        if None in kinds:
            return None
    return None


def _of_python(node: ast.expr | None) -> type[BaseException] | None:
    found = getattr(builtins, node.id, None) if isinstance(node, ast.Name) else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None
