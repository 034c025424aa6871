"""The bodies of loops, branches and `with` become functions of their own."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, expression, mark, origin, statements
from tests.lint.metamorphic.scopes import (
    Function,
    after_imports,
    bound,
    fresh,
    is_main_guard,
    loaded,
    own_nodes,
    parameters,
    stored,
)

_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete)
_IMPORTS = (ast.Import, ast.ImportFrom)


def transform(program: Program) -> None:
    stem = fresh(program, "part")
    for tree in program.files.values():
        parts: list[ast.stmt] = []
        members = [e for c in tree.body if isinstance(c, ast.ClassDef) for e in c.body]
        tops = [each for each in tree.body if isinstance(each, Function)]
        for function in [*tops, *(each for each in members if isinstance(each, Function))]:
            if isinstance(function, ast.FunctionDef):
                _Extractor(function, stem, parts).blocks(function.body)
        at = after_imports(tree)
        tree.body[at:at] = parts


class _Extractor:
    """Takes blocks out of one function."""

    def __init__(self, function: ast.FunctionDef, stem: str, parts: list[ast.stmt]) -> None:
        self._function, self._stem, self._parts = function, stem, parts
        self._locals = bound(function)
        self._given = {each.arg for each in parameters(function)}

    def blocks(self, body: list[ast.stmt]) -> None:
        """Take out the outermost blocks below these statements that can go."""
        for node in body:
            if isinstance(node, Function | ast.ClassDef) or is_main_guard(node):
                continue
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(node, name, None)
                if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                    taken = self._taken(inner, node)
                    if taken:
                        setattr(node, name, taken)
                    else:
                        self.blocks(inner)
            for handler in getattr(node, "handlers", []):
                self.blocks(handler.body)

    def _taken(self, block: list[ast.stmt], parent: ast.stmt) -> list[ast.stmt]:
        """The call that stands for a block; empty where the block cannot go."""
        whole = ast.Module(block, [])
        is_an_elif = isinstance(parent, ast.If) and block is parent.orelse and len(block) == 1
        if (is_an_elif and isinstance(block[0], ast.If)) or not _can_go(whole):
            return []
        wanted = _first_reads(block)
        if wanted & _in_doubt(self._function) & self._locals - self._given:
            return []
        written = stored(whole)
        surely = set().union(*(_surely(each) for each in block))
        results = sorted(written & self._read_elsewhere(block))
        if any(each not in surely and each not in self._given for each in results):
            return []
        if results and isinstance(parent, ast.Try):  # an exception would lose them
            return []
        reads = (wanted | (set(results) - surely)) & self._locals
        name = f"{self._stem}_{len(self._parts)}"
        call = f"{name}({', '.join(sorted(reads))})"
        if results:
            call = f"{', '.join(results)} = {call}"
        part = statements(f"def {name}({', '.join(sorted(reads))}):\n    pass", parent)[0]
        assert isinstance(part, ast.FunctionDef)
        part.body = list(block)
        if results:
            back = expression(", ".join(results), *block)
            part.body.append(ast.Return(back))
            mark(part.body[-1], origin(back))
        self._parts.append(part)
        return statements(call, *block)

    def _read_elsewhere(self, block: list[ast.stmt]) -> set[str]:
        """Names that the function reads outside the block, or in it on its next round."""
        inside = {id(node) for each in block for node in ast.walk(each)}
        outside = {
            node.id
            for node in ast.walk(self._function)
            if isinstance(node, ast.Name) and id(node) not in inside
            if isinstance(node.ctx, ast.Load)
        }
        return outside | _first_reads(block)


def _can_go(whole: ast.Module) -> bool:
    """Whether control leaves a block at its end alone, and nothing ties it to its function."""
    if len(whole.body) == 1 and isinstance(whole.body[0], ast.Pass | ast.Raise):
        return False
    for node in ast.walk(whole):
        if isinstance(node, (*_LEAVES, *_IMPORTS, ast.NamedExpr)):
            return False
        if isinstance(node, (*Function.__args__, ast.ClassDef, ast.Lambda)):
            return False
        if isinstance(node, ast.Name) and node.id in ("super", "__class__", "locals", "vars"):
            return False
    return not _jumps(whole.body)


def _jumps(body: list[ast.stmt]) -> bool:
    """Whether a `break` or `continue` belongs to a loop outside."""
    for node in body:
        if isinstance(node, ast.Break | ast.Continue):
            return True
        if isinstance(node, ast.For | ast.While):
            if _jumps(node.orelse):
                return True
            continue
        for name in ("body", "orelse", "finalbody"):
            if _jumps(getattr(node, name, [])):
                return True
        if any(_jumps(each.body) for each in getattr(node, "handlers", [])):
            return True
    return False


def _surely(node: ast.stmt) -> set[str]:
    """What one statement binds whatever happens."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return stored(node)
    if isinstance(node, ast.With):
        items = set().union(
            *(stored(ast.Expr(item.optional_vars)) for item in node.items if item.optional_vars)
        )
        return items.union(*(_surely(each) for each in node.body))
    return set()


def _first_reads(block: list[ast.stmt]) -> set[str]:
    """What a block may read before it has written it."""
    found: set[str] = set()
    written: set[str] = set()
    for node in block:
        if isinstance(node, ast.With):
            for item in node.items:
                found |= loaded(item.context_expr) - written
                written |= stored(ast.Expr(item.optional_vars)) if item.optional_vars else set()
            found |= _first_reads(node.body) - written
        elif isinstance(node, ast.For):
            found |= loaded(node.iter) - written
            target = stored(ast.Expr(node.target))
            found |= (_first_reads(node.body) | _first_reads(node.orelse)) - written - target
        else:
            found |= loaded(node) - written
            if isinstance(node, ast.AugAssign):
                found |= stored(node) - written
        written |= _surely(node)
    inner = {
        each.id
        for one in block
        for generator in ast.walk(one)
        if isinstance(generator, ast.comprehension)
        for each in ast.walk(generator.target)
        if isinstance(each, ast.Name)
    }
    return found - (inner - _plainly_loaded(block))


def _plainly_loaded(block: list[ast.stmt]) -> set[str]:
    """Names read outside of comprehensions."""
    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    found: set[str] = set()
    waiting: list[ast.AST] = list(block)
    while waiting:
        node = waiting.pop()
        if isinstance(node, kinds):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        waiting += ast.iter_child_nodes(node)
    return found


def _in_doubt(function: ast.FunctionDef) -> set[str]:
    """Names that may be unbound where they are handed in: bound below the function's top only."""
    top = set().union(*(_surely(each) for each in function.body))
    loops = [each for each in own_nodes(function) if isinstance(each, ast.For)]
    targets = set().union(*(stored(ast.Expr(each.target)) for each in loops))
    return bound(function) - top - targets
