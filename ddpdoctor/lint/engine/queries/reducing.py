"""Whether gradients are reduced when they are clipped and when the optimizer steps.

The loops of a program are gone through round by round, for one wrapper at a time: what was entered
is known from where `no_sync` was made in this very round.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.statements.loops import MAYBE
from ddpdoctor.lint.engine.interpreter.tree import (
    Arm,
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Node,
    Seq,
    Step,
    Way,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    NOTHING,
    WORLD,
    Const,
    Either,
    Lib,
    Ref,
    Term,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import DIVISIONS
from ddpdoctor.lint.engine.queries.counting import Counts
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.engine.queries.wrapping import made_by, mentioned, origins, wrappers

FLAG = "require_backward_grad_sync"
_RELEVANT = ("backward", "step", "clip", "enter", "exit", "scope", "set_attribute")
_BUDGET = 20_000
_OUTER_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Unreduced:
    """A clip or a step of gradients that no rank has shared yet."""

    event: Event
    choices: tuple[Choice, ...]
    """The conditions around it in its loop that count, outermost first."""
    by: Event
    """The `no_sync`, or the flag, that kept the last backward back."""
    sure: bool = True
    """Whether it is so however often the loops run of which that is not known."""
    ever: bool = False
    """Whether the same step follows a reduced backward in other rounds."""


@dataclass(frozen=True, slots=True)
class _Entered:
    event: Event
    sure: bool | None


@dataclass(frozen=True, slots=True)
class _State:
    reduced: bool | None = True
    """Whether the last backward was."""
    sure: bool = True
    """Whether that is so however often the loops before have run."""
    by: Event | None = None
    flag: bool | None = True
    flag_sure: bool = True
    flagged: Event | None = None
    fresh: frozenset[int] | None = frozenset()
    """The scopes that were made and not entered yet."""
    entered: tuple[_Entered, ...] = ()
    clipped: Unreduced | None = None


def unreduced(run: Run) -> list[Unreduced]:
    """All clips and steps of gradients that are not reduced."""
    found: list[Unreduced] | None = run.answers.get("unreduced")
    if found is None:
        found = run.answers["unreduced"] = list(_unreduced(run))
    return found


def _unreduced(run: Run) -> Iterator[Unreduced]:
    held: dict[What, None] = {}
    for event, _ in events(run.root, "scope", "set_attribute"):
        if event.kind == "scope" and event.name == "no_sync":
            held[event.values["of"].what] = None
        elif event.name == FLAG:
            held[event.values["owner"].what] = None
    if held:
        conditions = [node.condition for node, _ in walk(run.root) if isinstance(node, Choice)]
        averaged = _averaged(run)
        for wrapper in held:
            rounds = _Rounds(run, wrapper, Counts(conditions), alone=len(held) == 1)
            for each in rounds.find():
                if each.event.kind != "step" or id(each.event) not in averaged:
                    yield each


def _averaged(run: Run) -> set[int]:
    """The steps in whose loops ranks share weights as well, as local SGD does on purpose."""
    sharing = shared_in(run, {*wrappers(run), *_optimizers(run)})
    steps = events(run.root, "step")
    return {id(event) for event, way in steps if _loops_around(way) & sharing}


def shared_in(run: Run, weights: Collection[What]) -> set[int]:
    """The loops in which a collective shares what is, or may be, of these modules or optimizers."""
    sharing: set[int] = set()
    for event, way in events(run.root, "collective"):
        given = event.values.get("shares")
        if given is None:
            continue
        of = (given, *origins(run, given), *_gone_through(way))
        # Of what nothing at all is known may be weights as well.
        if given.what == NOTHING or any(
            not mentioned(run, each).isdisjoint(weights) for each in of
        ):
            sharing |= _loops_around(way)
    return sharing


def reduced_by_hand(run: Run, weights: Collection[What]) -> set[int]:
    """The loops in which gradients of these modules, or what each parameter has, are reduced."""
    found: set[int] = set()
    for event, way in events(run.root, "collective"):
        given = event.values.get("shares")
        behind = [] if given is None else [given, *origins(run, given)]
        grads = [each for each in behind if is_gradient(each.what)]
        through = list(_gone_through(way))
        of = [mentioned(run, each) for each in (*grads, *through)]
        # What is gone through may be the parameters of one of several models.
        several = any(isinstance(each.what, Term) and each.what.op == "joined" for each in through)
        if given is not None and (several or any(not each.isdisjoint(weights) for each in of)):
            found |= _loops_around(way)
    return found


def sums(event: Event) -> bool:
    """Whether a collective adds up what all ranks have."""
    how = event.values.get("reduce")
    is_sum = how is None or (isinstance(how.what, Lib) and how.what.name.endswith(".SUM"))
    return is_sum and is_world(event.values.get("group"))


def is_averaged(run: Run, event: Event) -> bool:
    """Whether a collective makes a mean over the ranks, itself or by what is divided behind it."""
    how, shared = event.values.get("reduce"), event.values.get("shares")
    if how is not None and isinstance(how.what, Lib) and how.what.name.endswith(".AVG"):
        return True
    if shared is None or not sums(event):
        return False
    for made in run.vm.made.values():
        if made.by in DIVISIONS and made.order > event.order and made.of[0].what == shared.what:
            return len(made.of) > 1 and WORLD in set(within(made.of[1].what))
    for change, _ in events(run.root, "change"):
        by = change.values.get("by") or change.values.get("given")
        if change.order >= event.order and change.values["object"].what == shared.what:
            return by is not None and by.what == WORLD and divides(change)
    return False


def divides(change: Event) -> bool:
    """Whether a tensor is divided in place: `x /= n`, `x.div_(n)`."""
    match change.node:
        case ast.AugAssign(op=ast.Div()):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in DIVISIONS
    return False


def is_gradient(what: What) -> bool:
    """Whether it is what a parameter has for its gradient."""
    return isinstance(what, Term) and what.op == "of" and what.args[1:] == ("grad",)


def scaled_gradients(run: Run) -> Iterator[tuple[Event, Way, What, Value]]:
    """Where a gradient is multiplied or divided, in its place or anew, and by what."""
    for event, way in events(run.root, "change", "set_attribute"):
        if event.kind == "change" and event.name in _SCALES:
            gradient, factor = event.values["object"], event.values.get("given")
        else:
            scaled = event.values["object" if event.kind == "change" else "value"]
            made = run.vm.made.get(scaled.what)
            if made is None or made.by not in _SCALES or len(made.of) < 2:
                continue
            gradient, factor = made.of[:2]
        if factor is not None and _is_of_a_gradient(gradient.what):
            yield event, way, gradient.what, factor


_SCALES = DIVISIONS | {"Mult", "mul", "mul_", "multiply"}


def _is_of_a_gradient(what: What) -> bool:
    """Whether it is a parameter's gradient, or its data."""
    if isinstance(what, Term) and what.op == "of" and what.args[1:] == ("data",):
        what = what.args[0]
    return is_gradient(what)


