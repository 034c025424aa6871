"""Noise that every rank draws alike.

## What it does
Finds noise that is drawn while training on a rank's own samples, and dropout in a wrapped model,
where all ranks have seeded their generator alike and never by the rank. And samples that all of
them draw so, and then gather from one another. And generators that are seeded by the rank, and then
are all restored to the one state that a checkpoint holds. And seeds by another launcher's number
(`SLURM_PROCID`, 0 where it is not set) in a job that is joined by `RANK`.

## Why is this bad?
Each rank draws the same numbers in the same step: the same times, masks and noise for N different
batches. The noise of N ranks is that of one, and the gradient is averaged over the samples alone.
Of dropout that is information: its masks fall on other samples on each rank.

## Example
```python
torch.manual_seed(seed)
model = DDP(build_model())
for batch in loader:
    noise = torch.randn_like(batch)
```

## Use instead
```python
torch.manual_seed(seed)
model = DDP(build_model())
torch.manual_seed(seed + 1 + dist.get_rank())
for batch in loader:
    noise = torch.randn_like(batch)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.objects.members import ENVIRONMENT
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.reading import NEW_PROCESSES
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    RANK,
    Tensor,
    Term,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import ORDERINGS, VIEWS
from ddpdoctor.lint.engine.queries.doing import doers, is_distributed
from ddpdoctor.lint.engine.queries.order import is_spawned
from ddpdoctor.lint.engine.queries.sharding import loops, passes, shards
from ddpdoctor.lint.engine.queries.wrapping import origins
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP205", name="same-noise-everywhere", confidence="likely")

_SEEDS = ("seed", "reseed", "set_rng_state")


def check(run: Run) -> Iterator[Hit]:
    """Yield the noise that is drawn alike, or the seed of masks that are."""
    if not run.is_entry or not is_distributed(run):
        return
    drawn = list(_drawn(run))
    yield from drawn or _dropped(run)
    yield from _drawn_of_its_own(run)
    yield from _gathered(run)
    yield from _restored(run)
    yield from _by_another_launcher(run)


def _by_another_launcher(run: Run) -> Iterator[Hit]:
    """Seeds by a number that nobody sets who sets the `RANK` by which the job is joined.

    srun and mpirun set no `RANK`: whoever joins by it was started by torchrun, or the like of it.
    """
    joins = [event for event, _ in events(run.root, "init")]
    given = {e.values.get("name", NONE).constant for e, _ in events(run.root, "setenv")}
    if not joins or "RANK" in given or not all(map(_is_joined_by_the_rank, joins)):
        return
    asked = {
        event.place: event
        for event, _ in events(run.root, "getenv")
        if event.values["name"].constant in _OF_OTHERS and "default" in event.values
    }
    told: set[ast.AST] = set()
    kinds = {seeds for seeds, _ in _GENERATORS.values()}
    for event, way in events(run.root, "seed_all", "new", *kinds):
        seed = event.values.get("seed")
        root = seed.why.root.place if seed is not None and seed.why is not None else None
        read = asked.get(root) if root is not None else None
        if seed is None or seed.agree.kind != "rank" or read is None or read.node in told:
            continue
        if isinstance(read.values["default"].constant, int | str) and doers(way).mask == EVERYONE:
            told.add(read.node)
            yield Hit(
                read.node,
                f"every rank may seed alike: {read.values['name'].constant} is not set by whoever "
                "sets the RANK that the job is joined by",
                notes=(
                    Related.at(event.place, "it goes into this seed"),
                    Related.at(joins[0].place, "the job is joined by RANK"),
                ),
                help="dist.get_rank()",
                path=read.path,
            )


_OF_OTHERS = [name for name, what in ENVIRONMENT.items() if what == RANK and name != "RANK"]


def _is_joined_by_the_rank(init: Event) -> bool:
    """Whether a process learns which rank it is from `RANK` alone."""
    values = init.values
    told = any(not values.get(each, NONE).is_const(None, "env://") for each in ("rank", "method"))
    return not told and "store" not in values and not values.get("backend", NONE).is_const("mpi")


def _drawn(run: Run) -> Iterator[Hit]:
    """The first draw of each loop over a rank's own samples."""
    seed: Event | None = None
    again: Event | Called | None = None
    told: set[int] = set()
    trained = {id(loop) for _, way in events(run.root, "backward") for loop in loops(way)}
    is_wrapped = False
    for event, way in events(run.root, *_SEEDS, "draw", "wrap"):
        is_wrapped = is_wrapped or event.kind == "wrap"
        if "fork_rng" in event.scopes:
            continue
        if event.kind in _SEEDS and not _is_lost(run, way):
            seed = _seed_for_all(event, way)
            again = _call(way) if seed is not None and is_wrapped else None
        if event.kind != "draw":
            continue
        if seed is None or event.values.get("generator") is not None or "no_grad" in event.scopes:
            continue
        loop = next((each for each in reversed(loops(way)) if id(each) in trained), None)
        if loop is None or id(loop) in told or not _goes_through_a_shard(run, loop):
            continue
        drawn = event.values.get("result", NONE)
        if _is_a_mask(run, drawn, frozenset()) or _is_searched_from(run, drawn):
            continue
        told.add(id(loop))
        at, other = (event, seed) if again is None else (again, event)
        said = "all ranks are seeded alike" if again is None else "it is drawn"
        yield Hit(
            at.node,
            "every rank draws the same noise for its own samples: nothing seeds it by the rank",
            notes=(Related.at(other.place, said),),
            help="after the model is built: torch.manual_seed(seed + 1 + rank)",
            path=at.path,
        )


