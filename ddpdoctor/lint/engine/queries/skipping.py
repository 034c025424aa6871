"""Steps of the optimizer that one rank skips by a value of its own."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Loop, Seq, events, walk
from ddpdoctor.lint.engine.interpreter.values import EVERYONE
from ddpdoctor.lint.engine.queries.partings import Met, Parting, leaves_somewhere


def skipped_steps(run: Run) -> Iterator[Parting]:
    """Partings after the backward: all ranks communicate alike, and one does not step."""
    if not any(True for _ in events(run.root, "wrap")):
        return
    for node, way in walk(run.root):
        if not isinstance(node, Choice) or node.condition.agree.kind != "local":
            continue
        if node.condition.agree.cause not in ("data", "exception"):
            continue
        loop = next((s.node for s in reversed(way) if isinstance(s.node, Loop)), None)
        for arm in node.arms:
            left = leaves_somewhere(arm.body)
            if left is None or left.kind != "continue" or loop is None:
                continue
            rest = Seq(list(way[-1].rest))
            steps = [event for event, _ in events(rest, "step")]
            silent = not any(True for _ in events(rest, "backward", "forward", "collective"))
            if steps and silent:
                met = tuple(Met(each.node, each.path, each) for each in steps)
                yield Parting(
                    node.condition,
                    node.node,
                    node.test,
                    node.path,
                    "continue",
                    left,
                    met,
                    loop=loop,
                    mask=EVERYONE,
                    way=way,
                )
