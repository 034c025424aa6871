"""A running statistic of each rank's own, by which the shared model is trained.

## What it does
Finds a mean, a count or the like that a program carries on from step to step by this rank's own
data (a filter of observations, a centre, a running scale), that never meets those of the others,
and that goes into what the model is given or into its loss. And a mean or deviation of all samples
of its own by which a rank shifts or scales them, once, before it trains on them.

## Why is this bad?
The ranks share the weights and not what these are used with: each normalises otherwise, and learns
another function. Nothing raises, and the checkpoint has rank 0's statistic alone.

## Example
```python
self.mean = 0.99 * self.mean + 0.01 * observed.mean(0)
loss = model(observed - self.mean).square().mean()
```

## Use instead
```python
mean = observed.mean(0)
dist.all_reduce(mean, op=dist.ReduceOp.AVG)
self.mean = 0.99 * self.mean + 0.01 * mean
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import EITHER, Made
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, caller, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    NOTHING,
    Place,
    Ref,
    Tensor,
    Value,
    What,
)
from ddpdoctor.lint.engine.queries.doing import doers, is_distributed
from ddpdoctor.lint.engine.queries.reducing import shared_in
from ddpdoctor.lint.engine.queries.sharding import loops
from ddpdoctor.lint.engine.queries.wrapping import (
    attributes,
    computed_from,
    made_by,
    origins,
    parts,
    wrappers,
)
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP312", name="unsynchronised-batchnorm", confidence="likely")

_OF_ALL = frozenset(
    ["mean", "sum", "var", "std", "amax", "amin", "bincount", "histc", "median", "quantile", "norm"]
)
_ADDS = frozenset(["Add", "Sub", "Mult", "Div", "add", "sub", "mul", "div", "lerp", "maximum"])


def check(run: Run) -> Iterator[Hit]:
    """Yield the places where a statistic of the rank's own is carried on."""
    if not run.is_entry or not is_distributed(run):
        return
    told: set[int] = set()
    for event, way in events(run.root, "backward"):
        around = loops(way)
        models = _models(run, event)
        if not around or doers(way).mask != EVERYONE or not _is_shared(run, models, around):
            continue
        given = [*_given(run, models, around), *_held_apart(run)]
        weighed = list(origins(run, event.values["loss"]))
        found = {
            (node, path): by
            for used in (given, weighed)
            for node, path, by in (*_carried(run, used), *_changed(run, used, models, around))
            if used is given or _is_of_a_module(run, by)
        }
        for step, by in _fitted(run, given, around):
            if id(step.node) not in told:
                told.add(id(step.node))
                yield Hit(
                    step.node,
                    "each rank scales its samples by a statistic of its own, and trains one model",
                    notes=(
                        Related(by.path, getattr(by.node, "lineno", 1), "this goes by it"),
                        Related.at(event.place, "what is trained on goes by it"),
                    ),
                    why=step.of[0].why,
                    help="take it of the samples of all ranks: dist.all_reduce of sums and counts",
                    path=step.path,
                )
                break
        fresh = [each for each in found if id(each[0]) not in told]
        told |= {id(node) for node, _ in found}
        if fresh:
            (node, path), *_ = fresh
            first, *places = [Place(path, getattr(each, "lineno", 1)) for each, path in fresh]
            yield Hit(
                node,
                "each rank goes by a running statistic of its own data, and trains one model",
                notes=(
                    Related.at(event.place, "what is trained on goes by it"),
                    *_taken(run, found[node, path]),
                    *_filled(run, first),
                    *(Related.at(place, "this goes on with it") for place in places),
                ),
                help="reduce what goes into it: dist.all_reduce(..., op=dist.ReduceOp.AVG)",
                path=path,
            )


def _taken(run: Run, value: Value) -> Iterator[Related]:
    """Where many samples of the rank's own become a number."""
    for step in _aggregates(run, value, NOTHING):
        yield Related(step.path, getattr(step.node, "lineno", 1), "it is taken of its own data")
        return


def _filled(run: Run, place: Place) -> Iterator[Related]:
    """Who hands in the data."""
    for event, way in events(run.root, "change", "set_attribute"):
        called = caller(way)
        if called is not None and event.place == place:
            yield Related.at(called.place, f"{called.name}() is given its data")
            return


def _models(run: Run, backward: Event) -> set[int]:
    """The modules that learn from a loss, with what they wrap."""
    found = set(made_by(backward.values["loss"]))
    for event, _ in events(run.root, "wrap"):
        wrapper, module = event.values["wrapper"].what, event.values["module"].what
        if getattr(wrapper, "number", 0) in found:
            found |= parts(run, module)
    return found


def _is_shared(run: Run, models: set[int], around: list[Loop]) -> bool:
    """Whether the ranks share these gradients, by a wrapper or by hand."""
    if any(getattr(each, "number", 0) in models for each in wrappers(run)):
        return True
    sharing = shared_in(run, [Ref(each) for each in models])
    return any(id(loop) in sharing for loop in around)


def _given(run: Run, models: set[int], around: list[Loop]) -> Iterator[Value]:
    """What the models are given in the same loops, and what that was computed from."""
    for event, way in events(run.root, "forward", "bare_forward"):
        if getattr(event.values["model"].what, "number", 0) in models and around[0] in loops(way):
            for name, value in event.values.items():
                if name.startswith("arg"):
                    yield from origins(run, value, "forward")


