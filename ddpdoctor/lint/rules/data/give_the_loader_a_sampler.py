"""Training samples that every rank reads.

## What it does
Finds a `DataLoader` without a sampler whose batches are trained on with DDP, where nothing in its
data set's reading asks for the rank; a sampler that gives all ranks the same indices, as one does
that is told the same rank on all of them, or on every node, or that there is one rank, because that
was asked before there was a group; and batches that are picked by hand, the same on all ranks, be
it because what builds the model seeds all of them alike again.

## Why is this bad?
Every rank reads the whole set: N times the work for no speed-up, and where the order is shared, N
identical gradients.

## Example
```python
loader = DataLoader(data, batch_size=32, shuffle=True)
for batch in loader:
    ddp_model(batch).sum().backward()
```

## Use instead
```python
loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data))
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.iteration import PICKED
from ddpdoctor.lint.engine.interpreter.library.events import APART
from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.objects import containers, hierarchy
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Node,
    Seq,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    GENERATORS,
    LOCAL_RANK,
    NONE,
    NOTHING,
    SAME,
    WORLD,
    Const,
    Ref,
    Term,
    Tuple,
    Value,
    text,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.order import asked_too_early
from ddpdoctor.lint.engine.queries.sharding import (
    LOADER,
    SAMPLER,
    Pass,
    dealt,
    is_dealt_out,
    is_own_part,
    is_stream,
    loops,
    made,
    passes,
    shards,
)
from ddpdoctor.lint.engine.queries.wrapping import computed_from
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP202", name="no-sampler", confidence="likely")

_GIVEN = ("sampler", "batch_sampler", "generator")
_PARTS = ("item", "slice")
_OWN_PART = re.compile(r"rank|shard|iterable|stream|split|replica|local|partition", re.I)


def check(run: Run) -> Iterator[Hit]:
    """Yield training loaders that every rank reads in full."""
    if not any(True for _ in events(run.root, "wrap")):
        return
    loaders, parts = made(run, LOADER), dealt(run)
    told: set[int] = set()
    for each in passes(run):
        if not each.trains or each.loaders & parts or doers(each.way).mask != EVERYONE:
            continue
        if not each.loaders <= loaders.keys() or not all(
            not _is_given(loaders[number]) or _picks_alike(run, loaders[number])
            for number in each.loaders
        ):
            continue
        for number in sorted(each.loaders - told):
            loader = loaders[number]
            if is_stream(run, loader) or is_dealt_out(run, loader) or _sounds_dealt_out(loader):
                continue
            if _is_cut_up(run, each) or _goes_on_for_ever(run, each):
                continue
            told.add(number)
            if _is_given(loader):
                yield from _given_alike(run, loader, each)
                continue
            asked = _where_it_is_asked_for(run, loader)
            yield Hit(
                asked.node,
                "every rank reads the whole dataset: this training loader has no sampler",
                notes=(Related.at(each.event.place, "it is trained on"),),
                help="sampler=DistributedSampler(dataset), and set_epoch in the loop",
                path=asked.path,
            )
    yield from _told_alike(run, loaders)
    yield from _picked_alike(run)


def _where_it_is_asked_for(run: Run, loader: Event) -> Event:
    """The making of a loader of the user's that hands on to torch's what it is given."""
    node = loader.node
    if not isinstance(node, ast.Call) or not any(each.arg is None for each in node.keywords):
        return loader
    own = loader.values["object"].what
    made_by = (each for each, _ in events(run.root, "make") if each.values["object"].what == own)
    return next(made_by, loader)


def _told_alike(run: Run, loaders: dict[int, Event]) -> Iterator[Hit]:
    """Distributed samplers to which every rank says that it is the same one."""
    samplers, sharded = made(run, SAMPLER), shards(run)
    told: set[int] = set()
    for each in passes(run):
        if not each.trains or doers(each.way).mask != EVERYONE:
            continue
        for number in sorted(each.loaders & sharded.keys()):
            sampler = samplers[sharded[number]]
            rank, replicas = (sampler.values.get(name, NONE) for name in ("rank", "num_replicas"))
            alone = replicas.is_const(1)
            if alone and rank.is_const(0) and any(True for _ in asked_too_early(run)):
                said = "every rank is dealt all samples: it asked how many there are too early"
            elif alone:
                continue
            elif isinstance(rank.constant, int) and rank.agree == SAME:
                said = f"every rank is dealt the part of rank {rank.constant}"
            elif rank.agree.sure and (
                (rank.what == LOCAL_RANK and _is_joined_as_another(run))
                or _is_joined_on_a_node(run, rank)
            ):
                said = "every node is dealt the same parts, by the rank on the node"
            else:
                continue
            sizes = [event.values.get("size", NONE).what for event, _ in events(run.root, "init")]
            is_of_all = replicas.what in (WORLD, *sizes) or isinstance(rank.constant, int)
            if not (is_of_all or replicas.is_const(None)):
                continue
            if id(sampler.node) not in told:
                told.add(id(sampler.node))
                yield Hit(
                    sampler.node,
                    said if alone else f"{said}: the rest is never read",
                    notes=(Related.at(each.event.place, "it is trained on"),),
                    why=rank.why,
                    help="give it the rank of the process: rank=dist.get_rank()",
                    path=sampler.path,
                )


def _is_joined_as_another(run: Run) -> bool:
    """Whether nobody joins as the rank on its node, as is right where there is one node alone."""
    joins = (event.values.get("rank", NONE) for event, _ in events(run.root, "init"))
    return all(each.what != LOCAL_RANK for each in joins)


def _is_joined_on_a_node(run: Run, rank: Value) -> bool:
    """Whether processes join as `node * per_node + rank`: this is their number on the node."""
    return any(
        isinstance(what := event.values.get("rank", NONE).what, Term)
        and what.op == "Add"
        and rank.what in what.args
        and not any(isinstance(each, Const) for each in what.args)
        and rank.why is not None
        and rank.why.place != event.place  # else it is what they have joined as
        for event, _ in events(run.root, "init")
    )


def _goes_on_for_ever(run: Run, each: Pass) -> bool:
    """Whether batches are handed on without an end, in an order that each rank draws for itself.

    Then there is no epoch that all of them go through, and no two train on the same.
    """
    around = each.outer[-1].node if each.outer else None
    if not isinstance(each.event.node, ast.YieldFrom | ast.For) or not isinstance(
        around, ast.While
    ):
        return False
    hands_on = any(isinstance(x, ast.Yield | ast.YieldFrom) for x in ast.walk(each.event.node))
    is_endless = isinstance(around.test, ast.Constant) and bool(around.test.value)
    seeds = (e.values.get("seed") for e, _ in events(run.root, "seed", "seed_all"))
    by_rank = any(seed is not None and seed.agree.kind == "rank" for seed in seeds)
    return hands_on and is_endless and by_rank


def _picked_alike(run: Run) -> Iterator[Hit]:
    """Batches that are picked by hand, and by nothing that is the rank's."""
    trained = {id(loop) for _, way in events(run.root, "backward") for loop in loops(way)}
    parts = dealt(run)
    taken = (each for each in passes(run) if each.loaders & parts)
    of_parts = {id(loop) for each in taken for loop in each.way[-1].rest[:1]}
    for event, way in events(run.root, "forward"):
        if any(id(loop) in of_parts for loop in loops(way)):
            continue  # a sampler has picked them, whatever a data set makes of its numbers
        values = (each for name, each in event.values.items() if name.startswith("arg"))
        given = [part for each in values for part in _parts(each)]
        around = [loop for loop in loops(way) if id(loop) in trained]
        if not around or "no_grad" in event.scopes or doers(way).mask != EVERYONE:
            continue
        alike = all(each.agree.kind == "same" for each in given)
        picks = [made for each in given for made in _picks(run, each)]
        if not picks or not run.is_entry or _is_for_some(run, event):
            continue
        is_one_stream = all(each.agree.kind == "same" or _is_of_one_stream(each) for each in given)
        if is_one_stream and (seeds := _seeded_alike_again(run, event)) is not None:
            yield _drawn_alike(*seeds, event)
            return
        if alike:
            yield Hit(
                picks[0].node,
                "every rank trains on the same samples: nothing of the rank's picks them",
                notes=(Related.at(event.place, "they are fed to the model"), *_seeded(run, event)),
                help="a part of them for each rank, or a generator that is seeded with the rank",
                path=picks[0].path,
            )
            return


