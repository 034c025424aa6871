"""Walking syntax trees quickly: `ast.walk` visits contexts, operators and strings too."""

from __future__ import annotations

import ast

_LEAVES = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.type_ignore)
_NOT_NODES_WORDS = """
    name id attr arg module names level type_comment kind conversion is_async lineno tag ctx op
    ops n s asname simple rest kwd_attrs value_kind
"""
_NOT_NODES = frozenset(_NOT_NODES_WORDS.split())


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    if kind in (ast.Constant, ast.MatchSingleton) or issubclass(kind, _LEAVES):
        return ()
    fields = [field for field in kind._fields if field not in _NOT_NODES]
    if kind in (ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
        fields = [field for field in fields if field != "name"]
    return tuple(fields)


CHILDREN: dict[type, tuple[str, ...]] = {
    kind: _fields(kind)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
CHILDREN[type(None)] = ()  # the key of `**other` in a dictionary display
Function = ast.FunctionDef | ast.AsyncFunctionDef


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of attributes on a name, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def last_name(node: ast.AST) -> str:
    """The last identifier: `b` of `x().b`, `f` of `f`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((each.value for each in call.keywords if each.arg == name), None)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument given by position or by name; None too if a star hides the positions."""
    if (value := keyword(call, name)) is not None:
        return value
    before = call.args[: position + 1]
    if len(before) <= position or any(isinstance(each, ast.Starred) for each in before):
        return None
    return before[position]


def text(node: ast.AST, limit: int = 60) -> str:
    """The expression as written, shortened, on one line."""
    try:
        whole = " ".join(ast.unparse(node).split())
    except (RecursionError, ValueError):
        return "..."
    return whole if len(whole) <= limit else whole[: limit - 3] + "..."


def targets(node: ast.AST) -> list[ast.expr]:
    """What a statement or expression binds, tuples taken apart."""
    match node:
        case ast.Assign(targets=found):
            flat = list(found)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            flat = [target]
        case ast.NamedExpr(target=name):
            flat = [name]
        case ast.For(target=target) | ast.AsyncFor(target=target):
            flat = [target]
        case _:
            return []
    result: list[ast.expr] = []
    while flat:
        each = flat.pop(0)
        if isinstance(each, ast.Tuple | ast.List):
            flat = [*each.elts, *flat]
        elif isinstance(each, ast.Starred):
            flat.insert(0, each.value)
        else:
            result.append(each)
    return result