def _held_apart(run: Run) -> Iterator[Value]:
    """The buffers of wrapped modules that DDP is told to leave as they are on each rank."""
    held = attributes(run)
    for wrap, _ in events(run.root, "wrap"):
        if wrap.values.get("kw_broadcast_buffers", NONE).is_const(False):
            for number in parts(run, wrap.values["module"].what):
                yield from held.get(Ref(number), {}).values()


def _is_of_a_module(run: Run, value: Value) -> bool:
    """Whether modules gave what it is a statistic of.

    A loss may be set off against any number of the rank's own, as policy gradients are by a
    baseline: its gradient is the same in the mean. What modules put out is a target.
    """
    return any(step.by == "forward" for _, step in computed_from(run, value))


def _fitted(run: Run, used: list[Value], around: list[Loop]) -> Iterator[tuple[Made, Made]]:
    """What was taken of many samples before they are trained on, and what they are scaled by it."""
    for each in used:
        made = run.vm.made.get(each.what)
        if made is None or made.by not in _SCALES or made.order > around[0].begun:
            continue
        samples, *scales = made.of
        of = {one.what for one in origins(run, samples)}
        for scale in scales:
            for step in _aggregates(run, scale, NOTHING):
                if of & {one.what for one in origins(run, step.of[0])}:
                    yield step, made


_SCALES = frozenset(["Sub", "Div", "sub", "div"])


def _carried(run: Run, used: list[Value]) -> Iterator[tuple[ast.AST, str, Value]]:
    """What a loop computes of what it was in the round before, and of data."""
    for each in used:
        made = run.vm.made.get(each.what)
        if made is None or not _is_data(each) or made_by(each):
            continue
        # What an object holds has one name in every round: it is computed from itself.
        for new in _options(run, each):
            step = run.vm.made.get(new.what)
            if step is not None and step.by in _ADDS and _is_statistic(run, each.what, step):
                yield step.node, step.path, new


def _changed(
    run: Run, used: list[Value], models: set[int], around: list[Loop]
) -> Iterator[tuple[ast.AST, str, Value]]:
    """What is older than the loop, and changed in place in each round."""
    known = {each.what for each in used}
    sent_round = _sent_round(run)
    for event, way in events(run.root, "change"):
        owner, by = event.values["object"], event.values.get("by")
        made = run.vm.made.get(owner.what)
        if by is None or owner.what not in known or around[0] not in loops(way):
            continue
        if made is not None and made.order > around[-1].begun:
            continue
        learns = bool(made_by(by) & models) and "no_grad" not in event.scopes
        if learns or made_by(owner) or owner.what in sent_round or _is_met(run, owner.what):
            continue
        if _is_data(by) and _is_aggregate(run, by, owner.what):
            yield event.node, event.path, by


def _sent_round(run: Run) -> set[What]:
    """What wrappers hold: DDP makes its buffers alike in each forward, if it is left to."""
    held = attributes(run)
    inside = {
        n
        for wrap, _ in events(run.root, "wrap")
        if not wrap.values.get("kw_broadcast_buffers", NONE).is_const(False)
        for n in parts(run, wrap.values["module"].what)
    }
    return {each.what for number in inside for each in held.get(Ref(number), {}).values()}


def _is_met(run: Run, what: What) -> bool:
    """Whether a collective shares it, whenever that is."""
    return any(
        what == one.what
        for event, _ in events(run.root, "collective")
        if "shares" in event.values
        for one in origins(run, event.values["shares"])
    )


def _is_statistic(run: Run, before: What, step: Made) -> bool:
    """Whether a step adds to what was before a number that stands for many samples."""
    grows = any(before == one.what for each in step.of for one in origins(run, each))
    return grows and any(_is_aggregate(run, each, before) for each in step.of)


def _is_aggregate(run: Run, value: Value, but: What) -> bool:
    """Whether it comes of a number for many samples, which ranks have not put together."""
    return any(True for _ in _aggregates(run, value, but))


def _aggregates(run: Run, value: Value, but: What) -> Iterator[Made]:
    together = _put_together(run)
    for each in origins(run, value, EITHER, "forward"):
        step = run.vm.made.get(each.what)
        if step is None or each.what == but or each.what in together:
            continue
        if step.by in _OF_ALL and _is_data(step.of[0]) and not _is_of_each(step):
            yield step


def _is_of_each(step: Made) -> bool:
    """Whether every sample has a number of its own: the first dimension stays."""
    given = [each.constant for each in step.of[1:]]
    dimensions = [each for each in given if isinstance(each, int) and not isinstance(each, bool)]
    return bool(dimensions) and 0 not in dimensions


def _put_together(run: Run) -> set[What]:
    """What goes into collectives or to another rank, and not by way of models."""
    found: set[What] | None = run.answers.get("put_together")
    if found is None:
        found = run.answers["put_together"] = {
            one.what
            for event, _ in events(run.root, "collective", "send", "new")
            for role in ("shares", "gives", "tensor")
            for each in _options(run, event.values.get(role, NONE))
            for one in origins(run, each, EITHER, "forward")
        }
    return found


def _options(run: Run, value: Value) -> tuple[Value, ...]:
    """What it may be, as what a loop goes through, and what an object holds in its rounds."""
    made = run.vm.made.get(value.what)
    return tuple(made.of) if made is not None and made.by == EITHER else (value,)


def _is_data(value: Value) -> bool:
    """Whether it comes of what this rank alone has."""
    by_rank = value.agree.kind == "rank" or value.agree.cause in ("data", "shard", "chance")
    return isinstance(value.what, Tensor) and by_rank