def _is_of_one_stream(value: Value) -> bool:
    """Whether all draw the same numbers, some ranks ahead of the others."""
    return value.why is not None and value.why.root.text == APART


def _seeded(run: Run, forward: Event) -> Iterator[Related]:
    """The seed that all ranks share, where the samples are drawn after it."""
    seed: Related | None = None
    drawn = False
    for event, way in events(run.root, "seed", "reseed", "set_rng_state", "draw", "forward"):
        if event is forward:
            break
        if event.kind == "draw":
            drawn = event.values.get("generator", NONE).is_const(None)
        elif event.kind == "seed" and doers(way).mask == EVERYONE:
            calls = [step.node for step in way if isinstance(step.node, Called)]
            alone = [each for each in calls if not any(True for _ in events(each.body, "wrap"))]
            seed = Related.at((alone[0] if alone else event).place, "all ranks are seeded alike")
    if seed is not None and drawn:
        yield seed


def _drawn_alike(apart: Event, again: Event, forward: Event) -> Hit:
    return Hit(
        again.node,
        "every rank draws the same samples: all of them are seeded alike again",
        notes=(
            Related.at(apart.place, "their seeds kept them apart"),
            Related.at(forward.place, "the samples are fed to the model"),
        ),
        help="seed within torch.random.fork_rng(), or by the rank once more afterwards",
        path=again.path,
    )