def _gone_through(way: Way) -> Iterator[Value]:
    """What the loops around go through, but for those that train."""
    for step in way:
        loop = step.node
        if not isinstance(loop, Loop) or any(True for _ in events(loop.body, "step", "backward")):
            continue
        if step.begun is not None:
            yield step.begun.values["content"]


def _loops_around(way: Way) -> set[int]:
    return {id(step.node) for step in way if isinstance(step.node, Loop)}


class _Spent(Exception):
    pass


class _Rounds:
    def __init__(self, run: Run, wrapper: What, counts: Counts, *, alone: bool) -> None:
        self.run, self.wrapper, self.counts, self.alone = run, wrapper, counts, alone
        self.optimizers = _optimizers(run)
        self.found: dict[int, Unreduced] = {}
        self.reduces = False
        """Whether any backward is: else each rank is meant to learn alone for a while."""
        self.reduced: set[int] = set()
        """The steps that follow a reduced backward in any round."""
        self.relevant: dict[int, bool] = {}
        self.budget = _BUDGET
        self.choices: list[Choice] = []

    def find(self) -> Iterable[Unreduced]:
        """Go through the program."""
        try:
            for state, _ in self.go(self.run.root, 0, _State()):
                self._forget_clip(state)
        except _Spent:
            pass
        return [
            replace(each, ever=id(each.event.node) in self.reduced)
            for each in self.found.values()
            if self.reduces or each.event.kind == "clip"
        ]

    # --- ways

    def go(self, seq: Seq, index: int, state: _State) -> list[tuple[_State, str]]:
        """Where a sequence may be left, and how: "" at its end."""
        for position in range(index, len(seq.items)):
            node = seq.items[position]
            if isinstance(node, Exit):
                return [(state, node.kind)]
            if not self._is_relevant(node):
                continue
            self.budget -= 1
            if self.budget < 0:
                raise _Spent
            ways = self._node(Step(seq, position), node, state)
            going = [each for each, left in ways if not left]
            leaving = [(each, left) for each, left in ways if left]
            if not going:
                return leaving
            state = _joined(going)
            if leaving:
                return [*leaving, *self.go(seq, position + 1, state)]
        return [(state, "")]

    def _node(self, step: Step, node: Node, state: _State) -> list[tuple[_State, str]]:
        if isinstance(node, Event):
            return [(self._event(node, state), "")]
        if isinstance(node, Called):
            ways = self.go(node.body, 0, state)
            return [(each, "" if left == "return" else left) for each, left in ways]
        if isinstance(node, Loop):
            return self._loop(step, node, state)
        assert isinstance(node, Choice)
        holds = self.counts.truth(node.condition)
        arms = [arm for arm in node.arms if holds is None or arm.holds in (holds, None)]
        counting = holds is not None
        if counting:
            self.choices.append(node)
        try:
            found = [way for arm in arms for way in self._arm(arm, state)]
        finally:
            if counting:
                self.choices.pop()
        whole = sum(arm.mask for arm in arms) if holds is not None else EVERYONE
        return found if found and whole else [*found, (state, "")]

    def _arm(self, arm: Arm, state: _State) -> list[tuple[_State, str]]:
        return self.go(arm.body, 0, state)

    def _loop(self, step: Step, node: Loop, state: _State) -> list[tuple[_State, str]]:
        counters = self.counts.counters_of(step)
        rounds = self.counts.rounds_of(node)
        if any(True for each in _loops(node.body) if self._is_relevant(each)):
            is_counted = any(by is not None for _, by in counters.values())
            rounds = rounds if is_counted else min(rounds, _OUTER_ROUNDS)
        outside, self.choices = self.choices, []
        leaving: list[tuple[_State, str]] = []
        ends: list[_State] = []
        try:
            for number in range(rounds):
                for counter, (first, by) in counters.items():
                    if by is None and number:
                        self.counts.counters.pop(counter, None)
                    else:
                        self.counts.counters[counter] = first + number * (by or 0)
                ways = self.go(node.body, 0, state)
                leaving += [way for way in ways if way[1] not in ("", "continue", "break")]
                going = [each for each, left in ways if left in ("", "continue")]
                broken = [each for each, left in ways if left == "break"]
                if not going:
                    return [*leaving, *((each, "") for each in broken)]
                state = _joined([*going, *broken])
                ends.append(state)
        finally:
            self.choices = outside
            for counter in counters:
                self.counts.counters.pop(counter, None)
        if not self.counts.is_known(node):
            last = ends[len(ends) // 2 :]  # what it has come to, if that does not change any more
            sure = state.sure and all(each.reduced == state.reduced for each in last)
            flag_sure = state.flag_sure and all(each.flag == state.flag for each in last)
            reduced = [number for number, each in enumerate(ends) if each.reduced]
            is_once = len(reduced) == 1  # `i == n - 1`: it has n rounds, one would say
            if not state.reduced and max(reduced, default=0) > 0 and (sure or is_once):
                state = replace(state, reduced=None)
            state = replace(state, sure=sure, flag_sure=flag_sure)
        return [*leaving, (state, "")]

    def _is_relevant(self, node: Node) -> bool:
        known = self.relevant.get(id(node))
        if known is None:
            match node:
                case Event():
                    known = node.kind in _RELEVANT
                case Exit():
                    known = True
                case Choice():
                    known = any(self._has(arm.body) for arm in node.arms)
                case _:
                    known = self._has(node.body)
            self.relevant[id(node)] = known
        return known

    def _has(self, seq: Seq) -> bool:
        return any(self._is_relevant(each) for each in seq.items)

    # --- events

    def _event(self, event: Event, state: _State) -> _State:
        match event.kind:
            case "scope" if event.name == "no_sync" and state.fresh is not None:
                made = event.values["scope"].what
                return replace(state, fresh=state.fresh | {_number(made)})
            case "enter":
                return self._enter(event, state)
            case "exit":
                kept = tuple(each for each in state.entered if not ends(event, each.event))
                return replace(state, entered=kept)
            case "set_attribute" if event.name == FLAG and self._is_ours(event.values["owner"]):
                flag = self._flag(event.values["value"])
                return replace(state, flag=flag, flag_sure=True, flagged=event)
            case "backward" if self._is_learnt(event):
                return self._backward(event, state)
            case "clip":
                if state.reduced is False and state.by is not None:
                    return replace(state, clipped=self._seen(event, state.by, state))
            case "step" if self._steps(event):
                if state.reduced:
                    self.reduced.add(id(event.node))
                if state.reduced is False and state.by is not None:
                    self._tell(self._seen(event, state.by, state))
                return replace(state, clipped=None)
        return state

    def _seen(self, event: Event, by: Event, state: _State) -> Unreduced:
        return Unreduced(event, tuple(self.choices), by, state.sure)

    def _tell(self, seen: Unreduced) -> None:
        known = self.found.get(id(seen.event.node))
        if known is None or (seen.sure and not known.sure):
            self.found[id(seen.event.node)] = seen

    def _forget_clip(self, state: _State) -> None:
        """What was clipped was never used by a step before other gradients came."""
        if state.clipped is not None:
            self._tell(state.clipped)

    def _flag(self, value: Value) -> bool | None:
        if isinstance(value.what, Const):
            return bool(value.what.value)
        return self.counts.truth(value)

    def _enter(self, event: Event, state: _State) -> _State:
        if "no_sync" not in event.name:
            return state
        options = _options(event.values["scope"])
        ours = [each.what for each in options if any(map(self._is_ours, _options(self._of(each))))]
        if not ours:
            return state
        sure: bool | None = True
        if event.name.startswith(MAYBE):
            known = state.fresh
            sure = None if known is None else any(_number(each) in known for each in ours)
        entered = _Entered(event, sure)
        fresh = state.fresh - {_number(each) for each in ours} if state.fresh is not None else None
        return replace(state, entered=(*state.entered, entered), fresh=fresh)

    def _of(self, manager: Value) -> Value:
        return self.run.vm.store.get((manager.what, "of")) or manager

    def _backward(self, event: Event, state: _State) -> _State:
        self._forget_clip(state)
        held = [each for each in state.entered if each.sure]
        if held or "no_sync" in event.scopes:
            by = held[-1].event if held else event
            return replace(state, reduced=False, sure=True, by=by, clipped=None)
        if state.flag is False:
            kept = replace(state, sure=state.flag_sure, by=state.flagged)
            return replace(kept, reduced=False, clipped=None)
        unknown = state.flag is None or any(each.sure is None for each in state.entered)
        self.reduces = self.reduces or not unknown
        return replace(state, reduced=None if unknown else True, sure=True, by=None, clipped=None)

    # --- whose

    def _is_ours(self, value: Value) -> bool:
        return value.what == self.wrapper

    def _is_learnt(self, event: Event) -> bool:
        """Whether a backward may reach the wrapper."""
        of = made_by(event.values.get("loss"))
        return not of or not isinstance(self.wrapper, Ref) or self.wrapper.number in of

    def _steps(self, event: Event) -> bool:
        """Whether it is an optimizer that steps, and not one of other models."""
        optimizer = stepped(event)
        if optimizer.what not in self.optimizers:
            return False
        if self.alone or len(self.optimizers) == 1:
            return True
        parameters = self.run.vm.store.get((optimizer.what, "parameters"))
        return parameters is not None and self.wrapper in mentioned(self.run, parameters)


def _optimizers(run: Run) -> set[What]:
    """What surely steps parameters, or the single thing that steps."""
    zeroed = {stepped(event).what for event, _ in events(run.root, "zero_grad")}
    sure: set[What] = set()
    owners: set[What] = set()
    for event, _ in events(run.root, "step"):
        owner, given = stepped(event).what, event.values.get("arg0")
        owners.add(owner)
        by_scaler = given is not None and (given.what in zeroed or _is_optimizer(run, given))
        if isinstance(owner, Ref) or owner in zeroed or by_scaler:
            sure.add(owner)
    return sure or (owners if len(owners) == 1 else set())


def _options(value: Value) -> tuple[Value, ...]:
    return value.what.options if isinstance(value.what, Either) else (value,)


def stepped(event: Event) -> Value:
    """What a step or a zero_grad is called of: an optimizer, where that is known."""
    values = event.values
    return values.get("optimizer") or values.get("object") or NONE


def _is_optimizer(run: Run, value: Value) -> bool:
    return run.vm.type_of(value) == "torch.optim.Optimizer"


def _joined(states: list[_State]) -> _State:
    first = states[0]
    for other in states[1:]:
        if other == first:
            continue
        first = _State(
            first.reduced if first.reduced == other.reduced else None,
            first.sure and other.sure,
            first.by if first.by is other.by else None,
            first.flag if first.flag == other.flag else None,
            first.flag_sure and other.flag_sure,
            first.flagged if first.flagged is other.flagged else None,
            first.fresh if first.fresh == other.fresh else None,
            first.entered if first.entered == other.entered else _unsure(first, other),
            first.clipped if first.clipped == other.clipped else None,
        )
    return first


def ends(exit: Event, entered: Event) -> bool:
    """Whether what was entered is left here: a scope, or the stack that holds it."""
    return any(
        word in exit.values and word in entered.values and exit.values[word] == entered.values[word]
        for word in ("scope", "stack")
    )


def _unsure(one: _State, other: _State) -> tuple[_Entered, ...]:
    both: dict[Any, _Entered] = {}
    for each in (*one.entered, *other.entered):
        alike = each in one.entered and each in other.entered
        both.setdefault(id(each.event), each if alike else replace(each, sure=None))
    return tuple(both.values())


def _number(what: What) -> int:
    return what.number if isinstance(what, Ref) else 0


def _loops(seq: Seq) -> Iterator[Loop]:
    for node, _ in walk(seq):
        if isinstance(node, Loop):
            yield node
