"""Every rank writes one file.

## What it does
Finds `torch.save` that every rank reaches, with a path in which no rank occurs, in the function
that wraps the model in DDP or is called from it.

## Why is this bad?
N processes write one file at the same time: it is torn, or the last one wins.

## Example
```python
ddp_model = DDP(net)
train(ddp_model)
torch.save(ddp_model.module.state_dict(), path)
```

## Use instead
```python
if rank == 0:
    torch.save(ddp_model.module.state_dict(), path)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, text
from ddpdoctor.lint.engine.queries.doing import (
    doers,
    is_distributed,
    is_one_after_another,
)
from ddpdoctor.lint.engine.queries.order import asked_too_early
from ddpdoctor.lint.engine.queries.paths import same_path
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP502", name="every-rank-saves", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield saves of several ranks into one file."""
    if not is_distributed(run):
        return
    for event, way in events(run.root, "save"):
        path = event.values.get("path")
        if path is None or not same_path(path, path):
            continue
        who = doers(way)
        if (who.mask & ~who.kept_out & run.vm.there).bit_count() < 2:
            continue
        if not (run.is_entry or _belongs_to_a_wrapper(event, run)):
            continue
        clear = who.is_clear("data", "clock", by_files=True, if_well=True)
        if not clear or is_one_after_another(way):
            continue
        everyone = who.mask == EVERYONE
        early = _meant_for_one(run, event, way)
        sure = everyone and who.sure and run.is_entry and not early
        yield Hit(
            event.node,
            f"{'every rank' if everyone else 'a rank of each node'} writes `{_shown(event)}`: "
            "the file is torn, or the last rank wins",
            notes=early,
            help="save on one rank, and share the outcome before others read it",
            confidence="certain" if sure else "likely",
            path=event.path,
        )


def _meant_for_one(run: Run, save: Event, way: Way) -> tuple[Related, ...]:
    """What a condition around it went by that no rank fails: the question for a group yet to come.

    A condition that ranks answer differently is a choice on the way.
    """
    source = run.source(save.path)
    asked = next((event for event, *_ in asked_too_early(run)), None)
    if source is None or asked is None:
        return ()
    open_ = {id(step.node.node) for step in way if isinstance(step.node, Choice)}
    decided = (each for each in source.nodes if isinstance(each, ast.If) and id(each) not in open_)
    if not any(
        each is save.node for one in decided for part in one.body for each in ast.walk(part)
    ):
        return ()
    return (Related.at(asked.place, "asked before the group is joined: each rank is then alone"),)


def _belongs_to_a_wrapper(event: Event, run: Run) -> bool:
    """Whether a function that nobody calls wraps what it saves: then its ranks are all of them."""
    return any(True for _ in events(run.root, "wrap"))


def _shown(event: Event) -> str:
    node = event.node
    path = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else node
    return text(path, 30)
