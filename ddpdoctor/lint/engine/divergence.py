"""Values that may differ between ranks although no rank is named: losses, clocks, files, chance."""

from __future__ import annotations

import ast
import re

from ddpdoctor.lint.engine.flow import origins
from ddpdoctor.lint.engine.module import Module, remembered
from ddpdoctor.lint.engine.trees import dotted, last_name, text
from ddpdoctor.lint.engine.vocabulary import collective

_CLOCKS = frozenset({"time.time", "time.monotonic", "time.perf_counter", "datetime.datetime.now"})
_CHANCE = re.compile(r"^(random|numpy\.random)\.(random|rand|randint|uniform|choice|randrange)$")
_FILES = frozenset({"os.path.exists", "os.path.isfile", "os.path.isdir", "os.listdir"})
_METRIC = re.compile(
    r"(^|_)(loss|acc|accuracy|metric|score|psnr|bleu|f1|auc|map|mae|mse|rmse|iou|ppl|perplexity)"
    r"(es|s)?($|_|\d)",
    re.I,
)
_SHARES = frozenset({"barrier", "monitored_barrier", "wait_for_everyone"})
_SHARING_NAME = re.compile(r"(^|_)(all_?)?reduced?(_|$)|broadcast|gather|(?<!no_)sync")
_DEPTH = 5


@remembered
def local_reason(module: Module, node: ast.expr, depth: int = _DEPTH) -> str:
    """Why a value may differ between ranks, for people; "" where nothing says so."""
    if depth == 0:
        return ""
    for each in module.within(node):
        if isinstance(each, ast.Call):
            if reason := _of_call(module, each):
                return reason
        elif isinstance(each, ast.Name | ast.Attribute):
            if not isinstance(each.ctx, ast.Load):
                continue
            if reason := _of_name(module, each, depth):
                return reason
    return ""


def _of_call(module: Module, call: ast.Call) -> str:
    name = module.names.get(call, "")
    where = f"line {call.lineno}"
    if name in _CLOCKS:
        return f"`{text(call)}` ({where}): clocks differ between ranks"
    if _CHANCE.match(name):
        return f"`{text(call)}` ({where}) draws from this process's own generator"
    if name in _FILES:
        return f"`{text(call)}` ({where}): a file may be there for one rank and not yet for another"
    if isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args:
        owner = last_name(call.func.value)
        if _METRIC.search(owner):
            return f"`{text(call)}` ({where}) is this rank's own value"
    return ""


def _of_name(module: Module, node: ast.Name | ast.Attribute, depth: int) -> str:
    key = dotted(node)
    found = module.bindings(node, key)
    values = [value for _, value in found]
    for statement, value in found:
        if any(each is node for each in module.within(statement)):
            continue
        if reason := local_reason(module, value, depth - 1):
            return reason
    if _METRIC.search(last_name(node)) and any(_is_computed(module, value) for value in values):
        return f"`{key}` is computed by this rank from its own data (line {values[-1].lineno})"
    return _counted(module, node, key, depth)


def _is_computed(module: Module, value: ast.expr) -> bool:
    """Whether a value comes of a call that does not communicate."""
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr == "item":
        return not any(
            _communicates(module, each)
            for part in origins(module, value.func.value)
            for each in module.within(part)
            if isinstance(each, ast.Call)
        )
    if _communicates(module, value):
        return False
    name = module.names.get(value, "")
    return bool(name or isinstance(value.func, ast.Call))


def _communicates(module: Module, value: ast.Call) -> bool:
    key = module.callee(value)
    shared = _SHARING_NAME.search(last_name(value.func).lower())
    reaches = key is not None and key in module.project.reaches
    return reaches or bool(shared) or bool(collective(module.names.get(value, "")))


def _counted(module: Module, node: ast.Name | ast.Attribute, key: str, depth: int) -> str:
    """A counter that grows under a local condition: `patience += 1` in an `else`."""
    for each in module.by_kind[ast.AugAssign]:
        assert isinstance(each, ast.AugAssign)
        if dotted(each.target) != key or module.scope(each) is not module.scope(node):
            continue
        for parent in module.ancestors(each):
            is_around = isinstance(parent, ast.If) and parent is not module.statement(node)
            reason = local_reason(module, parent.test, depth - 1) if is_around else ""  # type: ignore[attr-defined]
            if reason:
                return f"`{key}` counts under a condition of this rank's own: {reason}"
            if parent is module.scope(each):
                break
    return ""


def is_shared(module: Module, node: ast.AST, within: ast.AST) -> bool:
    """Whether anything in this part of the code shares values between ranks before the node."""
    direct = dict(module.collectives)
    line: int = getattr(node, "lineno", 0)
    for call in module.calls:
        if call.lineno > line or not module.inside(call, within, module.scope(node)):
            continue
        operation = direct.get(call) or collective(module.names.get(call, ""))
        if operation and operation not in _SHARES and operation != "DistributedDataParallel()":
            return True
        name = last_name(call.func).lower()
        if _SHARING_NAME.search(name):
            return True
        key = module.callee(call)
        reach = module.project.reaches.get(key) if key else None
        if reach and reach.operation not in (*_SHARES, "DistributedDataParallel()"):
            return True
    return False
