"""A mean over what this rank has, in a loss that DDP averages again.

## What it does
Finds a loss of the form `sum / mask.sum()`, or `sum / len(rows)` where a batch is as long as its
samples are, that is backwarded under DDP without the count having been summed over the ranks; and
one whose count has been, but which is not multiplied by the number of ranks.

## Why is this bad?
DDP averages the ranks' gradients. A rank with three masked tokens then weighs as much as one with
three hundred: the gradient is not that of one process with all the data. Where the count is that of
all ranks, the sum of the ranks' losses is their mean: DDP's average divides it once more, and every
step is as many times too small as there are ranks.

## Example
```python
loss = (losses * mask).sum() / mask.sum()
loss.backward()
```

## Use instead
```python
count = mask.sum()
dist.all_reduce(count)
loss = (losses * mask).sum() * dist.get_world_size() / count
loss.backward()
```

The same of gradients that DDP has averaged and that each rank then divides by a number of its own:
from there on the ranks' weights part.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    WORLD,
    Const,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import COMPARISONS, DIVISIONS
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.reducing import reduced_by_hand, scaled_gradients, sums
from ddpdoctor.lint.engine.queries.sharding import LOADER, made
from ddpdoctor.lint.engine.queries.wrapping import computed_from, made_by, origins, wrappers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP309", name="mean-of-means", confidence="likely")

_COUNTS = ("sum", "count_nonzero")
_SAME_COUNT = (
    *("clamp", "clamp_", "clamp_min", "clip", "max", "float", "to", "item", "Add"),
    *("tensor", "as_tensor"),
)


def check(run: Run) -> Iterator[Hit]:
    """Yield losses, and averaged gradients, that are divided by a count of this rank's own."""
    wraps = {
        getattr(event.values["wrapper"].what, "number", 0) for event, _ in events(run.root, "wrap")
    }
    if wraps:
        yield from _means(run, wraps)
        yield from _divided_again(run, wraps)
        yield from _scaled_apart(run)


def _scaled_apart(run: Run) -> Iterator[Hit]:
    """Yield where averaged gradients are multiplied by what is another number on each rank."""
    backwards = list(events(run.root, "backward"))
    steps = list(events(run.root, "step"))
    if not backwards or not steps or any("no_sync" in each.scopes for each, _ in backwards):
        return
    reduced = reduced_by_hand(run, wrappers(run))
    told: set[int] = set()
    for event, way, _, factor in scaled_gradients(run):
        if id(event.node) in told or not _is_own(factor):
            continue
        loops = [step.node for step in way if isinstance(step.node, Loop)]
        if reduced.intersection(map(id, loops)):
            continue
        if any(is_after(at, way) for _, at in backwards) and any(
            is_after(way, at) for _, at in steps
        ):
            told.add(id(event.node))
            yield Hit(
                event.node,
                "gradients that DDP has averaged are scaled by a number of this rank's own: "
                "the ranks' weights part",
                why=factor.why,
                help="reduce the number over the ranks first, or scale the loss by it",
                path=event.path,
            )


def _is_own(number: Value) -> bool:
    """Whether ranks surely have another number each."""
    agree = number.agree
    return agree.sure and (agree.kind == "rank" or (agree.kind, agree.cause) in _OWN)


def _means(run: Run, wraps: set[int]) -> Iterator[Hit]:
    told: set[int] = set()
    counted = _counted_together(run)
    for event, _ in events(run.root, "backward"):
        for _, quotient in computed_from(run, event.values["loss"]):
            node = quotient.node
            if quotient.by not in DIVISIONS or id(node) in told or len(quotient.of) < 2:
                continue
            sum_, count = quotient.of[:2]
            is_own = _is_own_count(run, count) or _is_ragged(run, count)
            if made_by(sum_) & wraps and is_own and _is_sum(run, sum_):
                told.add(id(node))
                knows = all(
                    each.what in counted or _made_of(run, each.what) in counted
                    for each in (count, sum_)
                )
                yield Hit(
                    node,
                    "this rank's sum is divided by this rank's count, and DDP averages the means",
                    notes=(
                        "the count is of this rank's own data",
                        *(
                            ("what is reported is weighed by the counts of all ranks",)
                            if knows
                            else ()
                        ),
                    ),
                    help="divide by the count of all ranks, times their number (DDP divides by it)",
                    path=quotient.path,
                    harmless=not knows,
                )


