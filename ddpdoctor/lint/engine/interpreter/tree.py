"""What a program was seen to do: events in sequence, choices, loops and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ddpdoctor.lint.engine.interpreter.values import EVERYONE, Place, Value


@dataclass(slots=True, eq=False)
class Event:
    """One thing done: a collective, a forward, a save."""

    kind: str
    """collective, group, wrap, forward, backward, step, zero_grad, clip, save, load, ..."""
    name: str
    """The operation, as users call it."""
    node: ast.AST
    path: str
    values: dict[str, Value] = field(default_factory=dict)
    """What it is done with: group, path, model, optimizer, loss, ..."""
    scopes: tuple[str, ...] = ()
    """no_grad, no_sync, join, ... around it, outermost first."""
    function: str = "<module>"

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.path, getattr(self.node, "lineno", 1))


@dataclass(slots=True, eq=False)
class Exit:
    """A way out: return, break, continue, raise, or the end of the process."""

    kind: str
    node: ast.AST
    path: str
    value: Value | None = None


@dataclass(slots=True, eq=False)
class Arm:
    """One way of a choice."""

    mask: int
    """The ranks that may go it."""
    body: Seq
    opened: int = 0
    """Of these, the ranks of which it is not known whether they do."""
    holds: bool | None = None
    """Whether the condition is true on it; None where it is no yes or no."""


@dataclass(slots=True, eq=False)
class Choice:
    """Ways of which a rank goes one."""

    condition: Value
    node: ast.AST
    """The If, While, IfExp, BoolOp, Try, match or Assert."""
    test: ast.AST
    path: str
    arms: list[Arm]
    function: str = "<module>"


@dataclass(slots=True, eq=False)
class Loop:
    """A body that runs again and again."""

    node: ast.AST
    path: str
    count: Value
    """As often as this says: what it iterates over, or its condition."""
    body: Seq
    function: str = "<module>"
    rounds: int = 0
    """How often, where it is known."""


@dataclass(slots=True, eq=False)
class Called:
    """A function of the user's that was run at a call."""

    node: ast.AST
    path: str
    name: str
    body: Seq
    function: str = "<module>"


@dataclass(slots=True, eq=False)
class Seq:
    """One after the other."""

    items: list[Event | Exit | Choice | Loop | Called] = field(default_factory=list)


Node = Event | Exit | Choice | Loop | Called


@dataclass(frozen=True, slots=True)
class Step:
    """A node of the tree on the way to another, with what is around it."""

    seq: Seq
    index: int

    @property
    def node(self) -> Node:
        """The node."""
        return self.seq.items[self.index]

    @property
    def rest(self) -> list[Node]:
        """What follows it in its sequence."""
        return self.seq.items[self.index + 1 :]


Way = tuple[Step, ...]
"""The steps from the root to a node, outermost first."""


def walk(root: Seq, way: Way = ()) -> Iterator[tuple[Node, Way]]:
    """Every node with the way to it, itself included, in the order of the program."""
    for index, node in enumerate(root.items):
        here = (*way, Step(root, index))
        yield node, here
        if isinstance(node, Choice):
            for arm in node.arms:
                yield from walk(arm.body, here)
        elif isinstance(node, Loop | Called):
            yield from walk(node.body, here)


def events(root: Seq, *kinds: str) -> Iterator[tuple[Event, Way]]:
    """The events of these kinds, with the way to each."""
    for node, way in walk(root):
        if isinstance(node, Event) and (not kinds or node.kind in kinds):
            yield node, way


def everyone() -> int:
    """The mask of all ranks."""
    return EVERYONE
