"""Best checkpoint by one rank's metric.

## What it does
Finds comparisons such as `if val_loss < best:` on a metric that was not reduced over the ranks,
where a checkpoint is saved, or copied, under it; and batches that all ranks skip by what one of
them has seen of its own batch, and has broadcast.

## Why is this bad?
Each rank saw its own shard: the "best" model is the best of a fraction of the data, and each rank
believes in another epoch. A loss that is no number on another rank than the one that decides goes
into the gradients of all.

## Example
```python
accuracy = evaluate(model, shard)
if accuracy > best:
    best = accuracy
    torch.save(model.state_dict(), path)
```

## Use instead
```python
accuracy = evaluate(model, shard)
dist.all_reduce(accuracy, op=dist.ReduceOp.AVG)
if accuracy > best:
    ...
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Loop, Seq, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import Const, Place, Term, Value, What, Why, within
from ddpdoctor.lint.engine.libraries.torch import ORDERINGS
from ddpdoctor.lint.engine.queries.doing import is_the_starters
from ddpdoctor.lint.engine.queries.finite import asks_for_numbers
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.sharding import dealt, passes
from ddpdoctor.lint.engine.queries.wrapping import origins
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP214", name="metric-not-reduced", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield what hangs on a metric of this rank alone: a save, or whether all ranks learn."""
    yield from _skipped_by_one(run)
    if not dealt(run) or not any(True for _ in events(run.root, "wrap")):
        return
    told: set[int] = set()
    reduced = {
        event.place for event, _ in events(run.root, "collective") if event.name == "reduce"
    }  # who goes by it beside the root is told by DDP416
    for _, way in events(run.root, "save", "save_on_main", "copy_file"):
        node, path, why = _chosen(run, way)
        if node is None or id(node) in told or is_the_starters(way):
            continue
        if why is not None and any(each.place in reduced for each in why.chain()):
            continue
        told.add(id(node))
        yield Hit(
            node,
            "the best checkpoint is chosen by this rank's own metric",
            why=why,
            help="sum the metric and its count over the ranks first",
            path=path,
        )


def _chosen(run: Run, way: Way) -> tuple[ast.AST | None, str, Why | None]:
    """The comparison of a rank's own data around a save that remembers what it has found."""
    for number, step in enumerate(way[:-1]):
        choice = step.node
        if not isinstance(choice, Choice):
            continue
        agree = choice.condition.agree
        arm = next((each for each in choice.arms if each.body is way[number + 1].seq), None)
        if agree.cause != "data" or not agree.sure or arm is None:
            continue
        if _is_a_count(run, choice.condition.what, way[:number]):
            continue
        made = _best_so_far(run, choice.condition, way[:number])
        if made is not None:
            return made.node, made.path, choice.condition.why
        if arm.writes and not _is_of_a_fault(run, choice):
            return choice.test, choice.path, choice.condition.why
    return None, "", None


def _is_of_a_fault(run: Run, choice: Choice) -> bool:
    """Whether it asks if numbers are finite, and no more: it is kept to be looked at."""
    asked = {id(each) for each in ast.walk(choice.test)}
    return asks_for_numbers(run, choice) and not any(
        id(each.node) in asked and each.by in ORDERINGS for each in run.vm.made.values()
    )


def _best_so_far(run: Run, condition: Value, around: Way) -> Made | None:
    """The comparison with what the rounds before have found: `is_best = score > best`."""
    what = condition.what
    if isinstance(what, Term) and what.op == "not":
        what = what.args[0]
    made = run.vm.made.get(what)
    if made is None or made.by not in ORDERINGS:
        return None
    kept = {each for step in around if isinstance(step.node, Loop) for each in step.node.counted}
    is_kept = any(each.what in kept and each.agree.cause == "data" for each in made.of)
    return made if is_kept else None


def _is_a_count(run: Run, what: object, around: Way) -> bool:
    """Whether a condition asks how far something was counted, as `step % every == 0` does.

    What the user has chosen beside that is no metric either.
    """
    if isinstance(what, Term) and what.op in ("and", "or", "not"):
        return all(_is_a_count(run, each, around) for each in what.args)
    if isinstance(what, Term) and what.op == "option":
        return True
    if any(isinstance(each, Term) and each.op in ("Mod", "counter") for each in within(what)):
        return True
    counted = {each for step in around if isinstance(step.node, Loop) for each in step.node.counted}
    parts = (each for each in within(what) if isinstance(each, Term))
    ways = (way.what for each in parts for way in run.vm.store.options(Value(each)))
    added = (each for each in ways if isinstance(each, Term) and each.op in ("Add", "Sub"))
    return any(each.args[0] in counted and isinstance(each.args[1], Const) for each in added)


def _skipped_by_one(run: Run) -> Iterator[Hit]:
    """Broadcasts of what one rank thinks of its own batch, by which all skip theirs."""
    batches = {each.event.place for each in passes(run) if each.trains}
    sent = {
        event.values["shares"].what: event
        for event, _ in events(run.root, "collective")
        if event.name == "broadcast" and _is_of_batch(event.values.get("shares"), batches)
    }
    for node, way in walk(run.root) if sent else ():
        if not isinstance(node, Choice) or not _skips(node, way):
            continue
        parts = (Value(each) for each in within(node.condition.what) if isinstance(each, What))
        asked = (each.what for part in parts for each in origins(run, part))
        found = next((sent[each] for each in asked if each in sent), None)
        if found is not None:
            del sent[found.values["shares"].what]
            yield Hit(
                found.node,
                "one rank's own batch decides for all whether they learn of theirs",
                notes=(Related.at(node.place, "it decides"),),
                why=found.values["shares"].why,
                help="all_reduce() what each rank thinks of its own batch, by MAX",
                path=found.path,
            )


def _is_of_batch(value: Value | None, batches: set[Place]) -> bool:
    """Whether each rank has computed it of the batch that it is trained on."""
    if value is None or value.agree.cause != "data" or value.why is None:
        return False
    return value.why.root.place in batches


def _skips(choice: Choice, way: Way) -> bool:
    """Whether one way of a choice goes past a backward to the next batch, and another does not."""
    learns = [any(True for _ in events(arm.body, "backward")) for arm in choice.arms]
    past = [
        (left := leaves(arm.body)) is not None and left.kind == "continue" for arm in choice.arms
    ]
    later = any(True for _ in events(Seq(list(way[-1].rest)), "backward"))
    return (any(learns) and not all(learns)) or (later and any(past) and not all(past))
