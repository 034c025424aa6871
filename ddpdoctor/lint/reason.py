"""Why the ways of two ranks parted: the decisions on the way of one that the other does not share.

The program is run in the head with the lines at which the ranks stand marked. A stack is then a way
through the tree of what was done, and each choice, exit and loop on it is a turn. Turns that both
have taken alike do not part them; of the others the nearest does that ranks decide differently.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import dropwhile, pairwise
from pathlib import PurePath
from typing import Literal

from ddpdoctor.lint.engine.interpreter.folding import of_world
from ddpdoctor.lint.engine.interpreter.loading import Loader
from ddpdoctor.lint.engine.interpreter.machine import BY_SOME, Machine
from ddpdoctor.lint.engine.interpreter.program import Program, Run, run_alone, run_file
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
)
from ddpdoctor.lint.engine.interpreter.values import (
    RANKS,
    Const,
    Ref,
    Table,
    Term,
    Value,
    What,
    Why,
    text,
)
from ddpdoctor.lint.engine.libraries import Library
from ddpdoctor.lint.engine.libraries.torch import VIEWS
from ddpdoctor.lint.engine.locator import Locator
from ddpdoctor.lint.engine.queries.naming import asks_how_many
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.raising import catching
from ddpdoctor.lint.engine.queries.telling import steps
from ddpdoctor.lint.linter import Reader, roots
from ddpdoctor.lint.rule import Related

Line = tuple[str, int]
"""(file, line)"""
Stack = Sequence[Line]
"""Lines of the user's that lead to where a rank is, outermost first."""
Functions = tuple[str, frozenset[int]]
"""(file, lines of their definitions)"""
_FUEL = 40_000
"""How far a program is followed, less far than by lint: somebody waits for the verdict."""
_MORE_FUEL = 320_000
"""The same, of a program too long for that: without it, nothing is known of where a rank stands."""
_STEPS = 6
"""So many operations away, what was computed of a thing is still known to be."""
_DIVISIONS = ("Div", "div", "div_", "true_divide")
_AS_IT_IS = VIEWS | {"clone", "contiguous", "cpu", "cuda", "double", "float", "to"}
"""Operations that change no number."""
_SCALING = frozenset(
    {"Div", "FloorDiv", "Mult", "MatMult", "div", "div_", "true_divide", "true_divide_", "divide"}
) | {"divide_", "mul", "mul_", "multiply", "multiply_", "mean", "nanmean"}
"""Operations that may make an average of a sum."""
_PRODUCTS = frozenset({"Mult", "mul", "mul_", "multiply", "multiply_"})
_QUOTIENTS = frozenset({"Div", "div", "div_", "true_divide", "true_divide_", "divide", "divide_"})
Kind = Literal["order", "rank", "local", "exception", "open"]
_KINDS: tuple[Kind, ...] = ("order", "rank", "local", "exception", "open")
"""The surest first: what the order of a set decides, the rank, a value of the rank's own, ..."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A decision on the way to a line."""

    shape: Literal["arm", "passed", "loop", "left"]
    """An arm that is taken, an exit that was not, a loop that goes on, a way out of it."""
    node: Choice | Loop
    arm: int = 0
    """The arm that is taken; of an exit, the one that takes it."""
    exit: Exit | None = None
    over: Event | None = None
    """Of a loop: what it goes through."""
    depth: int = 0
    """The line of the stack to whose function it belongs, 0 is the outermost."""
    tried: bool = False
    """Whether what is raised there may be caught on the way."""
    around: Loop | None = None
    """Of a way out: the loop that it leaves."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What two ways have in common if both take it."""
        leaves = id(self.exit.node) if self.exit is not None else 0
        return self.shape, id(self.node.node), self.arm, leaves


