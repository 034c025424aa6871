"""What is wrapped in DDP: the names that hold a wrapper, the models inside, the optimizers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.flow import handed
from ddpdoctor.lint.engine.module import Module, params, remembered
from ddpdoctor.lint.engine.trees import argument, dotted, is_constant, keyword, targets
from ddpdoctor.lint.engine.vocabulary import OPTIMIZERS

_DEPTH = 4
_NO_GRAD = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad")
_EVALUATION = (
    "eval", "valid", "validate", "test", "infer", "predict", "sample", "generate", "ema", "export",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wrap:
    """One `name = DistributedDataParallel(inner, ...)`."""

    call: ast.Call
    name: str
    """"model" or "self.model": what holds the wrapper."""
    inner: str
    """What held the bare model; the same name where it is rebound."""
    owner: ast.AST
    """The function, class or module in which the name means this."""
    statement: ast.stmt
    handed: bool = False
    """Whether the name is a parameter, for which all callers in this file give a wrapper."""

    @property
    def begins(self) -> int:
        """The line after which the name means this."""
        if self.handed:
            return self.statement.lineno
        return self.statement.end_lineno or self.statement.lineno


@remembered
def wraps(module: Module) -> list[Wrap]:
    """The wrappers of this file that a name holds, also as a parameter or as what is returned."""
    if not module.wraps:
        return []
    found = _assigned(module)
    for _ in range(_DEPTH):
        new = [*_returned(module, found), *_handed(module, found)]
        known = {(each.name, each.owner) for each in found}
        new = [each for each in new if (each.name, each.owner) not in known]
        if not new:
            break
        found += new
    return found


def _handed(module: Module, found: list[Wrap]) -> Iterator[Wrap]:
    """Parameters for which every call in this file gives a wrapper."""
    names = {each.name for each in found}
    for function, calls in module.callers.items():
        values = [value for call in calls for value in _values(call)]
        if not any(dotted(value) in names or value in module.wraps for value in values):
            continue
        for name in params(function):
            given = [value for _, value in handed(module, function, name)]
            held = [_wrapping(module, value, found) for value in given]
            if held and held[0] and all(held) and not module.binds(function, name):
                yield Wrap(held[0], name, "", function, function, handed=True)


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]


def _returned(module: Module, found: list[Wrap]) -> Iterator[Wrap]:
    """Names for what a function of this file returns, where that is always a wrapper."""
    for function, calls in module.callers.items():
        returned = [
            each.value
            for each in module.by_kind[ast.Return]
            if isinstance(each, ast.Return) and module.function(each) is function
        ]
        made = [e for e in returned if e is not None and _wrapping(module, e, found)]
        if not made or len(made) != len(returned):
            continue
        for call in calls:
            statement = module.statement(call)
            if isinstance(statement, ast.Assign) and statement.value is call:
                for target in targets(statement):
                    if name := dotted(target):
                        wrap = module.wraps[0]
                        yield Wrap(wrap, name, "", _owner(module, call, name), statement)


def _wrapping(module: Module, node: ast.expr, found: list[Wrap]) -> ast.Call | None:
    """The call that made the wrapper that an expression is."""
    if isinstance(node, ast.Call):
        return node if node in module.wraps else None
    wrap = holds_wrapper(module, node, found)
    return wrap.call if wrap else None


def _owner(module: Module, node: ast.AST, name: str) -> ast.AST:
    is_own = name.startswith("self.")
    return (is_own and module.class_of(node)) or module.scope(node)


def _assigned(module: Module) -> list[Wrap]:
    found = []
    for call in module.wraps:
        statement = module.statement(call)
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or not _is_value(module, call):
            continue
        inner = argument(call, 0, "module")
        for target in targets(statement):
            if name := dotted(target):
                owner = _owner(module, call, name)
                found.append(Wrap(call, name, dotted(inner) if inner else "", owner, statement))
    return found


def _is_value(module: Module, call: ast.Call) -> bool:
    """Whether the assignment binds the wrapper itself: bare, or in a conditional or compile."""
    node: ast.AST = call
    for parent in module.ancestors(call):
        if isinstance(parent, ast.stmt):
            return True
        compiled = isinstance(parent, ast.Call) and module.names.get(parent) == "torch.compile"
        if not compiled and not isinstance(parent, ast.IfExp):
            return False
        node = parent
    return isinstance(node, ast.stmt)


def holds_wrapper(module: Module, node: ast.expr, found: list[Wrap]) -> Wrap | None:
    """The wrap whose name an expression is, at a place where it means the wrapper."""
    name = dotted(node)
    if not name:
        return None
    for each in found:
        if each.name != name:
            continue
        if name.startswith("self."):
            if module.class_of(node) is each.owner:
                return each
            continue
        if isinstance(each.owner, ast.Module):
            if _reaches_global(module, node, name):
                return each
        elif module.inside(node, each.owner) and _same_name(module, node, each):
            return each
    return None


def _same_name(module: Module, node: ast.expr, wrap: Wrap) -> bool:
    """Inside the wrap's function: after the wrap, or in a nested function that closes over it."""
    scope = module.scope(node)
    if scope is wrap.owner:
        line: int = node.lineno
        if line <= wrap.begins:
            return False
        return wrap.handed or not _rebound_between(module, wrap, line)
    return _closes_over(module, scope, wrap.name)


