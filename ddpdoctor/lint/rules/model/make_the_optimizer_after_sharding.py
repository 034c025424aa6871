"""Optimizer made before the model is sharded.

## What it does
Finds optimizers that step, and that were given the parameters of a module before `fully_shard` or
`FullyShardedDataParallel` has put others in their place.

## Why is this bad?
Sharding replaces each parameter by this rank's part of it. The optimizer holds those that were
there before, which never get a gradient: it steps nothing, the loss stays where it was, and nothing
raises.

## Example
```python
optimizer = torch.optim.AdamW(net.parameters())
fully_shard(net)
```

## Use instead
```python
fully_shard(net)
optimizer = torch.optim.AdamW(net.parameters())
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import NONE
from ddpdoctor.lint.engine.queries.order import called_beside, is_after
from ddpdoctor.lint.engine.queries.reducing import stepped
from ddpdoctor.lint.engine.queries.wrapping import parts, stepped_by
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP305", name="late-parameter", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield optimizers of parameters that are replaced before they are stepped."""
    shards = list(events(run.root, "shard"))
    if not shards:
        return
    given_anew = [way for put, way in events(run.root, "put") if _is_of_a_group(put)]
    steps = [(stepped(event).what, way) for event, way in events(run.root, "step")]
    for optimizer, at in events(run.root, "new"):
        made = optimizer.values["object"]
        if run.vm.type_of(made) != "torch.optim.Optimizer":
            continue
        given = [parts(run, each) for each in stepped_by(run, optimizer)]
        for shard, to in shards:
            if not is_after(at, to) or any(is_after(to, way) for way in given_anew):
                continue
            replaced = parts(run, shard.values["module"].what)
            if all(replaced.isdisjoint(each) for each in given):
                continue
            if any(what == made.what and is_after(to, way) for what, way in steps):
                call = called_beside(at, to) or optimizer
                yield Hit(
                    call.node,
                    "the optimizer is made before the model is sharded: it steps parameters that "
                    "nothing trains",
                    notes=(
                        Related.at(optimizer.place, "it is made"),
                        Related.at(shard.place, "others take the place of its parameters"),
                    ),
                    help="shard the model first, then make the optimizer",
                    path=call.path,
                )
                break


def _is_of_a_group(put: Event) -> bool:
    """Whether the parameters of a group of an optimizer may be replaced."""
    return put.values.get("key", NONE).is_const("params")
