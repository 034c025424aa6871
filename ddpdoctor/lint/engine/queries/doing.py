"""Which ranks do a thing, and what happens between two things."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ddpdoctor.lint.engine.interpreter.machine import Object
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Arm,
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
    EVERYONE,
    NONE,
    NOTHING,
    OPEN,
    Const,
    Table,
    Term,
    Value,
    What,
    text,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import ASKING, COMPARISONS
from ddpdoctor.lint.engine.queries.order import is_spawned, start_of
from ddpdoctor.lint.engine.queries.words import letter

MAIN = 1


@dataclass(frozen=True, slots=True)
class Doers:
    """The ranks that do something."""

    mask: int
    sure: bool
    """Whether flow tells it: no condition of unknown agreement stands before it."""
    choices: tuple[Choice, ...]
    """The conditions that keep the others out, and those that nobody knows."""
    loops: tuple[Loop, ...] = ()
    """The loops around it."""
    tried: tuple[Choice, ...] = ()
    """Of the conditions those whether a `try` comes to its end, in which it is done."""
    kept_out: int = 0
    """The ranks that a condition may keep out: the rank decides, and a setting as well."""

    def is_clear(
        self,
        *causes: str,
        by_files: bool = False,
        if_well: bool = False,
        into: What | None = None,
    ) -> bool:
        """Whether the rank alone decides who does it, but for what these causes decide.

        What was found on the disk may decide as well, `by_files`: who shares it has found the same.
        But who asks whether a file is there may be about to make it, once. With `if_well` it is
        asked what is done where no rank fails. Who writes `into` one path has had the same answer
        of it, whatever it is.
        """
        return all(
            (if_well and any(each is one for one in self.tried))
            or _fails_to_read(each, into)
            or _is_told(each.condition.what)
            or each.condition.agree.kind == "same"
            or (each.condition.agree.cause in causes and not _asks_for_none(each.test))
            or (by_files and _was_found(each.condition))
            or (each.condition.agree.kind == "unknown" and self._counts(each.condition.what))
            or (each.condition.agree.kind == "unknown" and _is_asked_of(each.condition.what, into))
            for each in self.choices
        )

    def _counts(self, what: object) -> bool:
        """Whether a condition asks how far a loop has come, such as `step % every == 0`."""
        if not isinstance(what, Term) or what.op not in ASKING:
            return False
        if what.op in COMPARISONS:
            return any(self._is_counted(each) for side in what.args for each in within(side))
        return all(map(self._counts, what.args))

    def _is_counted(self, what: object) -> bool:
        is_counter = isinstance(what, Term) and what.op == "counter"
        return is_counter or any(what in each.counted for each in self.loops)

    @property
    def some(self) -> bool:
        """Whether some ranks do it and others do not."""
        return self.mask not in (0, EVERYONE)


def _fails_to_read(choice: Choice, path: What | None) -> bool:
    """Whether a file is tried to be read, which none finds who comes first."""
    if path is None or not isinstance(choice.node, ast.Try):
        return False
    tried = events(choice.arms[0].body, "load") if choice.arms else ()
    return any(each.values.get("path", NONE).what == path for each, _ in tried)


def _is_told(what: object) -> bool:
    """Whether it is known of any rank what a condition is for it."""
    return isinstance(what, Table) and any(each is not OPEN for each in what.entries)


def _is_asked_of(what: object, path: What | None) -> bool:
    """Whether a condition asks something of the text of a path, which nothing has that is none."""
    if not isinstance(what, Term):
        return False
    if what.op == "not":
        return _is_asked_of(what.args[0], path)
    asked, others = what.args[1:2], (*what.args[:1], *what.args[2:])
    return (
        what.op in ("call", "In")
        and isinstance(asked[0], Term)
        and asked[0] in within(path)
        and all(isinstance(each, Const | str | int) for each in others)
    )


def _was_found(condition: Value) -> bool:
    """Whether what was found on the disk decides, and not the disk itself."""
    asks = any(isinstance(each, Term) and each.op == "disk" for each in within(condition.what))
    return condition.agree.cause == "disk" and not asks


def _asks_for_none(test: ast.AST) -> bool:
    """Whether a condition asks if there is a value at all: some ranks may be meant to have none."""
    return any(
        isinstance(each, ast.Compare)
        and any(
            isinstance(other, ast.Constant) and other.value is None for other in each.comparators
        )
        for each in ast.walk(test)
    )


def doers(way: Way) -> Doers:
    """Who comes to the end of a way: by the arms on it, and by the ranks that left before."""
    mask, sure = 1 if is_the_starters(way) else EVERYONE, True
    choices: list[Choice] = []
    tried: list[Choice] = []
    kept_out = 0
    begun = start_of(way)
    for number, step in enumerate(way):
        if number <= begun:
            continue  # decided by the process that starts the ranks, for all of them
        for earlier in step.seq.items[: step.index]:
            if isinstance(earlier, Choice):
                staying = _staying(earlier)
                if staying != EVERYONE:
                    mask &= staying
                    choices.append(earlier)
                kept_out |= _left_before(earlier)
        if isinstance(step.node, Choice) and number + 1 < len(way):
            inside = way[number + 1].seq
            arm = next((each for each in step.node.arms if each.body is inside), None)
            if arm is None:
                continue
            mask &= arm.mask
            if isinstance(step.node.node, ast.Try) and arm is step.node.arms[0]:
                tried.append(step.node)
                if not _goes_on(step.node, step.node.node):
                    continue  # who fails in it does nothing else: all come here, or end
            agree = step.node.condition.agree
            if arm.mask != EVERYONE or agree.kind != "same":
                choices.append(step.node)
            kept_out |= _kept_out(step.node, arm)
            if arm.opened or agree.kind == "unknown" or not agree.sure:
                sure = False
    loops = tuple(step.node for step in way if isinstance(step.node, Loop))
    return Doers(mask, sure, tuple(choices), loops, tuple(tried), kept_out)


def has_looked(way: Way) -> bool:
    """Whether who comes there has looked at the disk."""
    return any(isinstance(step.node, Choice) and is_look(step.node) for step in way)


def is_look(choice: Choice) -> bool:
    """Whether the disk decides."""
    return choice.condition.agree.cause == "disk"


def is_the_starters(way: Way) -> bool:
    """Whether one process does it, which starts the ranks, or goes on alone in their stead."""
    if not way or is_spawned(way):
        return False
    root = way[0].seq
    return _is_instead(way) or _starts_the_ranks(root) or _joins_alone(root) or _joins_nobody(way)


def _joins_nobody(way: Way) -> bool:
    """Whether a setting chooses what is done here instead of what joins: a command of its own."""
    meeting = _where_ranks_meet(way[0].seq)
    for step, inside in zip(way, (*(each.seq for each in way[1:]), None), strict=True):
        met = meeting.get(id(step.seq), set())
        if not met <= {step.index}:
            return False
        if met and inside is not None and id(inside) not in meeting:
            node = step.node
            return isinstance(node, Choice) and not node.condition.agree.divergent
    return False


@functools.lru_cache(maxsize=8)
def _where_ranks_meet(root: Seq) -> dict[int, set[int]]:
    """Of each sequence, by its id: in which of its items ranks meet; none where nobody joins."""
    found: dict[int, set[int]] = {}
    kinds = ("init", "spawn", "group", "wrap", "prepare", "collective")
    if any(events(root, "init", "spawn")):
        for _, way in events(root, *kinds):
            for step in way:
                found.setdefault(id(step.seq), set()).add(step.index)
    return found


@functools.lru_cache(maxsize=8)
def _starts_the_ranks(root: Seq) -> bool:
    """Whether those that a program starts meet, and nobody else: it is not itself one of ranks."""
    joins = [way for _, way in events(root, "init")]
    ways = joins or [way for _, way in events(root, "wrap", "collective")]
    spawned = [is_spawned(way) for way in ways]
    others = (way for way, within in zip(ways, spawned, strict=True) if not within)
    return any(spawned) and all(_is_instead(way) for way in others)


@functools.lru_cache(maxsize=8)
def _joins_alone(root: Seq) -> bool:
    """Whether every group that a program joins is one of itself alone, as rank 0 of 1."""
    joins = list(events(root, "init"))
    return bool(joins) and all("alone" in event.values for event, _ in joins)


def _is_instead(way: Way) -> bool:
    """Whether one process goes on alone where another way of a choice would start ranks."""
    return any(
        isinstance(step.node, Choice)
        and not any(events(inside, "spawn"))
        and any(any(events(arm.body, "spawn")) for arm in step.node.arms)
        and all(_is_for_one(event) for event, _ in events(inside, "init"))
        for step, inside in zip(way, (each.seq for each in way[1:]), strict=False)
    )


def _is_for_one(init: Event) -> bool:
    """Whether a group is joined under a fixed number: a launcher would have told it to each."""
    return init.values.get("rank", Value(NOTHING)).constant is not OPEN


def is_a_default(setting: Event, way: Way) -> bool:
    """Whether a variable is set where it is not set yet: whoever starts the job may choose it."""
    if setting.name == "setdefault":
        return True
    name = setting.values["name"].constant
    asked = [step.node.condition for step in way if isinstance(step.node, Choice)]
    parts = (part for each in (*asked, setting.values["value"]) for part in within(each.what))
    return any(
        isinstance(part, Term) and part.op in ("set", "env") and part.args[:1] == (name,)
        for part in parts
    )


def _staying(choice: Choice) -> int:
    """The ranks that surely go on behind a choice of the rank; all, where nothing is known."""
    if not isinstance(choice.condition.what, Table):
        return EVERYONE
    staying = 0
    for arm in choice.arms:
        if not _ends(arm.body):
            staying |= arm.mask
    return staying or EVERYONE


def _kept_out(choice: Choice, arm: Arm) -> int:
    """The ranks that come to an arm only by a setting, where others come by their rank."""
    by_rank = choice.condition.agree.kind == "rank" and arm.mask & ~arm.opened
    return arm.opened if by_rank else 0  # else a setting decides for all


def _left_before(choice: Choice) -> int:
    """The ranks that go on behind a choice only by a setting, where others do by their rank."""
    going_on = [arm for arm in choice.arms if not _ends(arm.body)]
    if len(going_on) != 1 or len(going_on) == len(choice.arms):
        return 0
    return _kept_out(choice, going_on[0])


def _ends(seq: Seq, *kinds: str) -> bool:
    """Whether it is left at its end, in one of these ways: in whatever way, where none is given."""
    for node in seq.items:
        if isinstance(node, Exit) and (not kinds or node.kind in kinds):
            return True
        if isinstance(node, Called) and any(
            isinstance(each, Exit) and each.kind in _FAILING for each in node.body.items
        ):
            return True
    return False


def is_one_after_another(way: Way) -> bool:
    """Whether some ranks wait before it for others to do it first ("the main process first")."""
    for step in way:
        for earlier in step.seq.items[: step.index]:
            if isinstance(earlier, Choice) and isinstance(earlier.condition.what, Table):
                waits = [_waits(arm.body) for arm in earlier.arms]
                if any(waits) and not all(waits):
                    return True
            if isinstance(earlier, Called) and any(
                isinstance(each, Choice)
                and isinstance(each.condition.what, Table)
                and len({_waits(arm.body) for arm in each.arms}) > 1
                for each in earlier.body.items
            ):
                return True
    return False


def _waits(seq: Seq) -> bool:
    return any(synchronises(each) for each in _surely(seq))


def keeps_apart(choices: tuple[Choice, ...]) -> Choice | None:
    """The condition that decides by rank, alone or with what else is asked, innermost first."""
    return next((each for each in reversed(choices) if _is_by_rank(each)), None)


def _is_by_rank(choice: Choice) -> bool:
    condition = choice.condition
    if condition.agree.kind == "local" and isinstance(condition.what, Table):
        return any(arm.mask != EVERYONE for arm in choice.arms)
    return condition.agree.kind == "rank"


def where_apart(way: Way, apart: Choice) -> int:
    """The step of a way from which on its ranks are apart: inside the condition, or behind it.

    Behind it, where the others have left, they are met again where what they left has been left.
    """
    for number, step in enumerate(way):
        if step.node is apart:
            return number
        if apart in step.seq.items[: step.index]:
            around = (
                n for n in range(number - 1, -1, -1) if isinstance(way[n].node, Called | Loop)
            )
            return next(around, 0)
    raise ValueError("no condition on this way")


def synchronises(event: Event) -> bool:
    """Whether no rank gets past it before all have come to it, as to a barrier or a reduction."""
    said = letter(event)
    return said is not None and said[0] in ("collective", "wrap", "backward", "group")


def between(first: Way, second: Way) -> Iterator[Event]:
    """The events that every rank surely does after the end of one way and before that of another.

    The second way must come later in the program; only what both stand beside or inside of is
    looked at, for a condition that one passes the other need not.
    """
    shared = 0
    while (
        shared < min(len(first), len(second))
        and first[shared].seq is second[shared].seq
        and first[shared].index == second[shared].index
    ):
        shared += 1
    for step in reversed(first[shared:]):
        stop = len(step.seq.items)
        if step is first[shared] and shared < len(second):
            stop = second[shared].index
        yield from _surely(Seq(step.seq.items[step.index + 1 : stop]))
    for step in second[shared + 1 :]:
        yield from _surely(Seq(step.seq.items[: step.index]))


def around(loop: Loop, first: Way, second: Way) -> Iterator[Event]:
    """The same from one round of a loop to the next."""
    depth = next(n for n, step in enumerate(first) if step.node is loop)
    for step in reversed(first[depth + 1 :]):
        yield from _surely(Seq(step.seq.items[step.index + 1 :]))
    for step in second[depth + 1 :]:
        yield from _surely(Seq(step.seq.items[: step.index]))


def _surely(seq: Seq) -> Iterator[Event]:
    for node in seq.items:
        if isinstance(node, Event):
            yield node
        elif isinstance(node, Called | Loop):
            yield from _surely(node.body)
        elif isinstance(node, Choice) and node.arms:
            # What each arm does is done whichever way a rank goes.
            arms = [list(_surely(arm.body)) for arm in node.arms]
            if all(any(synchronises(each) for each in arm) for arm in arms):
                yield next(each for each in arms[0] if synchronises(each))
            elif _asks_for_others(node):
                yield from (each for arm in arms for each in arm)
            elif not node.condition.agree.divergent:  # ranks go the way on which a model is wrapped
                yield from (each for arm in arms for each in arm if each.kind == "wrap")


def _asks_for_others(node: Choice) -> bool:
    """Whether a setting decides about a barrier and nothing else: whether there is whom to meet."""
    what = node.condition.what
    if isinstance(what, Term) and what.op == "not":
        what = what.args[0]
    if node.condition.agree.divergent or not isinstance(what, Term) or what.op not in _SETTINGS:
        return False
    done = [each for arm in node.arms for each, _ in walk(arm.body)]
    return bool(done) and all(
        isinstance(each, Called) or (isinstance(each, Event) and each.name == "barrier")
        for each in done
    )


_SETTINGS = ("of", "option", "parameter", "global", "import", "joined")


def function_of(run: Run, thing: Event | Called | Loop | Object) -> ast.AST | None:
    """The innermost function in which it is written; None outside of all."""
    source = run.source(thing.path)
    return source.function(thing.node) if source is not None else None


def in_try(way: Way) -> bool:
    """Whether an error there is caught, and who caught it goes on."""
    return any(
        isinstance(step.node, Choice)
        and isinstance(step.node.node, ast.Try)
        and inside.seq is step.node.arms[0].body
        and _goes_on(step.node, step.node.node)
        for step, inside in pairwise(way)
    )


def _goes_on(tried: Choice, node: ast.Try) -> bool:
    """Whether who fails in a `try` does anything after it."""
    ways = zip(tried.arms[1:], node.handlers, strict=False)
    return not all(_ends(arm.body, *_FAILING) or _is_of_interrupts(each) for arm, each in ways)


_FAILING = ("end", "raise")


def _is_of_interrupts(handler: ast.ExceptHandler) -> bool:
    """Whether it catches no error, but what the user or the program itself ends it by."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(each is not None and text(each) in _INTERRUPTS for each in kinds)


