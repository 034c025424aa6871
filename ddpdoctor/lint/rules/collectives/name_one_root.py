"""A collective whose root is another for each rank, or is not there.

## What it does
Finds `broadcast`, `reduce`, `gather` and `scatter` with the calling process's own rank as root, or
with one that each rank works out of its own, and in groups of which each rank picks its own with
one number as the root of all.

## Why is this bad?
The root is a property of the call, the same on all ranks. Where each names itself, all send and
none receives: gloo returns at once with everybody's own values, or hangs at the next collective.
The root is counted in the whole job, not in the group: rank 0 is in one of the groups alone.

## Example
```python
dist.broadcast(mean, src=rank)
```

## Use instead
```python
dist.broadcast(mean, src=0)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    RANK,
    RANKS,
    SAME,
    Either,
    Place,
    Ref,
    Table,
    Term,
    Tuple,
    Value,
    text,
)
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP403", name="collective-shape-mismatch", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield rooted collectives for which the ranks name different roots."""
    for event, way in events(run.root, "collective"):
        root, group = event.values.get("root"), event.values.get("group")
        if root is None:
            continue
        if group is not None and not is_world(group):
            who = doers(way)
            stranger = _without(run, group, root, who.mask)
            if stranger is not None:
                yield Hit(
                    event.node,
                    f"rank {root.constant} is the root of {event.name}(), and is not in the group",
                    notes=(
                        Related.at(stranger, "this group lacks it"),
                        "the root is a rank of the whole job",
                    ),
                    why=group.why,
                    help="dist.get_global_rank(group, 0), or group_src=0",
                    confidence="likely",
                    path=event.path,
                )
            elif (
                _of_its_own(run, group)
                and (isinstance(root.constant, int) or (_counts(root) and not who.choices))
                and who.mask == EVERYONE
            ):
                named = root.constant if isinstance(root.constant, int) else text(_written(event))
                yield Hit(
                    event.node,
                    f"rank {named} is the root of {event.name}() in every group, and is in one of "
                    "them alone",
                    notes=("the root is a rank of the whole job",),
                    why=group.why,
                    help="dist.get_global_rank(group, 0), or group_src=0",
                    confidence="likely",
                    path=event.path,
                )
            continue
        who = doers(way)
        is_clear = who.is_clear()
        together = is_clear or all(_is_said_once(event, each) for each in who.choices)
        if root.agree.sure and together and _differs(root, who.mask):
            what = root.what
            whom = "itself" if what == RANK else "another rank"
            yield Hit(
                event.node,
                f"every rank names {whom} as the root of {event.name}(): nobody gets anything",
                help="one root for all ranks, such as 0",
                confidence="certain" if is_clear else "likely",
                path=event.path,
            )
        elif root.agree.cause == "order":
            continue  # all are named in turn: that ranks do it in other orders, is another matter
        elif root.agree.sure and root.agree.divergent and not isinstance(root.what, Table):
            yield Hit(
                event.node,
                f"ranks may name other roots of {event.name}(): each decides for itself",
                why=root.why,
                help="decide on what all ranks have alike",
                confidence="likely",
                path=event.path,
            )


def _without(run: Run, group: Value, root: Value, mask: int) -> Place | None:
    """Where a group was made that has other ranks than the root, one of which comes here."""
    for each in _options(group):
        ranks = run.vm.store.get((each.what, "ranks")) if isinstance(each.what, Ref) else None
        for one in _options(ranks) if ranks is not None else ():
            content = containers.content(run.vm, one)
            if content is None or not isinstance(content.what, Tuple):
                continue
            members = [item.constant for item in content.what.items]
            known = all(isinstance(item, int) for item in (root.constant, *members))
            lacks = known and root.constant not in members
            made = run.vm.object(each)
            if lacks and made is not None and any(_may_come(mask, item) for item in members):
                return Place(made.path, getattr(made.node, "lineno", 1))
    return None


def _options(value: Value) -> tuple[Value, ...]:
    return value.what.options if isinstance(value.what, Either) else (value,)


def _may_come(mask: int, rank: int) -> bool:
    return rank >= 0 and bool(mask >> rank & 1)


def _counts(root: Value) -> bool:
    """Whether it is how far a loop has counted, on all ranks as far."""
    return isinstance(root.what, Term) and root.what.op == "counter" and root.agree == SAME


def _written(event: Event) -> ast.AST:
    """The root as the call has it."""
    call = event.node
    named = call.keywords if isinstance(call, ast.Call) else []
    return next((each.value for each in named if each.arg in _ROOTS), call)


_ROOTS = ("src", "dst", "root")


def _of_its_own(run: Run, group: Value) -> bool:
    """Whether the rank picks its group out of several."""
    what = group.what
    if isinstance(what, Either) and not what.masks:
        held = [each for each in what.options if not each.is_const(None)]
        what = held[0].what if len(held) == 1 and _is_one_of_many(run, held[0]) else what
    return isinstance(what, Ref | Term) and group.agree.kind == "rank" and group.agree.sure


def _is_one_of_many(run: Run, group: Value) -> bool:
    """Whether groups are made there one after the other, of which a rank keeps that it is in."""
    made = run.vm.object(group)
    return made is not None and any(
        event.node is made.node and any(isinstance(step.node, Loop) for step in way)
        for event, way in events(run.root, "group")
    )


def _is_said_once(event: Event, choice: Choice) -> bool:
    """Whether all ranks must go one way: those who went the other would have to join in there."""
    if isinstance(choice.condition.what, Table) or choice.condition.agree.kind == "same":
        return True
    said = [any(e.name == event.name for e, _ in events(arm.body)) for arm in choice.arms]
    return choice.condition.agree.kind == "unknown" and sum(said) == 1


def _differs(root: Value, mask: int) -> bool:
    """Whether the ranks that come here name several."""
    if not isinstance(root.what, Table):
        return False
    named = {repr(root.what.entries[rank]) for rank in range(RANKS) if mask & (1 << rank)}
    return len(named) > 1
