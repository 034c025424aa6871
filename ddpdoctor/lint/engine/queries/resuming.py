"""Which files a later job goes on from, of those that this one saves."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    Const,
    Tensor,
    Term,
    Value,
    What,
    has_identity,
    within,
)
from ddpdoctor.lint.engine.queries.paths import Spelling, is_listed, same_path, spelled
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


def taken_up(run: Run) -> Iterator[tuple[Event, Way, Way]]:
    """Saves that a load takes up which is told its path, or finds it; and the ways to both.

    Only the most frequent, and only where no other such save leaves a file of its own as often:
    there is that to go on from.
    """
    done = file_events(run, "save", "load")
    ways = {id(event): (number, way) for number, (event, way) in enumerate(done)}
    told: set[int] = set()
    for load, to in file_events(run, "load"):
        for meant in (_by_their_keys(run, load), _by_their_folder(run, load)):
            several = [(each, ways[id(each)][1]) for each, _ in meant]
            for save, names in meant:
                number, at = ways[id(save)]
                may_mean = any(_is_kept(run, each) and _may_mean(load, each) for each in names)
                is_before = ways[id(load)][0] < number
                if not is_before or not may_mean or id(save) in told or not _loop(at):
                    continue
                if _is_the_last(run, save, at, several):
                    told.add(id(save))
                    yield save, at, to


def _is_the_last(run: Run, save: Event, at: Way, several: list[tuple[Event, Way]]) -> bool:
    """Whether no other of these saves leaves something newer, or as new in a file of its own."""
    for each, other in several:
        keeps_its_names = all(_is_kept(run, file) for file in files(run, each))
        if keeps_its_names and (each is save or not _is_rarer(at, other)):
            continue
        if not _is_rarer(other, at):
            return False
    return True


def _by_their_keys(run: Run, load: Event) -> list[tuple[Event, list[Value]]]:
    """The saves that have all that a training goes on by which this load reads, and their files."""
    read, given = keys_read(run, load), _given_to_objects(run, load)
    full = [(save, kept) for save, kept in saved(run) if read and read <= kept.keys()]
    if not any(_goes_on(run, {key: kept[key] for key in read}, given) for _, kept in full):
        return []
    return [(save, files(run, save)) for save, _ in full]


def _by_their_folder(run: Run, load: Event) -> list[tuple[Event, list[Value]]]:
    """The saves of files that are listed where this load looks for its own.

    None where some have names of their own: who knows which of them is looked for.
    """
    read = [each.what for each in files(run, load)]
    found = []
    for save, _ in file_events(run, "save"):
        names = [each for each in files(run, save) if any(is_listed(x, each.what) for x in read)]
        if names:
            found.append((save, names))
    return found if all(_is_kept(run, each) for _, names in found for each in names) else []


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
        and isinstance(each.args[1], Const)
        and loaded in [option.what for option in run.vm.store.options(Value(each.args[0]))]
    }


def _goes_on(run: Run, read: dict[str, Value], given: set[object]) -> bool:
    """Whether a training goes on by this: states of several, and how far it had come."""
    states = {key for key, value in read.items() if key in given or is_state(value)}
    return len(states) > 1 and any(
        _is_by_turns(run, read[key].what) for key in read.keys() - states
    )


def _is_kept(run: Run, file: Value) -> bool:
    """Whether a file is the same one in every round."""
    is_own = file.agree.cause in _OWN
    return has_identity(file.what) and not is_own and not _is_by_turns(run, file.what)


def _is_rarer(other: Way, way: Way) -> bool:
    """Whether a save comes less often than another: under one more condition, or in its list."""
    if other[-1].node is way[-1].node:
        loop = _loop(way)
        return loop is not None and not isinstance(loop.count.constant, int)
    mine = {id(step.node) for step in way}
    return any(
        isinstance(step.node, Choice)
        and id(step.node) not in mine
        and step.node.condition.agree.kind != "rank"
        for step in other
    )


def _is_by_turns(run: Run, what: What, depth: int = 4) -> bool:
    """Whether something may be another in each round; what one was told, or another, is not."""
    for each in within(what):
        if not isinstance(each, Term):
            continue
        if each.op == "text" and any(isinstance(part, Tensor) for part in each.args):
            return True  # its number, which who trains counts on
        if each.op not in _BY_TURNS:
            continue
        several = run.vm.store.options(Value(each))
        if each.op != "joined" or len(several) < 2 or not depth:
            return True
        if any(isinstance(x.what, Const) or _is_by_turns(run, x.what, depth - 1) for x in several):
            return True
    return False


def _may_mean(load: Event, file: Value) -> bool:
    """Whether the path that is loaded is told from outside, and may be this one by its end.

    Or it is one of those that are seen there.
    """
    if is_listed(load.values.get("path", NONE).what, file.what):
        return True
    read, written = spelled(load.values.get("path", NONE).what), spelled(file.what)
    if all(isinstance(each, str) for each in read) or written[: len(read)] == read:
        return False  # it is another one, or what it is told and more
    mine, other = _end(read), _end(written)
    return mine.endswith(other) or other.endswith(mine)


def _end(path: Spelling) -> str:
    return path[-1] if path and isinstance(path[-1], str) else ""


def _loop(way: Way) -> Loop | None:
    return next((step.node for step in reversed(way) if isinstance(step.node, Loop)), None)
