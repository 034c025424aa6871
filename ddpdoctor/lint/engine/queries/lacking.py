"""Gradients that a rank may lack: those of the parts that its own data have not used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import hierarchy, members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Loop, Seq, Way, events
from ddpdoctor.lint.engine.interpreter.values import Place
from ddpdoctor.lint.engine.queries.forwards import learns, surely_used, switches
from ddpdoctor.lint.engine.queries.wrapping import parts, wrappers


def asks_for_a_gradient(test: ast.AST) -> bool:
    """`x.grad is None`, or the contrary."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Attribute)
        and test.left.attr == "grad"
        and isinstance(test.ops[0], ast.Is | ast.IsNot)
    )


def own_choices(run: Run, way: Way) -> Iterator[Place]:
    """Where a rank alone decides which parts of an unwrapped module the training around uses."""
    training = [s.node for s in way if isinstance(s.node, Loop) and _trains(s.node.body)]
    seq = training[-1].body if training else Seq()
    methods = _methods_of_unwrapped_modules(run) if training else set()
    for choice in switches(run, seq, surely_used(run, seq)):
        if choice.condition.agree.divergent and (choice.path, choice.function) in methods:
            yield choice.place
    for event, _ in events(seq, "one_of_parts"):
        is_asked = "no_grad" not in event.scopes and (event.path, event.function) in methods
        if (
            is_asked
            and event.values["index"].agree.divergent
            and learns(run, event.values["of"].what)
        ):
            yield event.place


def _methods_of_unwrapped_modules(run: Run) -> set[tuple[str, str]]:
    """(file, name) of what was run of the modules that are in no wrapper."""
    wrapped = {part for each in wrappers(run) for part in parts(run, each)}
    inside = {run.vm.objects[each].cls for each in wrapped if each in run.vm.objects}
    return {
        (each.module.path, each.name)
        for each in run.vm.visited.values()
        if each.owner >= 0
        and each.owner not in inside
        and hierarchy.library_base(run.vm, each.owner) in members.MODULES
    }


def _trains(seq: Seq) -> bool:
    return any(True for _ in events(seq, "backward"))
