"""Samplers and loaders of a program: who shards what, and who is run through."""

from __future__ import annotations

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import Either, Ref, Value

SAMPLER = "DistributedSampler"
LOADER = "DataLoader"


def made(run: Run, name: str) -> dict[int, Event]:
    """The objects of a library's class that were made, by their number."""
    found: dict[int, Event] = {}
    for event, _ in events(run.root, "new"):
        own = event.values.get("object")
        if event.name.endswith(name) and own is not None and isinstance(own.what, Ref):
            found[own.what.number] = event
    return found


def numbers(value: Value | None) -> set[int]:
    """The objects that a value may be."""
    if value is None:
        return set()
    if isinstance(value.what, Ref):
        return {value.what.number}
    if isinstance(value.what, Either):
        return {number for each in value.what.options for number in numbers(each)}
    return set()


def shards(run: Run) -> dict[int, int]:
    """Loaders that have a distributed sampler, each with its sampler."""
    samplers = made(run, SAMPLER)
    found: dict[int, int] = {}
    for number, event in made(run, LOADER).items():
        own = numbers(event.values.get("sampler")) & samplers.keys()
        if own:
            found[number] = min(own)
    return found
