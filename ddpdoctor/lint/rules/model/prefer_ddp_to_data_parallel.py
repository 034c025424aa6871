"""DataParallel under a launcher.

## What it does
Finds `nn.DataParallel` in a script that joins a process group and never uses DDP.

## Why is this bad?
Each of the N processes drives all devices, one thread per device, without ever reducing over
processes.

## Example
```python
dist.init_process_group("nccl")
model = nn.DataParallel(net)
```

## Use instead
```python
dist.init_process_group("nccl")
model = DDP(net, device_ids=[local_rank])
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.queries.holding import excludes
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP319", name="data-parallel", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield DataParallel where a process group is joined and nothing is wrapped in DDP."""
    made = [(e, way) for e, way in events(run.root, "new") if e.name.endswith(".DataParallel")]
    if not made:
        return
    runs = (*run.earlier, run)
    joining = {event.function for each in runs for event, _ in events(each.root, "init")}
    wrapping = {event.function for each in runs for event, _ in events(each.root, "wrap")}
    here = [way for _, way in events(run.root, "init")]
    for event, way in made:
        if here and all(excludes(join, way) for join in here):
            continue  # only a process that joins none comes there
        # A file with several ways to train: each is judged by itself.
        if not joining or (wrapping and event.function not in joining - wrapping):
            continue
        yield Hit(
            event.node,
            "nn.DataParallel in a script that joins a process group: nothing reduces over ranks",
            help="DistributedDataParallel(model, device_ids=[local_rank])",
            path=event.path,
        )
