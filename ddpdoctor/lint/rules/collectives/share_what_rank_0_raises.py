"""An error of rank 0 that the others do not learn of.

## What it does
Finds code that only rank 0 runs, which looks for a file and raises if it is not there, where all
ranks meet in a collective right after.

## Why is this bad?
The others wait for rank 0, which has raised. Under torchrun the job ends after a while; where the
process stays alive (a notebook, an exit hook, a thread) the others wait until their timeout.

## Example
```python
if rank == 0 and not os.path.exists(path):
    raise FileNotFoundError(path)
dist.barrier()
```

## Use instead
```python
missing = [not os.path.exists(path) if rank == 0 else None]
dist.broadcast_object_list(missing, src=0)
if missing[0]:
    raise FileNotFoundError(path)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.guards import guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import rank_guards
from ddpdoctor.lint.engine.trees import last_name, text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP404"
NAME = "one-rank-raises"
CONFIDENCE: Confidence = "likely"
WORDS = ("raise ",)
FACTS = ("collectives",)

_LOOKS = ("exists", "is_file", "is_dir", "isfile", "isdir")


def check(module: Module) -> Iterator[Hit]:
    """Yield errors that rank 0 raises just before the ranks meet."""
    for node in module.by_kind[ast.Raise]:
        if not _looks_for_a_file(module, node):
            continue
        function = module.function(node)
        calls = module.callers.get(function, []) if function else []
        for each in (node, *calls):
            if branch := _meets_after(module, each):
                yield Hit(
                    node,
                    "rank 0 alone raises here, and the others wait for it",
                    notes=(
                        f"they meet after the `if {text(branch.test)}` at line {branch.lineno}",
                    ),
                    help="broadcast the outcome, and raise on every rank",
                )
                break


def _looks_for_a_file(module: Module, node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Call) and last_name(each.func) in _LOOKS
        for guard in guards(module, node)
        if guard.kind == "branch"
        for each in ast.walk(guard.test)
    )


def _meets_after(module: Module, node: ast.AST) -> ast.If | None:
    """The branch of the main rank around a node, if a collective follows it in its block."""
    for each in rank_guards(module, node):
        branch = each.guard.node
        if each.side != "main" or not isinstance(branch, ast.If):
            continue
        if any(isinstance(parent, ast.Try) for parent in module.ancestors(node)):
            return None
        block = getattr(module.parents[branch], "body", [])
        rest = block[block.index(branch) + 1 :][:2] if branch in block else []
        if any(module.inside(call, *rest) for call, _ in module.collectives):
            return branch
    return None
