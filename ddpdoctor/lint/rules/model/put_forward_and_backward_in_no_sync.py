"""no_sync around half a step.

## What it does
Finds `with model.no_sync():` around a backward whose forward ran outside (no effect), or always
around a forward whose backward runs outside (the ranks part), and `require_backward_grad_sync` set
between the two (it is heeded one micro-batch late).

## Why is this bad?
The forward decides whether the next backward reduces. Around the backward alone `no_sync` does
nothing; around the forward alone the backward outside reduces nothing either. Where it is entered
only for the micro-batches before the last, that is as meant.

## Example
```python
loss = model(x)
with model.no_sync():
    loss.backward()
```

## Use instead
```python
with model.no_sync():
    loss = model(x)
    loss.backward()
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.statements.loops import MAYBE
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import Ref, Tensor, Term, Value, What
from ddpdoctor.lint.engine.queries.reducing import FLAG, ends
from ddpdoctor.lint.engine.queries.wrapping import computed_from
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP314", name="no-sync-wrong-scope", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield no_sync blocks that hold a forward or its backward, and flags that come between."""
    yield from _late_flags(run)
    held = {e.values["of"].what for e, _ in events(run.root, "scope") if e.name == "no_sync"}
    if not held:
        return
    yield from _apart(run, held)


def _apart(run: Run, held: set[What]) -> Iterator[Hit]:
    """Forwards held back without their backward, and backwards without their forward.

    What was held back is reduced after all by a whole forward and backward before the step.
    """
    told: set[int] = set()
    inside: list[Event] = []
    unreduced: list[tuple[Hit, set[What]]] = []
    scopes: dict[int, list[Event | None]] = {}  # of each forward, as it ran since the last backward
    asked: dict[int, set[int]] = {}  # of each scope, what is asked on the way to it
    for event, way in events(run.root, "enter", "exit", "forward", "backward", "step"):
        if event.kind == "enter" and "no_sync" in event.name:
            inside.append(event)
            asked[id(event)] = _choices(way)
        elif event.kind == "forward" and "no_grad" not in event.scopes:
            scopes.setdefault(id(event.node), []).append(inside[-1] if inside else None)
        elif event.kind == "exit":
            inside = [each for each in inside if not ends(event, each)]
        elif event.kind == "step":
            yield from _first(unreduced, told)
            unreduced = []
        elif event.kind == "backward" and "no_grad" not in event.scopes:
            forwards = [
                replace(each, inside=scopes.get(id(each.node), [each.inside])[-1])
                for each in _forwards(run, event.values["loss"], held)
            ]
            # Of what is unknown no forward is seen: it may have been run on the other way as well.
            is_whole = any(
                None in scopes[id(each.node)]
                if id(each.node) in scopes
                else not asked.get(id(each.inside), set()) <= _choices(way)
                for each in forwards
            )
            scopes = {}
            within = [made for made in forwards if made.inside is not None]
            models = {made.of[0].what for made in forwards}
            if inside and forwards and not within:
                yield from _first([(_held_backward(event, inside[-1]), models)], told)
            elif not inside and within and len(within) == len(forwards) and not is_whole:
                unreduced += [(hit, models) for hit in _held_forward(event, within[0])]
            elif not inside and (
                is_whole or not within
            ):  # where its forward is not known, it may be a whole one
                unreduced = [each for each in unreduced if forwards and not each[1] <= models]
    yield from _first(unreduced, told)


def _choices(way: Way) -> set[int]:
    return {id(step.node) for step in way if isinstance(step.node, Choice)}


def _first(hits: Iterable[tuple[Hit, set[What]]], told: set[int]) -> Iterator[Hit]:
    for hit, _ in hits:
        if id(hit.node) not in told:
            told.add(id(hit.node))
            yield hit


def _held_backward(backward: Event, scope: Event) -> Hit:
    return Hit(
        scope.node,
        "no_sync around the backward alone has no effect: the forward ran before it",
        notes=(Related.at(backward.place, "its backward()"),),
        help="put the forward inside too",
        path=scope.path,
    )


def _held_forward(backward: Event, forward: Made) -> Iterator[Hit]:
    scope = forward.inside
    if scope is not None and not scope.name.startswith(MAYBE):  # else it is not always held back
        yield Hit(
            scope.node,
            "the backward of this forward runs outside of no_sync: nothing is reduced",
            notes=(Related.at(backward.place, "its backward()"),),
            help="put the backward inside too, or leave no_sync away",
            path=scope.path,
        )


def _late_flags(run: Run) -> Iterator[Hit]:
    """Flags set between a forward and its backward: the forward has decided already."""
    told: set[int] = set()
    flags: list[tuple[Event, int]] = []
    seen: list[tuple[What, bool]] = []
    for event, _ in events(run.root, "forward", "set_attribute", "backward"):
        if event.kind == "forward":
            seen.append((event.values["model"].what, "no_grad" not in event.scopes))
        elif event.kind == "set_attribute" and event.name == FLAG:
            flags.append((event, len(seen)))
        elif event.kind == "backward":
            for flag, before in flags:
                owner = flag.values["owner"].what
                ran = [learns for model, learns in seen[:before] if model == owner]
                since = any(model == owner for model, _ in seen[before:])
                if ran and ran[-1] and not since and id(flag.node) not in told:
                    told.add(id(flag.node))
                    yield Hit(
                        flag.node,
                        "this flag comes after the forward, which decides what is reduced",
                        notes=(Related.at(event.place, "its backward()"),),
                        help="set it before the forward",
                        path=flag.path,
                    )
            flags.clear()
            seen.clear()


def _forwards(run: Run, loss: Value, held: set[What]) -> Iterator[Made]:
    """The forwards of what no_sync is for, of which a loss is computed."""
    for value, made in computed_from(run, loss):
        called = made.of[0].what if made.of else None
        if called in held and (made.by == "forward" or _is_call(value, called)):
            yield made


def _is_call(value: Value, called: What | None) -> bool:
    """Whether a value is what a call of something unknown gives, and not of one of its methods."""
    what = value.what
    if isinstance(what, Tensor):
        return isinstance(called, Ref)
    return isinstance(what, Term) and what.op == "result"