@dataclass(frozen=True, slots=True)
class Reason:
    """A decision by which the ways parted."""

    kind: Kind
    cause: str
    """Of a value of the rank's own: clock, disk, data, ..."""
    turn: Turn
    sure: bool
    """Whether flow shows that ranks differ in it."""
    fits: bool
    """Whether the rank decides, and the ranks that went each way are those that it sends there."""
    distance: int
    """How many turns it is away from where the rank waits."""
    at: Line = ("", 0)
    """Where the rank is in the function of the decision."""
    in_loop: bool = False
    """Whether a loop of the same function is around it."""
    is_outermost: bool = False
    """Whether it stands in the outermost function: who returns there is at the end."""
    is_loader: bool = False
    """Of a loop: whether it goes through the batches of a loader."""
    acted_on: Choice | None = None
    """Of a loop: the rank's condition under which what it goes through is told something."""

    @property
    def rank(self) -> tuple[int, bool, bool, bool]:
        """Lower is surer."""
        is_guess = self.kind == "open" and self.turn.shape == "arm"
        is_guess = is_guess or self.cause == "exception"  # nobody has seen one
        return _KINDS.index(self.kind), not self.fits, not self.sure, is_guess

    @property
    def left(self) -> str:
        """How ranks leave by it: continue, break, return, raise, end, or "" ."""
        return self.turn.exit.kind if self.turn.exit is not None else ""

    @property
    def word(self) -> str:
        """The same, as it is written."""
        return "exit" if self.left == "end" else self.left

    @property
    def asks_how_many(self) -> bool:
        """Whether it is asked if this rank has anything, or how much of it."""
        node = self.turn.node
        return isinstance(node, Choice) and asks_how_many(node.condition.what)

    @property
    def reloads(self) -> bool:
        """Whether something is loaded on one of the ways."""
        node = self.turn.node
        arms = node.arms if isinstance(node, Choice) and self.turn.shape == "arm" else ()
        found = Seq([each for arm in arms for each in arm.body.items])
        return any(True for _ in events(found, "load", "load_state"))

    @property
    def handler(self) -> ast.ExceptHandler | None:
        """What catches an exception, and lets the rank go on with the next round of a loop."""
        choice = self.turn.node
        if not isinstance(choice, Choice) or not isinstance(choice.node, ast.Try | ast.TryStar):
            return None
        for arm, handler in zip(choice.arms[1:], choice.node.handlers, strict=False):
            out = leaves(arm.body)
            goes_on = out is None or out.kind == "continue"
            if self.in_loop and goes_on and (self.turn.shape == "passed" or self.turn.arm == 0):
                return handler
        return None

    @property
    def way_out(self) -> ast.ExceptHandler | None:
        """What catches an exception of the block that it is in, and lets the rank go on."""
        choice = self.turn.node
        if not isinstance(choice, Choice) or not isinstance(choice.node, ast.Try | ast.TryStar):
            return None
        if self.turn.shape != "arm" or self.turn.arm:
            return None
        for arm, handler in zip(choice.arms[1:], choice.node.handlers, strict=False):
            out = leaves(arm.body)
            if out is None or out.kind == "return":
                return handler
        return None

    @property
    def handed_back(self) -> ast.ExceptHandler | None:
        """What catches an exception, and returns to the caller."""
        node = self.turn.node.node
        if self.left != "return" or not isinstance(node, ast.Try | ast.TryStar):
            return None
        return node.handlers[self.turn.arm - 1] if 0 < self.turn.arm <= len(node.handlers) else None

    @property
    def test(self) -> ast.AST:
        """The condition, or what a loop goes through."""
        node = self.turn.node
        if isinstance(node, Choice):
            return node.test
        loop = node.node
        if isinstance(loop, ast.For | ast.AsyncFor):
            return loop.iter
        return loop.test if isinstance(loop, ast.While) else loop

    @property
    def filled_by_some(self) -> Why | None:
        """Of a loop: the rank's condition under which what it goes through was filled."""
        if self.turn.shape != "loop" or self.kind != "rank" or self.why is None:
            return None
        return next((each for each in self.why.chain() if each.text == BY_SOME), None)

    @property
    def path(self) -> str:
        """The file of the decision."""
        filled = self.filled_by_some
        return filled.place.path if filled is not None else self.turn.node.path

    @property
    def line(self) -> int:
        """Where it is made: the statement that leaves, or the condition."""
        if self.filled_by_some is not None:
            return self.filled_by_some.place.line
        if self.acted_on is not None:
            return getattr(self.acted_on.test, "lineno", 1)
        if self.turn.exit is not None and self.turn.exit.path == self.path:
            return getattr(self.turn.exit.node, "lineno", 1)
        return getattr(self.test, "lineno", 1)

    @property
    def why(self) -> Why | None:
        """Why ranks answer differently."""
        node = self.turn.node
        found = node.condition if isinstance(node, Choice) else node.count
        is_said = self.kind == "rank" and found.agree.kind == "local"  # the chain is of the rest
        return None if is_said else found.why

    @property
    def chain(self) -> tuple[Related, ...]:
        """The values from which it follows, nearest first."""
        return steps(self.why)

    @property
    def told(self) -> str:
        """Where it stands: "stands under `if rank == 0:` (train.py:85)"."""
        return f"{self._stands()} ({self.where})"

    @property
    def where(self) -> str:
        """The place of the condition."""
        return f"{PurePath(self.turn.node.path).name}:{getattr(self.test, 'lineno', 1)}"

    def _stands(self) -> str:
        node, condition, holds = self.turn.node.node, text(self.test), True
        if isinstance(self.turn.node, Choice):
            holds = self.turn.node.arms[self.turn.arm].holds is not False
        if isinstance(node, ast.Assert):
            return f"stands after `assert {condition}`"
        if self.turn.exit is not None:
            when = f"if {condition}:" if holds else f"if {condition}: ... else:"
            return f"stands after `{when} {self.word}`"
        if isinstance(node, ast.While):
            return f"stands in `while {condition}:`"
        if isinstance(node, ast.If):
            return f"stands {'under' if holds else 'under the else of'} `if {condition}:`"
        return f"runs only when `{condition}` is {'true' if holds else 'false'}"


@dataclass(slots=True)
class _Trail:
    """A stack as a way through the program."""

    lines: tuple[Line, ...]
    turns: list[Turn] = field(default_factory=list)
    """Innermost first."""


