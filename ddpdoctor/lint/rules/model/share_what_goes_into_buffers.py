"""Buffer that each rank fills with its own.

## What it does
Finds buffers of a wrapped model that its forward changes by what it computes of this rank's own
batch, and that the output is computed from: a queue of keys, a codebook, a centre. And those into
whose rows the rank's own samples are put between two forwards.

## Why is this bad?
DDP sends the buffers of rank 0 to all ranks before each forward. What the others have put into
theirs is lost, and the model learns from what rank 0 alone has seen.

## Example
```python
self.queue[at : at + len(keys)] = keys
```

## Use instead
```python
keys = concat_all_gather(keys)
self.queue[at : at + len(keys)] = keys
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import containers, members, memory
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Exit, Seq, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    Const,
    Ref,
    Tensor,
    Term,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers, is_the_starters
from ddpdoctor.lint.engine.queries.sharding import loops, numbers
from ddpdoctor.lint.engine.queries.wrapping import attributes, origins, parts, wrappers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP321", name="buffer-overwritten", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield what forwards of wrappers put into buffers, and do not share."""
    if not run.vm.buffers:
        return
    told: set[int] = set()
    for forward, way in events(run.root, "forward"):
        kept = run.vm.store.get((forward.values["model"].what, "#broadcast_buffers"))
        inner = way[-1].rest[0] if way[-1].rest else None
        if "no_grad" in forward.scopes or (kept is not None and kept.is_const(False)):
            continue
        if is_the_starters(way):
            continue  # who goes on alone where ranks could be started has nobody to share with
        filled = _filled(run, inner.body) if isinstance(inner, Called) else []
        for event in (*filled, *_put_between(run, forward, way)):
            if id(event.node) not in told:
                told.add(id(event.node))
                yield Hit(
                    event.node,
                    "each rank fills this buffer with its own: DDP overwrites it with rank 0's",
                    notes=(Related.at(forward.place, "the next forward sends it to all ranks"),),
                    why=event.values["by"].why,
                    help="gather or reduce what goes into it, or DDP(..., broadcast_buffers=False)",
                    path=event.path,
                )


def _filled(run: Run, forward: Seq) -> list[Event]:
    """The changes of buffers by the rank's own data, of those that a forward goes by."""
    changes = [event for event, _ in events(forward, "buffer")]
    used = {
        each.what
        for node, _ in walk(forward)
        if isinstance(node, Exit) and node.kind == "return" and node.value is not None
        for each in origins(run, node.value)
    }
    for event in reversed(changes):
        if event.values["buffer"].what in used:
            used |= {each.what for each in origins(run, event.values["by"])}
    found: list[Event] = []
    filled: set[What] = set()
    shared = _shared(run, forward)
    for event in changes:
        buffer, by = event.values["buffer"].what, event.values["by"]
        if buffer in used and _is_own(run, event) and event not in shared:
            follows = any(each.what in filled for each in origins(run, by, "forward"))
            found += [] if follows else [event]
            filled.add(buffer)
    return found


def _put_between(run: Run, forward: Event, way: Way) -> Iterator[Event]:
    """Rows of the rank's own in a wrapper's buffers, put there in the round of a forward."""
    wrap = wrappers(run).get(forward.values["model"].what)
    around = loops(way)
    if wrap is None or not around or doers(way).mask != EVERYONE:
        return
    held = attributes(run)
    own = {
        value.what
        for number in parts(run, wrap.values["module"].what)
        for value in held.get(Ref(number), {}).values()
    }
    inside = way[-1].rest[0] if way[-1].rest else None
    shared = _shared(run, around[-1].body)
    rows: What | None = None
    for event, there in events(around[-1].body, "set_item", "buffer"):
        if event.kind == "set_item":
            rows = (
                None if isinstance(event.values["key"].what, Const) else event.values["owner"].what
            )
        elif event.values["buffer"].what == rows and rows in own and _is_own(run, event):
            is_in_forward = any(step.node is inside for step in there)
            if not is_in_forward and event not in shared and doers(there).mask == EVERYONE:
                yield event
                return  # the others of this round follow from it


def _shared(run: Run, forward: Seq) -> set[Event]:
    """The changes after which ranks share what then is in the buffer."""
    shared: set[Event] = set()
    left: list[Event] = []
    for event, _ in events(forward, "buffer", "collective"):
        if event.kind == "buffer":
            left.append(event)
        elif "shares" in event.values:
            what = event.values["shares"].what
            owners = [each for part in within(what) if (each := _owner(part)) is not None]
            inside = {number for owner in owners for number in parts(run, owner)}
            shared |= {
                e
                for e in left
                if what in (e.values["buffer"].what, e.values["by"].what)
                or numbers(Value(run.vm.buffers[e.values["buffer"].what])) & inside
            }
    return shared


_ALL = ("buffers", "named_buffers", "state_dict")
"""The methods that give all buffers of a module."""


def _owner(what: object) -> Ref | None:
    """The module whose buffers these are, all of them."""
    if isinstance(what, Term) and what.op == "call" and what.args[0] in _ALL:
        return what.args[1] if isinstance(what.args[1], Ref) else None
    return members.owner_of(what, *_ALL)


def _is_own(run: Run, event: Event) -> bool:
    """Whether it is numbers of the rank's own, which are more than how large its batch is."""
    by = event.values["by"]
    is_own = isinstance(by.what, Tensor) and by.agree.cause in ("data", "shard", "chance")
    return is_own and not _is_a_size(run, by)


def _is_a_size(run: Run, value: Value) -> bool:
    """Whether all that makes it the rank's own are sizes, which are alike in full batches."""
    if isinstance(value.what, Term) and not memory.OF_SIZE.isdisjoint(within(value.what)):
        return True
    made = run.vm.made.get(value.what)
    given = made.of if made is not None else ()
    if made is not None and made.by.startswith("new_"):  # of the kind of the first
        contents = (containers.content(run.vm, each) or each for each in given[1:])
        given = tuple(one for each in contents for one in containers.held(each) or (each,))
    own = [each for each in given if each.agree.divergent]
    return bool(own) and all(_is_a_size(run, each) for each in own)
