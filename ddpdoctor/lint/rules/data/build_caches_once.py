"""A cache that every rank builds.

## What it does
Finds `if not os.path.exists(path):` whose body writes that file, in code that every rank runs. And
where the ranks come one after the other, a file that holds a rank's own part under one name. And a
file that rank 0 alone writes where it is missing, and that all others read as soon as it is there.
The same where others ask for that file again and again, and read it once it is there. And a data
set of torchvision's that every rank is told to download into one folder, or one that derives from
torch_geometric's `InMemoryDataset`.

## Why is this bad?
All ranks find it missing at the same moment and write it at once. One reads what another has only
half written: EOFError, "pickle data was truncated", or silently a short list. One after the other,
the first keeps its own part, and all that come later read that and never make theirs.

## Example
```python
if not os.path.exists(cache):
    build(cache)
data = torch.load(cache)
```

## Use instead
```python
if rank == 0 and not os.path.exists(cache):
    build(cache)
dist.barrier()
data = torch.load(cache)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import containers, hierarchy, indexing
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Node, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    Class,
    Term,
    Tuple,
    Value,
    What,
    text,
    within,
)
from ddpdoctor.lint.engine.queries.doing import (
    between,
    doers,
    is_distributed,
    is_one_after_another,
    synchronises,
)
from ddpdoctor.lint.engine.queries.finding import is_there_by_then
from ddpdoctor.lint.engine.queries.order import is_spawned
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.paths import same_path
from ddpdoctor.lint.engine.queries.races import half_written, polled
from ddpdoctor.lint.engine.queries.states import parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP212", name="cache-race", confidence="likely")
_IN_TURN = frozenset({"lock", "main_first"})
"""Within these ranks come one after another: who comes later finds what was written."""


def check(run: Run) -> Iterator[Hit]:
    """Yield caches that are looked for and built by all ranks at once."""
    if not is_distributed(run):
        return
    looks = list(events(run.root, "look"))
    told: set[int] = set()
    for event, way in events(run.root, "save", "write", "open"):
        path = event.values.get("path")
        who = doers(way)
        if path is None or who.mask != EVERYONE or not _writes(event):
            continue
        if _is_of_a_part(path):
            continue
        in_turn = not _IN_TURN.isdisjoint(event.scopes) or is_one_after_another(way)
        found = _decided_by_a_look(way, looks, path, or_before=in_turn)
        if found is None or id(found[0].test) in told or not who.is_clear("disk"):
            continue
        if is_there_by_then(way):
            continue
        choice, looked = found
        if event.name == "touch" and any(map(synchronises, between(looked, way))):
            continue  # all have looked by then, and an empty file cannot be torn
        if in_turn:
            part = _own_part(run, event)
            if part is not None:
                told.add(id(choice.test))
                yield Hit(
                    event.node,
                    "the first rank's own part is kept here, and all others find and read it",
                    notes=(Related.at(choice.place, "all look for this one file"),),
                    why=part.why,
                    help="put the rank into the name, or keep what all ranks share",
                    path=event.path,
                )
            continue
        told.add(id(choice.test))
        yield Hit(
            choice.test,
            f"every rank finds `{_shown(choice.test)}` missing, and all write it at once",
            notes=(Related.at(event.place, "it is written"),),
            help="let rank 0 build it, then a barrier, then all read",
            path=choice.path,
        )
    yield from _caught(run, told)
    yield from _downloaded(run)


def _downloaded(run: Run) -> Iterator[Hit]:
    """Yield data sets that all ranks put into one folder, where none was to go first."""
    starts = any(True for _ in events(run.root, "spawn"))
    begun: set[What] = set()
    for event, way in events(run.root, "download", "make"):
        what = _fetched(run, event)
        if what is None:
            continue
        is_first = what not in begun
        begun.add(what)
        who = doers(way)
        in_turn = not _IN_TURN.isdisjoint(event.scopes) or is_one_after_another(way)
        if not is_first or in_turn or (starts and not is_spawned(way)):
            continue
        if who.mask == EVERYONE and who.is_clear("disk"):
            yield Hit(
                event.node,
                "where it is not there yet, every rank "
                f"{'downloads' if event.kind == 'download' else 'processes'} this data set, to the "
                "same files",
                help="let rank 0 make it, then a barrier, then all open it",
                path=event.path,
            )


def _fetched(run: Run, event: Event) -> What | None:
    """The folder that is downloaded to, or the kind of the data set whose base has it processed."""
    if event.kind == "download":
        return event.values["path"].what
    made = run.vm.object(event.values["object"])
    if made is None or made.cls < 0 or hierarchy.library_class(run.vm, made.cls) not in _PROCESSED:
        return None
    return Class(made.cls)


_PROCESSED = [
    f"torch_geometric.data.{each}"
    for each in ("InMemoryDataset", "in_memory_dataset.InMemoryDataset")
]
"""The data sets whose making has who derives from them write their files, where none are there."""


def _caught(run: Run, told: set[int]) -> Iterator[Hit]:
    """Yield looks by which a rank may come upon a file that another has only begun."""
    for look, save, load in (*half_written(run), *polled(run)):
        if id(look.node) not in told:
            told.add(id(look.node))
            yield Hit(
                look.node,
                f"`{_shown(look.node)}` is true as soon as another rank has begun to write it",
                notes=(
                    Related.at(save.place, "some ranks write it"),
                    Related.at(load.place, "who comes late reads what is there by then"),
                ),
                help="a barrier that lets rank 0 go first; or write a file beside it, then "
                "os.replace()",
                path=look.path,
            )


def _is_of_a_part(path: Value) -> bool:
    """Whether a file is named by one of what nobody has seen: of each rank, others may be there."""
    terms = (each for each in within(path.what) if isinstance(each, Term))
    return path.agree.kind == "unknown" and any(each.op == "element" for each in terms)


def _own_part(run: Run, save: Event) -> Value | None:
    """What is of this rank's own part alone in what is saved."""
    for _, value in parts(run, save.values.get("object")):
        content = containers.content(run.vm, value)
        stack = [value, *(containers.held(content) if content is not None else ())]
        while stack:
            each = stack.pop()
            chain = each.why.chain() if each.why is not None else ()
            if each.agree.cause == "shard" or any(why.text == indexing.OWN_PART for why in chain):
                return each
            stack += each.what.items if isinstance(each.what, Tuple) else ()
    return None


