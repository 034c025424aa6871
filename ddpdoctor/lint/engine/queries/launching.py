"""What a program does with the words of its launcher."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects.members import set_by_launcher
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, NONE, RANK, Value
from ddpdoctor.lint.engine.queries.doing import doers, is_a_default
from ddpdoctor.lint.engine.queries.order import is_after, is_spawned

_USUAL = "29500"
"""The port of a torchrun that is told none."""


def overridden(run: Run) -> Iterator[tuple[Event, Event]]:
    """Each port that is put in place of the launcher's, and where it is met at.

    Whoever starts ranks without such a launcher, or tells them their number, has to set it.
    """
    settings = list(events(run.root, "setenv"))
    said = {event.values["name"].constant for event, _ in settings}
    if said & {"RANK", "WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE"}:
        return
    for event, way in settings:
        port = event.values["value"].constant
        if not event.values["name"].is_const("MASTER_PORT") or str(port) == _USUAL:
            continue
        if not str(port).isdigit() or is_a_default(event, way) or doers(way).mask != EVERYONE:
            continue
        if is_spawned(way) or any(isinstance(step.node, Choice) for step in way):
            continue
        joins = ((each, to) for each, to in events(run.root, "init") if is_after(way, to))
        join, to = next(joins, (None, ()))
        if join is not None and not is_spawned(to) and _asks_the_environment(join):
            yield event, join


def _asks_the_environment(join: Event) -> bool:
    """Whether it meets where the variables say, as the rank that torchrun has told."""
    url, rank = join.values.get("method", NONE), join.values.get("rank")
    if not url.is_const(None, "env://") or "store" in join.values:
        return False
    return rank is None or _is_of_torchrun(rank)


def _is_of_torchrun(rank: Value) -> bool:
    said = rank.why.root.text if rank.why is not None else ""
    return rank.what == RANK and said == set_by_launcher("RANK")
