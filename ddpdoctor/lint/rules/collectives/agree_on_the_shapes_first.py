"""A collective of tensors of which each rank has as many rows as its own data gave.

## What it does
Finds tensors that go into a collective with the rows that this rank has picked: by a mask of its
own values, by `nonzero`, `unique` or `masked_select`, or joined of a list that grew under a
condition of its own data, be it `p.grad is not None` where these decide which parts of a model are
used. And those with the rows of a batch, of which a sampler deals out what is left over to some
ranks.

## Why is this bad?
A collective takes tensors of one shape. gloo raises on one rank alone, or returns wrong numbers and
ends well; NCCL hangs or reads what lies behind the tensor.

## Example
```python
hard = scores[scores > threshold]
parts = [torch.empty_like(hard) for _ in range(world_size)]
dist.all_gather(parts, hard)
```

## Use instead
```python
count = torch.tensor(len(hard))
counts = [torch.empty_like(count) for _ in range(world_size)]
dist.all_gather(counts, count)
most = max(map(int, counts))
padded = nn.functional.pad(hard, (0, most - len(hard)))
parts = [torch.empty_like(padded) for _ in range(world_size)]
dist.all_gather(parts, padded)
hard = torch.cat([part[:count] for part, count in zip(parts, counts)])
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.iteration import PICKED, SAID
from ddpdoctor.lint.engine.interpreter.machine import KEPT, Made
from ddpdoctor.lint.engine.interpreter.objects import containers, members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Seq, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    FALSE,
    NOTHING,
    WORLD,
    Const,
    Tensor,
    Term,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import PICKS_ROWS
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.lacking import asks_for_a_gradient, own_choices
from ddpdoctor.lint.engine.queries.rows import PUTS_TOGETHER, with_all_rows
from ddpdoctor.lint.engine.queries.wrapping import computed_from
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP403", name="collective-shape-mismatch", confidence="likely")

_GIVEN = ("gives", "collects", "shares")
_OWN = ("data", "shard", "chance")


def check(run: Run) -> Iterator[Hit]:
    """Yield the collectives that are given as many rows as the rank has picked."""
    told: set[int] = set()
    for event, way in events(run.root, "collective"):
        given = next((event.values[role] for role in _GIVEN if role in event.values), None)
        if given is None or "list" in event.name or id(event.node) in told:
            continue
        if doers(way).mask != EVERYONE:
            continue
        picked = _picked(run, given, way)
        if picked is None:
            dealt = next(_dealt_unequally(run, given), None) if event.name in _AS_LARGE else None
            if dealt is not None and id(dealt.node) not in told:
                told.add(id(dealt.node))
                yield Hit(
                    dealt.node,
                    f"some ranks have one sample more, in their last batch, for {event.name}()",
                    notes=(Related.at(event.place, "it takes as many rows of each rank"),),
                    help="cut the order to a multiple of the ranks before each takes its part",
                    path=dealt.path,
                )
            continue
        told.add(id(event.node))
        yield Hit(
            event.node,
            f"each rank gives {event.name}() as many rows as its own data have left it",
            notes=(Related(picked.path, getattr(picked.node, "lineno", 1), "they are picked"),),
            help="share the counts first and pad to the largest, or gather objects",
            path=event.path,
        )


_AS_LARGE = ("all_gather", "all_gather_into_tensor", "all_reduce", "reduce_scatter_tensor")


def _dealt_unequally(run: Run, value: Value) -> Iterator[Made]:
    """Where a sampler deals out every nth of all there are, though it says that all have as many.

    It counts what is left over for nobody, and gives it to some.
    """
    kept = run.vm.store
    for made in with_all_rows(run, value):
        for each in made.of[:2]:
            loader = run.vm.batches.get(each.what.site) if isinstance(each.what, Tensor) else None
            if loader is None or not (kept.get((loader, "drop_last")) or FALSE).is_const(False):
                continue
            said, picked = kept.get((loader, SAID)), kept.get((loader, PICKED))
            if said is None or picked is None or not _is_rounded_down(said.what):
                continue
            for part, step in computed_from(run, picked):
                if step.by != "element":
                    if step.by == "slice" and part.agree.cause == "shard" and _is_whole(run, step):
                        yield step
                    break


def _is_rounded_down(what: What) -> bool:
    """Whether it is a number that need not divide by the ranks, divided by them."""
    if not isinstance(what, Term) or what.op != "FloorDiv" or what.args[1] != WORLD:
        return False
    return not isinstance(what.args[0], Const) and WORLD not in within(what.args[0])


def _is_whole(run: Run, cut: Made) -> bool:
    """Whether every nth is taken of an order that was neither cut nor filled up before."""
    index = cut.node.slice if isinstance(cut.node, ast.Subscript) else None
    if not isinstance(index, ast.Slice) or index.upper is not None or index.step is None:
        return False
    step = run.vm.made.get(cut.of[0].what)
    while step is not None and step.by in ("tolist", "numpy", "cpu") and step.of:
        step = run.vm.made.get(step.of[0].what)
    return step is None


def _picked(run: Run, value: Value, to: Way, depth: int = 3) -> Made | None:
    """Where rows were picked that all that follows has kept, be it as one part of several.

    `to` is the way to where they are needed.
    """
    for made in with_all_rows(run, value):
        if _picks(run, made, to):
            return made
        parts = containers.held(made.of[0]) if depth and made.by in _JOINS and made.of else ()
        found = next((one for each in parts if (one := _picked(run, each, to, depth - 1))), None)
        if found is not None:
            return found
    return None


_JOINS = ("cat", "concat")
"""What has the rows of all of its parts."""


def _picks(run: Run, made: Made, to: Way) -> bool:
    if not made.of:
        return False
    first = made.of[0]
    if made.by in PICKS_ROWS:
        return first.agree.cause in _OWN
    if made.by == "item" and len(made.of) > 1:
        return made.of[1].agree.cause in _OWN and members.is_mask(run.vm, made.of[1])
    return made.by in PUTS_TOGETHER and (_grew_by_choice(run, first, to) or _was_sifted(run, first))


def _grew_by_choice(run: Run, parts: Value, to: Way) -> bool:
    """Whether a list got what it holds where this rank's own data decided.

    They do so as well where the gradients of the parts are put there that they have used.
    """
    held = {each.what for each in containers.held(parts)} - {NOTHING}
    for event, way in events(run.root, "keep"):
        for step in way if event.values["value"].what in held else ():
            node = step.node
            if not isinstance(node, Choice) or not _decides_how_many(node, event):
                continue
            if node.condition.agree.cause in _OWN:
                return True
            if asks_for_a_gradient(node.test) and any(own_choices(run, to)):
                return True
    return False


def _was_sifted(run: Run, parts: Value) -> bool:
    """Whether a list is what a rank's own condition has left of another."""
    content = containers.content(run.vm, parts)
    why = content.why if content is not None and content.agree.divergent else None
    return why is not None and any(each.text == KEPT for each in why.chain())


def _decides_how_many(node: Choice, event: Event) -> bool:
    """Whether a choice decides how many are put where this event puts one."""
    return len({_number_kept(arm.body, event.values["owner"]) for arm in node.arms}) > 1


def _number_kept(body: Seq, owner: Value) -> int:
    return sum(each.values["owner"].what == owner.what for each, _ in events(body, "keep"))
