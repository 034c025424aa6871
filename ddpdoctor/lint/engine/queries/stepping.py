"""Ranks whose passes over their data are not equally long, and that are in step all the same."""

from __future__ import annotations

import ast

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
    """The rounds that a loop counts, and those that are left before anybody hears of them."""

    def __init__(self, loop: Loop, words: Words) -> None:
        self._loop = loop
        self._skips: list[Choice] = []
        self._counters: set[What] = set()
        test = loop.node.test if isinstance(loop.node, ast.While) else None
        if test is None:
            return
        asked, has_begun, skips = _spelled(test), False, []
        for each, at in walk(loop.body):
            own = not any(isinstance(step.node, Loop | Called) for step in at)
            if isinstance(each, Event):
                is_sum = each.kind == "add_up" and own and self._counts(each, at, asked)
                has_begun = has_begun or is_sum or words.hears(each)
            elif isinstance(each, Exit) and own and not each.is_failure:
                if has_begun or each.kind != "continue":
                    return
                skips += [step.node for step in at if isinstance(step.node, Choice)]
        if self._counters:
            self._skips = skips

    def _counts(self, event: Event, at: Way, asked: set[str]) -> bool:
        """Whether something is counted in each round that is not left out, by which it ends."""
        old, value = event.values["old"].what, event.values["value"].what
        target = event.node.target if isinstance(event.node, ast.AugAssign) else None
        if target is None or text(target, 200) not in asked or value != Const(1):
            return False
        if old not in self._loop.counted or old in self._loop.anew:
            return False
        if not any(isinstance(step.node, Choice) for step in at):
            self._counters.add(old)
        return True

    def make_up_for(self, node: ast.AST, condition: Value) -> bool:
        """Whether ranks answer this differently only as some have left out rounds."""
        if any(each.node is node for each in self._skips):
            return True
        why = condition.why
        reasons = [each.condition.why for each in self._skips if each.condition.agree.divergent]
        if why is None or not any(each is not None and each.root == why.root for each in reasons):
            return False
        changed = {each for each in within(condition.what) if each in self._loop.counted}
        return node is self._loop.node or (bool(changed) and changed <= self._counters)


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