def _rebound_between(module: Module, wrap: Wrap, line: int) -> bool:
    return any(
        wrap.begins < statement.lineno < line
        for statement, _ in module.bindings(wrap.statement, wrap.name)
        if module.scope(statement) is wrap.owner
    )


def _closes_over(module: Module, scope: ast.AST, name: str) -> bool:
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return name not in params(scope) and not module.binds(scope, name)
    return False


def _reaches_global(module: Module, node: ast.expr, name: str) -> bool:
    scope = module.scope(node)
    wrap_scope = module.tree
    if scope is wrap_scope:
        last = [s for s, _ in module.bindings(node, name) if s.lineno < node.lineno]
        return bool(last) and any(module.inside(call, last[-1]) for call in module.wraps)
    while not isinstance(scope, ast.Module):
        if not _closes_over(module, scope, name) and not isinstance(scope, ast.ClassDef):
            return False
        scope = module.scope(scope)
    return True


def without_gradient(module: Module, node: ast.AST) -> bool:
    """Whether a node runs under no_grad or inference_mode, or in a function that is evaluation."""
    for each in module.ancestors(node):
        if isinstance(each, ast.With | ast.AsyncWith):
            for item in each.items:
                call = item.context_expr
                name = module.name_of(call.func if isinstance(call, ast.Call) else call)
                if name in _NO_GRAD or name.endswith(("no_grad", "inference_mode")):
                    return True
                if name == "torch.set_grad_enabled":
                    return True
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in each.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                if module.name_of(target).endswith(("no_grad", "inference_mode")):
                    return True
            if any(word in each.name.lower() for word in _EVALUATION):
                return True
    return False


def optimizers(module: Module) -> dict[ast.Call, str]:
    """The optimizers that are built here, with the name that holds each."""
    found = {}
    for call, name in module.names.items():
        if OPTIMIZERS.match(name):
            statement = module.statement(call)
            bound = [dotted(target) for target in targets(statement)]
            found[call] = bound[0] if bound else ""
    return found


def stepping_branch(module: Module, loop: ast.AST) -> ast.If | None:
    """The `if i % k == 0:` around the optimizer's step, if the loop accumulates gradients."""
    for call in module.method_calls("step"):
        if not module.inside(call, loop):
            continue
        assert isinstance(call.func, ast.Attribute)
        if not re.search(r"opt|scaler|accelerator", dotted(call.func.value), re.I):
            continue
        for each in module.ancestors(call):
            if each is loop:
                break
            if isinstance(each, ast.If) and any(
                modulo(part) for part in alternatives(module, each.test)
            ):
                return each
    return None


def alternatives(module: Module, test: ast.expr) -> list[ast.expr]:
    """A condition behind its name; of an `or`, each side behind its name."""
    value = module.value(test) or test
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or):
        return [module.value(each) or each for each in value.values]
    return [value]


def modulo(test: ast.AST) -> ast.BinOp | None:
    """The `i % k` in a condition; no string formatting."""
    for each in ast.walk(test):
        is_modulo = isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod)
        if is_modulo and not isinstance(each.left, ast.Constant):  # type: ignore[attr-defined]
            assert isinstance(each, ast.BinOp)
            return each
    return None


def keyword_is(call: ast.Call, name: str, *values: object) -> bool:
    """Whether a keyword argument is one of these constants."""
    value = keyword(call, name)
    return value is not None and is_constant(value, *values)


def statements_after(module: Module, statement: ast.stmt) -> Iterator[ast.AST]:
    """All nodes of the same function that stand later in the text."""
    scope = module.scope(statement)
    end = statement.end_lineno or statement.lineno
    for node in module.within(scope):
        if getattr(node, "lineno", 0) > end:
            yield node


_PRIVATE = re.compile(
    r"BytesIO|StringIO|tempfile\.|mkdtemp|mkstemp|TemporaryFile|TemporaryDirectory"
)


@remembered
def is_private(module: Module, path: ast.expr, depth: int = 4) -> bool:
    """Whether a path is a buffer, or lies in a temporary folder of this process's own."""
    for each in ast.walk(path):
        if isinstance(each, ast.Call) and _PRIVATE.search(f"{module.name_of(each.func)}."):
            return True
        if depth and isinstance(each, ast.Name | ast.Attribute):
            values = [value for _, value in module.bindings(each, dotted(each))]
            if any(is_private(module, value, depth - 1) for value in values):
                return True
    return False