def _divided_again(run: Run, wraps: set[int]) -> Iterator[Hit]:
    """Yield this rank's sums over the count of all, where DDP divides by the ranks once more."""
    counts = dict(_counts_of_all(run))
    if not counts or any(True for _ in scaled_gradients(run)) or _has_hooks(run):
        return
    shared = {
        value.what
        for event, _ in events(run.root, "collective")
        if "no_grad" not in event.scopes
        for value in event.values.values()
        if isinstance(value.what, Tensor) and value.what not in counts
    } - {each.what for event in counts.values() for each in event.values.values()}
    told: set[int] = set()
    for event, _ in events(run.root, "backward"):
        loss = event.values["loss"]
        if any(each.what in shared for each in origins(run, loss)):
            continue
        for _, quotient in computed_from(run, loss):
            if quotient.by not in DIVISIONS or len(quotient.of) < 2 or id(quotient.node) in told:
                continue
            sum_, count = quotient.of[:2]
            counted = counts.get(_number_in(run, count.what))
            if counted is None or not made_by(sum_) & wraps or not _is_sum(run, sum_):
                continue
            if _may_be_scaled(run, loss, wraps):
                continue
            told.add(id(quotient.node))
            yield Hit(
                quotient.node,
                "this rank's sum is divided by the count of all ranks, and DDP divides by their "
                "number too",
                notes=(
                    Related.at(counted.place, "it is counted on all ranks"),
                    Related.at(event.place, "the gradients are averaged"),
                ),
                help="multiply the loss by the number of ranks",
                path=quotient.path,
            )


def _counts_of_all(run: Run) -> Iterator[tuple[What, Event]]:
    """The counts of each rank's own that were summed over the ranks."""
    for event, _ in events(run.root, "collective"):
        given = event.values.get("shares") or event.values.get("adds")
        result = event.values.get("filled") or event.values.get("sum")
        is_sum = sums(event) if "adds" not in event.values else _is_told_to_sum(event)
        if given is not None and result is not None and is_sum and _is_own_count(run, given):
            yield result.what, event


def _is_told_to_sum(event: Event) -> bool:
    how = event.values.get("reduce")
    return how is not None and how.is_const("sum")


def _has_hooks(run: Run) -> bool:
    return any(True for _ in events(run.root, "comm_hook")) or any(
        step.by == "register_comm_hook" for step in run.vm.made.values()
    )


def _may_be_scaled(run: Run, loss: Value, wraps: set[int]) -> bool:
    """Whether a loss is multiplied by the ranks, or by what may be their number."""
    for value, step in computed_from(run, loss):
        if step.by in _SCALES and made_by(value) & wraps:
            factors = [each for each in step.of if not made_by(each)]
            if any(_may_count_ranks(part) for each in factors for part in _parts(run, each)):
                return True
    return False


_SCALES = DIVISIONS | {"Mult", "mul", "mul_", "multiply"}


def _parts(run: Run, value: Value) -> Iterator[object]:
    for each in (value, *origins(run, value)):
        yield from within(each.what)


def _may_count_ranks(part: object) -> bool:
    """Whether it is the number of ranks, or something of which nothing is known."""
    if part in (WORLD, NOTHING):
        return True
    if not isinstance(part, Term) or part.op not in ("parameter", "result", "global", "of"):
        return False
    return not any(isinstance(each, Tensor) for each in part.args[:1])