def _seeded_alike_again(run: Run, forward: Event) -> tuple[Event, Event] | None:
    """The seed that kept the ranks apart, and a later one for all with which they then draw."""
    apart: Event | None = None
    again: Event | None = None
    draws = False
    for event, way in events(run.root, "seed", "reseed", "set_rng_state", "draw", "forward"):
        if event is forward:
            break
        if event.kind == "forward" or "fork_rng" in event.scopes:
            continue
        if event.kind == "draw":
            draws = draws or event.values.get("generator", NONE).is_const(None)
        elif (seed := event.values.get("seed", NONE)).agree.kind == "rank":
            apart, again = event, None
        else:
            alike = event.kind == "seed" and seed.agree == SAME and doers(way).mask == EVERYONE
            again, draws = event if alike else None, False
    return (apart, again) if apart is not None and again is not None and draws else None


def _parts(value: Value) -> list[Value]:
    """What a tuple holds, each alone; another value itself."""
    items = value.what.items if isinstance(value.what, Tuple) else ()
    return [part for each in items for part in _parts(each)] or [value]


def _picks(run: Run, value: Value) -> Iterator[Made]:
    """The steps of its making that take a part of something, be it of what is no tensor yet."""
    for each, step in computed_from(run, value):
        parts = (part.op for part in within(each.what) if isinstance(part, Term))
        if step.by in _PARTS or any(op in _PARTS for op in parts):
            yield step


def _is_for_some(run: Run, forward: Event) -> bool:
    """Whether the wrapper reduces over a group alone, beside which ranks may share samples."""
    model = forward.values["model"]
    return run.vm.store.get((model.what, "#process_group")) is not None


def _is_given(loader: Event) -> bool:
    """Whether something may deal out the samples; a generator gives all ranks one order."""
    values = loader.values
    return "rest" in values or any(not values.get(each, NONE).is_const(None) for each in _GIVEN)


def _given_alike(run: Run, loader: Event, over: Pass) -> Iterator[Hit]:
    """A sampler that gives all ranks the same, where none of them leaves any of it out."""
    at = run.vm.object(_sampler(loader))
    if at is None:
        return
    yield Hit(
        at.node,
        "every rank is given the same samples: nothing of the rank's goes into this sampler",
        notes=(Related.at(over.event.place, "they are trained on"),),
        help="a part of them for each rank, or draws from a generator that is seeded with the rank",
        path=at.path,
    )


def _is_cut_up(run: Run, over: Pass) -> bool:
    """Whether a rank takes what is its own of the batches that all have."""
    loops = [each for each in over.way[-1].rest[:1] if isinstance(each, Loop)]
    return any(_is_own(run, each) for loop in loops for each, _ in walk(loop.body))


def _is_own(run: Run, node: Node) -> bool:
    if isinstance(node, Choice) and node.condition.agree.kind == "rank":
        return any(_trains_or_goes_on(arm.body) for arm in node.arms)
    given = node.values.items() if isinstance(node, Event) and node.kind == "forward" else ()
    return any(is_own_part(run, each) for name, each in given if name.startswith(("arg", "kw_")))


def _trains_or_goes_on(seq: Seq) -> bool:
    return any(
        node.kind in ("forward", "backward", "continue")
        for node, _ in walk(seq)
        if isinstance(node, Event | Exit)
    )


def _sampler(loader: Event) -> Value:
    found = (loader.values.get(each, NONE) for each in _GIVEN[:2])
    return next((each for each in found if not each.is_const(None)), NONE)


def _picks_alike(run: Run, loader: Event) -> bool:
    """Whether a sampler is seen to give all ranks the same indices."""
    sampler = _sampler(loader)
    made = run.vm.object(sampler)
    if made is None or "rest" in loader.values:
        return False
    if made.cls >= 0:
        if hierarchy.library_base(run.vm, made.cls).rpartition(".")[2] not in ("", "Sampler"):
            return False  # what its base does for it
        picked = run.vm.store.get((loader.values["object"].what, PICKED))
        if picked is None or picked.what == NOTHING:
            return False
        batch = containers.content(run.vm, picked)
        within_it = (batch, *containers.held(batch)) if batch is not None else ()
        return picked.agree == SAME and not any(each.agree.divergent for each in within_it)
    if made.type == "torch.utils.data.BatchSampler":
        inner = run.vm.store.get((sampler.what, "sampler"))
        return inner is not None and _draws_alike(run, inner)
    return _draws_alike(run, sampler)


def _draws_alike(run: Run, sampler: Value) -> bool:
    """Whether a sampler of the library picks of all samples, by numbers that ranks share."""
    kept = run.vm.store
    data = kept.get((sampler.what, "dataset")) or NONE
    if run.vm.type_of(sampler) != "torch.utils.data.Sampler" or data.agree.divergent:
        return False
    generator = kept.get((sampler.what, "generator")) or NONE
    if generator.is_const(None):
        seed = kept.get((GENERATORS, "torch"))
    else:
        seed = kept.get((generator.what, "seed"))
    return seed is not None and seed.agree == SAME


def _sounds_dealt_out(loader: Event) -> bool:
    """Whether data of which nothing is known is called a part, where it is handed over."""
    data = loader.values.get("dataset", NONE)
    if isinstance(data.what, Ref) or not isinstance(loader.node, ast.Call):
        return False
    written = text(loader.node.args[0], 500) if loader.node.args else ""
    known = repr(data.what) if isinstance(data.what, Term) else ""
    return bool(_OWN_PART.search(written) or _OWN_PART.search(known))
