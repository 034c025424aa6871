"""What a program was seen to do: events in sequence, choices, loops and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge

from ddpdoctor.lint.engine.interpreter.values import EVERYONE, Place, Value, What


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
    order: int = 0
    """After how many computations of the program."""

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
    scopes: tuple[str, ...] = ()
    """no_grad, ... around it, outermost first."""

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.path, getattr(self.node, "lineno", 1))

    @property
    def is_failure(self) -> bool:
        """Whether a process may end by it with a failure: who has started it ends the others."""
        if self.kind != "end":
            return self.kind in ("raise", "assert")
        return self.value is not None and not self.value.is_const(None, 0)


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
    writes: bool = False
    """Whether something is remembered on it: a variable, an attribute, an element."""
    given: tuple[tuple[What, bool], ...] = ()
    """What else holds on it, or does not, where ranks part: `all` in `if all and rank == 0`."""


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

    @property
    def place(self) -> Place:
        """Where its condition stands."""
        return Place(self.path, getattr(self.test, "lineno", 1))


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
    begun: int = 0
    """After how many computations of the program."""
    counted: dict[What, tuple[What, int | None]] = field(default_factory=dict)
    """What it changes: what it is in the first round, and what every round adds to that."""
    anew: frozenset[What] = frozenset()
    """Of that what a round may set to something else than more or less of it."""
    is_cut: bool = False
    """Whether the program was followed no further than into it."""

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.path, getattr(self.node, "lineno", 1))


@dataclass(slots=True, eq=False)
class Called:
    """A function of the user's that was run at a call."""

    node: ast.AST
    path: str
    name: str
    body: Seq
    function: str = "<module>"
    handed_in: bool = False
    """Whether it is called by the name under which a function around the caller was given it."""

    @property
    def place(self) -> Place:
        """Where the call stands."""
        return Place(self.path, getattr(self.node, "lineno", 1))


@dataclass(slots=True, eq=False)
class Seq:
    """One after the other."""

    items: list[Event | Exit | Choice | Loop | Called] = field(default_factory=list)
    known: dict[str, list[tuple[int, Event, Way]]] | None = None
    """Its events by kind, once somebody has asked for them: it is whole then."""


Node = Event | Exit | Choice | Loop | Called


@dataclass(slots=True)
class Step:
    """A node of the tree on the way to another, with what is around it."""

    seq: Seq
    index: int

    @property
    def node(self) -> Node:
        """The node."""
        return self.seq.items[self.index]

    @property
    def begun(self) -> Event | None:
        """Of a loop: the event that tells what it goes through."""
        before = self.seq.items[self.index - 1] if self.index else None
        return before if isinstance(before, Event) and before.kind == "iterate" else None

    @property
    def rest(self) -> list[Node]:
        """What follows it in its sequence."""
        return self.seq.items[self.index + 1 :]


Way = tuple[Step, ...]
"""The steps from the root to a node, outermost first."""


def walk(root: Seq, way: Way = ()) -> Iterator[tuple[Node, Way]]:
    """Every node with the way to it, itself included, in the order of the program."""
    for step, way_to in _steps(root, way):
        yield step.node, (*way_to, step)


def _steps(root: Seq, way: Way) -> Iterator[tuple[Step, Way]]:
    """Every step, with the way to its sequence."""
    todo = [(root, 0, way)]
    while todo:
        seq, index, way = todo.pop()
        items = seq.items
        while index < len(items):
            node, step = items[index], Step(seq, index)
            index += 1
            yield step, way
            inner = _inside(node)
            if inner:
                todo.append((seq, index, way))
                todo.extend((body, 0, (*way, step)) for body in reversed(inner))
                break


def _inside(node: Node) -> list[Seq]:
    if isinstance(node, Choice):
        return [arm.body for arm in node.arms]
    return [node.body] if isinstance(node, Loop | Called) else []


def caller(way: Way) -> Called | None:
    """The nearest call of the user's that leads there."""
    return next((step.node for step in reversed(way) if isinstance(step.node, Called)), None)


def events(root: Seq, *kinds: str) -> Iterator[tuple[Event, Way]]:
    """The events of these kinds, with the way to each."""
    if root.known is None:
        root.known = {}
        for number, (step, way) in enumerate(_steps(root, ())):
            node = step.node
            if isinstance(node, Event):
                root.known.setdefault(node.kind, []).append((number, node, (*way, step)))
    found = [root.known.get(kind, []) for kind in kinds or root.known]
    for _, event, way in found[0] if len(found) == 1 else merge(*found, key=_number):
        yield event, way


def _number(event: tuple[int, Event, Way]) -> int:
    return event[0]


def everyone() -> int:
    """The mask of all ranks."""
    return EVERYONE