class Heads:
    """The programs in which ranks stand, run in the head once for all questions about them."""

    def __init__(self, stacks: Iterable[Stack]) -> None:
        self._stacks = [tuple(stack) for stack in stacks if stack]
        self._reader = Reader()
        self._runs: dict[str, list[Run]] = {}
        self._alone: dict[Functions, list[Run]] = {}
        self._farther: Functions | None = None
        self._trails: dict[tuple[Line, ...], _Trail] = {}

    @cached_property
    def _program(self) -> Program:
        files = list(dict.fromkeys(file for stack in self._stacks for file, _ in stack))
        loader = Loader(self._reader.source, Locator(roots(files)), files)
        program = Program(loader)
        program.watched = frozenset(
            self._statement(each, loader) for stack in self._stacks for each in stack
        )
        return program

    def _statement(self, line: Line, loader: Loader | None = None) -> Line:
        """The first line of the statement that a line is of."""
        found = (loader or self._program.loader).text(line[0], always=True)
        return (line[0], found.statement(line[1])[0] if found is not None else line[1])

    def function(self, line: Line) -> str:
        """The qualified name of the function that a line is in."""
        found = self._program.loader.text(line[0], always=True)
        return found.statement(line[1])[2] if found is not None else ""

    # --- the question

    def reasons(
        self,
        mine: Stack,
        theirs: Stack = (),
        ranks: tuple[Sequence[int], Sequence[int]] = ((), ()),
    ) -> list[Reason]:
        """The decisions that led ranks here and others there, the surest and nearest first.

        `ranks` are those that stand at each. Without a second stack all decisions on the way count.
        """
        trail, other = self._trail(mine), self._trail(theirs)
        common = _common(trail.lines, other.lines)
        if theirs and common == len(trail.lines) == len(other.lines):
            return self._ordered(trail)
        found = self._ordered(trail)
        for distance in _beyond(trail, other, common):
            in_common = trail.turns[distance].depth == common
            beside = in_common and self._is_beside(trail.lines, other.lines, common)
            found += self._of_turn(trail, distance, ranks, beside)
        return sorted(_nearer_than_a_catch(found), key=_order)

    def decisions(self, mine: Stack, theirs: Stack) -> list[Line]:
        """The conditions and loops on the way of one that the other does not share, nearest first.

        If there are no others, ranks that stand at both have gone different ways at one of them.
        """
        trail, other = self._trail(mine), self._trail(theirs)
        common = _common(trail.lines, other.lines)
        turns = [trail.turns[each] for each in _beyond(trail, other, common)]
        tests = [
            turn.node.test
            if isinstance(turn.node, Choice)
            else turn.over.node
            if turn.over is not None
            else turn.node.node
            for turn in turns
        ]
        lines = ((t.node.path, getattr(n, "lineno", 1)) for t, n in zip(turns, tests, strict=True))
        return list(dict.fromkeys(lines))

    def _is_beside(self, mine: Stack, theirs: Stack, common: int) -> bool:
        """Whether the first lines that are not shared stand in one function."""
        if common >= min(len(mine), len(theirs)):
            return False
        one, other = mine[common], theirs[common]
        return one[0] == other[0] and self.function(one) == self.function(other)

    def alike(self, mine: Stack, theirs: Stack) -> bool:
        """Whether two stacks stand in the same statements."""
        return self._trail(mine).lines == self._trail(theirs).lines

    def way(self, stack: Stack) -> tuple[Line, ...]:
        """The lines that lead to where a stack stands; of a line alone, as the program runs."""
        return self._trail(stack).lines

    def condition(self, stack: Stack) -> Line | None:
        """The nearest condition by which the program comes there or not."""
        for turn in self._trail(stack).turns:
            is_exit = turn.shape == "passed" and turn.exit is not None
            is_raise = turn.exit is not None and turn.exit.kind in ("raise", "assert")
            if isinstance(turn.node, Choice) and (is_exit or turn.shape == "arm") and not is_raise:
                return turn.node.path, getattr(turn.node.test, "lineno", 1)
        return None

    def built_apart(self, wrap: Stack) -> list[Related]:
        """What ranks answer differently in building what is wrapped there: ways, and sizes."""
        at = self._statement(wrap[-1])
        found: dict[Related, None] = {}
        for run in (run for file, _ in wrap for run in self._run(file)):
            for event, way in events(run.root, "new", "register", "unfreeze", "wrap"):
                if event.kind == "wrap" and self._statement(_line(event)) == at:
                    return list(found)
                if event.kind == "new" and not event.name.startswith("torch.nn."):
                    continue
                for node in (step.node for step in way):
                    if isinstance(node, Choice) and node.condition.agree.divergent:
                        told = f"ranks go different ways by `{text(node.test)}`"
                        line = getattr(node.test, "lineno", 1)
                        found[Related(node.path, line, told)] = None
                for value in event.values.values():
                    if value.agree.divergent:
                        found.update(dict.fromkeys(steps(value.why)))
        return []

    def shared(self, mine: Stack, theirs: Stack) -> int:
        """How many of the outermost lines two stacks share."""
        return _common(self._trail(mine).lines, self._trail(theirs).lines)

    def is_divided(self, line: Line) -> bool:
        """Whether what is reduced on a line is divided by the number of ranks, wherever that is."""
        at = self._statement(line)
        for runs in self._candidates((at,)):
            if shared := list(self._reduced(runs, at)):
                return any(
                    _is_share(event.name, event.values["by"])
                    and any(_comes_of(run, event.values["owner"].what, each) for each in shared)
                    for run in runs
                    for event, _ in events(run.root, "asked")
                )
        return False

    def is_a_part(self, line: Line) -> bool:
        """Whether what is reduced on a line was divided by the number of ranks before."""
        at = self._statement(line)
        for runs in self._candidates((at,)):
            shared = [(run, what) for run in runs for what in self._reduced([run], at)]
            if shared:
                return all(_was_shared_out(run, what) for run, what in shared)
        return False

    def goes_back_in_parts(self, line: Line) -> bool:
        """Whether the loss that goes backward on a line was divided by the number of ranks."""
        at = self._statement(line)
        for runs in self._candidates((at,)):
            found = [
                (run, event.values["loss"].what)
                for run in runs
                for event, _ in events(run.root, "backward")
                if "loss" in event.values and self._statement(_line(event)) == at
            ]
            if found:
                return all(_was_shared_out(run, what) for run, what in found)
        return False

    def is_left(self, stack: tuple[Line, ...]) -> bool:
        """Whether what is reduced at the end of a way is multiplied by nothing after that.

        Unless by how many samples or batches there are: a mean over these is one of sums, still; or
        by a number that is written there and cannot be one of ranks, as for another unit.
        The whole program must have been followed, and along this way: who calls may divide.
        """
        way = tuple(map(self._statement, stack))
        for run in self._run(way[0][0]):
            shared = [
                summed.what
                for event, steps in events(run.root, "collective")
                if (summed := _summed(event)) is not None
                and _is_unbroken(
                    _aligned([*self._calls(steps), self._statement(_line(event))], way)
                )
            ]
            if shared and not run.spent:
                return not any(
                    event.name in _SCALING
                    and not _is_count(event.values[by].what)
                    and not _is_unit(event.name, event.values[by].what)
                    and any(_comes_of(run, event.values[side].what, each) for each in shared)
                    for event, _ in events(run.root, "asked")
                    for side, by in (("owner", "by"), ("by", "owner"))
                )
        return False

    def _calls(self, way: Way) -> list[Line]:
        """The statements of the calls on a way."""
        calls = [step.node for step in way if _is_call(step.node)]
        return [self._statement((each.path, getattr(each.node, "lineno", 1))) for each in calls]

    def _reduced(self, runs: Iterable[Run], at: Line) -> Iterator[What]:
        """What the collectives of a statement reduce."""
        for run in runs:
            for event, _ in events(run.root, "collective"):
                summed = _summed(event)
                if summed is not None and self._statement(_line(event)) == at:
                    yield summed.what

    def statement(self, line: Line) -> ast.stmt | None:
        """The innermost statement on a line."""
        found = self._program.loader.text(line[0], always=True)
        first = self._statement(line)[1]
        inner: ast.stmt | None = None
        for node in found.nodes if found is not None else ():
            if isinstance(node, ast.stmt) and node.lineno == first:
                inner = node
        return inner

    def _ordered(self, trail: _Trail) -> list[Reason]:
        """Loops in an order that each process has for itself."""
        return [
            Reason("order", "order", turn, agree.sure, False, distance)
            for distance, turn in enumerate(trail.turns)
            if turn.over is not None
            and (agree := turn.over.values["element"].agree).cause == "order"
        ]

    def _of_turn(
        self,
        trail: _Trail,
        distance: int,
        ranks: tuple[Sequence[int], Sequence[int]],
        beside: bool,
    ) -> Iterator[Reason]:
        turn = trail.turns[distance]
        node = turn.node
        agree = (node.condition if isinstance(node, Choice) else node.count).agree
        if turn.exit is not None and turn.exit.kind in ("raise", "assert") and not turn.tried:
            return  # who raises ends, and is no rank that waits or has ended well
        kind: Kind = "open"
        fits = False
        if agree.kind == "rank":
            kind = "rank"
            if isinstance(node, Choice):
                parted = _parted(turn, *ranks)
                if parted is False:
                    return
                fits = parted is True
        elif isinstance(node, Choice) and agree.kind == "local" and _parted(turn, *ranks):
            kind, fits = "rank", True  # whatever else is asked there, the others never come here
        elif agree.divergent:
            kind = "exception" if isinstance(node.node, ast.Try) else "local"
        elif agree.kind == "same" or not _may_differ(turn, beside):
            return
        outer = trail.lines[: turn.depth]
        around = (each for each in trail.turns[distance + 1 :] if each.depth == turn.depth)
        yield Reason(
            kind,
            agree.cause,
            turn,
            agree.sure,
            fits,
            distance,
            at=trail.lines[turn.depth],
            in_loop=any(each.shape == "loop" for each in around),
            is_outermost=all(self.function(line) == "<module>" for line in outer),
            is_loader=self._is_loader(turn),
            acted_on=_acted_on(turn),
        )

    def _is_loader(self, turn: Turn) -> bool:
        what = turn.over.values["over"].what if turn.over is not None else None
        made = self._program.objects.get(what.number) if isinstance(what, Ref) else None
        return made is not None and made.type == "torch.utils.data.DataLoader"

    # --- stacks as ways

    def _trail(self, stack: Stack) -> _Trail:
        key = tuple(stack)
        if key not in self._trails:
            try:
                self._trails[key] = self._follow(tuple(self._statement(line) for line in key))
            except RecursionError:
                self._trails[key] = _Trail(key)
        return self._trails[key]

    def _follow(self, stack: tuple[Line, ...]) -> _Trail:
        if not stack:
            return _Trail(())
        trail = _Trail(stack)
        if len(stack) == 1:  # nobody has seen who called it: whoever is seen to, in the head
            file = stack[0][0]
            for runs in (self._run, self._run_alone, self._run_farther):
                for way, lines in self._matches(stack, runs(file)):
                    trail.lines = tuple(lines)
                    trail.turns = list(_turns(self._vm, way, list(range(len(lines))), 0))
                    return trail
        end = len(stack)
        while end:
            part = stack[:end]
            best = self._best(part)
            if best is None:
                end -= 1
                continue
            way, matched = best
            first = next(number for number, at in enumerate(matched) if at is not None)
            trail.turns += _turns(self._vm, way, matched, first)
            end = matched[first] or 0
        return trail

    @property
    def _vm(self) -> Machine:
        """Any of the machines: objects and classes are those of the whole program."""
        return next(run.vm for runs in self._runs.values() for run in runs)

    def _run(self, file: str) -> list[Run]:
        if file not in self._runs:
            run = run_file(self._program, _library(), file, _FUEL)
            if run is not None and run.spent and not self._has_come_there(run):
                run = run_file(self._program, _library(), file, _MORE_FUEL) or run
            self._runs[file] = [run] if run is not None else []
        return self._runs[file]

    def _has_come_there(self, run: Run) -> bool:
        """Whether a program that is cut off was followed to where its ranks stand."""
        stacks = [tuple(map(self._statement, each)) for each in self._stacks]
        return not run.is_entry or all(
            any(_is_unbroken(_aligned(lines, stack)) for _, lines in self._matches(stack, [run]))
            for stack in stacks
            if stack[0][0] == run.path
        )

    def _best(self, stack: tuple[Line, ...]) -> tuple[Way, list[int | None]] | None:
        """The way to the innermost line that fits the stack best; a function alone, if need be.

        One that comes there through other lines than the stack is taken for want of a better one.
        """
        other: tuple[Way, list[int | None]] | None = None
        for runs in self._candidates(stack):
            found: list[tuple[int, int, int, Way, list[int | None]]] = []
            for way, lines in self._matches(stack, runs):
                matched = _aligned(lines, stack)
                count = sum(each is not None for each in matched)
                found.append((count, -len(lines), -len(found), way, matched))
            if found:
                *_, way, matched = max(found, key=lambda each: each[:3])
                if _is_unbroken(matched):
                    return way, matched
                other = other or (way, matched)
        return other

    def _candidates(self, stack: tuple[Line, ...]) -> Iterator[list[Run]]:
        for file in dict.fromkeys(file for file, _ in stack):
            yield self._run(file)
        for file, line in stack:
            yield self._run_alone(file, line)
        for file, line in reversed(stack):
            yield self._run_farther(file, line)

    def _run_alone(self, file: str, line: int = 0) -> list[Run]:
        """The functions around a line run with whatever arguments; all of a file for line 0."""
        around = self._around(file, line)
        if around not in self._alone:
            self._alone[around] = self._followed(around, _FUEL)
        return self._alone[around]

    def _run_farther(self, file: str, line: int = 0) -> list[Run]:
        """The same, of those that were cut off: of one stack's line alone, as it takes long."""
        around = self._around(file, line)
        if self._farther is None and any(run.spent for run in self._run_alone(file, line)):
            self._farther = around
            self._alone[around] = self._followed(around, _MORE_FUEL)
        return self._alone[around] if self._farther == around else []

    def _around(self, file: str, line: int) -> Functions:
        """The functions that a line is in; all of a file for line 0."""
        found = self._program.loader.text(file, always=True)
        lines = (
            node.lineno
            for node in (found.nodes if found is not None else ())
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (not line or node.lineno <= line <= (node.end_lineno or node.lineno))
        )
        return file, frozenset(lines)

    def _followed(self, functions: Functions, fuel: int) -> list[Run]:
        file, lines = functions
        found: list[Run] = []
        for run in self._run(file) if lines else ():
            run.vm.visited.clear()
            found += run_alone(run, set(lines), fuel)
        return found

    def _matches(
        self, stack: tuple[Line, ...], runs: Iterable[Run]
    ) -> Iterator[tuple[Way, list[Line]]]:
        """Each way to the innermost line, with the lines of the calls that lead to it."""
        for run in runs:
            there = [
                (event, way)
                for event, way in events(run.root, "stand")
                if (event.path, event.place.line) == stack[-1]
            ]
            for _, way in sorted(there, key=lambda each: _is_head(each[0].node)):
                yield way, [*self._calls(way), stack[-1]]


