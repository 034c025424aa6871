"""Shuffling sampler for evaluation.

## What it does
Finds a `DistributedSampler` for validation or test that shuffles, as it does by default.

## Why is this bad?
It shuffles by default, and it pads the last shard with repeated samples: the metric counts some
samples twice, other ones each time.

## Example
```python
val_sampler = DistributedSampler(val_set)
```

## Use instead
```python
val_sampler = DistributedSampler(val_set, shuffle=False)
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.edits import add_argument, replace
from ddpdoctor.lint.engine.interpreter.loading import Text
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, events
from ddpdoctor.lint.engine.interpreter.values import FALSE, TRUE
from ddpdoctor.lint.engine.queries.sharding import (
    SAMPLER,
    gone_through,
    is_used,
    made,
    may_be_trained_on,
    passes,
    shards,
    trained_on,
)
from ddpdoctor.lint.engine.trees import dotted, keyword, targets
from ddpdoctor.lint.rule import About, Edit, Fix, Hit

ABOUT = About(code="DDP208", name="padded-evaluation", confidence="likely")

_EVALUATION = re.compile(r"(^|[_.])(val|valid|validation|test|eval|evaluation|dev)($|[_.s])", re.I)


def check(run: Run) -> Iterator[Hit]:
    """Yield evaluation samplers that shuffle."""
    loaders, samplers = shards(run), made(run, SAMPLER)
    trained = {
        id(samplers[loaders[each]].node)
        for one in passes(run)
        for each in one.loaders & loaders.keys()
        if one.trains
    }
    for number, event in samplers.items():
        said = event.values.get("shuffle", TRUE)
        if not said.is_const(True) or "rest" in event.values or _is_for_one(event):
            continue
        if event.values.get("drop_last", FALSE).is_const(True):
            continue  # none is counted twice
        mine = {loader for loader, sampler in loaders.items() if sampler == number}
        through = [each for each in passes(run) if each.loaders & mine]
        if any(each.trains for each in through) or (not through and _is_idle(run, mine)):
            continue
        if mine & (trained_on(run) | may_be_trained_on(run)):
            continue  # how well it has learnt what it is trained on may be asked too
        looped = [each.event for each in through]
        looped += [each for each, _, over in gone_through(run) if over & mine]
        if not (any(_evaluates(run, each) for each in looped) or _sounds_so(run, event)):
            continue
        if "shuffle" in event.values and any(map(_is_left_early, looped)):
            continue  # some samples are enough, others each time
        source = run.source(event.path)
        edit = None
        is_own = id(event.node) not in trained  # else the line makes the training sampler too
        if source is not None and isinstance(event.node, ast.Call) and is_own:
            edit = _without_shuffling(source, event)
        yield Hit(
            event.node,
            "this evaluation sampler shuffles, and pads with samples that then count twice",
            help="shuffle=False; for an exact metric use shards without padding",
            # What another file makes may be another program's training sampler.
            fix=Fix((edit,), safe=event.path == run.path) if edit else None,
            stands=not is_own,
            path=event.path,
        )


def clears(run: Run) -> Iterator[tuple[ast.AST, str]]:
    """The samplers that a program trains with alone: another may evaluate its training data."""
    loaders, samplers = shards(run), made(run, SAMPLER)
    trained: dict[int, list[bool]] = {}
    nodes = {id(event.node): event for event in samplers.values()}
    for number, event in samplers.items():
        mine = {loader for loader, sampler in loaders.items() if sampler == number}
        through = [each for each in passes(run) if each.loaders & mine]
        trained.setdefault(id(event.node), []).append(any(each.trains for each in through))
    for key, event in nodes.items():
        if all(trained[key]):
            yield event.node, event.path


def _is_idle(run: Run, loaders: set[int]) -> bool:
    """Whether a program that is seen to train does nothing with any of these loaders."""
    is_seen = any(each.trains for each in passes(run)) or may_be_trained_on(run)
    if not run.is_entry or run.spent or not is_seen:
        return False
    if not loaders or loaders & run.vm.handed:
        return False
    return not is_used(run, loaders, "new", "make", "set_attribute")


def _is_for_one(sampler: Event) -> bool:
    """Whether each rank goes through all of it, so that nothing is dealt out, nor padded."""
    replicas = sampler.values.get("num_replicas")
    return replicas is not None and replicas.is_const(1)


def _without_shuffling(source: Text, sampler: Event) -> Edit | None:
    """The edit that has it deal its samples in order."""
    call = sampler.node
    if not isinstance(call, ast.Call):
        return None
    if (written := keyword(call, "shuffle")) is not None:
        return replace(source, written, "False")
    return None if "shuffle" in sampler.values else add_argument(source, call, "shuffle=False")


def _is_left_early(one: Event) -> bool:
    return any(isinstance(each, ast.Break) for each in ast.walk(one.node))


def _evaluates(run: Run, one: Event) -> bool:
    """Whether a loop runs the model without gradients."""
    return any(
        "no_grad" in event.scopes
        and any(isinstance(step.node, Loop) and step.node.node is one.node for step in way)
        for event, way in events(run.root, "forward", "bare_forward")
    )


def _sounds_so(run: Run, event: Event) -> bool:
    """Whether the names of the sampler and of its data say so, where no loop over them is seen."""
    source, call = run.source(event.path), event.node
    if source is None or not isinstance(call, ast.Call) or not call.args:
        return False
    first, last, _ = source.statement(call.lineno)
    statements = (
        each
        for each in source.nodes
        if isinstance(each, ast.Assign) and first <= each.lineno <= last
    )
    names = [dotted(target) for each in statements for target in targets(each)]
    return any(_EVALUATION.search(name) for name in (*names, dotted(call.args[0])))
