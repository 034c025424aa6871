"""Every rank decides for itself when to stop.

## What it does
Finds `break` and `return` in a training loop whose condition comes from a rank's own loss or
metric, from the clock, or from a file for which each rank looks in every round, with nothing shared
in between; those that one rank alone comes to, and may take; and those by which a rank leaves a
loop in which all of them send to each other and receive. Where a rank ends with an error because
its own loss is not finite, that is told as information: the launcher ends the others, and may tell
of their errors first.

## Why is this bad?
The ranks' losses and clocks differ. One rank leaves the loop, the others wait for it in the next
all-reduce.

## Example
```python
for epoch in range(epochs):
    loss = train_epoch(ddp_model)
    if time.time() - start > budget:
        break
```

## Use instead
```python
for epoch in range(epochs):
    loss = train_epoch(ddp_model)
    stop = torch.tensor(float(time.time() - start > budget))
    dist.broadcast(stop, src=0)
    if stop:
        break
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Loop, Node, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import EVERYONE
from ddpdoctor.lint.engine.queries.doing import (
    doers,
    is_for_one,
    is_the_starters,
    synchronises,
)
from ddpdoctor.lint.engine.queries.finite import asks_for_numbers
from ddpdoctor.lint.engine.queries.naming import is_decided
from ddpdoctor.lint.engine.queries.partings import Parting, leaves, leavings, partings
from ddpdoctor.lint.engine.queries.raising import raised
from ddpdoctor.lint.engine.queries.telling import decides, decision
from ddpdoctor.lint.engine.queries.watching import watched
from ddpdoctor.lint.engine.queries.wrapping import has_no_buffers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP405", name="local-stop-decision", confidence="likely")

_WORDS = {"break": "`break`", "return": "`return`", "end": "end the process", "": "go on"}


def check(run: Run) -> Iterator[Hit]:
    """Yield exits from a loop that the ranks do not agree on."""
    yield from _between_neighbours(run)
    yield from _of_a_loss_of_its_own(run)
    for parting in partings(run):
        if parting.condition.agree.cause in ("exception", "order"):
            continue
        if parting.condition.agree.cause == "disk" and watched(run, parting) is None:
            continue
        if parting.repeats:
            if not is_decided(parting):
                continue
        elif (
            parting.left not in ("break", "return", "end")
            or parting.by_rank
            or (parting.loop is None and parting.left == "return")
        ):
            continue
        node, path = decision(run, parting)
        yield Hit(
            node,
            f"each rank decides for itself to {_WORDS[parting.left]}: the others wait for it",
            notes=(decides(parting), *_of_forwards_alone(run, parting), *raised(run, parting)),
            why=parting.why,
            help="let rank 0 decide and broadcast, or reduce the value first",
            path=path,
        )
    for each in leavings(run):
        yield Hit(
            each.choice.test,
            f"who comes here may {_WORDS[each.left.kind]}: the other ranks go on, and wait for it",
            notes=(Related.at(each.by.place, "only some ranks come here"),),
            why=each.by.condition.why,
            help="let rank 0 decide, broadcast that to all, and leave the loop together",
            path=each.choice.path,
        )


def _of_forwards_alone(run: Run, parting: Parting) -> Iterator[Related]:
    """Of a loop that learns nothing: the forward that waits, and who was given the wrapper."""
    forward = parting.met[0].event
    model = forward.values["model"].what if "model" in forward.values else None
    wraps = [way for each, way in events(run.root, "wrap") if each.values["wrapper"].what == model]
    if {each.event.kind for each in parting.met} != {"forward"} or not wraps:
        return
    module = run.vm.store.get((model, "module"))
    if module is None or has_no_buffers(run, module.what):
        return
    yield Related.at(forward.place, "the others wait here: each forward sends the buffers round")
    itself = [step.node for step in wraps[0]]
    for event, way in events(run.root, "make"):
        made = way[-1].rest[0] if way[-1].rest else None
        given = events(made.body, "set_attribute") if isinstance(made, Called) else ()
        if made in itself or made is None:
            continue
        if any(each.values["value"].what == model for each, _ in given):
            words = f"{event.name}() is given the wrapper, where `.module` would wait for nobody"
            yield Related.at(event.place, words)


def _between_neighbours(run: Run) -> Iterator[Hit]:
    """Loops in which all ranks send and receive, and that one leaves by what it alone has."""
    found = {id(parting.node) for parting in partings(run)}
    told: set[int] = set()
    for node, way in walk(run.root):
        loop = _left_by(node, way)
        if loop is None or not isinstance(node, Loop | Choice):
            continue
        if id(node.node) in found | told or doers(way).mask != EVERYONE:
            continue
        condition = node.count if isinstance(node, Loop) else node.condition
        agree = condition.agree
        if agree.kind != "local" or not agree.sure or agree.cause not in _OF_DATA:
            continue
        received = next((event for event, _ in events(loop.body, "recv")), None)
        if received is None or not any(True for _ in events(loop.body, "send")):
            continue
        told.add(id(node.node))
        yield Hit(
            node.node if isinstance(node, Loop) else node.test,
            "each rank decides for itself to leave: its neighbour waits for what it would send",
            notes=(Related.at(received.place, "it waits here"),),
            why=condition.why,
            help="reduce the value first, so that all leave in the same round",
            path=node.path,
        )


def _of_a_loss_of_its_own(run: Run) -> Iterator[Hit]:
    """Ends of a rank, with an error, because what it has computed from its data is not finite."""
    told: set[int] = set()
    for node, way in walk(run.root) if run.is_entry and not is_for_one(run) else ():
        if not isinstance(node, Choice) or node.condition.agree.cause not in _OF_DATA:
            continue
        exits = (leaves(arm.body) for arm in node.arms)
        left = next((each for each in exits if each is not None and each.is_failure), None)
        if left is None or id(node.node) in told or not asks_for_numbers(run, node):
            continue
        loops = (step.node for step in way if isinstance(step.node, Loop))
        others = next((e for x in loops for e, _ in events(x.body, "backward", "collective")), None)
        if others is None or doers(way).some or is_the_starters(way):
            continue
        told.add(id(node.node))
        alone = (e for arm in node.arms if leaves(arm.body) for e, _ in events(arm.body))
        waits = next((each for each in alone if synchronises(each)), None)
        yield Hit(
            waits.node if waits else left.node,
            "a rank whose own numbers are not finite waits here alone: it never ends, nor do the "
            "others"
            if waits
            else "a rank whose own numbers are not finite ends alone: the others wait for it, "
            "until the launcher ends them",
            notes=(Related.at(others.place, "they wait here"),),
            why=node.condition.why,
            help="reduce the question (all_reduce, MAX), and end together",
            harmless=waits is None,
            path=waits.path if waits else left.path,
        )


_OF_DATA = ("data", "shard", "chance")


def _left_by(node: Node, way: Way) -> Loop | None:
    """The loop that a condition ends, its own or one around it in the same function."""
    if isinstance(node, Loop):
        return node if isinstance(node.node, ast.While) else None
    exits = [leaves(arm.body) for arm in node.arms] if isinstance(node, Choice) else []
    if None not in exits or not any(each and each.kind in ("break", "return") for each in exits):
        return None
    around = (step.node for step in reversed(way[:-1]))
    nearest = next((each for each in around if isinstance(each, Loop | Called)), None)
    return nearest if isinstance(nearest, Loop) else None