def reason(mine: Stack, theirs: Stack) -> Reason | None:
    """Why ranks stand at one line and others at another; None where the source does not say."""
    heads = Heads([mine, theirs])
    found = [*heads.reasons(mine, theirs), *heads.reasons(theirs, mine)]
    return min(found, key=_order, default=None)


def _order(each: Reason) -> tuple[object, ...]:
    return each.rank, each.distance


def _nearer_than_a_catch(found: list[Reason]) -> list[Reason]:
    """Without a `try` of whose body an `if` leaves it out: nobody has seen an exception."""
    ifs = [each for each in found if each.kind == "open" and each.turn.shape == "arm"]
    return [
        each
        for each in found
        if each.way_out is None
        or not any(
            inner.turn.depth == each.turn.depth and inner.distance < each.distance for inner in ifs
        )
    ]


def _common(mine: Sequence[Line], theirs: Sequence[Line]) -> int:
    """How many of the outermost lines are alike."""
    alike = (one == other for one, other in zip(mine, theirs, strict=False))
    return next((n for n, each in enumerate(alike) if not each), min(len(mine), len(theirs)))


def _is_unbroken(matched: list[int | None]) -> bool:
    """Whether a way, once it has come to a line of a stack, goes through the rest and no other."""
    inner = list(dropwhile(lambda each: each is None, matched))
    if not inner or (inner[0] and len(inner) < len(matched)):
        return False  # through other lines to one of its inner ones
    return inner == list(range(inner[0] or 0, (inner[0] or 0) + len(inner)))


