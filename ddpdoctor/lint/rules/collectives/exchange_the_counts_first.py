"""Rows dealt out among the ranks, of which each guesses how many it gets.

## What it does
Finds `all_to_all_single` whose `output_split_sizes` were reckoned of this rank's own numbers, as
its `input_split_sizes` were, and never asked of the others; in the forward of a
`torch.autograd.Function` as well.

## Why is this bad?
How many rows come from a rank is what that rank has counted. Where the guess is another number,
gloo raises or hangs, and NCCL reads what lies behind.

## Example
```python
give = torch.bincount(expert, minlength=world_size)
take = give.flip(0)
dist.all_to_all_single(out, rows, take.tolist(), give.tolist())
```

## Use instead
```python
give = torch.bincount(expert, minlength=world_size)
take = torch.empty_like(give)
dist.all_to_all_single(take, give)
dist.all_to_all_single(out, rows, take.tolist(), give.tolist())
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import NONE, Value
from ddpdoctor.lint.engine.queries.wrapping import computed_from, origins
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP403", name="collective-shape-mismatch", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the exchanges of which a rank guesses what it gets."""
    told: set[int] = set()
    for event, _ in events(run.root, "collective"):
        if "takes" not in event.values:
            continue
        takes, hands = (_content(run, event.values.get(each)) for each in ("takes", "hands"))
        is_own = _is_own(takes) and _is_own(hands) and not _may_be_exchanged(run, takes, hands)
        counted = _counted(run, takes) if is_own else None
        if counted is not None and id(event.node) not in told:
            told.add(id(event.node))
            yield Hit(
                event.node,
                f"{event.name}() is told how many rows come by what this rank alone has counted",
                notes=(
                    Related(counted.path, getattr(counted.node, "lineno", 1), "it is reckoned"),
                ),
                why=takes.why,
                help="exchange the counts first: all_to_all_single(take, give)",
                path=event.path,
            )


def _content(run: Run, value: Value | None) -> Value:
    held = containers.content(run.vm, value) if value is not None else None
    return held or value or NONE


def _is_own(value: Value) -> bool:
    """Whether it is this rank's own, and nothing that was dealt to it."""
    return value.agree.kind == "local" and value.agree.cause in ("data", "chance")


def _may_be_exchanged(run: Run, takes: Value, hands: Value) -> bool:
    """Whether it comes of what nobody is seen to count, and not of what is handed out."""
    mine = {each.what for each in origins(run, hands)}
    first = [each for each in origins(run, takes) if each.what not in run.vm.made]
    return bool(first) and all(
        each.agree.kind == "unknown" and each.what not in mine for each in first
    )


def _counted(run: Run, value: Value) -> Made | None:
    """How it was made, if it was read out of a tensor: what comes of a shape may be alike."""
    steps = [made for _, made in computed_from(run, value)]
    return steps[0] if any(each.by in ("item", "numpy", "tolist") for each in steps) else None
