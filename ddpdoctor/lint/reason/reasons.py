"""A decision by which the ways of ranks parted, and how sure that is."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from ddpdoctor.lint.engine.interpreter.machine import BY_SOME, UNSEEN
from ddpdoctor.lint.engine.interpreter.tree import Choice, Seq, events
from ddpdoctor.lint.engine.interpreter.values import Why, text
from ddpdoctor.lint.engine.queries.naming import asks_how_many
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.telling import steps
from ddpdoctor.lint.reason.turns import Line, Turn
from ddpdoctor.lint.rule import Related

Kind = Literal["order", "rank", "local", "exception", "open"]
_KINDS: tuple[Kind, ...] = ("order", "rank", "local", "exception", "open")
"""The surest first: what the order of a set decides, the rank, a value of the rank's own, ..."""


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
        is_guess = is_guess or (self.why is not None and self.why.root.text == UNSEEN)
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


def order(each: Reason) -> tuple[object, ...]:
    """Lower is surer, then nearer."""
    return each.rank, each.distance


def nearer_than_a_catch(found: list[Reason]) -> list[Reason]:
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
