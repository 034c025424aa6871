"""What some ranks write or make and others read or write to, with nothing that makes them wait."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.statements.handling import ANY_ERROR, kinds
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Node,
    Seq,
    Way,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import (
    RANKS,
    Const,
    Table,
    Term,
    Value,
    text,
    within,
)
from ddpdoctor.lint.engine.queries.doing import (
    around,
    between,
    doers,
    is_distributed,
    is_the_starters,
    synchronises,
)
from ddpdoctor.lint.engine.queries.holding import stand_apart
from ddpdoctor.lint.engine.queries.order import beyond, is_after, is_sure
from ddpdoctor.lint.engine.queries.partings import Parting
from ddpdoctor.lint.engine.queries.paths import (
    goes_through,
    is_one_path,
    read_in,
    same_path,
    spelled,
)
from ddpdoctor.lint.rule import Related

_MEETINGS = ("collective", "wrap", "backward", "group")
_STATE = re.compile(r"state_dict|model|ckpt|checkpoint|weights|best|ema|\bstate\b|optim", re.I)


@dataclass(frozen=True, slots=True)
class Race:
    """A load, or a write into a folder, that may come too early."""

    node: ast.AST
    """Where to wait: the load, or the call that leads to it."""
    path: str
    by: Related
    """Who writes it."""
    sure: bool
    of_state: bool
    """Whether what is written is a checkpoint."""
    parted: Related | None = None
    """Where those who write part from the others, if that is in another function."""

    @property
    def notes(self) -> tuple[Related, ...]:
        """Who writes it, and where they come to do so alone."""
        return (self.by, self.parted) if self.parted is not None else (self.by,)


def races(run: Run) -> list[Race]:
    """The loads that race with the save of another rank."""
    found: list[Race] | None = run.answers.get("races")
    if found is None:
        found = run.answers["races"] = list(_races(run))
    return found


def _races(run: Run) -> Iterator[Race]:
    if run.is_entry and not is_distributed(run):
        return
    written = events(run.root, "save", "write", "rename", "copy_file", "open", "download")
    saves = [(e, w) for e, w in written if doers(w).some and (e.kind != "open" or _writes(e))]
    saves.sort(key=lambda each: each[0].kind != "save")  # of all in a folder, the state is told
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    told: set[int] = set()
    for load, to in events(run.root, "load", "read", "open", "read_data", "copy_file"):
        if (load.kind == "open" and not is_read(load)) or _is_told_when_opened(load):
            continue
        reads = doers(to)
        for save, at in saves:
            writes = doers(at)
            is_it = same_path(made_by(save), _path(load))
            if id(load.node) in told or not (is_it or _may_load(run, save, at, load, to)):
                continue
            if not reads.mask & ~writes.mask or _meets(order, save, at, load, to):
                continue
            if _is_one_or_the_other(at, to, _path(load)) or _is_read_before(at, to):
                continue
            if _polls(run, order, save, at, load, to) or _tries_again(to):
                continue
            of_state = _is_state([*_written(save, at), load])
            if not of_state and any(map(does_without, reads.tried)):
                continue
            told.add(id(load.node))
            call = leading_call(at, to)
            known = all(_is_known(each) for each in (made_by(save), _path(load)))
            yield Race(
                call.node if call else load.node,
                call.path if call else load.path,
                Related.at(save.place, "some ranks write it"),
                writes.sure and reads.sure and known and is_it,
                of_state,
                _parted(at),
            )


def _may_load(run: Run, save: Event, at: Way, load: Event, to: Way) -> bool:
    """Whether what is loaded may be what was written last, and is loaded whatever a condition says.

    Who loads under a condition of its own may mean what was written in an earlier round.
    """
    path = _path(load)
    shared = sum(1 for here, there in zip(at, to, strict=False) if here.node is there.node)
    return (
        path is not None
        and not any(isinstance(step.node, Choice) for step in to[shared:])
        and any(same_path(made_by(save), each) for each in on_any_way(run, path))
    )


def _parted(at: Way) -> Related | None:
    """Where some ranks go on alone to a call by which they write."""
    for number, step in reversed(list(enumerate(at))):
        if isinstance(step.node, Choice) and step.node.condition.agree.kind == "rank":
            calls = any(isinstance(each.node, Called) for each in at[number:])
            return Related.at(step.node.place, "they alone go this way") if calls else None
    return None


def gatherings(run: Run) -> Iterator[Race]:
    """The reading of what each rank writes into a file of its own, before others surely have."""
    if run.is_entry and not is_distributed(run):
        return
    written = [
        (each, way)
        for each, way in events(run.root, "save", "write", "rename", "open")
        if each.kind != "open" or _writes(each)
    ]
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    told: set[int] = set()
    for load, to in events(run.root, "load", "read", "open", "read_data"):
        path = _path(load)
        if path is None or id(load.node) in told or (load.kind == "open" and not is_read(load)):
            continue
        if _is_told_when_opened(load):
            continue
        for save, at in written:
            own = made_by(save)
            if own is None or not goes_through(path.what, own.what):
                continue
            if order[id(save)] > order[id(load)] or is_the_starters(at) or is_the_starters(to):
                continue
            if any(synchronises(each) for each in between(at, to)):
                continue
            if _polls(run, order, save, at, load, to) or _tries_again(to):
                continue
            if any(map(does_without, doers(to).tried)):
                continue
            told.add(id(load.node))
            by = Related.at(save.place, "each rank writes its own")
            yield Race(load.node, load.path, by, sure=False, of_state=False)
            break


def does_without(tried: Choice) -> bool:
    """Whether who fails to read, for whatever reason, goes on in another way."""
    handlers = tried.node.handlers if isinstance(tried.node, ast.Try) else []
    ways = zip(tried.arms[1:], handlers, strict=False)
    return any(
        not ANY_ERROR.isdisjoint(kinds(each.type))
        and not any(isinstance(node, Exit) and node.is_failure for node, _ in walk(arm.body))
        for arm, each in ways
    )


def _tries_again(way: Way) -> bool:
    """Whether who does not find the file looks for it again, for as long as it takes."""
    waits = False
    for step in way:
        if isinstance(step.node, Called):
            waits = False
        elif isinstance(step.node, Loop):
            waits = waits or isinstance(step.node.node, ast.While)
        elif waits and isinstance(step.node, Choice) and isinstance(step.node.node, ast.Try):
            tries = zip(step.node.arms[1:], step.node.node.handlers, strict=False)
            if any(_is_of_no_file(each) and _goes_round(arm.body) for arm, each in tries):
                return True
    return False


def _is_of_no_file(handler: ast.ExceptHandler) -> bool:
    """Whether it handles that there is no such file."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(each is None or text(each) in _NO_FILE for each in kinds)


