"""The programs in which ranks stand, run in the head."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from ddpdoctor.lint.engine.interpreter.loading import Loader
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.program import Program, Run, run_alone, run_file
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import Ref, Value, text
from ddpdoctor.lint.engine.libraries import Library
from ddpdoctor.lint.engine.locator import Locator
from ddpdoctor.lint.engine.queries.rates import settings
from ddpdoctor.lint.engine.queries.rows import as_it_comes
from ddpdoctor.lint.engine.queries.telling import steps
from ddpdoctor.lint.linter import Reader, roots
from ddpdoctor.lint.reason.reasons import Kind, Reason, nearer_than_a_catch, order
from ddpdoctor.lint.reason.trails import Trail, aligned, beyond, is_unbroken, shared_lines
from ddpdoctor.lint.reason.turns import (
    Line,
    Turn,
    acted_on,
    is_call,
    may_differ,
    sends_apart,
    turns,
)
from ddpdoctor.lint.rule import Related

Stack = Sequence[Line]
"""Lines of the user's that lead to where a rank is, outermost first."""
Functions = tuple[str, frozenset[int]]
"""(file, lines of their definitions)"""
_FUEL = 40_000
"""How far a program is followed, less far than by lint: somebody waits for the verdict."""
_MORE_FUEL = 320_000
"""The same, of a program too long for that: without it, nothing is known of where a rank stands."""


class Heads:
    """The programs in which ranks stand, run in the head once for all questions about them."""

    def __init__(self, stacks: Iterable[Stack]) -> None:
        self._stacks = [tuple(stack) for stack in stacks if stack]
        self._reader = Reader()
        self._runs: dict[str, list[Run]] = {}
        self._alone: dict[Functions, list[Run]] = {}
        self._farther: Functions | None = None
        self._trails: dict[tuple[Line, ...], Trail] = {}

    @cached_property
    def _program(self) -> Program:
        files = list(dict.fromkeys(file for stack in self._stacks for file, _ in stack))
        loader = Loader(self._reader.source, Locator(roots(files)), files)
        program = Program(loader)
        program.watched = frozenset(
            self.first_line(each, loader) for stack in self._stacks for each in stack
        )
        return program

    def first_line(self, line: Line, loader: Loader | None = None) -> Line:
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
        common = shared_lines(trail.lines, other.lines)
        if theirs and common == len(trail.lines) == len(other.lines):
            return self._ordered(trail)
        found = self._ordered(trail)
        for distance in beyond(trail, other, common):
            in_common = trail.turns[distance].depth == common
            beside = in_common and self._is_beside(trail.lines, other.lines, common)
            found += self._of_turn(trail, distance, ranks, beside)
        return sorted(nearer_than_a_catch(found), key=order)

    def decisions(self, mine: Stack, theirs: Stack) -> list[Line]:
        """The conditions and loops on the way of one that the other does not share, nearest first.

        If there are no others, ranks that stand at both have gone different ways at one of them.
        """
        trail, other = self._trail(mine), self._trail(theirs)
        common = shared_lines(trail.lines, other.lines)
        turns = [trail.turns[each] for each in beyond(trail, other, common)]
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
        at = self.first_line(wrap[-1])
        found: dict[Related, None] = {}
        for run in (run for file, _ in wrap for run in self.run(file)):
            for event, way in events(run.root, "new", "register", "unfreeze", "wrap"):
                if event.kind == "wrap" and self.first_line(line_of(event)) == at:
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

    def rates_set_apart(self, step: Stack) -> list[Related]:
        """Where a learning rate is set by what ranks may have otherwise, and whence that comes.

        Of what no program calls, as a library does it, the functions that the step stands in.
        """
        files = dict.fromkeys(file for file, _ in step)
        found = [each for file in files for run in self.run(file) for each in _rates_set(run)]
        if not found:
            alone = (run for line in step for run in self._run_alone(*line))
            found = [each for run in alone for each in _rates_set(run)]
        return list(dict.fromkeys(found))

    def shared(self, mine: Stack, theirs: Stack) -> int:
        """How many of the outermost lines two stacks share."""
        return shared_lines(self._trail(mine).lines, self._trail(theirs).lines)

    def calls(self, way: Way) -> list[Line]:
        """The statements of the calls on a way."""
        calls = [step.node for step in way if is_call(step.node)]
        return [self.first_line((each.path, getattr(each.node, "lineno", 1))) for each in calls]

    def statement(self, line: Line) -> ast.stmt | None:
        """The innermost statement on a line."""
        found = self._program.loader.text(line[0], always=True)
        first = self.first_line(line)[1]
        inner: ast.stmt | None = None
        for node in found.nodes if found is not None else ():
            if isinstance(node, ast.stmt) and node.lineno == first:
                inner = node
        return inner

    def _ordered(self, trail: Trail) -> list[Reason]:
        """Loops in an order that each process has for itself."""
        return [
            Reason("order", "order", turn, agree.sure, False, distance)
            for distance, turn in enumerate(trail.turns)
            if turn.over is not None and (agree := as_it_comes(turn.over).agree).cause == "order"
        ]

    def _of_turn(
        self,
        trail: Trail,
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
                parted = sends_apart(turn, *ranks)
                if parted is False:
                    return
                fits = parted is True
        elif isinstance(node, Choice) and agree.kind == "local" and sends_apart(turn, *ranks):
            kind, fits = "rank", True  # whatever else is asked there, the others never come here
        elif agree.divergent:
            kind = "exception" if isinstance(node.node, ast.Try) else "local"
        elif agree.kind == "same" or not may_differ(turn, beside):
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
            acted_on=acted_on(turn),
        )

    def _is_loader(self, turn: Turn) -> bool:
        what = turn.over.values["over"].what if turn.over is not None else None
        made = self._program.objects.get(what.number) if isinstance(what, Ref) else None
        return made is not None and made.type == "torch.utils.data.DataLoader"

    # --- stacks as ways

    def _trail(self, stack: Stack) -> Trail:
        key = tuple(stack)
        if key not in self._trails:
            try:
                self._trails[key] = self._follow(tuple(self.first_line(line) for line in key))
            except RecursionError:
                self._trails[key] = Trail(key)
        return self._trails[key]

    def _follow(self, stack: tuple[Line, ...]) -> Trail:
        if not stack:
            return Trail(())
        trail = Trail(stack)
        if len(stack) == 1:  # nobody has seen who called it: whoever is seen to, in the head
            file = stack[0][0]
            for runs in (self.run, self._run_alone, self._run_farther):
                for way, lines in self._matches(stack, runs(file)):
                    trail.lines = tuple(lines)
                    trail.turns = list(turns(self._vm, way, list(range(len(lines))), 0))
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
            trail.turns += turns(self._vm, way, matched, first)
            end = matched[first] or 0
        return trail

    @property
    def _vm(self) -> Machine:
        """Any of the machines: objects and classes are those of the whole program."""
        return next(run.vm for runs in self._runs.values() for run in runs)

    def run(self, file: str) -> list[Run]:
        """A file as a program, run in the head; none if it cannot be."""
        if file not in self._runs:
            run = run_file(self._program, Library(), file, _FUEL)
            if run is not None and run.spent and not self._has_come_there(run):
                run = run_file(self._program, Library(), file, _MORE_FUEL) or run
            self._runs[file] = [run] if run is not None else []
        return self._runs[file]

    def _has_come_there(self, run: Run) -> bool:
        """Whether a program that is cut off was followed to where its ranks stand."""
        stacks = [tuple(map(self.first_line, each)) for each in self._stacks]
        return not run.is_entry or all(
            any(is_unbroken(aligned(lines, stack)) for _, lines in self._matches(stack, [run]))
            for stack in stacks
            if stack[0][0] == run.path
        )

    def _best(self, stack: tuple[Line, ...]) -> tuple[Way, list[int | None]] | None:
        """The way to the innermost line that fits the stack best; a function alone, if need be.

        One that comes there through other lines than the stack is taken for want of a better one.
        """
        other: tuple[Way, list[int | None]] | None = None
        for runs in self.candidates(stack):
            found: list[tuple[int, int, int, Way, list[int | None]]] = []
            for way, lines in self._matches(stack, runs):
                matched = aligned(lines, stack)
                count = sum(each is not None for each in matched)
                found.append((count, -len(lines), -len(found), way, matched))
            if found:
                *_, way, matched = max(found, key=lambda each: each[:3])
                if is_unbroken(matched):
                    return way, matched
                other = other or (way, matched)
        return other

    def candidates(self, stack: tuple[Line, ...]) -> Iterator[list[Run]]:
        """Programs that may come to where a stack stands: whole files first, then functions."""
        for file in dict.fromkeys(file for file, _ in stack):
            yield self.run(file)
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
        for run in self.run(file) if lines else ():
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
                yield way, [*self.calls(way), stack[-1]]


