"""Process group made by some ranks only.

## What it does
Finds `new_group` (and `split_group`, `init_device_mesh`) under a condition on the rank, such as
`if rank in members:`, and groups whose members are computed from the rank.

## Why is this bad?
Every rank of the job must make every group, also the ones it is not a member of. Those that do
wait in the store for those that do not, whatever timeout was given.

## Example
```python
if rank in (0, 1):
    pair = dist.new_group([0, 1])
```

## Use instead
```python
pair = dist.new_group([0, 1])
if rank in (0, 1):
    dist.all_reduce(x, group=pair)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_made_of_rank
from ddpdoctor.lint.engine.guards import guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import is_rank, rank_test
from ddpdoctor.lint.engine.trees import argument, has_star, text
from ddpdoctor.lint.engine.wrappers import keyword_is
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP408"
NAME = "partial-new-group"
CONFIDENCE: Confidence = "certain"
WORDS = (
    "new_group",
    "split_group",
    "new_subgroups",
    "init_device_mesh",
)
ALSO = ("distributed",)


def check(module: Module) -> Iterator[Hit]:
    """Yield the groups that only some ranks make."""
    for call in module.group_makers:
        if keyword_is(call, "use_local_synchronization", True) or has_star(call):
            continue
        ranks = argument(call, 0, "ranks")
        if ranks is not None and is_made_of_rank(module, ranks):
            yield Hit(
                call,
                "each rank makes another group: every rank must make every group",
                notes=(f"`{text(ranks)}` depends on the rank",),
                help="make all groups on every rank, in one order, and keep the own one",
            )
            continue
        for guard in guards(module, call):
            members = _asks_for_membership(module, guard.test)
            test = rank_test(module, guard.test)
            if guard.kind == "exit" and not (test and test.pure):
                continue
            if (members or test) and not _in_both_arms(module, guard.node):
                yield Hit(
                    call,
                    "this group is made by some ranks only: every rank must make every group",
                    notes=(
                        f"it runs only where `{text(guard.test)}` is {str(guard.holds).lower()}",
                    ),
                    help="make the group on every rank, use it on its members",
                    confidence=None if members or (test and test.pure) else "likely",
                )
                break


def _asks_for_membership(module: Module, test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.In | ast.NotIn)
        and is_rank(module, test.left)
    )


def _in_both_arms(module: Module, node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or not node.orelse:
        return False
    arms = (node.body, node.orelse)
    makers = module.group_makers
    return all(any(module.inside(call, *arm) for call in makers) for arm in arms)