_NO_FILE = (*ANY_ERROR, "FileNotFoundError", "OSError", "IOError", "EnvironmentError")


def _goes_round(body: Seq) -> bool:
    """Whether nobody leaves a loop by what is done here."""
    return not any(isinstance(node, Exit) and node.kind != "continue" for node, _ in walk(body))


def _is_one_or_the_other(one: Way, other: Way, path: Value | None) -> bool:
    """Whether they stand on two arms of a choice that is made once, and alike by all ranks.

    Or whether a file is there: who reads it has found it, and DDP212 asks whether it is whole.
    """
    if not stand_apart(one, other):
        return False
    pairs = zip(one, other, strict=False)
    chosen = [x.node for x, y in pairs if x.seq is y.seq and isinstance(x.node, Choice)]
    if not chosen:
        return False
    asked = [x for x in within(chosen[-1].condition.what) if isinstance(x, Term) and x.op == "disk"]
    is_of_it = path is not None and any(path.what in each.args for each in asked)
    return is_of_it or not chosen[-1].condition.agree.divergent


def _is_read_before(save: Way, load: Way) -> bool:
    """Whether who reads, on an arm of its own, has yet to come to where the writer has been."""
    return stand_apart(save, load) and _waits_for(load, save)


def rushes(run: Run) -> Iterator[Race]:
    """The writes into a folder that another rank may not have made yet."""
    made = list(events(run.root, "make_folder"))
    some = [(event, way) for event, way in made if doers(way).some]
    if not some or (run.is_entry and not is_distributed(run)):
        return
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    for write, to in events(run.root, "save", "open"):
        if (write.kind == "open" and not _writes(write)) or _is_told_when_opened(write):
            continue
        for make, at in some:
            late = doers(to).mask & ~doers(at).mask
            if not late or order[id(make)] > order[id(write)]:
                continue
            if not _lies_in(_path(write), _path(make)) or _meets(order, make, at, write, to):
                continue
            if _polls(run, order, make, at, write, to):
                continue
            others = [each for each, at_ in made if doers(at_).mask & late]
            if any(_is_made_by(_path(write), _path(make), _path(each)) for each in others):
                continue
            yield Race(
                write.node,
                write.path,
                Related.at(make.place, "some ranks make it"),
                doers(at).sure and doers(to).sure and _is_known(_path(make)),
                False,
            )
            break


