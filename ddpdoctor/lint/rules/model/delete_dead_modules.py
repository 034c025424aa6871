"""Modules that are registered and never used.

## What it does
Finds submodules with parameters that a class makes in `__init__` and that nothing ever reads
again, and forwards that use other parts in one step than in the next, of a model in DDP.

## Why is this bad?
Their parameters never get a gradient. DDP waits for them, and the second forward raises "Expected
to have finished reduction in the prior iteration"; `find_unused_parameters=True` only hides them.

## Example
```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)  # never called

    def forward(self, x):
        return self.body(x)
```

## Use instead
```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter import objects
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Loop, events
from ddpdoctor.lint.engine.interpreter.values import FALSE, Ref, Term, Value
from ddpdoctor.lint.engine.queries.forwards import (
    decided_by,
    depends,
    forward_of,
    learns,
    surely_used,
)
from ddpdoctor.lint.engine.queries.reading import reads, reads_all
from ddpdoctor.lint.engine.queries.wrapping import decided_from, parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP301", name="unused-parameters", confidence="likely")


_SEARCHES = ("find_unused_parameters", "static_graph")
_CHANGES = ("counter", "element", "joined", "drawn", "either")
_SETTINGS = ("option", "parameter", "field", "env", "of")


def check(run: Run) -> Iterator[Hit]:
    """Yield parts of wrapped modules that nobody asks for, or not in every step."""
    told: dict[int, Hit] = {}
    for hit in (*_dead(run), *_switched(run)):
        told.setdefault(id(hit.node), hit)
    yield from told.values()


def _dead(run: Run) -> Iterator[Hit]:
    inside: set[int] = set()
    for wrap, _ in events(run.root, "wrap"):
        inside |= parts(run, wrap.values["module"].what)
    told: set[int] = set()
    for event, _ in events(run.root, "set_attribute") if inside else ():
        owner, value = event.values["owner"], event.values["value"]
        if not isinstance(owner.what, Ref) or owner.what.number not in inside:
            continue
        if id(event.node) in told or not _is_whole(run, owner) or reads(run, event.name):
            continue
        if _is_made_here(run, event) and learns(run, value.what) and not _is_frozen(run, value):
            told.add(id(event.node))
            yield Hit(
                event.node,
                f"`self.{event.name}` is registered, never used: its parameters get no gradient",
                notes=("DDP raises at the second forward, or find_unused_parameters hides it",),
                help="delete it, or use it in forward",
                path=event.path,
            )


def _switched(run: Run) -> Iterator[Hit]:
    """Wraps that do not search, of modules that use other parts in one step than in the next."""
    for wrap, _ in events(run.root, "wrap"):
        promises = [wrap.values.get(f"kw_{word}") for word in _SEARCHES]
        if any(each is not None and not each.is_const(False) for each in promises):
            continue
        wrapper = wrap.values["wrapper"].what
        forward = forward_of(run, wrap.values["module"])
        by_argument = {
            place
            for condition, place, _ in (decided_by(run, forward.seq) if forward else ())
            if forward is not None and depends(run, condition, forward)
        }
        for event, way in events(run.root, "forward"):
            if event.values["model"].what != wrapper or "no_grad" in event.scopes:
                continue
            loops = [step.node for step in way if isinstance(step.node, Loop)]
            inner = way[-1].rest[0] if way[-1].rest else None
            if not isinstance(inner, Called) or not any(_learns(each) for each in loops):
                continue
            for condition, place, _ in decided_by(run, inner.body, surely_used(run, inner.body)):
                is_given = place in by_argument or condition.agree.kind == "local"
                if is_given and _changes(run, condition):
                    yield Hit(
                        wrap.node,
                        "some steps leave a part of this model out: its parameters get no gradient",
                        notes=(Related.at(place, "this decides it in the forward"),),
                        help="find_unused_parameters=True, or use every part in every step",
                        path=wrap.path,
                    )
                    break


def _learns(loop: Loop) -> bool:
    return any(True for _ in events(loop.body, "backward"))


def _changes(run: Run, condition: Value) -> bool:
    """Whether a condition, or an index, differs from one step to the next."""
    if condition.agree.divergent:
        return condition.agree.sure
    found = decided_from(run, condition)
    if any(isinstance(each, Term) and each.op in _SETTINGS for each in found):
        return False
    return any(isinstance(each, Term) and each.op in _CHANGES for each in found)


def _is_whole(run: Run, owner: Value) -> bool:
    """Whether it is a module with a forward, all of whose code is seen and names what it uses."""
    made = run.vm.object(owner)
    if made is None or made.cls < 0 or objects.library_base(run.vm, made.cls) != "torch.nn.Module":
        return False
    if objects.class_attribute(run.vm, made.cls, "forward") is None:
        return False
    return not any(reads_all(run, each) for each in objects.bases(run.vm, made.cls))


def _is_made_here(run: Run, event: Event) -> bool:
    return event.function.endswith(".__init__")


def _is_frozen(run: Run, value: Value) -> bool:
    return run.vm.store.get((value.what, "#requires_grad")) == FALSE