def _drawn_of_its_own(run: Run) -> Iterator[Hit]:
    """The first draw for a rank's own samples from a generator that all have seeded alike."""
    trained = {id(loop) for _, way in events(run.root, "backward") for loop in loops(way)}
    made = {event.values["object"].what: event for event, _ in events(run.root, "new")}
    own = {each.what for step in run.vm.made.values() for each in step.of if _is_own(each)}
    told: set[What] = set()
    for event, way in events(run.root, "draw") if trained else ():
        generator = event.values.get("generator", NONE).what
        seed = run.vm.store.get((generator, "seed"))
        if generator in told or generator not in made or seed is None or seed.agree.kind != "same":
            continue
        if "no_grad" in event.scopes or not any(id(each) in trained for each in loops(way)):
            continue
        sizes = [value for role, value in event.values.items() if role != "result"]
        if not any(part in own for each in sizes for part in within(each.what)):
            continue
        drawn = event.values.get("result", NONE)
        if _is_an_order(run, drawn) or _is_a_mask(run, drawn, frozenset()):
            continue
        told.add(generator)
        yield Hit(
            event.node,
            "every rank draws the same noise for its own samples: nothing seeds it by the rank",
            notes=(Related.at(made[generator].place, "all ranks seed this generator alike"),),
            help="seed the generator with seed + rank",
            path=event.path,
        )


def _gathered(run: Run) -> Iterator[Hit]:
    """Seeds alike on all ranks behind what these draw, and then gather from one another."""
    seed: Event | None = None
    drawn: dict[What, tuple[Event, Event]] = {}
    told: set[Event] = set()
    for event, way in events(run.root, *_SEEDS, "draw", "collective"):
        sent = event.values.get("sent", NONE)
        if event.kind in _SEEDS and not _is_lost(run, way):
            seed = _seed_for_all(event, way)
        elif event.kind == "draw" and seed is not None and "generator" not in event.values:
            drawn[event.values.get("result", NONE).what] = seed, event
        elif event.name in _GATHERING and sent.agree.kind == "same":
            behind = list(origins(run, sent))
            found = (drawn[each.what] for each in behind if each.what in drawn)
            seeded, draw = next(found, (None, None))
            if seeded is None or draw is None or seeded in told:
                continue
            if any(each.agree.kind != "same" for each in behind):
                continue
            told.add(seeded)
            yield Hit(
                seeded.node,
                "all ranks are seeded alike: what they draw and gather is one part, many times",
                notes=(
                    Related.at(draw.place, "it is drawn"),
                    Related.at(event.place, "each rank is given what it has itself"),
                ),
                help="put the rank into the seed",
                path=seeded.path,
            )


