"""Ranks with different numbers of batches.

## What it does
Finds training loops whose number of rounds hangs on what this rank's own data are: a sampler that
packs the samples of its rank into batches of some length, a list of what this rank has kept; or on
a number that each rank draws for itself.

## Why is this bad?
Each backward is a collective. The rank that runs out first leaves the loop, and the others wait for
it in their next one.

## Example
```python
mine = order[rank::world_size]
for batch in pack(mine, max_tokens):
    model(batch).backward()
```

## Use instead
```python
batches = pack(order, max_tokens)
for batch in batches[rank : len(batches) // world_size * world_size : world_size]:
    model(batch).backward()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects.indexing import OWN_PART
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.statements.loops import MAYBE
from ddpdoctor.lint.engine.interpreter.tree import Loop, events
from ddpdoctor.lint.engine.interpreter.values import Const, Ref, Tensor, Term, What
from ddpdoctor.lint.engine.queries.naming import name_of
from ddpdoctor.lint.engine.queries.partings import Parting, partings
from ddpdoctor.lint.engine.queries.telling import header
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP207", name="uneven-batches", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield training loops that ranks run through unequally often."""
    for parting in partings(run):
        if name_of(run, parting) != ABOUT.code:
            continue
        drawn = parting.condition.agree.cause == "chance"
        is_number = _is_number(parting.condition.what, parting.condition.agree.sure)
        if is_number and not drawn:
            continue
        if parting.loop is not None and _chooses_what_reduces(parting.loop):
            continue
        if drawn and is_number:
            yield Hit(
                header(parting),
                "each rank draws for itself how often it trains: the first to be done leaves the "
                "others",
                why=parting.why,
                help="draw it on one rank and broadcast it, or seed what draws it alike on all",
                path=parting.path,
            )
            continue
        node, path = _dealt(parting)
        yield Hit(
            node,
            "ranks have different numbers of batches: the first to run out leaves the others",
            notes=(Related.at(parting.place, "each trains on its own"),),
            why=parting.why,
            help="make the batches of all ranks alike in number, or train under Join([model])",
            path=path,
        )


def _chooses_what_reduces(loop: Loop) -> bool:
    """Whether these are parts of one step, of which some alone reduce, as the last of them."""
    heard = list(events(loop.body, "backward", "forward", "collective", "step"))
    return bool(heard) and all(
        event.kind in ("backward", "forward")
        and any(each.startswith(MAYBE) and "no_sync" in each.split() for each in event.scopes)
        for event, _ in heard
    )


def _is_number(what: What, is_shown: bool) -> bool:
    """Whether rounds are counted by a number of the rank's that is not how much it has.

    Of a tensor that has to be shown: most batches are as large on each.
    """
    of = (Ref, Tensor) if is_shown else (Ref,)
    return isinstance(what, Term) and what.op == "range" and not _has_length(what, of)


def _has_length(what: object, of: tuple[type, ...]) -> bool:
    if not isinstance(what, Term):
        return False
    if isinstance(_whose_length(what), of):
        return True
    return any(_has_length(each, of) for each in what.args)


def _whose_length(what: Term) -> object:
    """Of what it is the length: `len(x)`, `x.shape[0]`, `x.size()[0]`, `x.size(0)`."""
    asked = what.args[0] if what.op == "item" and what.args[1:] == (Const(0),) else None
    if what.op == "len" or (what.op == "of" and what.args[1:] == ("size", 0)):
        return what.args[0]
    is_shape = isinstance(asked, Term) and asked.op == "of" and asked.args[1] in ("shape", "size")
    return asked.args[0] if isinstance(asked, Term) and is_shape else None


def _dealt(parting: Parting) -> tuple[ast.AST, str]:
    """Where a rank takes its part before it makes batches of it, else the loop."""
    for each in parting.why.chain() if parting.why else ():
        if each.text == OWN_PART and each.node is not None:
            return each.node, each.place.path
    return header(parting), parting.path
