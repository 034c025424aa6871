"""Padded samples in a metric.

## What it does
Finds evaluation loops over a loader that accelerate prepared, in which predictions and labels are
gathered by `accelerator.gather`, together or one by one, and nothing takes the last batch's padding
off. And those over a loader that accelerate was not given, where what all ranks compute of it is
gathered.

## Why is this bad?
A prepared loader gives every rank as many samples: where the data set does not divide, the last
batch is filled up with samples from its beginning. They are gathered too, and count twice. A loader
that is not prepared gives every rank all samples: each counts as often as there are ranks.

## Example
```python
for x, y in eval_loader:
    predictions, labels = accelerator.gather((model(x).argmax(-1), y))
    metric.add_batch(predictions=predictions, references=labels)
```

## Use instead
```python
for x, y in eval_loader:
    predictions, labels = accelerator.gather_for_metrics((model(x).argmax(-1), y))
    metric.add_batch(predictions=predictions, references=labels)
```
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    Ref,
    Tensor,
    Tuple,
    Value,
    What,
)
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.sharding import (
    LOADER,
    Pass,
    dealt,
    is_dealt_out,
    loops,
    made,
    passes,
)
from ddpdoctor.lint.engine.queries.wrapping import origins
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP208", name="padded-evaluation", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield gathers of predictions and labels with the padding."""
    yield from _gathered_by_all(run)
    gathers = [(e, way) for e, way in events(run.root, "collective") if _is_plain(e)]
    evaluated = {
        id(each.event.node): each
        for each in (passes(run) if gathers else ())
        if not each.trains
        and all(run.vm.store.get((Ref(one), "#prepared")) is not None for one in each.loaders)
        and not _leaves_out_what_it_has(each.event.node)
    }
    told: set[int] = set()
    labelled = set(_with_labels(run, evaluated)) if evaluated else set()
    for event, way in gathers:
        within = {id(loop.node) for loop in loops(way)} & evaluated.keys()
        if not within or id(event.node) in told or _is_cut(run, event):
            continue
        is_one_of_several = bool(within & labelled - told) and not _is_given_out(run, event)
        if _has_labels(run, event) or is_one_of_several:
            told |= {id(event.node), *within}
            yield Hit(
                event.node,
                "the samples that fill up the last batch are gathered too, and count twice",
                help="accelerator.gather_for_metrics(...) leaves them out",
                path=event.path,
            )


def _gathered_by_all(run: Run) -> Iterator[Hit]:
    """Yield loaders of which every rank reads all, and gathers what it has computed."""
    if not any(True for _ in events(run.root, "prepare_loader")):
        return
    gathers = [(e, way) for e, way in events(run.root, "collective") if e.name in _OF_ACCELERATE]
    loaders, parts = made(run, LOADER), dealt(run)
    for over in passes(run) if gathers else ():
        if over.trains or over.loaders & parts or not over.loaders <= loaders.keys():
            continue
        if doers(over.way).mask != EVERYONE or any(
            _is_given(loaders[each]) or is_dealt_out(run, loaders[each]) for each in over.loaders
        ):
            continue
        gathered = next(
            (e for e, way in gathers if _is_within(way, over) and _is_of(run, e, over)), None
        )
        if gathered is not None:
            loader = loaders[min(over.loaders)]
            yield Hit(
                loader.node,
                "all ranks read all of this loader, and gather it: each sample counts many times",
                notes=(
                    Related.at(over.event.place, "it is evaluated on"),
                    Related.at(gathered.place, "all ranks gather here"),
                ),
                help="accelerator.prepare(loader), so that each rank reads its part",
                path=loader.path,
            )


_OF_ACCELERATE = ("gather", "gather_for_metrics")


def _is_given(loader: Event) -> bool:
    """Whether something may deal out its samples."""
    values = loader.values
    given = (values.get(each, NONE) for each in ("sampler", "batch_sampler"))
    return "rest" in values or any(not each.is_const(None) for each in given)


def _is_within(way: Way, over: Pass) -> bool:
    return any(loop.node is over.event.node for loop in loops(way))


def _is_of(run: Run, gather: Event, over: Pass) -> bool:
    """Whether a batch of this pass is in what is gathered."""
    given = gather.values.get("gives", NONE)
    return any(
        isinstance(one.what, Tensor)
        and (loader := run.vm.batches.get(one.what.site)) is not None
        and loader.number in over.loaders
        for one in origins(run, given)
    )


def _leaves_out_what_it_has(loop: ast.AST) -> bool:
    """Whether a loop asks of what it takes whether it has it already, in what it keeps of it."""
    asked = {
        (ast.dump(test.left), ast.dump(test.comparators[0]))
        for each in ast.walk(loop)
        if isinstance(each, ast.If)
        for test in ast.walk(each.test)
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In | ast.NotIn)
    }
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in ("add", "append")
        and each.args
        and (ast.dump(each.args[0]), ast.dump(each.func.value)) in asked
        for each in ast.walk(loop)
    )


def _is_plain(event: Event) -> bool:
    """Whether accelerate gathers, and keeps all."""
    return event.name == "gather" and "gives" in event.values


def _has_labels(run: Run, event: Event) -> bool:
    """Whether something that is the batch's own is gathered together with what is predicted."""
    given = event.values["gives"].what
    if not isinstance(given, Tuple):
        return False
    return any(
        _is_of_a_batch(run, one)
        for each in given.items
        if isinstance(each.what, Tensor) and not each.what.of
        for one in origins(run, each)
    )


def _with_labels(run: Run, evaluated: Container[int]) -> Iterator[int]:
    """The passes in which what is the batch's own is gathered by itself."""
    for event, way in events(run.root, "collective"):
        if event.name in ("gather", "gather_object") and _is_given_out(run, event):
            yield from (id(loop.node) for loop in loops(way) if id(loop.node) in evaluated)


def _is_given_out(run: Run, event: Event) -> bool:
    """Whether what is gathered is the batch's own, and not what was computed of it."""
    given = event.values.get("gives") or event.values.get("tells") or NONE
    while (made := run.vm.made.get(given.what)) is not None and made.by in _TAKEN_OUT:
        given = made.of[0]
    return _is_of_a_batch(run, given)


_TAKEN_OUT = ("item", "to", "cuda", "detach", "cpu")
"""Steps from a batch to a part of it, wherever that is kept."""


def _is_of_a_batch(run: Run, value: Value) -> bool:
    return isinstance(value.what, Tensor) and value.what.site in run.vm.batches


def _is_cut(run: Run, event: Event) -> bool:
    """Whether the program cuts what it has gathered to a length, as it would the last batch."""
    gathered = event.values["filled"].what
    return any(
        each.by == "slice" and _is_first_part(each.node) and gathered in _whats(run, each.of)
        for each in run.vm.made.values()
    )


def _is_first_part(node: ast.AST) -> bool:
    """Whether it is `x[:n]`."""
    part = node.slice if isinstance(node, ast.Subscript) else None
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is not None


def _whats(run: Run, values: tuple[Value, ...]) -> set[What]:
    return {one.what for each in values for one in origins(run, each)}
