"""A failed save that only rank 0 knows of.

## What it does
Finds code of the main rank that catches the error of a save and leaves (`return`, `break`,
`continue`), where the other ranks go on to a collective.

## Why is this bad?
Disk full, quota, a folder that is gone: rank 0 gives up, the others wait in the barrier behind the
save until their timeout.

## Example
```python
if rank == 0:
    try:
        save(model, path)
    except OSError:
        return False
dist.barrier()
```

## Use instead
```python
saved = [True]
if rank == 0:
    try:
        save(model, path)
    except OSError:
        saved = [False]
dist.broadcast_object_list(saved, src=0)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Exit,
    Loop,
    Seq,
    Way,
    events,
    walk,
)
from ddpdoctor.lint.engine.queries.doing import doers, in_try, keeps_apart, where_apart
from ddpdoctor.lint.engine.queries.partings import (
    Met,
    is_tried_again,
    leaves,
    leaves_somewhere,
    met,
)
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP511", name="failed-save-unshared", confidence="certain")

_ERRORS = ("OSError", "IOError", "EnvironmentError", "RuntimeError", "Exception", "BaseException")


def check(run: Run) -> Iterator[Hit]:
    """Yield the ways out of a handler that lead one rank past what all must run."""
    for node, way in walk(run.root):
        if not isinstance(node, Choice) or not isinstance(node.node, ast.Try):
            continue
        who, attempt, *handlers = doers(way), *node.arms
        if not who.some:
            caught = zip(node.node.handlers, handlers, strict=False)
            ours = [arm.body for each, arm in caught if _of_save(each)]
            failed = [leaves(each) for each in ours]
            if not is_tried_again(way, leaves(attempt.body), failed):
                yield from _within(run, attempt.body, ours)
        apart = keeps_apart(who.choices)
        if apart is None or not who.some or not any(events(attempt.body, "save")):
            continue
        for handler in handlers:
            left = leaves_somewhere(handler.body)
            missed = _missed(left, way, apart)
            if left is not None and missed is not None:
                yield _hit(left, missed, apart, sure=who.sure and run.is_entry)


def _within(run: Run, attempt: Seq, handlers: list[Seq]) -> Iterator[Hit]:
    """All ranks try, one saves, and where that fails it alone is taken past what follows."""
    if not handlers or any(True for each in handlers for _ in met(each.items)):
        return
    if any(map(_raises, handlers)):
        return
    for save, way in events(attempt, "save", "write", "copy_file"):
        who = doers(way)
        apart = keeps_apart(who.choices)
        if apart is None or not who.some or in_try(way):
            continue
        depth = where_apart(way, apart)
        if any(isinstance(step.node, Loop) for step in way[:depth]):
            continue
        followed = (each for step in reversed(way[: depth + 1]) for each in met(step.rest))
        missed = next(followed, None)
        if missed is not None:
            yield Hit(
                missed.node,
                "where the save before it fails one rank skips this, and the others wait here",
                notes=(
                    Related.at(save.place, "some ranks alone save"),
                    Related.at(apart.place, "only they pass this condition"),
                ),
                help="share the outcome: broadcast whether the save succeeded",
                confidence="certain" if who.sure and run.is_entry else "likely",
                path=missed.path,
            )
            return


def _of_save(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches what a full disk raises."""
    named = {each.id for each in ast.walk(handler.type or ast.Pass()) if isinstance(each, ast.Name)}
    return handler.type is None or not named.isdisjoint(_ERRORS)


def _raises(handler: Seq) -> bool:
    left = leaves(handler)
    return left is not None and left.kind in ("raise", "end")


def _missed(left: Exit | None, way: Way, apart: Choice) -> Met | None:
    """What the other ranks go on to, in the function or the loop that is left."""
    if left is None or left.kind not in ("return", "break", "continue"):
        return None
    outer = where_apart(way, apart)
    if way[outer].node is not apart:  # the others have left as well
        return None
    for step in reversed(way[: outer + 1]):
        if isinstance(step.node, Called):
            break
        if isinstance(step.node, Loop) and left.kind != "return":
            break
        first = next(met(step.rest), None)
        if first is not None:
            return first
    return None


def _hit(left: Exit, missed: Met, apart: Choice, *, sure: bool) -> Hit:
    return Hit(
        left.node,
        "where the save fails this rank leaves, and the others wait for it",
        notes=(
            Related.at(apart.place, "only some ranks pass this condition"),
            Related.at(missed.event.place, "the others go on to this collective"),
        ),
        help="share the outcome: broadcast whether the save succeeded",
        confidence="certain" if sure else "likely",
        path=left.path,
    )