def _aligned(lines: list[Line], stack: tuple[Line, ...]) -> list[int | None]:
    """Of each line of a way, which of the stack it is; None for what the stack does not show."""
    longest = [[0] * (len(stack) + 1) for _ in range(len(lines) + 1)]
    for i, one in enumerate(lines):
        for j, other in enumerate(stack):
            skip = max(longest[i][j + 1], longest[i + 1][j])
            longest[i + 1][j + 1] = longest[i][j] + 1 if one == other else skip
    found: list[int | None] = [None] * len(lines)
    i, j = len(lines), len(stack)
    while i and j:
        if lines[i - 1] == stack[j - 1]:
            i, j = i - 1, j - 1
            found[i] = j
        elif longest[i - 1][j] >= longest[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found


# --- the turns of a way


def _turns(vm: Machine, way: Way, matched: list[int | None], first: int) -> Iterator[Turn]:
    """The turns of a way in the functions from the first that the stack has, innermost first."""
    frame = len(matched) - 1
    depth = matched[frame] or 0
    tried = [_tried(way[:number]) for number in range(len(way))]
    for number in range(len(way) - 1, -1, -1):
        step = way[number]
        inner = way[number + 1] if number + 1 < len(way) else None
        node = step.node
        if _is_call(node):
            frame -= 1
            if frame < first:
                return
            depth = matched[frame] if matched[frame] is not None else depth  # type: ignore[assignment]
        elif isinstance(node, Choice) and inner is not None:
            arm = next(n for n, each in enumerate(node.arms) if each.body is inner.seq)
            yield Turn("arm", node, arm, depth=depth)
        elif isinstance(node, Loop):
            over = step.begun
            for exit_, conditions in _exits(node.body.items, ("break", "return", "end")):
                for choice, arm in _deciding(conditions):
                    yield Turn("left", choice, arm, exit_, depth=depth, around=node)
            for exit_, conditions in _exits(node.body.items, ("raise",)):
                if _is_caught(
                    vm, exit_, _conditions(way[: number + 1]), [c for c, _ in conditions]
                ):
                    for choice, arm in conditions:
                        yield Turn("left", choice, arm, exit_, depth=depth, tried=True, around=node)
            yield Turn("loop", node, over=over, depth=depth)
        earlier = step.seq.items[: step.index]
        kinds = ("break", "continue", "return", "end", "raise", "assert")
        for exit_, conditions in _exits(earlier, kinds):
            for choice, arm in reversed(_deciding(conditions)):
                yield Turn("passed", choice, arm, exit_, depth=depth, tried=tried[number])


def _is_head(node: ast.AST) -> bool:
    """Whether on its own line something else is done, as in `if rank == 0: dist.barrier()`."""
    body = getattr(node, "body", None)
    line = getattr(node, "lineno", 0)
    return isinstance(body, list) and any(each.lineno == line for each in body)


def _is_call(node: Node) -> bool:
    """Whether the program calls a function there: one that is run alone is called by nobody."""
    return isinstance(node, Called) and not isinstance(node.node, ast.stmt)


def _tried(way: Way) -> bool:
    """Whether what is raised at the end of a way may be caught on it."""
    bodies = (
        step.node.arms[0].body is inner.seq
        for step, inner in pairwise(way)
        if isinstance(step.node, Choice) and isinstance(step.node.node, ast.Try | ast.TryStar)
    )
    if any(bodies):
        return True
    stands = (each for step in way for each in step.seq.items[: step.index + 1])
    return any(isinstance(each, Event) and "suppress" in each.scopes for each in stands)


def _conditions(way: Way) -> Iterator[tuple[Choice, int]]:
    """The choices on a way with the arms that it takes, outermost first."""
    for step, inner in pairwise(way):
        if isinstance(step.node, Choice):
            arms = step.node.arms
            yield step.node, next(n for n, each in enumerate(arms) if each.body is inner.seq)


def _is_caught(
    vm: Machine, error: Exit, outer: Iterable[tuple[Choice, int]], inner: Iterable[Choice]
) -> bool:
    """Whether what is raised in a loop is caught around it, and not within."""
    if any(isinstance(each.node, ast.Try | ast.TryStar) for each in inner):
        return False
    tried = (c for c, arm in outer if not arm and isinstance(c.node, ast.Try | ast.TryStar))
    return any(catching(vm, each, error) is not None for each in tried)


def _exits(
    items: Iterable[Node],
    kinds: tuple[str, ...],
    conditions: tuple[tuple[Choice, int], ...] = (),
) -> Iterator[tuple[Exit, tuple[tuple[Choice, int], ...]]]:
    """The ways out of a part, each with the conditions that lead to it, outermost first."""
    for node in items:
        if isinstance(node, Exit):
            if node.kind in kinds:
                yield node, conditions
            return
        if isinstance(node, Choice):
            for number, arm in enumerate(node.arms):
                yield from _exits(arm.body.items, kinds, (*conditions, (node, number)))
        elif isinstance(node, Loop):
            inner = tuple(kind for kind in kinds if kind not in ("break", "continue"))
            yield from _exits(node.body.items, inner, conditions)
        elif isinstance(node, Called) and "end" in kinds:
            yield from _exits(node.body.items, ("end",), conditions)


def _deciding(conditions: Sequence[tuple[Choice, int]]) -> Sequence[tuple[Choice, int]]:
    """Those by which ranks leave or go on: within an arm that all leave, who went on was not."""
    for number, (choice, arm) in enumerate(conditions, 1):
        if leaves(choice.arms[arm].body) is not None:
            return conditions[:number]
    return conditions


def _line(event: Event) -> Line:
    return event.path, event.place.line


def _summed(event: Event) -> Value | None:
    """What a collective may add up: on all ranks, or on one."""
    return event.values.get("shares") or event.values.get("collects")


def _is_share(operation: str, by: Value) -> bool:
    """Whether an operation leaves each rank its part: a division by their number, or the like."""
    return _leaves_parts(operation, by.what)


def _leaves_parts(operation: str, by: What) -> bool:
    value = of_world(by)
    if operation in _DIVISIONS:
        return value == RANKS and isinstance(by, Term)
    return operation in ("Mult", "mul", "mul_") and value == 1 / RANKS


def _is_count(what: object) -> bool:
    """Whether it is how many samples something holds, or adds up such numbers, or ones."""
    if what == Const(1) or not isinstance(what, Term):
        return what == Const(1)
    if what.op == "Add":
        counts = [each for each in what.args if not _is_sum_so_far(each)]
        return bool(counts) and all(map(_is_count, counts))
    if what.op == "result" and isinstance(what.args[0], Term):
        return what.args[0].op == "of" and what.args[0].args[-1] in ("size", "numel")
    return what.op == "len"


def _is_unit(operation: str, what: object) -> bool:
    """Whether it is a known number, by which that operation makes no part: 100, or the log of 2."""
    number = _number(what)
    if not number or operation not in _PRODUCTS | _QUOTIENTS:
        return False
    parts = 1 / number if operation in _PRODUCTS else number
    return parts < 1 or not math.isclose(parts, round(parts), rel_tol=1e-9)


def _number(what: object) -> float | None:
    """What is written, or what a function of Python's `math` makes of that."""
    if isinstance(what, Const):
        return float(what.value) if type(what.value) in (int, float) else None
    if not isinstance(what, Term) or what.op != "lib" or len(what.args) < 2:
        return None
    module, _, name = str(what.args[0]).rpartition(".")
    given = [_number(each) for each in what.args[1:-1]]
    if module != "math" or None in given:
        return None
    try:
        return float(getattr(math, name)(*given))
    except (AttributeError, TypeError, ValueError, ArithmeticError):
        return None


def _is_sum_so_far(what: object) -> bool:
    return isinstance(what, Term) and what.op == "joined"


def _sizes(run: Run) -> set[What]:
    """What the program says is the number of ranks, as it joins: an option, an argument."""
    joined = (event.values.get("size") for event, _ in events(run.root, "init"))
    return {size.what for size in joined if size is not None and isinstance(size.what, Term)}


def _was_shared_out(run: Run, what: object, depth: int = _STEPS) -> bool:
    """Whether it was made by leaving each rank its part, or of such by what changes no number."""
    if not depth or not isinstance(what, What):
        return False
    made = run.vm.made.get(what)
    if made is None and isinstance(what, Term):
        operation, of = what.op, what.args
    elif made is not None:
        operation, of = made.by, tuple(each.what for each in made.of)
    else:
        return False
    if len(of) > 1 and isinstance(of[1], What):
        if _leaves_parts(operation, of[1]):
            return True
        if operation in _DIVISIONS and of[1] in _sizes(run):
            return True
    return bool(of) and operation in _AS_IT_IS and _was_shared_out(run, of[0], depth - 1)


def _comes_of(run: Run, what: What, source: What, depth: int = _STEPS) -> bool:
    """Whether something is a thing, or was computed of it."""
    if what == source:
        return True
    if not depth:
        return False
    made = run.vm.made.get(what)
    of = [each.what for each in made.of] if made is not None else []
    of += [each for each in what.args if isinstance(each, Term)] if isinstance(what, Term) else []
    return any(_comes_of(run, each, source, depth - 1) for each in of)


def _acted_on(turn: Turn) -> Choice | None:
    """The rank's condition in a loop under which what it goes through is told something."""
    if turn.over is None or not isinstance(turn.node, Loop):
        return None
    through = turn.over.values["over"].what
    for event, way in events(turn.node.body, "asked"):
        if event.values["owner"].what == through:
            for step in reversed(way):
                choice = step.node
                if isinstance(choice, Choice) and choice.condition.agree.kind == "rank":
                    return choice
    return None


def _beyond(trail: _Trail, other: _Trail, common: int) -> list[int]:
    """The numbers of the turns of one way that the other does not share."""
    shared = {turn.identity for turn in other.turns if turn.depth == common}
    return [
        number
        for number, turn in enumerate(trail.turns)
        if turn.depth > common or (turn.depth == common and turn.identity not in shared)
    ]


def _may_differ(turn: Turn, beside: bool) -> bool:
    """Whether ranks may have gone different ways at what nothing is known of."""
    node = turn.node.node
    if turn.exit is not None and turn.exit.kind == "raise":
        return False
    if turn.shape == "arm":
        return beside and isinstance(node, ast.If)
    if turn.shape == "passed":
        return turn.exit is not None and turn.exit.kind == "continue"
    # A loop that goes on for nobody knows how long is the nearer guess than a way out of it, unless
    # that asks for what each round makes anew.
    if turn.around is None or turn.around.count.agree.kind == "same":
        return True
    return isinstance(turn.around.node, ast.For) and _asks_for_the_round(turn, turn.around.node)


def _asks_for_the_round(turn: Turn, loop: ast.For) -> bool:
    """Whether a condition compares a value that the body of a loop assigns."""
    test = getattr(turn.node.node, "test", None)
    if test is None:
        return False
    compared = {
        name.id
        for each in ast.walk(test)
        if isinstance(each, ast.Compare)
        for name in ast.walk(each)
        if isinstance(name, ast.Name)
    }
    made = {
        name.id
        for statement in loop.body
        for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    return bool(compared & made)


def _parted(turn: Turn, mine: Sequence[int], theirs: Sequence[int]) -> bool | None:
    """Whether the rank sends these ranks different ways there; None where that is not known.

    The model job has more ranks: what is computed of their number, who is the last one or whose
    share it is, says of its last ranks, or of its shares, what holds for these.
    """
    mine = [rank for rank in mine if rank < RANKS]
    theirs = [rank for rank in theirs if rank < RANKS]
    if not mine or not theirs:
        return None
    condition = turn.node.condition.what if isinstance(turn.node, Choice) else None
    by_world = isinstance(condition, Table) and condition.by_world
    if (sent := _sent(turn, mine, theirs)) is not False or not by_world:
        return sent
    world = max((*mine, *theirs)) + 1
    last, share = RANKS - world, RANKS // world
    as_last = [[last + each for each in side] for side in (mine, theirs)]
    as_shares = [[share * each for each in side] for side in (mine, theirs)]
    return None if _sent(turn, *as_last) or _sent(turn, *as_shares) else False


def _sent(turn: Turn, mine: Sequence[int], theirs: Sequence[int]) -> bool | None:
    """The same, of ranks of the model job."""
    assert isinstance(turn.node, Choice)
    arm = turn.node.arms[turn.arm]
    may = {rank for rank in (*mine, *theirs) if arm.mask & (1 << rank)}
    surely = {rank for rank in may if not arm.opened & (1 << rank)}
    here, there = (mine, theirs) if turn.shape in ("arm", "loop") else (theirs, mine)
    if may.issuperset(here) and may.isdisjoint(there):
        return True
    if turn.shape == "passed" and may.isdisjoint(here) and surely.issuperset(there):
        return False  # it sends out just those that are still here
    if not may or (surely.issuperset(here) and surely.issuperset(there)):
        return False
    return None


def _library() -> Library:
    return Library()
