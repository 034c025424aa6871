"""Steps of the optimizer that one rank skips by a value of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Exit, Loop, Seq, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import EVERYONE
from ddpdoctor.lint.engine.queries.partings import Met, Parting, leaves_somewhere


def skipped_steps(run: Run) -> Iterator[Parting]:
    """Partings after the backward: all ranks communicate alike, and one does not step."""
    if not any(True for _ in events(run.root, "wrap")):
        return
    for node, way in walk(run.root):
        if not isinstance(node, Choice) or node.condition.agree.kind != "local":
            continue
        if node.condition.agree.cause not in ("data", "exception") or _works_on_what_all_have(node):
            continue
        loop = next((s.node for s in reversed(way) if isinstance(s.node, Loop)), None)
        if loop is not None and (steps := _steps_of_one_arm(node)):
            yield _parting(node, "", None, steps, loop, way)
        for arm in node.arms:
            left = leaves_somewhere(arm.body)
            if left is None or left.kind != "continue" or loop is None:
                continue
            rest = Seq(list(way[-1].rest))
            if steps := _lone_steps(rest):
                yield _parting(node, "continue", left, steps, loop, way)


def _steps_of_one_arm(choice: Choice) -> list[Event]:
    """The steps that one way takes, where it does nothing else of a training, and another not."""
    taken = [_lone_steps(arm.body) for arm in choice.arms]
    passed = [not any(True for _ in events(arm.body, *_DONE, "step")) for arm in choice.arms]
    leaves = any(leaves_somewhere(arm.body) for arm in choice.arms)
    return next((each for each in taken if each), []) if any(passed) and not leaves else []


def _works_on_what_all_have(choice: Choice) -> bool:
    """Whether it is a `try` that handles reduced gradients alone: who fails there is not alone."""
    if not isinstance(choice.node, ast.Try):
        return False
    done = {id(event.node) for event, _ in events(choice.arms[0].body, *_ON_GRADIENTS)}
    body = [*choice.node.body, *choice.node.orelse]
    return all(isinstance(each, ast.Expr) and id(each.value) in done for each in body)


def _lone_steps(part: Seq) -> list[Event]:
    """The steps of a part in which the ranks do not meet."""
    if any(True for _ in events(part, *_DONE)):
        return []
    return [event for event, _ in events(part, "step") if "join" not in event.scopes]


_DONE = ("backward", "forward", "collective")
_ON_GRADIENTS = ("unscale", "clip", "step")


def _parting(
    choice: Choice,
    left: Literal["", "continue"],
    exit_: Exit | None,
    steps: list[Event],
    loop: Loop,
    way: Way,
) -> Parting:
    return Parting(
        choice.condition,
        choice.node,
        choice.test,
        choice.path,
        left,
        exit_,
        tuple(Met(each.node, each.path, each) for each in steps),
        loop=loop,
        mask=EVERYONE,
        way=way,
    )
