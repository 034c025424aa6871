"""Numbers that are given in the order of a set.

## What it does
Finds dictionaries that number what is in a set as it comes (`{word: i for i, word in
enumerate(set(words))}`), in programs in which several ranks train with what they have numbered.

## Why is this bad?
The order of a set of strings is another in every process (hash randomisation). Row 3 of the
embedding, or output 3 of the classifier, then means another word on each rank: the ranks train one
model on tasks that contradict each other, and the checkpoint fits rank 0's numbers alone.

## Example
```python
number = {name: i for i, name in enumerate(set(names))}
```

## Use instead
```python
number = {name: i for i, name in enumerate(sorted(set(names)))}
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects.containers import OF_A_SET
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Way, caller, events
from ddpdoctor.lint.engine.interpreter.values import Ref, Value
from ddpdoctor.lint.engine.queries.doing import doers, is_distributed, is_one_after_another
from ddpdoctor.lint.engine.queries.finding import is_there_by_then, missed
from ddpdoctor.lint.engine.queries.wrapping import computed_from, mentioned
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP213", name="unsorted-listing", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield where more than one rank numbers what a set holds."""
    if not run.is_entry or not is_distributed(run):
        return
    if not any(True for _ in events(run.root, "backward")):
        return
    shared = {
        each
        for event, _ in events(run.root, "collective")
        for value in event.values.values()
        for each in mentioned(run, value)
    }
    told: set[int] = set()
    for event, way in events(run.root, "number"):
        key, owner = event.values["key"], event.values["owner"].what
        is_of_a_set = key.why is not None and key.why.root.text == OF_A_SET
        if not is_of_a_set or id(event.node) in told or not doers(way).mask & ~1:
            continue
        if (isinstance(owner, Ref) and owner in shared) or _are_numbers(run, key):
            continue
        if is_there_by_then(way) or (is_one_after_another(way) and any(missed(way))):
            continue  # the others find what the first has numbered
        told.add(id(event.node))
        yield Hit(
            event.node,
            "what is in a set is numbered as it comes: each rank means another thing by a number",
            notes=tuple(_callers(way)),
            why=key.why,
            help="sort it: `enumerate(sorted(...))`",
            path=event.path,
        )


def _callers(way: Way) -> Iterator[Related]:
    """The nearest call of the user's that leads there: what it hands over can be sorted before."""
    if (called := caller(way)) is not None:
        yield Related.at(called.place, "it is called here")


def _are_numbers(run: Run, key: Value) -> bool:
    """Whether it is numbers that are numbered, whose order is the same everywhere."""
    if isinstance(key.constant, int | float):
        return True
    return any(step.by in _NUMBERS for _, step in computed_from(run, key))


_NUMBERS = ("tolist", "numpy", "long", "int", "int64", "unique", "argmax")
