"""Statements that are short for others, written out."""

from __future__ import annotations

import ast


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


def raising(node: ast.Try, number: int, handlers: tuple[int, ...]) -> ast.If:
    """What an `if` in the body of a `try` comes to that raises what is caught there.

    Who raises does what the handler does, and the others go on. Of each of its two ways the number
    of the handler is given, -1 where it does not raise.
    """
    branch, rest = node.body[number], [*node.body[number + 1 :], *node.orelse]
    assert isinstance(branch, ast.If)
    yes, no = (
        _caught(body, node.handlers[handler]) if handler >= 0 else [*body, *rest]
        for body, handler in zip((branch.body, branch.orelse), handlers, strict=True)
    )
    return ast.copy_location(ast.If(branch.test, yes, no), branch)


def _caught(body: list[ast.stmt], handler: ast.ExceptHandler) -> list[ast.stmt]:
    error = body[-1]
    assert isinstance(error, ast.Raise)
    if not handler.name or error.exc is None:
        return [*body[:-1], *handler.body]
    name = ast.copy_location(ast.Name(handler.name, ast.Store()), handler)
    bound = ast.copy_location(ast.Assign([name], error.exc), handler)
    return [*body[:-1], bound, *handler.body]
