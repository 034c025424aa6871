"""A mean loss that is scaled by the number of ranks.

## What it does
Finds a mean over this rank's samples that is multiplied or divided by the world size before the
backward of a model in DDP, where nothing in it was gathered or summed over the ranks.

## Why is this bad?
DDP averages the gradients: the mean of the ranks' means is what one process with all samples has.
Multiplied, every step is N times as long, as with N times the learning rate; divided, it is
averaged twice, and shrinks as ranks are added. Nor does an `all_reduce` of the loss before that
make it right: it changes the loss's value, and autograd, which does not see it, its gradient not.

Nor is a loss divided by the accumulation steps that an `Accelerator` was made with: its `backward`
does so, and what was divided before is that many times too small.

## Example
```python
loss = criterion(model(x), y) * dist.get_world_size()
loss.backward()
```

## Use instead
```python
loss = criterion(model(x), y)
loss.backward()
```
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ddpdoctor.lint.engine.interpreter.machine import EITHER, Made
from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import (
    SAME,
    WORLD,
    Const,
    Lib,
    Partial,
    Tensor,
    Term,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import MEANS, VIEWS
from ddpdoctor.lint.engine.queries.wrapping import made_by, origins
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP211", name="batch-size-meaning", confidence="likely")

_SCALES = {"Mult": "multiplied", "mul": "multiplied", "mul_": "multiplied"} | {
    "Div": "divided",
    "div": "divided",
    "div_": "divided",
}
_LINEAR = (EITHER, "Add", "Sub", "USub", "float", "to", *VIEWS - {"detach"}, *_SCALES)


def check(run: Run) -> Iterator[Hit]:
    """Yield means that are scaled before DDP averages their gradients."""
    numbers = {
        getattr(event.values["wrapper"].what, "number", 0) for event, _ in events(run.root, "wrap")
    }
    yield from _by_the_window(run)
    told: set[int] = set()
    worlds = {WORLD, *_devices(run)}
    for event, _ in events(run.root, "backward") if numbers else ():
        loss = event.values["loss"]
        if not made_by(loss) & numbers:
            continue
        summed = _summed_in_place(run, loss)
        if _is_of_all(run, loss, summed):
            continue
        if _is_undone(run, loss, _sizes(run, worlds) if summed else worlds):
            continue
        for step in _steps(run, loss):
            if _is_scaled(run, step, worlds, summed) and id(step.node) not in told:
                told.add(id(step.node))
                put_together = [summed[each.what] for each in step.of if each.what in summed]
                what = "loss" if put_together else "mean"
                yield Hit(
                    step.node,
                    f"a {what} is {_SCALES[step.by]} by the number of ranks, and DDP averages it"
                    " too",
                    notes=(*put_together, Related.at(event.place, "its gradients are averaged")),
                    help="go backward from this rank's own loss; what is to be told, is reduced in "
                    "a detached copy"
                    if put_together
                    else "leave the mean as it is: DDP divides by the number of ranks",
                    path=step.path,
                )


def _by_the_window(run: Run) -> Iterator[Hit]:
    """Yield losses that are divided by the window, and again by who goes backward from them."""
    told: set[int] = set()
    for event, _ in events(run.root, "backward"):
        library = event.values.get("object")
        window = run.vm.store.get((library.what, "steps")) if library is not None else None
        if library is None or window is None or window.is_const(1):
            continue
        by_name = Partial(library, (), (("#", Value(Const("gradient_accumulation_steps"))),))
        windows = {window.what, by_name}
        scaled = [
            step
            for step in _steps(run, event.values["loss"])
            if step.by in _SCALES and any(each.what in windows for each in step.of[:2])
        ]
        if len(scaled) != 1 or _SCALES[scaled[0].by] != "divided":
            continue
        (step,) = scaled
        before = _made(run, step.of[0])
        if id(step.node) in told or (window.constant is not None and before and before.by == "Add"):
            continue  # two losses' mean, by a number that happens to be that of the window
        told.add(id(step.node))
        yield Hit(
            step.node,
            "the loss is divided by the accumulation steps, and backward() divides by them too",
            notes=(Related.at(event.place, "it divides by what the Accelerator was made with"),),
            help="leave the division to accelerator.backward",
            path=step.path,
        )


def _summed_in_place(run: Run, loss: Value) -> dict[What, Related]:
    """What of a loss is put together where it lies: its gradient stays that of this rank's part."""
    own = set(_terms(run, loss))
    return {
        value.what: Related.at(event.place, "put together in its value: its gradient is not")
        for event, _ in events(run.root, "collective")
        if event.name in ("all_reduce", "reduce", "broadcast")
        for role in ("filled", "collects")
        if role in event.values and (value := event.values[role]).what in own
    }


