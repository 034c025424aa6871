"""What the transformations ask of a program: whose a name is, and who uses it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from tests.lint.metamorphic.program import Program

Function = ast.FunctionDef | ast.AsyncFunctionDef
BUILTINS = frozenset(dir(builtins))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """What runs in a scope itself: not the insides of functions, classes and lambdas in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, _SCOPES):
            yield from own_nodes(child)


def functions(program: Program) -> Iterator[Function]:
    for node in program.nodes():
        if isinstance(node, Function):
            yield node


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    """All of them, with *args and **kwargs."""
    spec = function.args
    found = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    return found + [each for each in (spec.vararg, spec.kwarg) if each]


def imported(tree: ast.AST) -> dict[str, str]:
    """Names that imports bind, and what for: {"dist": "torch.distributed"}."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                found[each.asname or top] = each.name if each.asname else top
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                found[each.asname or each.name] = f"{node.module}.{each.name}"
    return found


def bound(scope: ast.AST) -> set[str]:
    """The names that a scope binds by assigning, looping, defining; imports and parameters too."""
    found = set()
    for node in own_nodes(scope):
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                found.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.Import() | ast.ImportFrom():
                found |= set(imported(node))
    if isinstance(scope, Function | ast.Lambda):
        found |= {each.arg for each in parameters(scope)}
    return found


def loaded(node: ast.AST) -> set[str]:
    """Every name that is read anywhere inside."""
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store)
    }


def stored(node: ast.AST) -> set[str]:
    """Every name that is written anywhere inside, comprehensions apart."""
    inner = {
        each.id
        for one in ast.walk(node)
        if isinstance(one, _COMPREHENSIONS)
        for generator in one.generators
        for each in ast.walk(generator.target)
        if isinstance(each, ast.Name)
    }
    return bound(ast.Module([node], [])) - inner  # type: ignore[list-item]


def strings(program: Program) -> set[str]:
    """The words inside string constants that are no docstrings: what may be a name in disguise."""
    lone = {
        id(node.value)
        for node in program.nodes()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    words: set[str] = set()
    for node in program.nodes():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in lone:
            words |= set("".join(c if c.isalnum() or c == "_" else " " for c in node.value).split())
            words |= {each.replace("-", "_").lstrip("_") for each in node.value.split()}
    return words


def is_main_guard(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and "__name__" in loaded(node.test)


def after_imports(tree: ast.Module) -> int:
    """Where in a module's body a definition can stand that later lines use."""
    place = 0
    for number, node in enumerate(tree.body):
        lone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or (lone and number == 0):
            place = number + 1
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            break
    return place


def fresh(program: Program, name: str) -> str:
    """A name that nothing in the program bears."""
    taken = program.modules()
    for node in program.nodes():
        match node:
            case ast.Name(id=known) | ast.arg(arg=known) | ast.Attribute(attr=known):
                taken.add(known)
            case ast.FunctionDef(name=known) | ast.AsyncFunctionDef(name=known):
                taken.add(known)
            case ast.ClassDef(name=known):
                taken.add(known)
            case ast.Import() | ast.ImportFrom():
                taken |= set(imported(node))
    while name in taken:
        name += "_"
    return name