def early_looks(run: Run) -> Iterator[Race]:
    """The readings of a folder, and the looks for it, before another rank surely has made it.

    Who does not find it may go on as well without; but not with a name that has no value then.
    """
    every = list(events(run.root, "make_folder"))
    made = [(e, w) for e, w in every if doers(w).some and not is_the_starters(w)]
    if not made or (run.is_entry and not is_distributed(run)):
        return
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    for look, to in events(run.root, "look", "list"):
        if look.name not in (_RAISE if look.kind == "list" else _ASK_FOR_A_FOLDER):
            continue
        if look.kind == "look" and not _leaves_unbound(run, look):
            continue
        if _has_to_find(run, look, to):
            continue
        for make, at in made:
            late = doers(to).mask & ~doers(at).mask
            is_first = order[id(make)] < order[id(look)]
            if not late or not is_first or not same_path(_path(make), _path(look)):
                continue
            others = [w for e, w in every if same_path(_path(e), _path(look))]
            if any(is_the_starters(w) or doers(w).mask & late for w in others):
                continue
            if not _meets(order, make, at, look, to) and not _polls(run, order, make, at, look, to):
                sure = doers(at).sure and doers(to).sure and _is_known(_path(make))
                by = Related.at(make.place, "some ranks make it")
                yield Race(look.node, look.path, by, sure, False)
                break


_RAISE = ("listdir", "scandir", "iterdir")
"""What raises where there is no such folder; `glob` and `walk` find nothing in it."""
_ASK_FOR_A_FOLDER = ("exists", "isdir", "is_dir")


def _has_to_find(run: Run, look: Event, to: Way) -> bool:
    """Whether what it finds is loaded whatever that is: who asks for it has it from before."""
    folder = _path(look)
    return folder is not None and any(
        is_after(to, way)
        and is_sure(beyond(to, way))
        and (found := _path(load)) is not None
        and read_in(found.what, spelled(folder.what))
        for load, way in events(run.root, "load")
    )


def _leaves_unbound(run: Run, look: Event) -> bool:
    """Whether a name has a value only where this look has found something, and is read behind."""
    source = run.source(look.path)
    function = source.function(look.node) if source is not None else None
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    nodes = list(ast.walk(function))
    decides = next((each for each in nodes if isinstance(each, ast.If) and _asks(each, look)), None)
    if decides is None:
        return False
    found, missed = decides.body, decides.orelse
    if decides.test is not look.node:
        found, missed = missed, found
    if missed and isinstance(missed[-1], _LEAVES):
        return False
    inside = {id(each) for part in found for each in ast.walk(part)}
    names = [each for each in nodes if isinstance(each, ast.Name)]
    bound = {each.id for each in names if isinstance(each.ctx, ast.Store) and id(each) in inside}
    given = {each.arg for each in nodes if isinstance(each, ast.arg)}
    given |= {
        name for each in nodes if isinstance(each, ast.Global | ast.Nonlocal) for name in each.names
    }
    given |= {x.id for x in names if isinstance(x.ctx, ast.Store) and id(x) not in inside}
    end = decides.end_lineno or decides.lineno
    read = {x.id for x in names if isinstance(x.ctx, ast.Load) and x.lineno > end}
    return bool((bound & read) - given)


