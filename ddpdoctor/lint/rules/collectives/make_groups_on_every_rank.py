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

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.queries.partings import partings
from ddpdoctor.lint.engine.queries.telling import how
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP408", name="partial-new-group", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield the groups that only some ranks make."""
    for event, _ in events(run.root, "group"):
        ranks = event.values.get("ranks")
        locally = event.values.get("locally")
        if ranks is None or (locally is not None and locally.is_const(True)):
            continue
        if ranks.agree.kind == "rank":
            yield Hit(
                event.node,
                "each rank makes another group: every rank must make every group",
                why=ranks.why,
                help="make all groups on every rank, in one order, and keep the own one",
                confidence="certain" if ranks.agree.sure else "likely",
                path=event.path,
            )
    found: dict[int, Hit] = {}
    for parting in partings(run):
        for each in parting.met if parting.by_rank else ():
            if each.event.kind == "group":  # of several conditions around it the innermost tells
                found[id(each.event.node)] = Hit(
                    each.node,
                    "this group is made by some ranks only: every rank must make every group",
                    notes=(how(parting),),
                    why=parting.why,
                    help="make the group on every rank, use it on its members",
                    confidence="certain" if parting.sure else "likely",
                    path=each.path,
                )
    yield from found.values()