_INTERRUPTS = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")


def is_distributed(run: Run) -> bool:
    """Whether the program joins a group, wraps a model or starts ranks itself."""
    found = run.answers.get("distributed")
    if found is None and _joins_alone(run.root):
        found = run.answers["distributed"] = False
    is_notebook = run.is_entry and run.path.endswith(".ipynb")  # of which no launcher makes two
    if found is None and is_notebook and not any(events(run.root, "spawn")):
        found = run.answers["distributed"] = False  # whatever it joins, it is alone there
    if found is None:
        is_one = is_notebook or is_for_one(run)
        kinds = ("init", "spawn", "group", *(() if is_one else ("wrap", "prepare")))
        meets = (way for _, way in events(run.root, "collective"))
        found = any(True for _ in events(run.root, *kinds)) or any(
            not (run.is_entry and (is_notebook or _is_for_ranks(way))) for way in meets
        )
        run.answers["distributed"] = found
    return bool(found)


def is_of_one_process(run: Run) -> bool:
    """Whether a program was followed to its end, and nowhere in it are there ranks."""
    return run.is_entry and not run.spent and not is_distributed(run)


def is_for_one(run: Run) -> bool:
    """Whether all that could start ranks is told to start one."""
    told = [
        (event.values["devices"], event.values.get("nodes", Value(Const(1))))
        for event, _ in events(run.root, "new")
        if "devices" in event.values
    ]
    if _joins_alone(run.root):
        return True
    return bool(told) and all(each.is_const(1) for pair in told for each in pair)


def _is_for_ranks(way: Way) -> bool:
    """Whether a function asks first if there are ranks: none are, where nobody is seen to join.

    It may have another do what it is for.
    """
    calls = 0
    for step in reversed(way):
        calls += isinstance(step.node, Called)
        if calls > 1:
            return False
        if any(map(_asks_for_ranks, step.seq.items[: step.index])):
            return True
    return False


def _asks_for_ranks(node: Node) -> bool:
    if isinstance(node, Called):
        return any(map(_asks_for_ranks, node.body.items))
    if not isinstance(node, Event):
        return False
    return node.kind == "ask" or (
        node.kind == "getenv" and node.values["name"].is_const("WORLD_SIZE")
    )
