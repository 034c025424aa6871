"""Model whose size is this rank's own.

## What it does
Finds layers of a wrapped model whose sizes come of what this rank alone has read (the words of its
part of the data, its highest label, its longest sequence), of its number or of a draw that nobody
has seeded, parts that some ranks alone have, and parameters that some alone freeze or unfreeze
before they wrap the model.

## Why is this bad?
DDP wants the same parameters on every rank. Where the sizes differ it raises on every rank but the
first, or gloo ends the process in the first backward.

## Example
```python
net = DDP(nn.Embedding(len(words_of(my_part)), 64))
```

## Use instead
```python
size = torch.tensor(len(words_of(my_part)))
dist.all_reduce(size, dist.ReduceOp.MAX)
net = DDP(nn.Embedding(int(size), 64))
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ddpdoctor.lint.engine.interpreter.objects import members
from ddpdoctor.lint.engine.interpreter.objects.indexing import OWN_PART
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    OPEN,
    Const,
    Ref,
    Table,
    Tensor,
    Term,
    Value,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import OF_ALL_ELEMENTS
from ddpdoctor.lint.engine.queries.doing import between
from ddpdoctor.lint.engine.queries.forwards import learns
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.wrapping import is_frozen, is_plain, parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP310", name="different-models", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield wraps of models that are not alike on all ranks."""
    yield from _trained_by_some(run)
    yield from _had_by_some(run)
    yield from _of_own_sizes(run)


def _trained_by_some(run: Run) -> Iterator[Hit]:
    """The conditions by which some ranks alone say what is trained in a model."""
    changes = [
        (event, way)
        for event, way in events(run.root, "unfreeze", "set_attribute")
        if event.kind == "unfreeze" or event.name == "requires_grad"
    ]
    told: set[int] = set()
    for wrap, at in events(run.root, "wrap") if changes else ():
        if not wrap.values.get("kw_process_group", NONE).is_const(None):
            continue
        inside = parts(run, wrap.values["module"].what)
        for event, way in changes:
            module = _changed(event)
            choice = _of_some(way, at, partial(_is_of_kind, event.kind))
            if choice is None or module is None or module.number not in inside:
                continue
            if not is_after(way, at) or id(choice.node) in told:
                continue
            if any(_is_set(run, module, each) for each in between(way, at)):
                continue
            told.add(id(choice.node))
            yield Hit(
                choice.test,
                "some ranks alone change which parameters are trained, before DDP wraps them",
                notes=(Related.at(event.place, "there"), Related.at(wrap.place, "it wraps")),
                why=choice.condition.why,
                help="change them on every rank",
                path=choice.path,
            )


def _is_of_kind(kind: str, event: Event) -> bool:
    return event.kind == kind


def _changed(event: Event) -> Ref | None:
    """The module in which something is said to be trained, or not."""
    changed = (event.values.get("owner") or event.values["object"]).what
    return changed if isinstance(changed, Ref) else members.module_of(changed)


def _is_set(run: Run, module: Ref, event: Event) -> bool:
    """Whether it says of all of a module, and alike on all ranks, what is trained in it."""
    if event.kind != "unfreeze" and event.name != "requires_grad":
        return False
    whole = _changed(event)
    if whole is None or module.number not in parts(run, whole):
        return False
    return not any(each.agree.divergent for each in event.values.values())


def _had_by_some(run: Run) -> Iterator[Hit]:
    """The conditions by which the rank alone decides whether a model has a part that learns."""
    made = [
        (event, way)
        for event, way in events(run.root, "set_attribute")
        if _learns(run, event) and any(isinstance(step.node, Choice) for step in way)
    ]
    told: set[int] = set()
    for wrap, at in events(run.root, "wrap") if made else ():
        if not wrap.values.get("kw_process_group", NONE).is_const(None):
            continue
        inside = parts(run, wrap.values["module"].what)
        for event, way in made:
            owner = event.values["owner"].what
            if not isinstance(owner, Ref) or owner.number not in inside or not is_after(way, at):
                continue
            choice = _of_some(way, at, partial(_makes, run, event.name))
            if choice is None or id(choice.node) in told:
                continue
            if choice.condition.agree.kind == "rank" and choice.condition.agree.sure:
                told.add(id(choice.node))
                yield Hit(
                    choice.test,
                    f"some ranks alone have `{event.name}` in the model that DDP wraps",
                    notes=(Related.at(event.place, "there"), Related.at(wrap.place, "it wraps")),
                    why=choice.condition.why,
                    help="build the same model on every rank",
                    path=choice.path,
                )