_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def _asks(choice: ast.If, look: Event) -> bool:
    """Whether it is decided by this look, or by its contrary."""
    test = choice.test
    is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    return test is look.node or (is_not and test.operand is look.node)  # type: ignore[attr-defined]


def _writes(event: Event) -> bool:
    mode = event.values.get("mode")
    return (
        mode is not None and isinstance(mode.constant, str) and not set(mode.constant) <= {*"rbt"}
    )


def is_read(event: Event) -> bool:
    """Whether a file is opened as it is, and not to write into it."""
    mode = event.values.get("mode")
    return mode is None or (isinstance(mode.constant, str) and set(mode.constant) <= {*"rbt"})


def _is_told_when_opened(event: Event) -> bool:
    """Whether it goes through a file that is open: whether that is there, its opening has shown."""
    return "file" in event.values


def made_by(save: Event) -> Value | None:
    """The file that is there once it is done: what is renamed has its new name then."""
    return save.values.get("to" if save.kind in ("rename", "copy_file") else "path")


def looks_of(run: Run, parting: Parting) -> Iterator[tuple[Event, Way]]:
    """The looks at the disk by which ranks decide."""
    return looks_behind(run, parting.condition, (parting.place.path, parting.place.line))


def on_any_way(run: Run, value: Value) -> Iterator[Value]:
    """A value, and what it may be, or what it is made of may be, on one way or another."""
    seen, stack = set[object](), [value]
    while stack:
        each = stack.pop()
        yield each
        for part in within(each.what):
            if isinstance(part, Term) and part.op == "joined" and part not in seen:
                seen.add(part)
                stack += run.vm.store.options(Value(part))


def looks_behind(run: Run, value: Value, *places: tuple[str, int]) -> Iterator[tuple[Event, Way]]:
    """The looks at the disk of which a value comes, or may come; and those at these places."""
    known, folders, seen = set(places), set[object](), set[object]()
    for each in on_any_way(run, value):
        known |= {(x.place.path, x.place.line) for x in (each.why.chain() if each.why else ())}
        parts = [part for part in within(each.what) if isinstance(part, Term)]
        seen |= set(parts)
        folders |= {of for part in parts if part.op == "listed" for of in part.args}
    for look, way in events(run.root, "look", "list"):
        path, found = _path(look), look.values.get("result")
        is_listed = look.kind == "list" and path is not None and path.what in folders
        is_asked = is_listed or (look.path, look.place.line) in known
        if (is_asked or (found and found.what in seen)) and not is_the_starters(way):
            yield look, way


def restores(run: Run) -> bool:
    """Whether a program goes on from a file: else it asks for data that others have prepared."""
    return any(True for _ in events(run.root, "load", "load_state"))


def found_meanwhile(run: Run, parting: Parting) -> Iterator[tuple[Event, Event]]:
    """Looks by which ranks decide, each with who writes that file while others may still look.

    A folder that was made meanwhile is empty: by what is listed in it, it might as well not be.
    """
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    looks = list(looks_of(run, parting))
    lists = [_path(each) for each, _ in looks if each.kind == "list"]
    for look, at in looks:
        is_listed = any(same_path(_path(look), each) for each in lists)
        made = () if is_listed else ("make_folder",)
        for save, to in events(run.root, "save", "write", "rename", *made):
            is_first = order[id(look)] < order[id(save)]
            if (
                is_first
                and _is_looked_for(look, at, save, to)
                and not _may_meet(run, order, look, save)
            ):
                yield look, save
                break