def _is_head(node: ast.AST) -> bool:
    """Whether on its own line something else is done, as in `if rank == 0: dist.barrier()`."""
    body = getattr(node, "body", None)
    line = getattr(node, "lineno", 0)
    return isinstance(body, list) and any(each.lineno == line for each in body)


def line_of(event: Event) -> Line:
    """Where an event is."""
    return event.path, event.place.line


def _rates_set(run: Run) -> Iterator[Related]:
    """What sets a rate or steps a schedule by what ranks have for themselves, and its reasons."""
    by_hand = ((event, way, [event.values["value"]]) for event, way, _ in settings(run))
    made = (
        (event, way, [event.values["lr"]])
        for event, way in events(run.root, "new")
        if "lr" in event.values
    )
    stepped = ((event, way, list[Value]()) for event, way in events(run.root, "schedule"))
    for event, way, given in (*by_hand, *made, *stepped):
        asked = [each.node.condition for each in way if isinstance(each.node, Choice)]
        own = [each for each in (*given, *asked) if each.agree.divergent]
        if own:
            doing = "sets the learning rate" if given else "steps the schedule"
            yield Related(*line_of(event), doing)
            calls = [(node.path, node.node) for node in (s.node for s in way) if is_call(node)]
            yield from (
                Related(path, getattr(at, "lineno", 1), "calls it") for path, at in calls[-1:]
            )
            yield from steps(own[0].why)
