"""Failure to join is swallowed.

## What it does
Finds `init_process_group` in a `try` whose handler goes on as if alone.

## Why is this bad?
If one rank cannot join, it trains alone and believes to be rank 0, writes rank 0's files, and the
others wait for it. If all cannot, there are N lone trainings.

## Example
```python
try:
    dist.init_process_group("nccl")
except Exception:
    distributed = False
```

## Use instead
```python
if "RANK" in os.environ:
    dist.init_process_group("nccl")
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import last_name, text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP111"
NAME = "swallowed-init-failure"
CONFIDENCE: Confidence = "certain"
WORDS = ("except",)
FACTS = ("init",)


_GENERAL = re.compile(r"\b(Base)?Exception\b|\bRuntimeError\b|\bDist\w*Error\b|^everything$")
_JOINS = re.compile(r"init|join|setup|dist", re.I)
_SHOWS = re.compile(r"print|log|warn|info|error|debug|exception|str|repr|format", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield handlers that hide that this rank never joined."""
    direct = module.calls_of("torch.distributed.init_process_group")
    inits = direct + [
        call
        for call in module.calls
        if _JOINS.search(last_name(call.func))
        and (key := module.callee(call))
        and key in module.project.effects["init"]
    ]
    seen: set[ast.AST] = set()
    for call in inits:
        attempt = _attempt(module, call)
        if attempt is None or attempt in seen or module.loops(attempt):
            continue
        if call not in direct and len(attempt.body) > 3:
            continue  # the failure that is handled may be any other
        for handler in attempt.handlers:
            caught = text(handler.type) if handler.type else "everything"
            if not _GENERAL.search(caught) or _gives_up(module, handler):
                continue
            seen.add(attempt)
            yield Hit(
                handler,
                "a failure to join the process group is swallowed: this rank goes on alone",
                notes=(f"init_process_group() in the try at line {attempt.lineno}",),
                help="let it raise: the launcher then ends the job and shows the error",
                confidence=None
                if module.names.get(call, "").startswith("torch.") and _sets_aside(handler)
                else "likely",
            )
            break


def _attempt(module: Module, call: ast.Call) -> ast.Try | None:
    child: ast.AST = call
    for parent in module.ancestors(call):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return None
        if isinstance(parent, ast.Try) and child in parent.body:
            return parent
        child = parent
    return None


def _gives_up(module: Module, handler: ast.ExceptHandler) -> bool:
    for node in module.within(handler):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call):
            name = module.names.get(node, "")
            passes_on = any(
                isinstance(each, ast.Name) and each.id == handler.name for each in node.args
            )
            if passes_on and not _SHOWS.search(last_name(node.func)):
                return True  # the error goes to somebody else
            if name.endswith(("exit", "abort", "kill", "fail", "skip", "init_process_group")):
                return True
            key = module.callee(node)
            if key and key in module.project.effects["init"]:
                return True
    return False


def _sets_aside(handler: ast.ExceptHandler) -> bool:
    """Whether the handler only notes the failure: assignments, prints, pass."""
    return all(isinstance(each, ast.Assign | ast.Expr | ast.Pass) for each in handler.body)
