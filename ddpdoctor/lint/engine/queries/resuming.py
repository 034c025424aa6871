"""Which files a later job goes on from, of those that this one saves."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Const, Term, Value, has_identity, within
from ddpdoctor.lint.engine.queries.paths import Spelling, same_path, spelled
from ddpdoctor.lint.engine.queries.states import file_events, is_state, keys_read, saved

_BY_TURNS = ("counter", "joined", "element", "large", "add_up")
"""What may be another in each round of a loop."""
_OWN = ("data", "clock", "chance", "order")
"""What makes a name of a rank's own that a later job does not come to again."""


def files(run: Run, event: Event) -> list[Value]:
    """The files that may be meant: the path, or each of several."""
    return [*run.vm.store.options(event.values.get("path", NONE))]


def is_one_file(one: Value, other: Value) -> bool:
    """Whether a rank means one file by both, whether others mean it as well or not."""
    if same_path(one, other):
        return True
    known = has_identity(one.what) and not {one.agree.cause, other.agree.cause} & {*_OWN}
    return known and spelled(one.what) == spelled(other.what)


def named_by_the_user(run: Run) -> Iterator[tuple[Event, Way, Way]]:
    """Saves of all that a load takes up which is told its path, and the ways to both.

    Only where each of these saves keeps its name: else there are others to go on from.
    """
    done = file_events(run, "save", "load")
    ways = {id(event): (number, way) for number, (event, way) in enumerate(done)}
    told: set[int] = set()
    for load, to in file_events(run, "load"):
        read = keys_read(run, load)
        full = [(save, kept) for save, kept in saved(run) if read and read <= kept.keys()]
        given = _given_to_objects(run, load)
        if not any(_goes_on({key: kept[key] for key in read}, given) for _, kept in full):
            continue
        if not all(_keeps_its_name(run, save) for save, _ in full):
            continue
        for save, _ in full:
            number, at = ways[id(save)]
            is_before = ways[id(load)][0] < number
            may_mean = any(_may_mean(load, file) for file in files(run, save))
            if is_before and may_mean and id(save) not in told and _is_in_a_loop(at):
                told.add(id(save))
                yield save, at, to


def _given_to_objects(run: Run, load: Event) -> set[object]:
    """The keys of a checkpoint whose values objects are given as their states."""
    loaded = load.values.get("result", NONE).what
    states = (each.values.get("state", NONE).what for each, _ in events(run.root, "load_state"))
    return {
        each.args[1].value
        for state in states
        for each in within(state)
        if isinstance(each, Term)
        and each.op == "item"
        and each.args[0] == loaded
        and isinstance(each.args[1], Const)
    }


def _goes_on(read: dict[str, Value], given: set[object]) -> bool:
    """Whether a training goes on by this: states of several, and how far it had come."""
    states = {key for key, value in read.items() if key in given or is_state(value)}
    return len(states) > 1 and any(_is_by_turns(read[key]) for key in read.keys() - states)


def _keeps_its_name(run: Run, save: Event) -> bool:
    every = files(run, save)
    return all(
        has_identity(each.what) and each.agree.cause not in _OWN and not _is_by_turns(each)
        for each in every
    )


def _is_by_turns(value: Value) -> bool:
    return any(isinstance(each, Term) and each.op in _BY_TURNS for each in within(value.what))


def _may_mean(load: Event, file: Value) -> bool:
    """Whether the path that is loaded is told from outside, and may be this one by its end."""
    read, written = spelled(load.values.get("path", NONE).what), spelled(file.what)
    if all(isinstance(each, str) for each in read) or written[: len(read)] == read:
        return False  # it is another one, or what it is told and more
    mine, other = _end(read), _end(written)
    return mine.endswith(other) or other.endswith(mine)


def _end(path: Spelling) -> str:
    return path[-1] if path and isinstance(path[-1], str) else ""


def _is_in_a_loop(way: Way) -> bool:
    return any(isinstance(step.node, Loop) for step in way)
