"""Ranks whose passes over their data are not equally long, and that are in step all the same."""

from __future__ import annotations

import ast
from itertools import takewhile

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
from ddpdoctor.lint.engine.interpreter.values import Const, Value, What, Why, text, within
from ddpdoctor.lint.engine.queries.words import Words
from ddpdoctor.lint.engine.trees import targets


def is_in_step(node: Choice | Loop, condition: Value, way: Way, words: Words) -> bool:
    """Whether an endless loop makes up for passes of unequal length, and this goes by its rounds.

    Ranks begin the next pass at once, and all that they hear, and when they leave, is decided by
    what counts the rounds of all passes: in the same round all do the same.
    """
    outer = next((step.node for step in way if _is_endless(step.node)), None)
    if not isinstance(outer, Loop) or not isinstance(outer.node, ast.While) or not condition.why:
        return False
    passes = [each for each in outer.node.body if isinstance(each, ast.For)]
    if len(passes) != 1:
        return False
    rounds = {id(each) for x in passes[0].body for each in ast.walk(x)}
    counts = _Counts(outer, rounds, condition.why.root)
    for event, at in events(outer.body):
        own = id(event.node) in rounds or any(id(step.node.node) in rounds for step in at)
        if words.hears(event) and not own:
            return False
    for each, _ in walk(outer.body):
        if isinstance(each, Loop) and each.count.agree.divergent:
            heard = any(words.hears(event) for event, _ in events(each.body))
            if heard and not _is_pass(each, passes[0], rounds):
                return False
        if isinstance(each, Choice) and not counts.decide(each) and counts.may_part(each, words):
            return False
    if isinstance(node, Loop):
        return any(isinstance(x, Choice) and counts.decide(x) for x, _ in walk(outer.body))
    return counts.decide(node)


def is_made_up(node: ast.AST, condition: Value, way: Way, words: Words) -> bool:
    """Whether a loop that ends by what it counts makes up for the rounds that a rank leaves out.

    Nobody hears of such a round, and it is not counted: who has left one out has one more.
    """
    loops = (step.node for step in way if isinstance(step.node, Loop))
    return any(_Turns(each, words).make_up_for(node, condition) for each in loops)


class _Turns:
    """The rounds that a loop counts, and those that are left out before anybody hears of them."""

    def __init__(self, loop: Loop, words: Words) -> None:
        self._loop = loop
        self._skips: list[Choice] = []
        self._counters: set[What] = set()
        if not isinstance(loop.node, ast.While):
            return
        sums: list[tuple[What, Way]] = []
        heard: list[Way] = []
        skips: list[Choice] = []
        leaves: list[Choice] = []
        for each, at in walk(loop.body):
            own = [*takewhile(lambda step: not isinstance(step.node, Loop | Called), at)]
            called = at[len(own) :]
            if isinstance(each, Event):
                if words.hears(each):
                    heard.append(at)
                elif self._is_counted(each) and _is_straight(called):
                    sums.append((each.values["old"].what, at[: len(own) + 1]))
            elif isinstance(each, Exit) and not called and not each.is_failure:
                if each.kind != "continue":
                    leaves += _choices(at)
                elif heard:
                    return
                else:
                    skips += _choices(at)
                    sums.clear()  # of all rounds, also of those that are left out
        for _, at in sums:
            counted = {counter for counter, way in sums if way[-1].seq is at[-1].seq}
            # Whoever counts a round hears all of it, and nobody else does.
            if all(any(step.seq is at[-1].seq for step in way) for way in heard):
                self._leave_out([*skips, *_choices(at)], counted, leaves)

    def _leave_out(self, skips: list[Choice], counted: set[What], leaves: list[Choice]) -> None:
        """Take these for what leaves rounds out, if the loop ends by what is counted alone."""
        ends = [each.condition for each in leaves if each not in skips]
        asked = [self._loop.count, *ends]
        if any(self._goes_by(counted, each) for each in asked) and all(
            self._goes_by(counted, each) for each in ends
        ):
            self._skips, self._counters = skips, counted

    def _is_counted(self, event: Event) -> bool:
        """Whether it adds one to what no round sets to anything else."""
        if event.kind != "add_up" or event.values["value"].what != Const(1):
            return False
        old = event.values["old"].what
        return old in self._loop.counted and old not in self._loop.anew

    def _goes_by(self, counted: set[What], condition: Value) -> bool:
        """Whether it goes by these, and by nothing else that rounds change."""
        changed = {each for each in within(condition.what) if each in self._loop.counted}
        return bool(changed) and changed <= counted

    def make_up_for(self, node: ast.AST, condition: Value) -> bool:
        """Whether ranks answer this differently only as some have left out rounds."""
        if any(each.node is node for each in self._skips):
            return True
        why = condition.why
        reasons = [each.condition.why for each in self._skips if each.condition.agree.divergent]
        if why is None or not any(each is not None and each.root == why.root for each in reasons):
            return False
        return node is self._loop.node or self._goes_by(self._counters, condition)


