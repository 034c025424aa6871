"""The decisions on a way through the tree of what was done: its turns."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Node,
    Way,
    events,
)
from ddpdoctor.lint.engine.interpreter.values import RANKS, Table
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.raising import catching

Line = tuple[str, int]
"""(file, line)"""


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


def turns(vm: Machine, way: Way, matched: list[int | None], first: int) -> Iterator[Turn]:
    """The turns of a way in the functions from the first that the stack has, innermost first."""
    frame = len(matched) - 1
    depth = matched[frame] or 0
    tried = [_tried(way[:number]) for number in range(len(way))]
    for number in range(len(way) - 1, -1, -1):
        step = way[number]
        inner = way[number + 1] if number + 1 < len(way) else None
        node = step.node
        if is_call(node):
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


def is_call(node: Node) -> bool:
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


def acted_on(turn: Turn) -> Choice | None:
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


def may_differ(turn: Turn, beside: bool) -> bool:
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


def sends_apart(turn: Turn, mine: Sequence[int], theirs: Sequence[int]) -> bool | None:
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
