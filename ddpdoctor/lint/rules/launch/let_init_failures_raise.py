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

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Arm, Choice, Loop, events, walk
from ddpdoctor.lint.engine.queries.raising import hands_on
from ddpdoctor.lint.engine.trees import last_name, text
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP111", name="swallowed-init-failure", confidence="certain")

_GENERAL = re.compile(r"\b(Base)?Exception\b|\bRuntimeError\b|\bDist\w*Error\b|^everything$")
_SHOWS = re.compile(r"print|log|warn|info|error|debug|exception|str|repr|format", re.I)


def check(run: Run) -> Iterator[Hit]:
    """Yield handlers that hide that this rank never joined."""
    for choice, way in walk(run.root):
        if not isinstance(choice, Choice) or not isinstance(choice.node, ast.Try):
            continue
        if any(isinstance(step.node, Loop) for step in way):
            continue  # it is tried again
        attempt, *arms = choice.arms
        joined = next(((event, at) for event, at in events(attempt.body, "init")), None)
        if joined is None:
            continue
        is_direct = len(joined[1]) == 1
        if not is_direct and len(choice.node.body) > 3:
            continue  # the failure that is handled may be any other
        for handler, arm in zip(choice.node.handlers, arms, strict=False):
            caught = text(handler.type) if handler.type else "everything"
            if _GENERAL.search(caught) and not _gives_up(handler, arm):
                yield Hit(
                    handler,
                    "a failure to join the process group is swallowed: this rank goes on alone",
                    notes=(Related.at(joined[0].place, "it is tried to join"),),
                    help="let it raise: the launcher then ends the job and shows the error",
                    confidence="certain" if is_direct and _sets_aside(handler) else "likely",
                    path=choice.path,
                )
                break


def _gives_up(handler: ast.ExceptHandler, arm: Arm) -> bool:
    """Whether the process ends, joins in another way, or hands the error to somebody else."""
    if any(True for _ in events(arm.body, "init", "ends")) or _raises(arm) or hands_on(handler):
        return True
    return any(
        not _SHOWS.search(last_name(call.func))
        and any(isinstance(each, ast.Name) and each.id == handler.name for each in call.args)
        for statement in handler.body
        for call in ast.walk(statement)
        if isinstance(call, ast.Call)
    )


def _raises(arm: Arm) -> bool:
    return any(getattr(node, "kind", "") in ("raise", "end") for node, _ in walk(arm.body))


def _sets_aside(handler: ast.ExceptHandler) -> bool:
    """Whether the handler only notes the failure: assignments, prints, pass."""
    return all(isinstance(each, ast.Assign | ast.Expr | ast.Pass) for each in handler.body)
