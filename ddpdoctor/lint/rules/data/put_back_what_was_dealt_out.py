"""Gathered rank after rank, and cut as if in order.

## What it does
Finds what each rank has computed of its part of a `DistributedSampler`, all gathered, put one
behind the other, and cut to the number of samples.

## Why is this bad?
The sampler deals out in turn: of two ranks, the first has samples 0, 2, 4. Rank after rank, they
are not in the order of the data set, and the padding is not at the end: the cut takes off samples
of the last rank, leaves others in twice, and rows go to samples that are not theirs.

## Example
```python
dist.all_gather(parts, mine)
predictions = torch.cat(parts)[: len(data)]
```

## Use instead
```python
dist.all_gather(parts, mine)
predictions = torch.stack(parts, dim=1).flatten(0, 1)[: len(data)]
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Place, Tensor, Value
from ddpdoctor.lint.engine.queries.sharding import SAMPLER, loops, made, passes, shards
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.engine.queries.wrapping import origins
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP208", name="padded-evaluation", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield what is cut to a length while it stands rank after rank."""
    cuts = [each for each in run.vm.made.values() if each.by == "slice" and _is_first_part(each)]
    joined = {id(join.node): (join, cut) for cut in cuts if (join := _joined(run, cut)) is not None}
    for join, cut in joined.values():
        gathered = {one.what for each in join.of for one in origins(run, each)}
        for event, way in events(run.root, "collective"):
            filled, given = (event.values.get(each, NONE) for each in ("filled", "gives"))
            around = {loop.node for loop in loops(way)}
            if filled.what not in gathered or not is_world(event.values.get("group")):
                continue
            read = _loaders_behind(run, given)
            if any(each.event.node in around for each in passes(run) if each.loaders & read):
                continue  # of one batch of each: the padding is at the end of the last
            by = _dealt_in_turn(run)
            if not read or not read <= by.keys():
                continue
            yield Hit(
                join.node,
                "this puts rank after rank what was dealt out in turn: its end is no padding",
                notes=(
                    Related.at(by[min(read)].place, "it was dealt out here"),
                    Related.at(event.place, "all ranks gather here"),
                    Related.at(_place(cut), "it is cut"),
                ),
                help="torch.stack(parts, dim=1).flatten(0, 1) has them in the order of the data",
                path=join.path,
            )
            break


def _place(cut: Made) -> Place:
    return Place(cut.path, getattr(cut.node, "lineno", 1))


def _is_first_part(cut: Made) -> bool:
    """Whether it is `x[:n]` of a number that is not written there."""
    part = cut.node.slice if isinstance(cut.node, ast.Subscript) else None
    if not isinstance(part, ast.Slice) or part.lower is not None or part.upper is None:
        return False
    return not isinstance(part.upper, ast.Constant)


def _joined(run: Run, cut: Made) -> Made | None:
    """Where what is cut was put one behind the other, if it still stands so."""
    found = run.vm.made.get(cut.of[0].what)
    while found is not None and found.by in _AS_IT_STANDS and found.of:
        found = run.vm.made.get(found.of[0].what)
    is_joined = found is not None and found.by.rpartition(".")[2] in _JOINS
    return found if found is not None and is_joined and _is_by_rows(found.node) else None


_AS_IT_STANDS = ("to", "cpu", "numpy", "detach", "float", "long", "tolist")
_JOINS = ("cat", "concat", "concatenate")


def _is_by_rows(call: ast.AST) -> bool:
    if not isinstance(call, ast.Call):
        return False
    along = [
        *call.args[1:2],
        *(each.value for each in call.keywords if each.arg in ("dim", "axis")),
    ]
    return all(isinstance(each, ast.Constant) and each.value == 0 for each in along)


def _loaders_behind(run: Run, value: Value) -> set[int]:
    """The loaders from whose batches something was computed."""
    sites = (each.what.site for each in origins(run, value) if isinstance(each.what, Tensor))
    return {run.vm.batches[site].number for site in sites if site in run.vm.batches}


def _dealt_in_turn(run: Run) -> dict[int, Event]:
    """The loaders whose sampler is torch's own, which gives each rank every n-th, with that."""
    samplers = made(run, SAMPLER)
    return {
        loader: samplers[sampler]
        for loader, sampler in shards(run).items()
        if sampler in samplers and run.vm.objects[sampler].cls < 0
    }
