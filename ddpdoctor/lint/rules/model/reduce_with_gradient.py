"""Reduced statistic without a gradient of the other ranks.

## What it does
Finds an in-place `all_reduce` of something that a model in DDP has computed, where the loss is then
computed from the sum by more than scaling it: a correlation matrix, a variance, a norm.

## Why is this bad?
Autograd does not see the collective. The loss is that of all samples, but its gradient reaches this
rank's alone, and DDP divides that by the number of ranks: the gradient is too small by that factor.
Nothing raises. Where the loss is of such sums alone, and so the same on all ranks, that is all:
what divides by the gradient's own size, as Adam does, forgives it, and it is told as information.
Beside other terms it is a part that weighs too little.

## Example
```python
c = a.T @ b
dist.all_reduce(c)
loss = (c - eye).square().sum()
```

## Use instead
```python
c = torch.distributed.nn.functional.all_reduce(a.T @ b)
loss = (c - eye).square().sum()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import Tensor, Value, What
from ddpdoctor.lint.engine.libraries.torch import VIEWS
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.engine.queries.wrapping import has_graph, origins, parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP316", name="gathered-without-gradient", confidence="likely")

_LINEAR = frozenset({"Add", "Sub", "Mult", "Div", "USub", "mean", "sum", "div_", "mul_", *VIEWS})
_PARTS = ("diagonal", "diag", "item", "slice", "either", "fill_diagonal_", "triu", "tril")
_HANDS_ON = ("forward", "scale")
_ALONE = ("item", "tolist", "detach", "numpy", "float")
"""What has no graph any more."""


def check(run: Run) -> Iterator[Hit]:
    """Yield reductions of what the loss is computed from."""
    learnt: set[int] = set()
    for wrap, _ in events(run.root, "wrap"):
        learnt |= parts(run, wrap.values["module"].what) | parts(run, wrap.values["wrapper"].what)
    losses = [event.values["loss"] for event, _ in events(run.root, "backward")] if learnt else []
    used = {each.what for loss in losses for each in origins(run, loss)}
    scaled = {x.what for loss in losses if _is_alike(run, loss) for x in origins(run, loss)}
    told: set[int] = set()
    for event, _ in events(run.root, "collective"):
        shared = event.values.get("shares")
        if event.name != "all_reduce" or shared is None or shared.what not in used:
            continue
        if (
            not has_graph(run, shared, learnt)
            or "no_grad" in event.scopes
            or id(event.node) in told
        ):
            continue
        if not is_world(event.values.get("group")):
            continue
        bent = _bent(run, shared.what, used, event.order)
        if bent is not None:
            told.add(id(event.node))
            is_scaled = shared.what in scaled
            yield Hit(
                event.node,
                "each rank has its own part's gradient of this sum, and DDP takes their mean: the"
                " loss's gradient, divided by the number of ranks"
                if is_scaled
                else "the loss is computed from this sum, and only this rank's part has a gradient",
                notes=(Related(bent.path, getattr(bent.node, "lineno", 1), "it is used here"),),
                help="torch.distributed.nn.functional.all_reduce, which autograd knows",
                harmless=is_scaled,
                path=event.path,
            )


def _is_alike(run: Run, loss: Value) -> bool:
    """Whether all ranks have the same loss, so that it is of what they share alone."""
    made = run.vm.made.get(loss.what)
    while made is not None and made.by in _HANDS_ON and made.of:
        loss = made.of[-1]  # what the module's own forward has returned
        made = run.vm.made.get(loss.what)
    return isinstance(loss.what, Tensor) and loss.agree.kind == "same" and loss.agree.sure


def _bent(run: Run, reduced: What, used: set[What], order: int) -> Made | None:
    """Where something of the loss is computed from what was reduced, by more than scaling."""
    todo, seen = [reduced], {reduced}
    while todo:
        each = todo.pop()
        for what, made in run.vm.made.items():
            if what in seen or made.order <= order or each not in [of.what for of in made.of]:
                continue
            seen.add(what)
            if what not in used or made.by in _ALONE or not isinstance(what, Tensor):
                continue
            if made.by not in _LINEAR and made.by not in _PARTS:
                return made
            todo.append(what)
    return None