_GATHERING = (
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "gather",
    "gather_object",
)


def _is_searched_from(run: Run, drawn: Value) -> bool:
    """Whether a search by gradients begins there, which each rank's own samples lead elsewhere."""
    begun = (each for each, made in run.vm.made.items() if made.by == "requires_grad_")
    return any(
        each.what == drawn.what for one in begun for each in origins(run, Value(one), "forward")
    )


def _is_an_order(run: Run, drawn: Value) -> bool:
    """Whether numbers only say which samples come: each rank has other samples under them."""
    if run.vm.drawn.get(drawn.what, "").endswith("randperm"):
        return True
    uses = [made for made in run.vm.made.values() if any(x.what == drawn.what for x in made.of)]
    picks = [x.by == "item" and len(x.of) > 1 and x.of[1].what == drawn.what for x in uses]
    given = any(
        value.what == drawn.what
        for event, _ in events(run.root, "forward")
        for value in event.values.values()
    )
    return bool(picks) and all(picks) and not given


def _is_own(value: Value) -> bool:
    """Whether it is a tensor that each rank has another of."""
    return isinstance(value.what, Tensor) and value.agree.kind == "local"


def _is_a_mask(run: Run, drawn: Value, seen: frozenset[What]) -> bool:
    """Whether numbers only decide: masks alike in a step do no harm, as dropout's do none."""
    if drawn.what in _cut_off(run):
        return True
    uses = [
        (Value(identity), made)
        for identity, made in run.vm.made.items()
        if identity not in seen and any(each.what == drawn.what for each in made.of)
    ]
    return bool(uses) and all(
        made.by in (*ORDERINGS, *_CUTS)
        or (
            (made.by in VIEWS or _is_beside_a_number(made, drawn))
            and _is_a_mask(run, by, seen | {by.what})
        )
        for by, made in uses
    )


_CUTS = ("ceil", "floor", "round", "sign", "torch.ceil", "torch.floor", "torch.round", "torch.sign")
"""What leaves of numbers no more than which of a few they are."""


def _cut_off(run: Run) -> set[What]:
    """The tensors of which no more is left, where they are."""
    changes = (event for event, _ in events(run.root, "change"))
    return {each.values["object"].what for each in changes if each.name.rstrip("_") in _CUTS}


def _is_beside_a_number(made: Made, drawn: Value) -> bool:
    """Whether it is computed of the draw and of numbers that are no rank's own."""
    others = [each for each in made.of if each.what != drawn.what]
    return made.by in ("Add", "Sub", "Mult", "Div") and all(
        each.agree.kind == "same" and not isinstance(each.what, Tensor) for each in others
    )


def _call(way: Way) -> Event | Called | None:
    """Who seeds there: the outermost call that does not build the model too."""
    for step in way:
        node = step.node
        if isinstance(node, Event):
            return node
        if isinstance(node, Called) and not any(True for _ in events(node.body, "wrap")):
            return node
    return None


def _dropped(run: Run) -> Iterator[Hit]:
    """The seed of a model with dropout, where all ranks share it from the beginning to the end."""
    masks = any(
        not (event.values.get("p") or NONE).is_const(0, 0.0)
        for event, _ in events(run.root, "dropout")
    )
    if not masks or not any(True for _ in events(run.root, "wrap")):
        return
    seeds = [
        _seed_for_all(event, way)
        for event, way in events(run.root, *_SEEDS)
        if "fork_rng" not in event.scopes and not _is_lost(run, way)
    ]
    if seeds and seeds[0] is not None and all(seeds):
        yield Hit(
            seeds[0].node,
            "every rank draws the same dropout: nothing seeds it by the rank",
            help="after the model is built: torch.manual_seed(seed + 1 + rank)",
            path=seeds[0].path,
            harmless=True,
        )