def _terms(run: Run, loss: Value) -> Iterator[What]:
    """What the gradient of a loss goes on to, and not what that is multiplied or divided by."""
    seen: set[What] = set()
    todo = [loss]
    while todo:  # what a loop adds up is computed from itself
        what = todo.pop().what
        if what in seen:
            continue
        seen.add(what)
        yield what
        step = run.vm.made.get(what)
        if step is not None and step.by in _LINEAR:
            parts = step.of[:1] if step.by in _SCALES else step.of
            todo += [each for each in parts if isinstance(each.what, Tensor)]


def _is_of_all(run: Run, loss: Value, summed: Collection[What]) -> bool:
    """Whether anything that ranks have exchanged goes into a loss, and into its gradient."""
    shared = {
        each.what
        for event, _ in events(run.root, "collective")
        for role, value in event.values.items()
        for each in (value, *containers.held(containers.content(run.vm, value) or value))
        if "no_grad" not in event.scopes or role == "filled" or _is_gathered(event, role)
    }.difference(summed)
    return any(each.what in shared for each in origins(run, loss))


def _is_gathered(event: Event, role: str) -> bool:
    """Whether it is what all ranks have put together, be it without a graph."""
    return "gather" in event.name and role == "shares"


def _steps(run: Run, loss: Value) -> Iterator[Made]:
    """How a loss was put together, back to what is no more a sum or a multiple of losses."""
    stack, seen = [loss], set()
    while stack:
        what = stack.pop().what
        step = run.vm.made.get(what)
        if step is not None and what not in seen and step.by in _LINEAR:
            seen.add(what)
            yield step
            stack += step.of


def _devices(run: Run) -> Iterator[What]:
    """On how many devices a library is told to start ranks, on one machine: one each."""
    for event, _ in events(run.root, "new"):
        devices, nodes = event.values.get("devices"), event.values.get("nodes")
        on_one = nodes is None or nodes.is_const(1)
        if devices is not None and on_one and isinstance(devices.what, Term):
            yield devices.what


def _sizes(run: Run, worlds: Collection[What]) -> Collection[What]:
    """The number of ranks, and what the group was told that it is."""
    return {*worlds, *run.vm.sizes} - {Const(1)}


def _is_scaled(run: Run, step: Made, worlds: Collection[What], summed: Collection[What]) -> bool:
    if step.by not in _SCALES or len(step.of) < 2:
        return False
    one, other = step.of[:2]
    if one.what in summed:  # what the ranks have summed is divided by their number, as they said it
        worlds = _sizes(run, worlds)
    if step.by == "Mult" and _is_by_world(one.what, worlds):
        one, other = other, one
    if one.what not in summed and not (one.agree.divergent and _is_mean(run, one)):
        return False
    if one.what in summed and _SCALES[step.by] == "multiplied":
        return False
    # Who divides by more than the ranks may have multiplied by some of that before.
    divides = _SCALES[step.by] == "divided" and other.agree == SAME
    is_bare = not any(each.by in _SCALES for each in _steps(run, one))
    return _is_by_world(other.what, worlds) or (
        divides and is_bare and any(_is_by_world(each, worlds) for each in _factors(other.what))
    )


def _is_undone(run: Run, loss: Value, worlds: Collection[What]) -> bool:
    """Whether what is multiplied by the ranks is divided by what grows with them, or before."""
    kinds = {
        _SCALES[step.by]
        for step in _steps(run, loss)
        if step.by in _SCALES
        and any(
            _is_by_world(each, worlds) for given in step.of[:2] for each in _factors(given.what)
        )
    }
    return len(kinds) > 1


def _factors(what: object) -> Iterator[object]:
    if isinstance(what, Term) and what.op == "Mult":
        for each in what.args:
            yield from _factors(each)
    else:
        yield what


def _is_by_world(what: object, worlds: Collection[What]) -> bool:
    """Whether it is the world size, or a multiple of it by numbers alone."""
    if what in worlds:
        return True
    if not isinstance(what, Term) or what.op not in ("Mult", "float", "int"):
        return False
    by_world = [_is_by_world(each, worlds) for each in what.args]
    return any(by_world) and all(
        each or isinstance(arg, Const) for each, arg in zip(by_world, what.args, strict=True)
    )


def _is_mean(run: Run, value: Value) -> bool:
    """Whether each term of it is a mean of what this rank has."""
    ends = []
    for step in _steps(run, value):
        ends += [each for each in step.of if _made(run, each) is not None]
    made = [_made(run, each) for each in ends or [value]]
    made = [each for each in made if each is None or each.by not in _LINEAR]
    return bool(made) and all(map(_averages, made))


def _made(run: Run, value: Value) -> Made | None:
    return run.vm.made.get(value.what)


def _averages(step: Made | None) -> bool:
    """Whether torch takes a mean there: what a loss of the user's own does, is the user's."""
    if step is None:
        return False
    parts = [part for each in step.of for part in within(each.what)]
    if Const("sum") in parts or Const("none") in parts:
        return False
    callee = step.of[0].what if step.of else None
    if isinstance(callee, Term) and callee.op == "lib":
        name = str(callee.args[0])
        return name.startswith("torch.nn.") and name.endswith("Loss")
    return step.by in MEANS and not isinstance(callee, Lib)
