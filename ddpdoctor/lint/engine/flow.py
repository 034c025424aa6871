"""Values on their way through the functions of one file: who hands over what, who runs a line."""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module, params, remembered
from ddpdoctor.lint.engine.rank import is_looped_over, is_rank
from ddpdoctor.lint.engine.trees import Function, dotted, keyword, last_name

_DEPTH = 8
_ARITHMETIC = ("int", "str", "abs", "min", "max", "list", "tuple", "sorted", "range")


def handed(module: Module, function: Function, name: str) -> list[tuple[ast.Call, ast.expr]]:
    """What the calls in this file give for a parameter; calls that give nothing are left out."""
    spec = function.args
    positions = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    bound = positions[:1] in (["self"], ["cls"])
    found = []
    for call in module.callers.get(function, ()):
        value = keyword(call, name)
        if value is None and name in positions:
            place = positions.index(name) - bound
            plain = not any(isinstance(each, ast.Starred) for each in call.args[: place + 1])
            value = call.args[place] if plain and 0 <= place < len(call.args) else None
        if value is not None:
            found.append((call, value))
    return found


def origins(module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """An expression, and those that its names stand for: bound here, or handed over by callers."""
    seen = {node}
    queue = deque([(node, _DEPTH)])
    while queue:
        each, depth = queue.popleft()
        yield each
        for name in module.within(each) if depth else ():
            if isinstance(name, ast.Name | ast.Attribute):
                new = [value for value in stands_for(module, name) if value not in seen]
                seen.update(new)
                queue.extend((value, depth - 1) for value in new)


@remembered
def is_made_of_rank(module: Module, node: ast.expr) -> bool:
    """Whether the rank takes part in computing a value; what other functions return aside."""
    seen: set[ast.expr] = set()
    stack = [node]
    while stack:
        each = stack.pop()
        if each in seen:
            continue
        seen.add(each)
        if is_rank(module, each) and not _is_any_rank(module, each):
            return True
        stack.extend(_operands(module, each))
    return False


def _is_any_rank(module: Module, node: ast.expr) -> bool:
    """Whether a parameter is only called a rank: the callers go through all of them."""
    function = module.function(node)
    if not isinstance(node, ast.Name) or function is None or node.id not in params(function):
        return False
    given = [value for _, value in handed(module, function, node.id)]
    return bool(given) and not any(is_rank(module, value) for value in given)


def _operands(module: Module, node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.IfExp(body=yes, orelse=no):
            return [yes, no]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return elements
        case ast.Call(func=ast.Name(id=name), args=given) if name in _ARITHMETIC:
            return given
        case ast.Name() | ast.Attribute():
            return stands_for(module, node)
    return []


def stands_for(module: Module, node: ast.Name | ast.Attribute) -> list[ast.expr]:
    """What a name is bound to, or what callers in this file give for it."""
    key = dotted(node)
    if not key or is_looped_over(module, node):
        return []
    if values := [value for _, value in module.bindings(node, key)]:
        return values
    function = module.function(node)
    if function is None or key not in params(function):
        return []
    return [value for _, value in handed(module, function, key)]


def _registers(module: Module, decorator: ast.expr) -> bool:
    """Whether a decorator may start the function, rather than change what it does."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = module.name_of(target)
    if name.endswith(".record"):  # torch.distributed.elastic: it wraps a script's main
        return True
    is_plain = name.startswith(("torch.", "functools.", "contextlib.", "typing.", "pytest."))
    return bool(name) and not is_plain and last_name(target) not in dir(builtins)


@remembered
def training_loops(module: Module) -> set[ast.AST]:
    """Loops that run a backward, or a function that does."""
    found: set[ast.AST] = set()
    trains = {
        module.qualname(call)
        for call in module.method_calls("backward")
        if module.function(call) is not None
    }
    for call in module.calls:
        is_backward = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
        if is_backward or last_name(call.func) in trains:
            found.update(module.loops(call))
    return found