def _writes(event: Event) -> bool:
    if event.kind != "open":
        return True
    mode = event.values.get("mode")
    return mode is not None and isinstance(mode.constant, str) and "w" in mode.constant


def _decided_by_a_look(
    way: Way, looks: list[tuple[Event, Way]], path: Value, *, or_before: bool
) -> tuple[Choice, Way] | None:
    """The condition around it, or a way out before it, that asks whether this file is there.

    And the way to where it asks.
    """
    for step in reversed(way):
        before = filter(_has_a_way_out, step.seq.items[: step.index]) if or_before else ()
        for choice in (step.node, *before):
            if not isinstance(choice, Choice) or choice.condition.agree.cause != "disk":
                continue
            lines = range(choice.test.lineno, (choice.test.end_lineno or 0) + 1)  # type: ignore[attr-defined]
            for look, to in looks:
                there = look.path == choice.path and look.place.line in lines
                if there and same_path(look.values.get("path"), path):
                    return choice, to
    return None


def _has_a_way_out(node: Node) -> bool:
    return isinstance(node, Choice) and any(leaves(arm.body) for arm in node.arms)


def _shown(test: ast.AST) -> str:
    node = test.operand if isinstance(test, ast.UnaryOp) else test
    if isinstance(node, ast.Call):
        if node.args:
            return text(node.args[0], 30)
        if isinstance(node.func, ast.Attribute):
            return text(node.func.value, 30)
    return text(node, 30)
