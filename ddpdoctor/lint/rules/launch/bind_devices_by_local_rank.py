"""Global rank as device index.

## What it does
Finds the global rank used as a device index (`set_device`, `device_ids`, `cuda:{}`), things moved
to the GPU by ranks none of which was given one of its own, and `CUDA_VISIBLE_DEVICES` deleted.

## Why is this bad?
On the second node rank 8 asks for device 8 of 8: "invalid device ordinal". Where none is bound, all
ranks are on cuda:0: "Duplicate GPU detected". Deleting `CUDA_VISIBLE_DEVICES` takes away what the
scheduler had given this process.

## Example
```python
torch.cuda.set_device(dist.get_rank())
```

## Use instead
```python
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import keyed
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import (
    FIRST_HOST,
    LOCAL_RANK,
    RANKS,
    Const,
    Either,
    Lib,
    Many,
    Partial,
    Ref,
    Table,
    Tensor,
    Term,
    Tuple,
    Value,
    is_device,
)
from ddpdoctor.lint.engine.queries.doing import is_the_starters
from ddpdoctor.lint.engine.queries.order import is_spawned
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP106", name="devices-not-bound", confidence="likely")

_ROLES = ("device", "index", "type", "kw_device_ids", "arg0", "map_location")
_DELETED = "CUDA_VISIBLE_DEVICES"


def check(run: Run) -> Iterator[Hit]:
    """Yield device indices that are right on the first node only."""
    joins = any(True for _ in events(run.root, "init"))
    for event, value, is_right in _numbered(run):
        if not is_right:
            yield Hit(
                _index(event.node),
                "the global rank is used as a device index: wrong on every node but the first",
                why=value.why,
                help='use the local rank: int(os.environ["LOCAL_RANK"])',
                stands=run.is_entry and joins,
                path=event.path,
            )
    yield from _on_one_device(run)
    for event, _ in events(run.root, "unsetenv", "getenv"):
        taken = event.kind == "unsetenv" or event.name == "os.environ.pop"
        if taken and event.values["name"].is_const(_DELETED):
            yield Hit(
                event.node,
                "CUDA_VISIBLE_DEVICES is deleted: the process sees devices that are not its own",
                help="leave the variable alone; bind the device with set_device(LOCAL_RANK)",
                path=event.path,
            )


def clears(run: Run) -> Iterator[tuple[ast.AST, str]]:
    """The indices of a program whose ranks are all of one machine, and those that it may reach."""
    for event, _, is_right in _numbered(run):
        if is_right:
            yield _index(event.node), event.path
    for path in run.vm.files if run.is_entry and run.vm.there == FIRST_HOST else ():
        source = run.source(path)
        calls = source.nodes if source is not None else ()
        yield from ((_index(each), path) for each in calls if _names_a_device(each))


def _names_a_device(node: ast.AST) -> bool:
    """Whether it is written as what takes a device is, of whatever."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return name in ("device", "set_device") or any(each.arg in _NAMES for each in node.keywords)


def _numbered(run: Run) -> Iterator[tuple[Event, Value, bool]]:
    """Devices taken by the number among all ranks; whether that is the one on the machine, too."""
    one_node = any(_is_of_one_node(event) for event, _ in events(run.root, "init"))
    for event, way in events(run.root, "set_device", "device", "wrap", "convert", "load"):
        given = [event.values[role] for role in _ROLES if role in event.values]
        by_rank = [value for each in given for value in _parts(run, each) if _is_global(value)]
        by_rank = [value for value in by_rank if not _is_asked_too_early(run, value)]
        others = [value for value in by_rank if not _is_of_this_machine(run, value)]
        if by_rank:  # who is spawned has for its index that on this machine
            is_right = not others or one_node or is_spawned(way)
            yield event, (others or by_rank)[0], is_right


def _on_one_device(run: Run) -> Iterator[Hit]:
    """The first thing that is moved to the GPU, where no rank is told of one of its own."""
    joins = [each for each, way in events(run.root, "init") if not is_the_starters(way)]
    if run.spent or not run.is_entry or not joins or not all(map(_is_on_gpus, joins)):
        return
    if any(True for _ in events(run.root, "set_device")) or _is_told_which(run):
        return
    for event, way in events(run.root, "convert", "put"):
        device = event.values.get("arg0")
        bare = event.name == "cuda" if device is None else _is_bare(device)
        if bare and not is_the_starters(way):
            yield Hit(
                event.node,
                "every rank takes cuda:0: no rank was given a GPU of its own",
                help='first of all torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
                path=event.path,
            )
            return


