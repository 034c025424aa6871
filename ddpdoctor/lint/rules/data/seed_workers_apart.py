"""The same noise in every data-loading worker.

## What it does
Finds datasets that draw from a generator which they made themselves, by a fixed seed, and never
ask which worker they run in; `worker_init_fn`s that seed all ranks alike; and seeds to which the
numbers of rank and worker are added as they are: worker 1 of rank 0 has that of worker 0 of rank 1.

## Why is this bad?
Workers are copies of the dataset: each has the same generator in the same state. Every worker, of
every rank, draws the same crops and the same noise.

## Example
```python
class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, i):
        return self.x[i] + self.rng.normal()
```

## Use instead
```python
class Noisy(Dataset):
    def __getitem__(self, i):
        return self.x[i] + torch.randn(())  # the loader seeds each worker's own
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Seq, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Table, Term, What, within
from ddpdoctor.lint.engine.queries.doing import is_distributed
from ddpdoctor.lint.engine.queries.sharding import (
    LOADER,
    lone_readings,
    made,
    numbers,
    of_many_ranks,
)
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP210", name="worker-seed-clones", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield generators that all workers share, and seeds that all ranks share."""
    for work in lone_readings(run) if of_many_ranks(run) else ():
        yield from _cloned(run, work)
    for loader in made(run, LOADER).values() if is_distributed(run) else ():
        work = run.vm.workers[loader]
        if not any(loader.values.get("num_workers", NONE).is_const(few) for few in (0, 1)):
            yield from _overlapping(work)
        if any(True for _ in events(work, "worker")):
            yield from _seeded_alike(work)
        elif "rest" not in loader.values and "worker_init_fn" not in loader.values:
            yield from _cloned(run, work)
            yield from _numbered_alike(work)


def _numbered_alike(work: Seq) -> Iterator[Hit]:
    """The first seed of a sample's reading that is the worker's number, and nothing of the rank."""
    for event, _ in events(work, "seed", "seed_numpy", "seed_python"):
        seed = event.values.get("seed", NONE)
        parts = [each for each in within(seed.what) if isinstance(each, Term)]
        if seed.agree.kind == "same" and any(_is_of_worker(each, "id") for each in parts):
            if not any(_is_of_worker(each, "seed") for each in parts):
                yield _alike(event)
            return


def _overlapping(work: Seq) -> Iterator[Hit]:
    """The first seed to which the numbers of rank and worker are added, each counting by one."""
    for event, _ in events(work, "seed", "seed_numpy", "seed_python"):
        added = list(_added(event.values.get("seed", NONE).what))
        ranks = [each for each in added if isinstance(each, Table) and _counts_by_one(each)]
        workers = [each for each in added if isinstance(each, Term) and _is_the_worker(each)]
        if len(ranks) == len(workers) == 1 and not any(map(_is_seeded_by_torch, added)):
            yield Hit(
                event.node,
                "worker 1 of a rank is seeded as worker 0 of the next one: the same noise",
                help="count the ranks by their workers: seed + rank * num_workers + worker_id",
                path=event.path,
            )
            return


def _added(what: What) -> Iterator[What]:
    """The terms of a sum."""
    if isinstance(what, Term) and what.op == "Add":
        for each in what.args:
            yield from _added(each)
    else:
        yield what


def _counts_by_one(ranks: Table) -> bool:
    steps = zip(ranks.entries, ranks.entries[1:], strict=False)
    return all(type(a) is type(b) is int and b - a == 1 for a, b in steps)


def _is_the_worker(what: Term) -> bool:
    return what == Term("worker") or _is_of_worker(what, "id")


def _is_seeded_by_torch(what: What) -> bool:
    """Whether torch has seeded it for this worker alone."""
    parts = [each for each in within(what) if isinstance(each, Term)]
    asked = any("initial_seed" in str(each.args[:1]) for each in parts)
    return asked or any(_is_of_worker(each, "seed") for each in parts)


def _is_of_worker(what: Term, name: str) -> bool:
    """Whether it is what torch tells a worker of itself, by this name."""
    owner = what.args[0] if what.op == "of" else None
    is_told = isinstance(owner, Term) and str(owner.args[:1]).count("get_worker_info")
    return bool(is_told) and what.args[1:] == (name,)


def _alike(event: Event) -> Hit:
    return Hit(
        event.node,
        "the workers of every rank are seeded alike: nothing here asks for the rank",
        help="seed by torch.initial_seed() % 2**32, which differs if the ranks' do",
        path=event.path,
    )


def _seeded_alike(work: Seq) -> Iterator[Hit]:
    for event, _ in events(work, "sample", "seed_numpy", "seed_python"):
        if event.kind == "sample":
            return
        if event.values.get("seed", NONE).agree.kind == "same" and "seed" in event.values:
            yield _alike(event)


def _cloned(run: Run, work: Seq) -> Iterator[Hit]:
    """The generators that samples are drawn from, and that were made before any worker was."""
    if any(True for _ in events(work, "ask_worker")):
        return
    inside: set[int] = set()
    for event, _ in events(work, "new", "draw_own"):
        own = numbers(event.values.get("object"))
        if event.kind == "new":
            inside |= own
        elif _is_seeded_alike(event):
            for number in sorted(own - inside):
                inside.add(number)
                made_by = run.vm.objects[number]
                yield Hit(
                    made_by.node,
                    "every worker of every rank gets a copy of this generator: the same noise",
                    notes=(Related.at(event.place, "samples are drawn from it"),),
                    help="draw from torch's generator, which the loader seeds for each worker",
                    path=made_by.path,
                )


def _is_seeded_alike(event: Event) -> bool:
    seed = event.values.get("seed", NONE)
    return not seed.is_const(None) and not seed.agree.divergent
