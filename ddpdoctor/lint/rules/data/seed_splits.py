"""Split without a seed.

## What it does
Finds splits and shuffles of the samples that each rank makes with a generator that nobody has
seeded alike, or that the rank has seeded: `random_split`, `train_test_split`, `random.shuffle` of
what a data set holds, or of what each rank then takes its part of, and indices of a `Subset` that a
sampler deals out.

## Why is this bad?
Each rank splits in its own way: samples that one rank holds back for validation are trained on by
others (899 of 1000 in our measurement).

## Example
```python
train, val = random_split(data, [0.9, 0.1])
```

## Use instead
```python
train, val = random_split(data, [0.9, 0.1], generator=torch.Generator().manual_seed(0))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.library.events import APART
from ddpdoctor.lint.engine.interpreter.library.facts import SALTED, UNSALTED
from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, NONE, Ref, Value, Why
from ddpdoctor.lint.engine.queries.doing import doers, is_distributed
from ddpdoctor.lint.engine.queries.sharding import SAMPLER, deals, made, numbers
from ddpdoctor.lint.rule import About, Edit, Fix, Hit, Related, characters

ABOUT = About(code="DDP206", name="unsynchronised-split", confidence="likely")

_GENERATOR = {
    "draw_python": "seed_python",
    "draw_numpy": "seed_numpy",
    "split": "seed",
    "split_numpy": "seed_numpy",
}
_SPLITS = {"split": "generator=torch.Generator().manual_seed(0)", "split_numpy": "random_state=0"}


def check(run: Run) -> Iterator[Hit]:
    """Yield what every rank splits or shuffles for itself."""
    if not is_distributed(run):
        return
    yield from _dealt_out(run)
    yield from _picked(run)
    seeded: set[str] = set()
    for event, way in events(run.root, *_GENERATOR, *_GENERATOR.values(), "seed_all"):
        if event.kind not in _GENERATOR:
            _note(event, way, seeded)
            continue
        if doers(way).mask != EVERYONE:
            continue
        generator = event.values.get("generator", NONE)
        if event.kind in _SPLITS and not generator.is_const(None):
            yield from _seeded_apart(run, event, generator)
            continue
        if _GENERATOR[event.kind] in seeded:
            continue
        if not run.is_entry and _is_seeded_elsewhere(run, event):
            continue
        if event.kind in _SPLITS:
            if not event.values.get("shuffle", NONE).is_const(False):
                yield from _split(run, event)
        elif event.name == "shuffle" and _is_sharded(run, event):
            yield Hit(
                event.node,
                "each rank shuffles the samples in its own way: index i is another sample on each",
                notes=("a distributed sampler hands out indices, which must mean the same",),
                help="shuffle with a generator that is seeded alike, or let the sampler shuffle",
                path=event.path,
            )


def _dealt_out(run: Run) -> Iterator[Hit]:
    """What each rank shuffles in its own way before it takes every n-th of it."""
    told: set[int] = set()
    for deal in deals(run):
        why = deal.order.why.root if deal.order.why else None
        if deal.seed is not None or why is None or why.node is None or id(why.node) in told:
            continue
        if not deal.order.agree.sure and not run.is_entry:
            continue  # somebody may have seeded before
        if why.text == APART:
            continue  # DDP204
        told.add(id(why.node))
        words = "each rank shuffles in its own way, then takes its part: some twice, others never"
        yield _taken(why, words, "shuffle", deal.event)


def _picked(run: Run) -> Iterator[Hit]:
    """What each rank draws for itself to take a part by, which a sampler then deals out."""
    samplers = made(run, SAMPLER).values()
    sharded = {each for event in samplers for each in numbers(event.values.get("dataset"))}
    told: set[int] = set()
    for number, event in made(run, "Subset").items():
        indices = event.values.get("indices")
        if indices is not None and isinstance(indices.what, Ref):  # which are in the list
            indices = containers.content(run.vm, indices) or indices
        if number not in sharded or indices is None or indices.why is None:
            continue
        drawn = indices.why.root
        if indices.agree.cause != "chance" or drawn.node is None or drawn.text == APART:
            continue
        if id(drawn.node) in told:
            continue
        if not indices.agree.sure and not run.is_entry:
            continue  # somebody may have seeded before
        told.add(id(drawn.node))
        words = "each rank draws another part: index i is another sample on each, and parts overlap"
        yield _taken(drawn, words, "draw", event)


def _taken(why: Why, words: str, does: str, by: Event) -> Hit:
    """That a part is taken by what is another on each rank, and why that is."""
    assert why.node is not None
    cure = f"{does} with a generator that is seeded alike on all ranks"
    if why.text == SALTED:
        words = "hash() of a text is another in each process: each rank makes another split by it"
        cure = UNSALTED
    notes = (Related.at(by.place, "the part is taken"),)
    return Hit(why.node, words, notes=notes, help=cure, path=why.place.path)


def _note(event: Event, way: Way, seeded: set[str]) -> None:
    value = event.values.get("seed")
    kinds = _GENERATOR.values() if event.kind == "seed_all" else (event.kind,)
    if value is not None and value.agree.kind in ("same", "unknown"):
        if doers(way).mask == EVERYONE:
            seeded.update(kinds)
    else:
        seeded.difference_update(kinds)


def _is_seeded_elsewhere(run: Run, event: Event) -> bool:
    """Whether somebody in the file of a function that nobody calls may have seeded before."""
    source = run.source(event.path)
    return source is None or "seed" in "".join(source.lines)


def _split(run: Run, event: Event) -> Iterator[Hit]:
    yield Hit(
        event.node,
        "each rank makes another split: validation samples are trained on by other ranks",
        help=_SPLITS[event.kind],
        fix=_fix(run, event),
        path=event.path,
    )


def _seeded_apart(run: Run, event: Event, generator: Value) -> Iterator[Hit]:
    """A split of what all ranks have, by a seed of each rank's own."""
    seed = run.vm.store.get((generator.what, "seed")) or generator
    data = event.values.get("dataset")
    if data is None or data.agree.divergent or seed.agree.kind != "rank" or not seed.agree.sure:
        return
    yield Hit(
        event.node,
        "each rank makes another split: validation samples are trained on by other ranks",
        why=seed.why,
        help="one seed for all ranks; a per-rank generator is for noise alone",
        path=event.path,
    )


def _fix(run: Run, event: Event) -> Fix | None:
    """The argument, before the bracket that closes the call."""
    source, node, cure = run.source(event.path), event.node, _SPLITS[event.kind]
    if (
        source is None
        or not isinstance(node, ast.Call)
        or ("torch." in cure and "import torch\n" not in source.source.text)
    ):
        return None
    line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    text = source.lines[line - 1]
    column = characters(text, end) - 1
    given = ", " if not text[:column].rstrip().endswith((",", "(")) else ""
    return Fix((Edit((line, column), (line, column), f"{given}{cure}"),), safe=False)


def _is_sharded(run: Run, event: Event) -> bool:
    """Whether what is shuffled is held by a data set that a sampler shards."""
    shuffled = numbers(event.values.get("arg0"))
    holders = set(shuffled)
    for each, _ in events(run.root, "set_attribute"):
        value, owner = each.values.get("value"), each.values.get("owner")
        if numbers(value) & shuffled:
            holders |= numbers(owner)
    return any(
        numbers(each.values.get("dataset")) & holders for each in made(run, SAMPLER).values()
    )