def _is_on_gpus(init: Event) -> bool:
    """Whether torch's own group is joined, for GPUs, with no word of a device."""
    backend = init.values.get("backend")
    is_nccl = backend is not None and backend.is_const("nccl")
    return init.name == "init_process_group" and is_nccl and "kw_device_id" not in init.values


def _is_told_which(run: Run) -> bool:
    """Whether a GPU is named anywhere, or a scheduler or a variable says which a process sees."""
    for event, _ in events(run.root, "convert", "put", "device", "wrap"):
        given = [event.values[role] for role in _ROLES if role in event.values]
        if any(not _is_bare(part) for each in given for part in _parts(run, each)):
            return True
    asked = (event.values["name"] for event, _ in events(run.root, "setenv", "getenv"))
    return any(
        not isinstance(each.constant, str) or each.constant.startswith(("CUDA_VISIBLE", "SLURM"))
        for each in asked
    )


def _is_bare(device: Value) -> bool:
    """Whether it is a kind of devices or of numbers, or where a tensor is: none by its index."""
    options = device.what.options if isinstance(device.what, Either) else (device,)
    if len(options) > 1:
        return all(map(_is_bare, options))
    what = device.what
    if isinstance(what, Partial):
        return isinstance(what.callee.what, Tensor)
    if is_device(what):
        return len(what.args) > 1 and isinstance(what.args[1], Const) and _is_a_kind(what.args[1])
    return isinstance(what, Lib) or (isinstance(what, Const) and _is_a_kind(what))


def _is_a_kind(given: Const) -> bool:
    return given.value in ("cuda", "cpu", None)


def _is_of_one_node(init: Event) -> bool:
    """Whether it has as many ranks as this machine has devices, or is joined by the local rank."""
    size, rank = init.values.get("size"), init.values.get("rank")
    what = size.what if size is not None else None
    if rank is not None and rank.what == LOCAL_RANK:
        return True  # two ranks of one number cannot join
    return isinstance(what, Term) and "torch.cuda.device_count" in what.args


def _parts(run: Run, value: Value) -> Iterator[Value]:
    """The value, or the elements of a list."""
    what = value.what
    inner = run.vm.store.get((what, "[]")) if isinstance(what, Ref) else None
    if inner is not None:
        yield from _parts(run, inner)
    elif isinstance(what, Ref) and run.vm.type_of(value) == "dict":
        for _, to in keyed.entries(run.vm, value):  # where what was on which device goes
            yield from _parts(run, to)
    elif isinstance(what, Tuple):
        yield from what.items
    elif isinstance(what, Many):
        yield what.element
    else:
        yield value


def _is_global(value: Value) -> bool:
    """Whether each rank has its own number among all: `rank`, or `f"cuda:{rank}"`."""
    if not isinstance(value.what, Table) or not value.agree.sure:
        return False
    words = [str(each) for each in value.what.entries]
    return words in (
        [str(rank) for rank in range(RANKS)],
        [f"cuda:{rank}" for rank in range(RANKS)],
    )


def _is_of_this_machine(run: Run, value: Value) -> bool:
    """Whether it is the number that mp.spawn has given the process, wherever it was kept since.

    Or the one that its own launcher did, which may be of one machine as well.
    """
    what, root = value.what, value.why.root if value.why is not None else None
    if root is None or (isinstance(what, Table) and what.is_counted_on):
        return False
    if root in run.vm.numbered:
        return True
    spawns = (event for each in (*run.earlier, run) for event, _ in events(each.root, "spawn"))
    return any(event.place == root.place for event in spawns)


def _is_asked_too_early(run: Run, value: Value) -> bool:
    """Whether a group is asked that this program joins later: what it then goes by is no rank."""
    root = value.why.root if value.why is not None else None
    asks = joins = False
    for event, _ in events(run.root, "query", "ask", "init"):
        if event.kind == "init":
            joins = True
            if not asks:
                return False
        elif event.kind == "query" and root is not None and event.place == root.place:
            if joins:
                return False
            asks = True
        elif event.kind == "ask" and asks and not joins:
            return False  # who asks again joins where nobody has
    return asks and joins


def _index(node: ast.AST) -> ast.AST:
    """What of a call says which device."""
    if not isinstance(node, ast.Call):
        return node
    named = (each.value for each in node.keywords if each.arg in _NAMES)
    return next(named, node.args[-1] if node.args else node)


_NAMES = ("device_ids", "device", "index", "map_location")
