"""What each rank asks of its own disk, and goes on from a checkpoint by the answer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Exit, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import FIRST_HOST, Value, within
from ddpdoctor.lint.engine.queries.doing import doers, is_the_starters
from ddpdoctor.lint.engine.queries.paths import folder_and_name, spelled
from ddpdoctor.lint.engine.queries.races import does_without, leading_call, looks_behind, made_by


@dataclass(frozen=True, slots=True)
class Asked:
    """A look at the disk by each rank."""

    look: Event | Called
    """The look, the listing, or the load that may fail unnoticed; the call that leads to it."""
    save: Event
    """Where some ranks alone write what is looked for."""


def asked_by_each(run: Run) -> Iterator[Asked]:
    """Looks of all ranks that decide which checkpoint they train on from, and if from any.

    Those are meant that find what the program itself has left, by some ranks' hands: on a machine
    with a disk of its own, where none of these ranks runs, the answer is another one.
    """
    if run.vm.there == FIRST_HOST:
        return
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    saves = [each for each, way in events(run.root, "save", "rename") if doers(way).some]
    loads = list(events(run.root, "load"))
    trained = max((order[id(each)] for each, _ in events(run.root, "backward")), default=-1)
    told: set[object] = set()
    for state, way in events(run.root, "load_state") if saves else ():
        if order[id(state)] > trained or doers(way).some or is_the_starters(way):
            continue
        before = (each for each in reversed(loads) if order[id(each[0])] < order[id(state)])
        load, at = next(before, (state, way))
        for look, shown in _deciding(run, way, (load, at)):
            save = next((each for each in saves if _leaves(run, each, look)), None)
            if save is not None and told.isdisjoint((shown.path, load.node)):
                told |= {shown.path, load.node}
                yield Asked(shown, save)


def _deciding(
    run: Run, way: Way, loaded: tuple[Event, Way]
) -> Iterator[tuple[Event, Event | Called]]:
    """The looks by which something is restored, or that say what; itself, where it may fail.

    Each with where it is seen to be asked from where the state is loaded.
    """
    load, at = loaded
    conditions = [choice for _, choice in _conditions(way)]
    path = load.values.get("path")
    for before, choice in _conditions(at):
        if choice in conditions and _passes_over(choice):
            yield load, leading_call(before, at) or load
    named = [each.values.get("path") for one in conditions for each in _read_instead(one)]
    for value in (*(each.condition for each in conditions), *((path,) if path else ())):
        for look, to in looks_behind(run, value):
            if not doers(to).some and not _is_below(look.values.get("path"), named):
                yield look, leading_call(at, to) or look


def _read_instead(choice: Choice) -> Iterator[Event]:
    """The models and tokenizers that are read by name on a way of which none is loaded."""
    for arm in choice.arms:
        if not any(True for _ in events(arm.body, "load")):
            yield from (each for each, _ in events(arm.body, "read"))


def _is_below(path: Value | None, named: list[Value | None]) -> bool:
    """Whether a file is in what is read by name where it is not: who lacks both fails."""
    within_it = set(within(path.what)) if path is not None else set()
    return any(each is not None and each.what in within_it for each in named)


def _conditions(way: Way) -> Iterator[tuple[Way, Choice]]:
    """What decides whether the end of a way is come to: around it, or where others went away.

    Each with the way to it.
    """
    for number, step in enumerate(way):
        for earlier in step.seq.items[: step.index]:
            if isinstance(earlier, Choice) and any(
                isinstance(each, Exit) for arm in earlier.arms for each in arm.body.items
            ):
                yield way[: number + 1], earlier
        if isinstance(step.node, Choice):
            yield way[: number + 1], step.node


def _passes_over(choice: Choice) -> bool:
    """Whether who does not find a file goes on without."""
    if not isinstance(choice.node, ast.Try):
        return False
    ends = (
        any(isinstance(node, Exit) and node.is_failure for node, _ in walk(arm.body))
        for arm in choice.arms[1:]
    )
    return does_without(choice) or (choice.condition.agree.cause == "disk" and not all(ends))


def _leaves(run: Run, save: Event, look: Event) -> bool:
    """Whether a save leaves what is looked for: that file, or one in the folder that is listed."""
    written, read = made_by(save), look.values.get("path")
    if written is None or read is None:
        return False
    path = spelled(written.what)
    folder, name = folder_and_name(path)
    for option in (read, *run.vm.store.options(read)):
        sought = spelled(option.what)
        if sought and sought in (path, folder):
            return True
        around, pattern = folder_and_name(sought)
        below = path[: len(sought)] == sought or folder == around != ()
        if sought and below and look.kind == "list":
            return True
        if pattern == name and all(isinstance(each, str) for each in name):
            return True
    return False