def _is_straight(way: Way) -> bool:
    """Whether what is called here does it in any case, and once."""
    return not any(isinstance(step.node, Choice | Loop) for step in way)


def _choices(way: Way) -> list[Choice]:
    return [step.node for step in way if isinstance(step.node, Choice)]


def _is_endless(node: Node) -> bool:
    """Whether a loop is left from within alone."""
    at = node.node if isinstance(node, Loop) else None
    return isinstance(at, ast.While) and isinstance(at.test, ast.Constant) and bool(at.test.value)


def _is_pass(loop: Loop, over: ast.For, rounds: set[int]) -> bool:
    """Whether it is a loop whose rounds these are: itself, or that of the generator it is over."""
    if loop.node is over or id(loop.node) in rounds:
        return loop.node is over
    return any(id(each.node) in rounds for each, _ in walk(loop.body))


class _Counts:
    """What counts the rounds of an endless loop, in all the passes of the one inside it."""

    def __init__(self, outer: Loop, rounds: set[int], root: Why) -> None:
        self._all = {id(each) for each in ast.walk(outer.node)}
        self._root = root
        """Why passes are not equally long."""
        names = [x for x in ast.walk(outer.node) if isinstance(x, ast.Name | ast.Attribute)]
        bound = {id(x): text(x, 200) for x in names if not isinstance(x.ctx, ast.Load)}
        adding = {
            id(each.target)
            for each in ast.walk(outer.node)
            if isinstance(each, ast.AugAssign)
            and isinstance(each.op, ast.Add)
            and isinstance(each.value, ast.Constant)
            and id(each) in rounds
        }
        elsewhere = {
            event.name
            for event, _ in events(outer.body, "set_attribute")
            if id(event.node) not in self._all
        }
        self._bound = {*bound.values()}
        counted = {bound[each] for each in adding if each in bound}
        counted -= {name for each, name in bound.items() if each not in adding}
        self._names = {x for x in counted if "." not in x or x.split(".")[-1] not in elsewhere}

    def decide(self, choice: Choice) -> bool:
        """Whether these alone decide, beside what stays as it is for as long as the loop runs."""
        why, test = choice.condition.why, choice.test
        if not isinstance(choice.node, ast.If) or id(choice.node) not in self._all:
            return False
        if choice.condition.agree.divergent and (why is None or why.root != self._root):
            return False
        asked = _spelled(test)
        calls = any(isinstance(each, ast.Call) for each in ast.walk(test))
        return bool(asked & self._names) and not calls and asked & self._bound <= self._names

    def may_part(self, choice: Choice, words: Words) -> bool:
        """Whether ranks may hear something else by it, count on otherwise, or leave."""
        heard = any(words.hears(event) for arm in choice.arms for event, _ in events(arm.body))
        if id(choice.node) not in self._all:
            return heard and choice.condition.agree.divergent
        if not choice.condition.agree.divergent and not _spelled(choice.test) & self._bound:
            return False
        bound = {text(x, 200) for each in ast.walk(choice.node) for x in targets(each)}
        leaves = any(_leaves(arm.body) for arm in choice.arms)
        return heard or leaves or bool(bound & self._names)


def _leaves(seq: Seq) -> bool:
    """Whether a rank may leave there, but for an error, and not only what it has called."""
    return any(
        isinstance(each, Exit)
        and not each.is_failure
        and not any(isinstance(step.node, Called) for step in at)
        for each, at in walk(seq)
    )


def _spelled(test: ast.AST) -> set[str]:
    """The names and attributes that a condition asks for."""
    return {text(x, 200) for x in ast.walk(test) if isinstance(x, ast.Name | ast.Attribute)}
