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


def asks_for_the_next(node: ast.While) -> bool:
    """Whether it is `while True` that asks an iterator for its next, and is left where it ends."""
    asking = node.body[0]
    if not isinstance(node.test, ast.Constant) or not node.test.value or node.orelse:
        return False
    if not isinstance(asking, ast.Try) or asking.orelse or asking.finalbody:
        return False
    if len(asking.body) != 1 or len(asking.handlers) != 1:
        return False
    (handler,), (asked,) = asking.handlers, asking.body
    ends = isinstance(handler.type, ast.Name) and handler.type.id == "StopIteration"
    if not ends or len(handler.body) != 1 or not isinstance(handler.body[0], ast.Break):
        return False
    if not isinstance(asked, ast.Assign) or len(asked.targets) != 1:
        return False
    call = asked.value
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return False
    if not isinstance(call.func, ast.Name) or call.func.id != "next":
        return False
    over = call.args[0]
    stored = (x for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store))
    return isinstance(over, ast.Name) and all(each.id != over.id for each in stored)


def looping(node: ast.While) -> ast.For:
    """The loop that comes to the same."""
    asking = node.body[0]
    assert isinstance(asking, ast.Try)
    asked = asking.body[0]
    assert isinstance(asked, ast.Assign)
    assert isinstance(asked.value, ast.Call)
    body = node.body[1:] or [ast.copy_location(ast.Pass(), asking)]
    return ast.copy_location(ast.For(asked.targets[0], asked.value.args[0], body, []), node)


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
