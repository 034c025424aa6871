"""Global rank as device index.

## What it does
Finds the global rank used as a device index (`set_device`, `device_ids`, `cuda:{}`), and
`CUDA_VISIBLE_DEVICES` deleted.

## Why is this bad?
On the second node rank 8 asks for device 8 of 8: "invalid device ordinal". Deleting
`CUDA_VISIBLE_DEVICES` takes away what the scheduler had given this process.

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

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import RANKS, Many, Ref, Table, Term, Tuple, Value
from ddpdoctor.lint.engine.queries.order import is_spawned
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP106", name="devices-not-bound", confidence="likely")

_ROLES = ("device", "index", "type", "kw_device_ids", "arg0")
_DELETED = "CUDA_VISIBLE_DEVICES"


def check(run: Run) -> Iterator[Hit]:
    """Yield device indices that are right on the first node only."""
    one_node = any(_is_of_one_node(event) for event, _ in events(run.root, "init"))
    for event, way in events(run.root, "set_device", "device", "wrap", "convert"):
        given = [event.values[role] for role in _ROLES if role in event.values]
        by_rank = [value for each in given for value in _parts(run, each) if _is_global(value)]
        by_rank = [value for value in by_rank if not _is_asked_too_early(run, value)]
        by_rank = [value for value in by_rank if not _is_of_this_machine(run, value)]
        if by_rank and not one_node and not is_spawned(way):  # whose index is that on this machine
            yield Hit(
                _index(event.node),
                "the global rank is used as a device index: wrong on every node but the first",
                why=by_rank[0].why,
                help='use the local rank: int(os.environ["LOCAL_RANK"])',
                path=event.path,
            )
    for event, _ in events(run.root, "unsetenv", "getenv"):
        taken = event.kind == "unsetenv" or event.name == "os.environ.pop"
        if taken and event.values["name"].is_const(_DELETED):
            yield Hit(
                event.node,
                "CUDA_VISIBLE_DEVICES is deleted: the process sees devices that are not its own",
                help="leave the variable alone; bind the device with set_device(LOCAL_RANK)",
                path=event.path,
            )


def _is_of_one_node(init: Event) -> bool:
    """Whether the group has as many ranks as this machine has devices."""
    size = init.values.get("size")
    what = size.what if size is not None else None
    return isinstance(what, Term) and "torch.cuda.device_count" in what.args


def _parts(run: Run, value: Value) -> Iterator[Value]:
    """The value, or the elements of a list."""
    what = value.what
    inner = run.vm.store.get((what, "[]")) if isinstance(what, Ref) else None
    if inner is not None:
        yield from _parts(run, inner)
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
    """Whether it is the number that mp.spawn has given the process, wherever it was kept since."""
    what, root = value.what, value.why.root if value.why is not None else None
    if root is None or (isinstance(what, Table) and what.is_counted_on):
        return False
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
    named = (each.value for each in node.keywords if each.arg in ("device_ids", "device", "index"))
    return next(named, node.args[-1] if node.args else node)
