"""Values on their way through the functions of one file: who hands over what, who runs a line."""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module, params
from ddpdoctor.lint.engine.rank import is_looped_over
from ddpdoctor.lint.engine.trees import Function, dotted, keyword, last_name

_DEPTH = 8


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
