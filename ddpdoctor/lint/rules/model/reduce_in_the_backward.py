"""Gradient of gathered features that leaves out what other ranks' losses say.

## What it does
Finds an `autograd.Function` of one's own that gathers in its forward and whose backward does not
communicate, in programs that train a wrapped model through it.

## Why is this bad?
Each rank's loss depends on every rank's features. A backward that picks this rank's part of its own
gradient drops what the losses of the others say about these features: where a loss is of the
rank's own rows, they are trained in another direction. Where it is of what was gathered alone, it
is the same on all ranks: its gradient is divided by the number of ranks, which is told as
information.

## Example
```python
def backward(ctx, *grads):
    return grads[dist.get_rank()]
```

## Use instead
```python
def backward(ctx, *grads):
    every = torch.stack(grads)
    dist.all_reduce(every)
    return every[dist.get_rank()]
```

`torch.distributed.nn.functional.all_gather` does it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import ClassInfo
from ddpdoctor.lint.engine.interpreter.objects import hierarchy
from ddpdoctor.lint.engine.interpreter.program import Run, run_apart, unknown_arguments
from ddpdoctor.lint.engine.interpreter.tree import Exit, Seq, events, walk
from ddpdoctor.lint.engine.interpreter.values import Func, Tensor, Term, Value, What, within
from ddpdoctor.lint.engine.queries.reading import reads
from ddpdoctor.lint.engine.queries.wrapping import origins
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP316", name="gathered-without-gradient", confidence="likely")

_GATHERS = ("all_gather", "all_gather_into_tensor")


def check(run: Run) -> Iterator[Hit]:
    """Yield backwards of gatherings that keep to this rank."""
    trains = any(True for _ in events(run.root, "backward"))
    if not run.is_entry or not trains or not any(True for _ in events(run.root, "wrap")):
        return
    met = {id(event.node) for event, _ in events(run.root, "collective")}
    for each in run.vm.program.classes:
        if not hierarchy.is_step_of_autograd(run.vm, each.number):
            continue
        forward, backward = (_method(run, each, name) for name in ("forward", "backward"))
        if forward is None or backward is None or not reads(run, "apply"):
            continue
        gathered, given_back = _done(run, forward), _done(run, backward)
        if gathered is None or given_back is None:
            continue
        gathers = [event for event, _ in events(gathered, "collective") if event.name in _GATHERS]
        if _is_seen_applied(run, forward):
            gathers = [each for each in gathers if id(each.node) in met]
        if gathers and not any(True for _ in events(given_back, "collective")):
            path = each.module.path
            is_scaled = _are_of_all(run, forward)
            yield Hit(
                _return(each, given_back),
                "each rank has its own part's gradient of what all have gathered, and DDP takes "
                "their mean: the loss's gradient, divided by the number of ranks"
                if is_scaled
                else "what other ranks' losses say of these features is lost: this backward keeps "
                "to the rank's own",
                notes=(Related.at(gathers[0].place, "they are gathered from all ranks"),),
                help="all_reduce the gradients before the own part is taken, or "
                "torch.distributed.nn.functional.all_gather",
                harmless=is_scaled,
                path=path,
            )


def _method(run: Run, of: ClassInfo, name: str) -> Value | None:
    found = hierarchy.class_attribute(run.vm, of.number, name)
    return found if found is not None and isinstance(found.what, Func) else None


def _is_seen_applied(run: Run, forward: Value) -> bool:
    """Whether it is known what it is applied to, by which it may keep to this rank."""
    steps = events(run.root, "apply_step")
    return any(event.values["forward"].what == forward.what for event, _ in steps)


def _are_of_all(run: Run, forward: Value) -> bool:
    """Whether all losses are of nothing else than what was gathered so: the same on all ranks."""
    steps = [
        event.node
        for event, _ in events(run.root, "apply_step")
        if event.values["forward"].what == forward.what
    ]
    gathered = {what for what, made in run.vm.made.items() if made.node in steps}
    names = {run.vm.made[what].by for what in gathered}
    wrappers = {event.values["wrapper"].what for event, _ in events(run.root, "wrap")}
    losses = [event.values["loss"] for event, _ in events(run.root, "backward")]
    for each in (one for loss in losses for one in origins(run, loss, *names)):
        made = run.vm.made.get(each.what)
        if made is None:
            beside = [each] if gathered.isdisjoint(_behind(run, each)) else []
        elif made.by in names:
            beside = []
        else:
            beside = [of for of in made.of if not isinstance(of.what, Tensor | Term)]
            if made.by == "forward" and made.of[0].what in wrappers:
                return False
        if any(of.agree.divergent for of in beside):
            return False
    return bool(gathered)


def _behind(run: Run, size: Value) -> set[What]:
    """What a number was read off, with what that was computed from."""
    tensors = (each for each in within(size.what) if isinstance(each, Tensor))
    return {one.what for each in tensors for one in origins(run, Value(each))}


def _done(run: Run, method: Value) -> Seq | None:
    """What a method does, whatever it is given."""
    assert isinstance(method.what, Func)
    info = run.vm.functions[method.what.number]
    given = unknown_arguments(run.vm, info, skip=0)
    return run_apart(run, method, list(given.values()), info.node)


def _return(of: ClassInfo, done: Seq) -> ast.AST:
    """Where the backward of a class returns, behind whatever decorates it."""
    lines = range(of.node.lineno, (of.node.end_lineno or of.node.lineno) + 1)
    ends = [
        node.node
        for node, _ in walk(done)
        if isinstance(node, Exit) and node.path == of.module.path and node.place.line in lines
    ]
    return ends[-1] if ends else of.node