def half_written(run: Run) -> Iterator[tuple[Event, Event, Event]]:
    """Looks for a file that a rank writes where it is missing, and others read where it is there.

    With the write and the read: who comes late finds what is not whole yet.
    """
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    loads = list(events(run.root, "load", "read_data"))
    for save, to in events(run.root, "save", "write"):
        if is_the_starters(to):
            continue
        for look, at in events(run.root, "look"):
            is_first = order[id(look)] < order[id(save)]
            if not is_first or not _is_looked_for(look, at, save, to) or _waits_for(to, at):
                continue
            chosen = next((n for n, step in enumerate(to) if _is_decided_by(step.node, look)), None)
            reads = [
                each
                for each, way in loads
                if same_path(_path(each), _path(look))
                and chosen is not None
                and len(way) > chosen + 1
                and way[chosen].node is to[chosen].node
                and way[chosen + 1].seq is not to[chosen + 1].seq
                and not any(map(does_without, doers(way).tried))
            ]
            if reads:
                yield look, save, reads[0]
                break


def polled(run: Run) -> Iterator[tuple[Event, Event, Event]]:
    """Looks, again and again, for a file that a rank writes where it stands, and others then read.

    With the write and the read: the file is there before it is whole.
    """
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    waits = {_innermost_loop(way) for _, way in events(run.root, "sleep")} - {None}
    written = [
        (save, to)
        for save, to in events(run.root, "save", "write", "open")
        if doers(to).some and not is_the_starters(to) and (save.kind != "open" or _writes(save))
    ]
    loads = [
        (load, way)
        for load, way in events(run.root, "load", "read", "open", "read_data")
        if (load.kind != "open" or is_read(load)) and not _is_told_when_opened(load)
    ]
    for look, at in events(run.root, "look") if waits and written else ():
        if _innermost_loop(at) not in waits:
            continue
        for save, to in written:
            late = doers(at).mask & ~doers(to).mask
            if not late or not same_path(made_by(save), _path(look)):
                continue
            reads = (
                load
                for load, way in loads
                if order[id(load)] > order[id(look)]
                and doers(way).mask & late
                and same_path(_path(load), _path(look))
                and not any(synchronises(each) for each in between(at, way))
                and not _tries_again(way)
            )
            if (read := next(reads, None)) is not None:
                yield look, save, read
                break


def _innermost_loop(way: Way) -> Node | None:
    return next((step.node for step in reversed(way) if isinstance(step.node, Loop)), None)


def _is_looked_for(look: Event, at: Way, save: Event, to: Way) -> bool:
    """Whether others look for what some ranks alone write, and nothing lets one go first."""
    return (
        doers(to).some
        and bool(doers(at).mask & ~doers(to).mask)
        and same_path(made_by(save), _path(look))
        and not any(synchronises(each) for each in between(at, to))
    )


def _is_decided_by(node: Node, look: Event) -> bool:
    """Whether it is a choice by nothing but this look."""
    if not isinstance(node, Choice) or node.condition.agree.cause != "disk":
        return False
    return node.test is look.node or (
        isinstance(node.test, ast.UnaryOp) and node.test.operand is look.node
    )


def _may_meet(run: Run, order: dict[int, int], look: Event, save: Event) -> bool:
    """Whether all ranks wait for each other in between, if a condition that they share holds."""
    return any(
        order[id(look)] < order[id(each)] < order[id(save)]
        and synchronises(each)
        and not doers(way).some
        for each, way in events(run.root, *_MEETINGS)
    )


def _lies_in(path: Value | None, folder: Value | None) -> bool:
    """Whether a path surely begins with a folder that all ranks mean."""
    return same_path(folder, folder) and _begins_with(path, folder)


def _begins_with(path: Value | None, folder: Value | None) -> bool:
    """The same of a folder that each rank may name by itself."""
    if path is None or folder is None or not is_one_path(folder, folder):
        return False
    inner, outer = path.what, folder.what
    if isinstance(inner, Const) and isinstance(outer, Const):
        return str(inner.value).startswith(f"{str(outer.value).rstrip('/')}/")
    begins = outer.args if isinstance(outer, Term) and outer.op == "path" else (outer,)
    if not isinstance(inner, Term) or inner.op not in ("path", "text"):
        return False
    if inner.args[: len(begins)] != begins or len(inner.args) == len(begins):
        return False
    following = inner.args[len(begins)]
    return inner.op == "path" or (
        isinstance(following, Const) and str(following.value).startswith("/")
    )


