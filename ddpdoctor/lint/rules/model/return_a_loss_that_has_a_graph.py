"""Constant loss on an empty batch.

## What it does
Finds loss functions that return a constant (`torch.tensor(0.0)`) when a mask or batch is empty.

## Why is this bad?
On that rank `backward()` raises "does not require grad", or leaves every parameter without
gradient; the other ranks wait in the all-reduce.

## Example
```python
def masked_loss(out, mask):
    if not mask.any():
        return torch.tensor(0.0)
    return cross_entropy(out[mask])
```

## Use instead
```python
def masked_loss(out, mask):
    if not mask.any():
        return out.sum() * 0
    return cross_entropy(out[mask])
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from ddpdoctor.lint.engine.interpreter.machine import EITHER
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Exit, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import Const, Tensor, Term, Tuple, Value, What, text
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.wrapping import computed_from, made_by
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP308", name="no-loss-on-one-rank", confidence="likely")

_CONSTANTS = re.compile(r"^(new_)?(tensor|zeros|ones|full|empty|FloatTensor)(_like)?$")
_OF_ONE = ("sum", "mean", "squeeze", "float", "requires_grad_")
"""What makes a loss of a constant that is none yet."""
_COUNTS = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "short", "int", "long"})
"""Types of which no tensor can be a loss, or a part of one."""
_LOSS = re.compile(r"loss|training_step|criterion", re.I)


def check(run: Run) -> Iterator[Hit]:
    """Yield constant losses that only some ranks return."""
    returns = [
        (node, way, part)
        for node, way in walk(run.root)
        if isinstance(node, Exit) and node.kind == "return" and "no_grad" not in node.scopes
        for part in _parts(node.value)
        if _is_constant(run, part)
    ]
    filled = _filled(run) if returns else set()
    returns = [each for each in returns if filled.isdisjoint(_behind(run, each[2]))]
    if not returns:
        return
    learnt = _learnt(run)
    told: set[int] = set()
    for exit_, way, part in returns:
        choice = _empty(way)
        if choice is None or id(exit_.node) in told:
            continue
        if _is_beside(run, part):
            continue
        if part.what in learnt or _is_called_a_loss(run, way):
            told.add(id(exit_.node))
            yield Hit(
                exit_.node,
                "a rank with nothing to learn from returns a constant loss: no gradient",
                notes=(Related.at(choice.place, f"returned by `{text(choice.test)}`"),),
                help="return `output.sum() * 0`, so that every parameter gets a gradient",
                path=exit_.path,
            )


def _parts(value: Value | None) -> Iterator[Value]:
    """What is returned, one by one."""
    if value is not None and isinstance(value.what, Tuple):
        yield from value.what.items
    elif value is not None:
        yield value


def _is_constant(run: Run, value: Value) -> bool:
    """Whether a tensor is made of constants alone."""
    if not isinstance(value.what, Tensor | Term) or made_by(value):
        return False
    *_, innermost = _behind(run, value)
    made = run.vm.made.get(innermost)
    if made is None or _CONSTANTS.match(made.by) is None or not isinstance(made.node, ast.Call):
        return False
    types = [keyword.value for keyword in made.node.keywords if keyword.arg == "dtype"]
    return not any(text(each).rpartition(".")[2] in _COUNTS for each in types)


def _behind(run: Run, value: Value) -> Iterator[What]:
    """A tensor, and what it was made of by nothing but a sum or another type."""
    what, seen = value.what, set[What]()
    while what not in seen:  # of a round, one of the round before's
        seen.add(what)
        yield what
        made = run.vm.made.get(what)
        if made is not None and made.by in _OF_ONE and len(made.of) == 1:
            what = made.of[0].what


def _filled(run: Run) -> set[What]:
    """The tensors that something else than a constant is written into."""
    changed = {
        event.values["object"].what
        for event, _ in events(run.root, "change")
        if "by" in event.values and not isinstance(event.values["by"].what, Const)
    }
    return changed | {
        event.values[role].what
        for event, _ in events(run.root, "recv", "collective", "new")
        for role in (("tensor",) if event.kind == "recv" else _RECEIVES)
        if role in event.values
    }


_RECEIVES = ("shares", "collects", "fills", "filled")
"""What a collective is given to write into."""


def _learnt(run: Run) -> set[What]:
    """All that a loss is computed from, of which another part has a gradient."""
    return {
        value.what
        for event, _ in events(run.root, "backward")
        if made_by(event.values["loss"])
        for value, _ in computed_from(run, event.values["loss"])
    }


def _is_beside(run: Run, constant: Value) -> bool:
    """Whether all that is learnt from in its place is learnt from beside it, or may go without."""
    wraps = [each.values.get("kw_find_unused_parameters") for each, _ in events(run.root, "wrap")]
    may_lack = bool(wraps) and all(each is not None and each.is_const(True) for each in wraps)
    for event, _ in events(run.root, "backward"):
        loss = event.values["loss"]
        chosen = {
            each.what: made.of
            for each, made in computed_from(run, loss)
            if made.by == EITHER and constant.what in [part.what for part in made.of]
        }
        instead = {key for of in chosen.values() for part in of for key in _outputs(run, part)}
        beside = set(_outputs(run, loss, chosen))
        if may_lack and instead and beside:
            return True
        if instead and all(key in beside or (key[0], key[0]) in beside for key in instead):
            return True
    return False


def _outputs(run: Run, value: Value, without: Collection[What] = ()) -> Iterator[tuple[What, What]]:
    """What of the modules' results goes into a value: of which result, and which part of it."""
    seen, stack = set(without), [value]
    while stack:
        each = stack.pop().what
        if isinstance(each, Tuple):
            stack += each.items
        made = run.vm.made.get(each)
        if made is None or each in seen:
            continue
        seen.add(each)
        whole = run.vm.made.get(made.of[0].what) if made.by == "item" and made.of else None
        part = made.of[1].what if whole is not None and whole.by == "forward" else None
        if isinstance(part, Const):
            yield made.of[0].what, part
        elif made.by == "forward":
            yield each, each
        else:
            stack += made.of


def _empty(way: Way) -> Choice | None:
    """The condition by which it is returned, if that asks for what this rank alone has."""
    choice = next(_deciding(way), None)
    if choice is None:
        return None
    agree, what = choice.condition.agree, choice.condition.what
    own = agree.kind == "rank" or agree.cause in ("data", "shard", "chance")
    return choice if own or (agree.kind == "unknown" and _compares_with_zero(what)) else None


def _deciding(way: Way) -> Iterator[Choice]:
    """The conditions around a return, and those before it by which others return."""
    for step in reversed(way):
        if isinstance(step.node, Choice):
            yield step.node
        for before in reversed(step.seq.items[: step.index]):
            if isinstance(before, Choice) and any(leaves(arm.body) for arm in before.arms):
                yield before
        if isinstance(step.node, Called):
            return


def _compares_with_zero(what: What) -> bool:
    """`len(indices) == 0`, `not count`."""
    if not isinstance(what, Term) or what.op not in ("Eq", "LtE", "Lt", "not"):
        return False
    zero = any(isinstance(each, Const) and each.value in (0, 1) for each in what.args)
    return zero or (what.op == "not" and isinstance(what.args[0], Term))


def _is_called_a_loss(run: Run, way: Way) -> bool:
    """Whether a function that nobody is seen to call gives a loss, by its name."""
    if run.is_entry or not _LOSS.search(run.name) or run.name.rpartition(".")[2].startswith("test"):
        return False
    sources = [run.source(path) for path in run.vm.files]
    return any(each and "DistributedDataParallel" in each.source.text for each in sources)
