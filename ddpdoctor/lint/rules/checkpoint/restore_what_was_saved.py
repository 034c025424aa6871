"""Saved and not restored.

## What it does
Finds a resume that restores the optimizer from a checkpoint and leaves out other states that the
same file saves into it: the scheduler, the scaler, the average, the epoch, random generators; one
that restores an optimizer whose scheduler begins again; and one that restores something and makes
it anew afterwards.

## Why is this bad?
The training goes on, but it is not the one that was stopped: the rate starts over, the average is
that of random weights, the epochs come again. The curve has a kink, and nothing says why.

## Example
```python
torch.save({"model": net.state_dict(), "optimizer": opt.state_dict(), "epoch": epoch}, path)
...
state = torch.load(path)
net.load_state_dict(state["model"])
opt.load_state_dict(state["optimizer"])
```

## Use instead
```python
state = torch.load(path)
net.load_state_dict(state["model"])
opt.load_state_dict(state["optimizer"])
first_epoch = state["epoch"] + 1
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from ddpdoctor.lint.engine.interpreter.objects import containers, members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Event,
    Loop,
    Step,
    Way,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    Const,
    Ref,
    Term,
    Tuple,
    Value,
    What,
    has_identity,
    within,
)
from ddpdoctor.lint.engine.queries.doing import is_distributed
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.races import on_any_way
from ddpdoctor.lint.engine.queries.states import (
    Saved,
    file_events,
    is_of,
    is_state,
    keys_read,
    saved,
)
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP509", name="incomplete-resume", confidence="likely")

_OPTIMIZER = re.compile(r"optim|^opt$", re.I)
_STATE = re.compile(
    r"sched|scaler|(^|_)ema(_|$)|rng|generators?$|sampler|^(last_|start_)?epoch$|^(global_)?step$",
    re.I,
)


def check(run: Run) -> Iterator[Hit]:
    """Yield loads that bring back the optimizer and not what was saved with it."""
    if run.is_entry and not is_distributed(run):
        return
    yield from _thrown_away(run)
    yield from _begun_again(run)
    yield from _counted_anew(run)
    if not file_events(run, "save", "load"):
        return
    mine, before = saved(run), [each for other in run.earlier for each in saved(other)]
    told: set[int] = set()
    for load, _ in file_events(run, "load"):
        yield from _incomplete(run, load, [*mine, *before], told)
        yield from _with_a_new_optimizer(run, load, mine)
    for other in run.earlier:
        for load, _ in file_events(other, "load"):
            yield from _incomplete(other, load, mine, told)


def _incomplete(run: Run, load: Event, saves: list[Saved], told: set[int]) -> Iterator[Hit]:
    read = keys_read(run, load)
    if id(load.node) in told or not any(_OPTIMIZER.search(key) for key in read):
        return  # weights alone: a fine-tuning, a prediction
    by_others = (keys_read(run, each) for each, _ in file_events(run, "load") if each is not load)
    restored = read.union(*by_others)
    for save, kept in saves:
        lost = sorted(key for key in kept.keys() - restored if _is_state(key, kept[key]))
        lost = [key for key in lost if not _is_handed_over(run, key, load, saves)]
        whose = {_whose(run, kept[key]) for key in restored & kept.keys()} - {NOTHING}
        lost = [key for key in lost if _whose(run, kept[key]) not in whose]
        if read <= kept.keys() and lost and _has_the_optimizer(read, kept):
            told.add(id(load.node))
            named = ", ".join(f"`{key}`" for key in lost)
            yield Hit(
                load.node,
                f"the optimizer is restored from this file, but not {named}",
                notes=(Related.at(save.place, "it is saved"),),
                help="restore all that decides how the training goes on",
                path=load.path,
            )
            return


def _with_a_new_optimizer(run: Run, load: Event, saves: list[Saved]) -> Iterator[Hit]:
    """A load of weights from which the epochs go on, and the optimizer begins anew."""
    read = keys_read(run, load)
    restored = read.union(*(keys_read(run, each) for each, _ in file_events(run, "load")))
    if any(map(_OPTIMIZER.search, restored)) or not _goes_on_from(run, load):
        return
    for save, kept in saves:
        lost = sorted(key for key in kept if _OPTIMIZER.search(key) and key != "opt")
        if lost and read <= kept.keys() and any(is_state(kept[key]) for key in read):
            named = ", ".join(f"`{key}`" for key in lost)
            yield Hit(
                load.node,
                f"the epochs go on from this file with its weights, but without {named}",
                notes=(Related.at(save.place, "it is saved"),),
                help="restore all that decides how the training goes on",
                path=load.path,
            )
            return


def _goes_on_from(run: Run, load: Event) -> bool:
    """Whether what trains counts on from what was loaded."""
    counts = (
        loop.count.what
        for loop, _ in walk(run.root)
        if isinstance(loop, Loop) and any(True for _ in events(loop.body, "backward"))
    )
    return any(
        is_of(each.what, load)
        for count in counts
        if isinstance(count, Term) and count.op == "range" and len(count.args) > 1
        for each in on_any_way(run, Value(count.args[0]))
    )


def _whose(run: Run, state: Value) -> What:
    """The module whose state it is, whether it was asked of its wrapper or of itself."""
    what = state.what
    owner = members.owner_of(what, "state_dict") or NOTHING
    if isinstance(what, Term) and what.op == "state":
        owner = what.args[0]
    inside = {
        event.values["wrapper"].what: event.values["module"].what
        for event, _ in events(run.root, "wrap")
    }
    return inside.get(owner, owner)


def _has_the_optimizer(read: set[str], kept: dict[str, Value]) -> bool:
    """Whether one of these is the optimizer: beside it, `opt` is what the job was told."""
    mine = {key for key in kept if _OPTIMIZER.search(key)}
    return bool(read & (mine - {"opt"} or mine))


def _is_handed_over(run: Run, key: str, load: Event, saves: list[Saved]) -> bool:
    """Whether something is set behind the load to what was saved before: it never left memory."""
    before: set[What] = set()
    saved = {id(save): kept[key].what for save, kept in saves if key in kept}
    loaded = False
    for event, _ in events(run.root, "save", "load", "set_attribute"):
        loaded = loaded or event is load
        if id(event) in saved and not loaded and has_identity(saved[id(event)]):
            before.add(saved[id(event)])
        elif loaded and event.kind == "set_attribute" and event.values["value"].what in before:
            return True
    return False


def _begun_again(run: Run) -> Iterator[Hit]:
    """An optimizer that is restored and trains on, of which the scheduler counts from nothing."""
    done = [each for each, _ in events(run.root)]
    restored = [each for each in done if each.kind == "load_state"]
    if not all(isinstance(each.values.get("object", NONE).what, Ref) for each in restored):
        return  # it may be the scheduler
    told: set[int] = set()
    for number, event in enumerate(done):
        optimizer, state = event.values.get("object", NONE).what, event.values.get("state", NONE)
        if event.kind != "load_state" or id(event.node) in told or not _is_loaded(state):
            continue
        news = [each for each in done if each.kind == "new"]
        made = [each for each in news if each.values.get("optimizer", NONE).what == optimizer]
        following = done[number + 1 :]
        if made and all(_begins(run, each, done, following, optimizer) for each in made):
            told.add(id(event.node))
            yield Hit(
                event.node,
                "the optimizer is restored, and its scheduler counts from the beginning again",
                notes=(Related.at(made[0].place, "the scheduler is made"),),
                help="save the scheduler's state as well, and restore it",
                path=event.path,
            )


def _counted_anew(run: Run) -> Iterator[Hit]:
    """Epochs that go on from where a file had come to, by a scheduler that begins with the first.

    Where its optimizer is restored, `_begun_again` tells it.
    """
    told: set[What] = set()
    done = list(events(run.root))
    for event, way in events(run.root, "schedule"):
        scheduler = event.values.get("object", NONE).what
        around = (step.node for step in way if isinstance(step.node, Loop))
        loop = next((each for each in around if _goes_on(run, each)), None)
        is_first = scheduler not in told
        told.add(scheduler)  # what has counted before may have counted up to where it was
        if loop is None or not is_first:
            continue
        made = [each for each, _ in done if each.kind == "new" and _is_of(each, "new", scheduler)]
        of = {each.values.get("optimizer", NONE).what for each in made}
        restored = any(
            _is_of(each, "load_state", one) or _is_set(each, one)
            for each, _ in done
            for one in (scheduler, *of)
        )
        if restored or event.values.get("metric", NONE) != NONE:
            continue
        begins = bool(made) and all(_counts(run, each) for each in made)
        begins = begins and not any(each in made for each, _ in events(loop.body, "new"))
        load = next((x for x, _ in done if x.kind == "load" and _is_from(run, loop, x)), None)
        if begins and load is not None:
            yield Hit(
                load.node,
                "the epochs go on from this file, and the scheduler counts from the first again",
                notes=(Related.at(made[0].place, "the scheduler is made"),),
                help="save the states of the optimizer and of the scheduler, and restore them",
                path=load.path,
            )


def _goes_on(run: Run, loop: Loop) -> bool:
    """Whether a loop begins with a number that was loaded, on one way or another."""
    return any(_is_loaded(each) for each in _first(run, loop))


def _is_from(run: Run, loop: Loop, load: Event) -> bool:
    return any(is_of(part, load) for each in _first(run, loop) for part in _terms(each))


def _terms(value: Value) -> list[Term]:
    return [each for each in within(value.what) if isinstance(each, Term)]


def _first(run: Run, loop: Loop) -> tuple[Value, ...]:
    """What the first number may be that a loop over a range of them goes through."""
    what = loop.count.what
    if not isinstance(what, Term) or what.op != "range" or len(what.args) < 2:
        return ()
    first = what.args[0]
    return run.vm.store.options(Value(first)) if isinstance(first, Const | Term) else ()


def _begins(
    run: Run, made: Event, done: list[Event], following: list[Event], optimizer: What
) -> bool:
    """Whether a scheduler counts from nothing once its optimizer is restored, and does count."""
    scheduler = made.values["object"].what
    steps = [n for n, each in enumerate(following) if _is_of(each, "step", optimizer)]
    counts = [n for n, each in enumerate(following) if _is_of(each, "schedule", scheduler)]
    if not steps or not counts or counts[0] < steps[0]:
        return False  # it may be counted up to where it was
    told = any(following[n].values.get("metric", NONE) != NONE for n in counts)
    kept = any(_is_of(each, "load_state", scheduler) or _is_set(each, scheduler) for each in done)
    return not told and not kept and _counts(run, made)


def _is_of(event: Event, kind: str, what: What) -> bool:
    """Whether this is done with it: a scaler steps an optimizer too."""
    mine = (event.values.get(role, NONE).what for role in ("object", "optimizer"))
    return event.kind == kind and what in mine


def _is_set(event: Event, what: What) -> bool:
    return event.kind == "set_attribute" and event.values["owner"].what == what


def _counts(run: Run, made: Event) -> bool:
    """Whether a scheduler begins with its first step, for all that it is given."""
    given = run.vm.store.get((made.values["object"].what, "#given"))
    if made.values["object"].what == NONE.what or given is None or "rest" in made.values:
        return False
    begun = made.values.get("begun", NONE)
    if not isinstance(given.what, Tuple) or not (begun == NONE or begun.is_const(-1)):
        return False
    keyword = run.vm.store.get((made.values["object"].what, "#last_epoch"))
    known = keyword is None or keyword.is_const(-1)
    return known and not any(_is_loaded(each) for each in given.what.items)


def _is_loaded(value: Value) -> bool:
    return any(isinstance(each, Term) and each.op == "loaded" for each in within(value.what))


def _thrown_away(run: Run) -> Iterator[Hit]:
    """What is restored, and then replaced by a new one before anything was done with it."""
    done = list(events(run.root))
    for last, (event, way) in enumerate(done):
        if event.kind != "replaced":
            continue
        mine = {each.what for each in containers.held(event.values["parts"])}
        first = next(
            (
                number
                for number, (each, _) in enumerate(done[:last])
                if each.kind == "load_state" and each.values["object"].what in mine
            ),
            last,
        )
        load, way_there = done[first]
        used = any(
            value.what in mine
            for each, _ in done[first + 1 : last]
            if each.kind not in _NO_USE
            for value in each.values.values()
        )
        replaced = _always_after(way_there, way)
        if first < last and not used and replaced is not None:
            yield Hit(
                replaced.node,
                f"`{event.name}` is made anew after it was restored: what the file held is lost",
                notes=(Related.at(load.place, "it is restored"),),
                help="make it before the checkpoint is loaded, or only where none is",
                path=replaced.path,
            )


_NO_USE = frozenset({"load_state", "bare_method", "set_attribute", "make", "replaced"})


def _always_after(first: Way, second: Way) -> Event | Called | None:
    """What leads to the second from beside the first, where nothing lies between that may part."""
    pairs = zip(first, second, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: _is_same(*pair), pairs))
    mine, other = first[shared:], second[shared:]
    if not mine or not other or mine[0].seq is not other[0].seq:
        return None
    inside = [*takewhile(lambda step: not isinstance(step.node, Called), mine)]
    ends = any(leaves(step.seq) for step in mine[1 : len(inside) + 1])
    node = other[0].node
    known = all(isinstance(step.node, Event | Called) for step in other)
    return node if known and not ends and isinstance(node, Event | Called) else None


def _is_same(one: Step, other: Step) -> bool:
    return one.seq is other.seq and one.index == other.index


def _is_state(key: str, value: Value) -> bool:
    return is_state(value) or _STATE.search(key) is not None