def _is_made_by(path: Value | None, some: Value | None, folder: Value | None) -> bool:
    """Whether who makes a folder has made all that a path needs; not one around what some make."""
    return _begins_with(path, folder) and not _begins_with(some, folder)


def _meets(order: dict[int, int], save: Event, at: Way, load: Event, to: Way) -> bool:
    """Whether no rank can be at the load before the save is done."""
    if order[id(save)] < order[id(load)]:
        # What the starter has done is done before there is any rank.
        if is_the_starters(at) or any(synchronises(each) for each in between(at, to)):
            return True
        return _waits_for(at, to)
    loop = _common_loop(at, to)
    return loop is None or any(synchronises(each) for each in around(loop, at, to))


def _waits_for(save: Way, load: Way) -> bool:
    """Whether who loads has been at more meetings by then than who saves before the save.

    The one meeting is beside the load for some and behind it for others: the first goes ahead.
    """
    writers, readers = doers(save).mask, doers(load).mask
    most = max((_meetings(save, rank) for rank in _ranks(writers)), default=0)
    return all(_meetings(load, rank) > most for rank in _ranks(readers & ~writers))


def _ranks(mask: int) -> list[int]:
    return [rank for rank in range(RANKS) if mask & (1 << rank)]


def _meetings(way: Way, rank: int) -> int:
    """How many meetings a rank comes to before the end of a way, each loop taken as one round."""
    return sum(_met(node, rank) for step in way for node in step.seq.items[: step.index])


def _met(node: Node, rank: int) -> int:
    if isinstance(node, Event):
        return synchronises(node)
    if isinstance(node, Exit):
        return 0
    if not isinstance(node, Choice):
        return sum(_met(each, rank) for each in node.body.items)
    by_rank = isinstance(node.condition.what, Table)
    arms = [arm for arm in node.arms if not by_rank or arm.mask & (1 << rank)]
    met = [sum(_met(each, rank) for each in arm.body.items) for arm in arms]
    # What is open of a rank's own condition, such as whether there are several, is open for all.
    return max(met, default=0) if by_rank else min(met, default=0)


def leading_call(at: Way, to: Way) -> Called | None:
    """The call that leads to the load, seen from where both are done."""
    shared = sum(1 for here, there in zip(at, to, strict=False) if here.node is there.node)
    return next((step.node for step in to[shared:] if isinstance(step.node, Called)), None)


def _is_known(path: Value | None) -> bool:
    """Whether every rank surely means the same file."""
    return path is not None and path.agree.kind == "same"


def _path(event: Event) -> Value | None:
    return event.values.get("path") or event.values.get("arg0")


def _written(save: Event, at: Way) -> list[Event]:
    """Where a file is written: before it is renamed, if it is."""
    if save.kind != "rename":
        return [save]
    earlier = (each for each, _ in events(at[-1].seq, "save", "write"))
    return [each for each in earlier if same_path(each.values.get("path"), _path(save))]


def _is_state(done: list[Event]) -> bool:
    """Whether what is saved or loaded is a checkpoint: text and numbers are none."""
    if any("model" in each.values for each in done):
        return True
    kept = [each.node for each in done if each.kind in ("save", "load")]
    return any(_STATE.search(text(each, 300)) for each in kept)


def _common_loop(one: Way, other: Way) -> Loop | None:
    """The innermost loop around both."""
    found = None
    for here, there in zip(one, other, strict=False):
        if here.node is not there.node:
            break
        if isinstance(here.node, Loop):
            found = here.node
    return found


def _polls(run: Run, order: dict[int, int], save: Event, at: Way, load: Event, to: Way) -> bool:
    """Whether a loop of its own sleeps in between, until something has come."""
    here = {id(step.node) for step in (*at, *to)}
    return any(
        (order[id(save)] < order[id(each)] or stand_apart(at, way))
        and order[id(each)] < order[id(load)]
        and any(isinstance(step.node, Loop) and id(step.node) not in here for step in way)
        for each, way in events(run.root, "sleep")
    )