def _makes(run: Run, name: str, event: Event) -> bool:
    """Whether a module is given a part of this name that learns."""
    return event.kind == "set_attribute" and event.name == name and _learns(run, event)


def _learns(run: Run, event: Event) -> bool:
    value = event.values["value"]
    is_learning = bool(learns(run, value.what)) and not is_frozen(run, value.what)
    return is_learning and not is_plain(run, value)


def _of_some(way: Way, wrap: Way, does: Callable[[Event], bool]) -> Choice | None:
    """The innermost condition on a way that ranks answer differently, one arm of which does it."""
    shared = {id(step.node) for step in wrap}
    for step in reversed(way):
        choice = step.node
        if not isinstance(choice, Choice) or id(choice) in shared:
            continue
        doing = [any(does(each) for each, _ in events(arm.body)) for arm in choice.arms]
        by_files = choice.condition.agree.cause == "disk"  # as a rule all find the same
        if choice.condition.agree.divergent and not all(doing) and not by_files:
            return choice
    return None


def _of_own_sizes(run: Run) -> Iterator[Hit]:
    """The wraps of models whose layers are of another size on each rank."""
    layers = {
        event.values["object"].what: (event, size)
        for event, _ in events(run.root, "new")
        if (size := _own_size(run, event)) is not None
    }
    for wrap, _ in events(run.root, "wrap") if layers else ():
        if not wrap.values.get("kw_process_group", NONE).is_const(None):
            continue  # of one group: others may have another model
        inside = parts(run, wrap.values["module"].what)
        found = next((layers[Ref(each)] for each in sorted(inside) if Ref(each) in layers), None)
        if found is not None:
            layer, size = found
            yield Hit(
                wrap.node,
                "ranks wrap models of different size: what is each rank's own decides it",
                notes=(Related.at(layer.place, f"{layer.name}() is made as large"),),
                why=size.why,
                help="agree on the size first (all_reduce the largest), then build",
                path=wrap.path,
            )


def _own_size(run: Run, event: Event) -> Value | None:
    """The argument of a layer by which it has another size on each rank."""
    for name, value in event.values.items():
        is_size = name.startswith("#")
        if is_size and isinstance(value.what, Table) and value.agree.sure:
            return value if len({*value.what.entries} - {OPEN}) > 1 else None
        if is_size and value.agree.cause == "chance" and value.agree.sure:
            return value
        is_own = value.agree.cause in ("data", "shard") or _is_counted_by_rank(value)
        if is_size and is_own and not _is_alike(run, value.what):
            return value if _is_shown(value) else None
    return None


def _is_counted_by_rank(value: Value) -> bool:
    """Whether it is reckoned of how many things a rank has, of which its number decides which.

    What is reckoned of the number alone may come to the same: `(rank + 1) * part - rank * part`.
    """
    inside = [*within(value.what)]
    has = any(isinstance(e, Term) and e.op == "len" and isinstance(e.args[0], Ref) for e in inside)
    return value.agree.kind == "rank" and has and not any(isinstance(e, Table) for e in inside)


def _is_alike(run: Run, what: object, seen: frozenset[Tensor] = frozenset()) -> bool:
    """Whether it is the size of one element, or a dimension in which all elements are alike."""
    if isinstance(what, Tensor):
        if what in seen:
            return False  # a loop computes it of itself, round after round
        seen |= {what}
        made = run.vm.made.get(what)
        by, of = (made.by, [each.what for each in made.of]) if made is not None else ("", [])
    elif isinstance(what, Term):
        by, of = what.op, [*what.args]
        if by in ("lib", "call"):
            by, of = str(of[0]).rpartition(".")[2], of[1:]
    else:
        return False
    if by == "element" or (by == "of" and isinstance(of[0], Tensor)):
        return True
    if by == "item" and len(of) == 2:
        whole, index = of
        if isinstance(whole, Term) and whole.op == "of" and whole.args[1] == "shape":
            return index != Const(0) or _is_alike(run, whole.args[0], seen)
        if _is_number(index):
            return not (isinstance(whole, Term) and whole.op == "sorted")
    return by not in OF_ALL_ELEMENTS and any(_is_alike(run, each, seen) for each in of)


def _is_number(index: object) -> bool:
    """Whether one element is picked by its place: a key says what all of them have."""
    if isinstance(index, Const):
        return not isinstance(index.value, str)
    return isinstance(index, Term) and index.op == "counter"


def _is_shown(value: Value) -> bool:
    """Whether the rank is seen to take its part of what decides."""
    chain = value.why.chain() if value.why is not None else ()
    return value.agree.sure or any(each.text == OWN_PART for each in chain)