def _made_of(run: Run, what: What) -> tuple[str, *tuple[What, ...]] | None:
    """How it was computed: what is computed of the same in the same way is the same."""
    step = run.vm.made.get(what)
    return None if step is None else (step.by, *(each.what for each in step.of))


def _counted_together(run: Run) -> set[object]:
    """What goes into totals that the ranks add up: the program knows that the counts differ."""
    shared = {
        each.what
        for event, _ in events(run.root, "collective")
        if "reduce" in event.values or event.name == "all_reduce"
        for each in origins(run, event.values.get("shares", NONE))
    }
    for event, _ in events(run.root, "change"):
        if event.values["object"].what in shared and "by" in event.values:
            shared |= {each.what for each in origins(run, event.values["by"])}
    return shared | {_made_of(run, each) for each in shared} - {None}


_OWN = [("local", cause) for cause in ("data", "shard", "chance", "")]
"""Without a cause: what a number of the rank's own has made of a tensor."""


def _is_own_count(run: Run, value: Value) -> bool:
    """Whether it counts what this rank has, without gradient, and more of it on some ranks."""
    agree = value.agree
    if agree.kind != "rank" and (agree.kind, agree.cause) not in _OWN:
        return False
    step = run.vm.made.get(_number_in(run, value.what))
    if step is None or step.by not in _COUNTS or any(map(made_by, step.of)):
        return False
    if len(step.of) != 1:  # a sum along one dimension counts for each sample by itself
        return False
    return not _is_drawn(run, step.of[0])


def _number_in(run: Run, what: What) -> What:
    """A count before it was made a float, or at least one."""
    seen: set[What] = set()
    while what not in seen:  # in a loop it may be made of what it was in the round before
        seen.add(what)
        step = run.vm.made.get(what)
        if step is None or step.by not in _SAME_COUNT or not step.of:
            break
        what = step.of[0].what
        if isinstance(what, Tuple) and len(what.items) == 1:
            what = what.items[0].what
    return what


def _is_drawn(run: Run, mask: Value) -> bool:
    """Whether chance alone picks what is counted, as often on one rank as on another."""
    step = run.vm.made.get(mask.what)
    if step is None or step.by not in COMPARISONS:
        return False
    draws = [each for each in step.of if each.agree.divergent]
    are_drawn = (e.agree.cause == "chance" and e.what not in run.vm.made for e in draws)
    return bool(draws) and all(are_drawn)


def _is_ragged(run: Run, count: Value) -> bool:
    """Whether it is the length of a batch in which samples of any length follow one another."""
    what = count.what
    if isinstance(what, Term) and what.op == "item" and what.args[1] == Const(0):
        what = what.args[0]  # of a shape
    rows = what.args[0] if isinstance(what, Term) and what.op in ("len", "of") else None
    picked = run.vm.made.get(rows) if isinstance(rows, Tensor) else None
    if picked is None or picked.by != "item":
        return False
    batch, place = picked.of[0].what, picked.of[1].constant
    loader = run.vm.batches.get(batch.site) if isinstance(batch, Tensor) else None
    made_at = made(run, LOADER).get(loader.number) if loader is not None else None
    if made_at is None or not isinstance(place, int):
        return False
    work = run.vm.workers[made_at]
    held = [each for event, _ in events(work, "sample") for each in event.values.values()]
    if not any(run.vm.type_of(each) == "list" for each in held):
        return False  # a tensor's rows are equally long
    for event, _ in events(work, "batch"):
        parts = event.values["element"].what
        if isinstance(parts, Tuple) and place < len(parts.items):
            one = run.vm.made.get(parts.items[place].what)
            return one is not None and one.by in _JOINS
    return False


_JOINS = ("cat", "concat", "concatenate")


def _is_sum(run: Run, value: Value) -> bool:
    """Whether a sum of losses is divided, and not a mean."""
    return any(
        step.by in _COUNTS
        or any(part == Const("sum") for each in step.of for part in within(each.what))
        for _, step in computed_from(run, value)
    )