def _restored(run: Run) -> Iterator[Hit]:
    """One state of a generator for all ranks out of a file, where their seeds keep them apart."""
    apart: dict[str, Event] = {}
    restored: dict[str, tuple[Event, Way, Event]] = {}
    kinds = {kind for pair in _GENERATORS.values() for kind in pair}
    for event, way in events(run.root, "seed_all", *kinds):
        if (seed := event.values.get("seed")) is not None and seed.agree.kind == "rank":
            seeded = [
                of for of, (kind, _) in _GENERATORS.items() if event.kind in (kind, "seed_all")
            ]
            apart.update(dict.fromkeys(seeded, event))
            for of in seeded:
                restored.pop(of, None)
        again = next((of for of, (_, kind) in _GENERATORS.items() if event.kind == kind), "")
        alike = doers(way).mask == EVERYONE and _is_one_file(run, event.values.get("state", NONE))
        if again in apart and alike:
            restored.setdefault(again, (event, way, apart[again]))
    told: set[ast.AST] = set()
    for event, way, kept_apart in restored.values():
        at = _handed_in(event, way)
        if at.node in told:
            continue
        told.add(at.node)
        there = () if at is event else (Related.at(event.place, "it is restored"),)
        yield Hit(
            at.node,
            "every rank goes on with the same random state: all of them draw the same from here on",
            notes=(Related.at(kept_apart.place, "their seeds kept them apart"), *there),
            help="save the state of each rank, and let each restore its own",
            path=at.path,
        )


def _handed_in(event: Event, way: Way) -> Event | Called:
    """Where the state is handed to those who do nothing but restore it."""
    kinds = {restores for _, restores in _GENERATORS.values()}
    calls = (step.node for step in way if isinstance(step.node, Called))
    alone = (each for each in calls if all(e.kind in kinds for e, _ in events(each.body)))
    return next(alone, event)


_GENERATORS = {
    "torch": ("seed", "set_rng_state"),
    "python": ("seed_python", "set_rng_python"),
    "numpy": ("seed_numpy", "set_rng_numpy"),
}
"""How each generator is seeded, and restored."""


def _is_one_file(run: Run, state: Value) -> bool:
    """Whether all ranks read a state out of one file, as the same part of it."""
    read = {each for each in within(state.what) if isinstance(each, Term) and each.op == "loaded"}
    return (
        bool(read)
        and state.agree.kind == "same"
        and all(
            event.values.get("path", NONE).agree.kind == "same"
            for event, _ in events(run.root, "load")
            if event.values.get("result", NONE).what in read
        )
    )


def _is_lost(run: Run, way: Way) -> bool:
    """Whether a process seeds itself that starts the ranks anew: each begins with its own numbers.

    Only what is forked goes on with the generators as they are.
    """
    if is_spawned(way):
        return False
    anew = any(
        event.name.rpartition(".")[2] in _ANEW
        and event.values.get("method", NONE).is_const(None, *NEW_PROCESSES)
        for event, _ in events(run.root, "spawn")
    )
    return anew and any(is_spawned(to) for _, to in events(run.root, "wrap"))


_ANEW = ("spawn", "start_processes")


def _seed_for_all(event: Event, way: Way) -> Event | None:
    value = event.values.get("seed")
    alike = event.kind == "seed" and value is not None and value.agree.kind == "same"
    return event if alike and doers(way).mask == EVERYONE else None


def _goes_through_a_shard(run: Run, loop: Loop) -> bool:
    """Whether a loop runs over a loader that hands each rank its own samples."""
    loaders = shards(run)
    return any(
        each.loaders & loaders.keys() for each in passes(run) if each.event.node is loop.node
    )
