"""A script that waits to be distributed, and never joins, or that joins, and shares nothing.

## What it does
Finds a script that asks `dist.is_initialized()` and wraps in DDP if so, but in which nothing joins
a process group; one that trains on every rank, never joins, and saves on rank 0 alone; and one that
joins, gives each rank its own part of the data, and trains a model whose gradients nobody reduces.

## Why is this bad?
torchrun starts N processes and sets RANK; it does not join them. Each believes to be alone: N
copies train on all the data and overwrite each other's files. Where they have joined, a sampler
deals out the data, but only DDP makes the gradients those of all: N models are trained on a part
each, and one of them is saved.

## Example
```python
distributed = dist.is_initialized()
model = DDP(net) if distributed else net
```

## Use instead
```python
if "RANK" in os.environ:
    dist.init_process_group("nccl")
distributed = dist.is_initialized()
model = DDP(net) if distributed else net
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.loading import Text
from ddpdoctor.lint.engine.interpreter.objects.members import is_module
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, NONE, Lib, Ref, Tensor, Value
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.sharding import SAMPLER, Pass, loops, made, passes, shards
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP115", name="lone-copies", confidence="likely")

# What joins the group, and calls of helpers that are not there to be read and may.
_JOINS = re.compile(
    r"init_process_group|init_device_mesh|Accelerator\(|Fabric\(|deepspeed|horovod"
    r"|\b(init|setup|join|launch)\w*(dist|ddp|process|rank)|\b(dist|ddp)\w*(init|setup|join)"
)


def check(run: Run) -> Iterator[Hit]:
    """Yield the question whose answer is always no, and training that nobody shares."""
    if not run.is_entry:
        return
    yield from _not_shared(run)
    yield from _not_kept(run)
    if any(True for _ in events(run.root, "init", "spawn")):
        return
    asked = next((event for event, _ in events(run.root, "ask")), None)
    if asked is None or not any(True for _ in events(run.root, "wrap")):
        return
    if asked.path != run.path and not any(True for _ in events(run.root, "backward")):
        return  # one process, which uses what a script that trains does
    if _may_join_itself(run, asked):
        return
    if not _may_join(run):
        yield Hit(
            asked.node,
            "nothing in this script joins a process group: this is always False",
            notes=("a launcher starts the processes, but does not join them",),
            help="init_process_group() first, where the launcher has set RANK",
            path=asked.path,
        )


def _may_join(run: Run) -> bool:
    """Whether anything in the files that are seen may join a group."""
    sources = (run.source(path) for path in run.vm.files)
    return any(_JOINS.search(each.source.text) for each in sources if each is not None)


def _not_kept(run: Run) -> Iterator[Hit]:
    """What the first rank alone saves of what each has trained, where nobody joins the others."""
    if run.spent or any(True for _ in events(run.root, *_TOGETHER)):
        return
    if _may_join(run) or not _is_launched(run):
        return
    steps = list(_steps(run))
    trained = [
        event
        for event, way in events(run.root, "backward")
        if doers(way).mask == EVERYONE and _is_plain(run, event.values["loss"]) and steps
    ]
    for event, way in events(run.root, "save") if trained else ():
        if doers(way).mask == 1:
            yield Hit(
                event.node,
                "the first rank alone saves this, but no rank has joined the others: each has "
                "trained a model of its own",
                notes=(Related.at(trained[0].place, "every rank trains"),),
                help="init_process_group() and DistributedDataParallel(model), before all steps",
                path=event.path,
            )
            return


def _is_launched(run: Run) -> bool:
    """Whether it fails where no launcher has said which rank it is."""
    asked = (e for e, _ in events(run.root, "getenv") if e.name == "os.environ")
    return any(event.values["name"].is_const("RANK", "LOCAL_RANK") for event in asked)


_TOGETHER = ("init", "spawn", "collective", "wrap", "prepare", "group", "ask")


def _may_join_itself(run: Run, asked: Event) -> bool:
    """Whether a library that is not known is called where it is asked: it may join then."""
    loader = run.vm.program.loader
    file = loader.text(asked.path)
    asking = (
        each
        for each in (file.nodes if file is not None else ())
        if isinstance(each, ast.If) and any(inner is asked.node for inner in ast.walk(each.test))
    )
    names = {name for each in asking for name in _called(file, each)}
    return any(
        not run.vm.is_known(Lib(name)) and loader.find(asked.path, name) is None for name in names
    )


def _called(file: Text, node: ast.AST, depth: int = 3) -> Iterator[str]:
    """What is called here of other modules, and in functions of this one that are called."""
    for each in ast.walk(node):
        if not isinstance(each, ast.Call):
            continue
        if name := file.dotted(each.func):
            yield name
        own = file.bindings.get(each.func.id, ()) if isinstance(each.func, ast.Name) else ()
        for function in own if depth else ():
            if isinstance(function, ast.FunctionDef):
                yield from _called(file, function, depth - 1)


def _not_shared(run: Run) -> Iterator[Hit]:
    """Training on a part of the data of a model that is this rank's alone."""
    joins = [event for event, _ in events(run.root, "init")]
    if not joins or run.spent or any(True for _ in events(run.root, "wrap", "prepare", "group")):
        return
    if any(event.name not in _ONLY_WAITS for event, _ in events(run.root, "collective")):
        return
    samplers, sharded = made(run, SAMPLER), shards(run)
    for event, way in events(run.root, "backward"):
        around = loops(way)
        one = next((each for each in passes(run) if _is_of(each, around)), None)
        own = min(one.loaders & sharded.keys(), default=None) if one is not None else None
        if own is None or not _is_plain(run, event.values["loss"]):
            continue
        if not any(any(each is around[-1] for each in loops(to)) for to in _steps(run)):
            continue
        yield Hit(
            event.node,
            "nobody shares these gradients: each rank trains a model of its own, on its part",
            notes=(
                Related.at(samplers[sharded[own]].place, "each rank is given its part"),
                Related.at(joins[0].place, "the ranks are joined"),
            ),
            help="model = DistributedDataParallel(model), before the first step",
            path=event.path,
        )
        return


_ONLY_WAITS = ("barrier", "monitored_barrier")


def _steps(run: Run) -> Iterator[Way]:
    """Steps of torch's own optimizers, which nobody unknown was given."""
    for event, way in events(run.root, "step"):
        own = run.vm.object(event.values.get("object", NONE))
        is_torchs = own is not None and own.type.startswith("torch.optim.")
        if own is not None and is_torchs and own.number not in run.vm.handed:
            yield way


def _is_of(one: Pass, around: list[Loop]) -> bool:
    """Whether a pass over a loader is the loop that all this is done in."""
    begun = one.way[-1].rest[:1]
    return bool(around) and bool(begun) and begun[0] is around[-1]


def _is_plain(run: Run, loss: Value) -> bool:
    """Whether a loss is that of modules that are known, and that nobody unknown was given."""
    of = loss.what.of if isinstance(loss.what, Tensor) else frozenset()
    modules = [Value(Ref(each)) for each in of]
    return bool(of) and not of & run.vm.handed and all(is_module(run.vm, each) for each in modules)
