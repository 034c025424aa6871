"""Samples that are another on each rank.

## What it does
Finds datasets behind a distributed sampler whose samples are made with `hash()` of a text.

## Why is this bad?
Python salts `hash()` of texts anew in every process, unless PYTHONHASHSEED is set before it starts.
The same index gives another sample on each rank, and the weights learned for it mean another thing.

## Example
```python
def __getitem__(self, i):
    return torch.tensor([hash(word) % self.buckets for word in self.rows[i]])
```

## Use instead
```python
def __getitem__(self, i):
    return torch.tensor([zlib.crc32(word.encode()) % self.buckets for word in self.rows[i]])
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.library.facts import SALTED, UNSALTED
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Seq, events
from ddpdoctor.lint.engine.interpreter.values import Why
from ddpdoctor.lint.engine.queries.sharding import LOADER, dealt, made
from ddpdoctor.lint.engine.queries.wrapping import origins
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP217", name="unlike-datasets", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the hashes by which a sample is another on each rank."""
    mine = dealt(run)
    told: set[int] = set()
    for number, loader in made(run, LOADER).items():
        for why in _salted(run, run.vm.workers[loader]) if number in mine else ():
            if why.node is not None and id(why.node) not in told:
                told.add(id(why.node))
                yield Hit(
                    why.node,
                    "hash() of a text is another in each process: so is what an index gives",
                    help=UNSALTED,
                    path=why.place.path,
                )


def _salted(run: Run, work: Seq) -> Iterator[Why]:
    """The hashes that samples are computed from."""
    for event, _ in events(work, "sample"):
        for each in origins(run, event.values["element"]):
            if each.why is not None and each.why.root.text == SALTED:
                yield each.why.root
