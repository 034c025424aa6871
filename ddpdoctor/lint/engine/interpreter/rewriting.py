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


def looping(node: ast.While) -> ast.For | None:
    """The `for` that comes to the same as `while True: try: x = next(xs); except ...: break`."""
    match node:
        case ast.While(
            test=ast.Constant(value=always),
            body=[
                ast.Try(
                    body=[ast.Assign(targets=[target], value=value)],
                    handlers=[
                        ast.ExceptHandler(type=ast.Name("StopIteration"), body=[ast.Break()])
                    ],
                    orelse=[],
                    finalbody=[],
                ) as asking,
                *rest,
            ],
            orelse=[],
        ) if always:
            pairs = _each_to_its_own(target, value) or [(target, value)]
        case _:
            return None
    asked = [(one, over) for one, each in pairs if (over := _asked(each)) is not None]
    if len(asked) != 1 or _stores(node, asked[0][1]):
        return None
    one, over = asked[0]
    others = [ast.Assign([into], each) for into, each in pairs if into is not one]
    body = [*(ast.copy_location(each, asking) for each in others), *rest]
    body = body or [ast.copy_location(ast.Pass(), asking)]
    return ast.copy_location(ast.For(one, over, body, []), node)


def _each_to_its_own(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]] | None:
    """What each name of a tuple is given, where one after the other comes to the same."""
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return None
    fixed = all(isinstance(each, ast.Constant) or _asked(each) for each in value.elts)
    if not fixed or len(target.elts) != len(value.elts):
        return None
    starred = any(isinstance(each, ast.Starred) for each in target.elts)
    return None if starred else list(zip(target.elts, value.elts, strict=True))


def _asked(node: ast.expr) -> ast.Name | ast.Attribute | None:
    """What is asked for its next, if nothing else is done there."""
    match node:
        case ast.Call(
            func=ast.Name("next"), args=[ast.Name() | ast.Attribute() as of], keywords=[]
        ):
            return of
        case _:
            return None


def _stores(node: ast.AST, name: ast.Name | ast.Attribute) -> bool:
    """Whether something else is given that name."""
    same = ast.unparse(name)
    stored = (
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Store)
    )
    return any(ast.unparse(each) == same for each in stored)


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
