"""What holds on a way through the program: the answers to what is asked on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Way
from ddpdoctor.lint.engine.interpreter.values import Term, What, has_identity
from ddpdoctor.lint.engine.queries.partings import leaves


def conditions(way: Way) -> Iterator[tuple[What, bool]]:
    """What is asked on a way, and what the answer is: those before it that leave count as well."""
    for number, step in enumerate(way):
        behind = way[number + 1].seq if number + 1 < len(way) else None
        for each in step.seq.items[: step.index + 1]:
            if not isinstance(each, Choice):
                continue
            stays = [
                arm
                for arm in each.arms
                if (arm.body is behind if each is step.node else leaves(arm.body) is None)
            ]
            if len(stays) == 1 and stays[0].holds is not None:
                yield each.condition.what, stays[0].holds


def excludes(one: Way, other: Way) -> bool:
    """Whether what holds on one way does not on the other: no process goes both."""
    return not {(what, not holds) for what, holds in facts(one)}.isdisjoint(facts(other))


def stand_apart(one: Way, other: Way) -> bool:
    """Whether two ways go through two arms of one choice that is made once."""
    for mine, theirs in zip(one, other, strict=False):
        if mine.seq is not theirs.seq:
            return True  # behind a choice that both come to
        if mine.index != theirs.index or not isinstance(mine.node, Choice | Called):
            return False
    return False


def facts(way: Way, implied: Implied | None = None) -> Iterator[tuple[What, bool]]:
    """What follows from all that is asked on a way: values, each with its truth."""
    for what, holds in conditions(way):
        yield from following(what, implied or {}, holds=holds)


def following(what: What, implied: Implied, *, holds: bool) -> Iterator[tuple[What, bool]]:
    """What follows from an answer: where `a and b` holds both do.

    Of what is true after some of several ways, what holds on all of these.
    """
    todo, seen = [(what, holds)], set()
    while todo:
        what, holds = todo.pop()
        if (what, holds) in seen:
            continue
        seen.add((what, holds))
        if isinstance(what, Term) and what.op == "not":
            todo.append((what.args[0], not holds))
        elif isinstance(what, Term) and what.op == ("and" if holds else "or"):
            todo.extend((each, holds) for each in what.args)
        elif has_identity(what):
            yield what, holds
            opposite = _OPPOSITES.get(what.op) if isinstance(what, Term) else None
            if opposite is not None and isinstance(what, Term):
                yield Term(opposite, what.args), not holds
            todo.extend(implied.get((what, holds), ()))


Implied = Mapping[tuple[What, bool], Iterable[tuple[What, bool]]]
"""As of a `Machine`."""
_PAIRS = (("Eq", "NotEq"), ("Is", "IsNot"), ("In", "NotIn"))
_OPPOSITES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
