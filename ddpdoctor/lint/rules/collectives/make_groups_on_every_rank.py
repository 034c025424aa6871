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

from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Seq, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    WORLD,
    Many,
    Table,
    Term,
    Tuple,
    Value,
    What,
    has_identity,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers, keeps_apart
from ddpdoctor.lint.engine.queries.partings import partings
from ddpdoctor.lint.engine.queries.telling import how
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP408", name="partial-new-group", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield the groups that only some ranks make."""
    for event, _ in events(run.root, "group"):
        ranks = event.values.get("ranks")
        locally = event.values.get("locally")
        if ranks is None or (locally is not None and locally.is_const(True)):
            continue
        own = _each(run, ranks)
        if own.agree.kind == "rank" and not _goes_round(own.what):
            is_sure = own is ranks and ranks.agree.sure and _parts_two(ranks.what)
            yield Hit(
                event.node,
                "each rank makes another group: every rank must make every group",
                why=own.why,
                help="make all groups on every rank, in one order, and keep the own one",
                confidence="certain" if is_sure else "likely",
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
    yield from _another_one(run)


def _each(run: Run, ranks: Value) -> Value:
    """What each of a list of ranks is, where one is made as the other; else the ranks."""
    content = containers.content(run.vm, ranks)
    return content.what.element if content and isinstance(content.what, Many) else ranks


def _goes_round(one: What) -> bool:
    """Whether it is counted from the rank on and around: in the end these are all ranks."""
    return any(
        isinstance(part, Term) and part.op == "Mod" and WORLD in part.args for part in within(one)
    )


def _parts_two(ranks: What) -> bool:
    """Whether two ranks are enough for it: those of one host, or of one stage, make one group."""
    tables = [each for each in within(ranks) if isinstance(each, Table)]
    return not tables or any(each.entries[0] != each.entries[1] for each in tables)


def _another_one(run: Run) -> Iterator[Hit]:
    """Groups that ranks make instead of one another: by number, but not of the same ranks."""
    made: dict[int, tuple[Choice, dict[int, list[Event]]]] = {}
    for event, way in events(run.root, "group"):
        choice = keeps_apart(doers(way).choices)
        arm = next((n for n, each in enumerate(_bodies(choice)) if _is_on(way, each)), None)
        if choice is not None and arm is not None:
            made.setdefault(id(choice), (choice, {}))[1].setdefault(arm, []).append(event)
    for choice, arms in made.values():
        if len(arms) != len(choice.arms) or len({len(each) for each in arms.values()}) != 1:
            continue  # it is told yet
        lowest = {number: arm.mask & -arm.mask for number, arm in enumerate(choice.arms)}
        first = sorted(arms, key=lowest.__getitem__)
        for these in zip(*(arms[number] for number in first), strict=True):
            members = {_members(run, each) for each in these}
            if None in members or len(members) == 1:
                continue
            yield Hit(
                these[0].node,
                "ranks make another group each here: every rank must make every group",
                notes=tuple(Related.at(each.place, "others make this one") for each in these[1:]),
                why=choice.condition.why,
                help="make all groups on every rank, in one order, and keep the own one",
                confidence="certain" if choice.condition.agree.sure else "likely",
                path=these[0].path,
            )


def _bodies(choice: Choice | None) -> list[Seq]:
    return [arm.body for arm in choice.arms] if choice is not None else []


def _is_on(way: Way, body: Seq) -> bool:
    return any(step.seq is body for step in way)


def _members(run: Run, group: Event) -> What | None:
    """The ranks of a group, None where they are not known, or it needs no others."""
    ranks, locally = group.values.get("ranks"), group.values.get("locally")
    if ranks is None or (locally is not None and not locally.is_const(False)):
        return None
    content = containers.content(run.vm, ranks)
    what = content.what if content is not None else ranks.what
    return what if isinstance(what, Tuple) or has_identity(what) else None
