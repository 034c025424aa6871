"""What the forward of a module does, whatever it is given, and which of its parts take part."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter.objects import hierarchy, members
from ddpdoctor.lint.engine.interpreter.program import Run, run_forward
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Seq,
    Way,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    Place,
    Ref,
    Term,
    Value,
    What,
    is_layer,
)
from ddpdoctor.lint.engine.queries.wrapping import attributes, decided_from, parts


@dataclass(frozen=True, slots=True)
class Forward:
    """A forward that was run with arguments of which nothing is known."""

    seq: Seq
    given: frozenset[Term]
    """Its arguments."""
    unknown: bool
    """Whether it calls something of the module's that nothing is known of."""


def forward_of(run: Run, module: Value) -> Forward | None:
    """The forward of a module, None where it is not known, or not to its end."""
    key = f"forward {module.what!r}"
    if key not in run.answers:
        run.answers[key] = _forward(run, module)
    found: Forward | None = run.answers[key]
    return found


def _forward(run: Run, module: Value) -> Forward | None:
    if not isinstance(module.what, Ref):
        return None
    before = run.vm.made
    run.vm.made = {}
    try:
        ran = run_forward(run, module)
        called = {each.of[0].what for each in run.vm.made.values() if each.of}
    finally:
        run.vm.made = {**before, **run.vm.made}
    if ran is None:
        return None
    held = attributes(run)
    inside = parts(run, module.what)
    unknown = {
        value.what
        for owner, kept in held.items()
        if owner.number in inside
        for value in kept.values()
        if isinstance(value.what, Term) and value.what != NOTHING and not is_layer(value.what)
    }
    given = frozenset(each.what for each in ran[1] if isinstance(each.what, Term))
    return Forward(ran[0], given, bool(called & (unknown - given)))


# --- parts


def learns(run: Run, module: What) -> set[int]:
    """The layers and parameters that a module holds, itself included, by number."""
    return {each for each in parts(run, module) if has_parameters(run, each)}


def has_parameters(run: Run, number: int) -> bool:
    """Whether an object has parameters of its own."""
    made = run.vm.objects.get(number)
    if made is None or made.type not in members.MODULES:
        return False
    if made.type == "torch.nn.Parameter":
        return True
    return made.effect is not None and made.effect.option("has") != ""


def used(run: Run, seq: Seq) -> set[int]:
    """The layers that any way through a part of a forward may use."""
    return _layers(run, (event for event, _ in events(seq, "bare_forward", "use")))


def surely_used(run: Run, seq: Seq) -> set[int]:
    """The layers that every way through a forward uses."""
    found: set[int] = set()
    for node in seq.items:
        if isinstance(node, Event):
            found |= _layers(run, [node])
        elif isinstance(node, Called | Loop):
            found |= surely_used(run, node.body)
        elif isinstance(node, Choice):
            arms = [arm.body for arm in node.arms if not _raises(arm.body)]
            if arms:
                found |= set.intersection(*(surely_used(run, arm) for arm in arms))
            if any(isinstance(each, Exit) for arm in arms for each in arm.items):
                return found
    return found


def _raises(seq: Seq) -> bool:
    last = seq.items[-1] if seq.items else None
    return isinstance(last, Exit) and last.kind in ("raise", "assert")


def _layers(run: Run, done: Iterable[Event]) -> set[int]:
    """The layers that are called, and those whose parameters something is computed from."""
    found: set[int] = set()
    for event in done:
        if event.kind not in ("bare_forward", "use") or "no_grad" in event.scopes:
            continue
        what = event.values["model"].what
        if event.kind == "use" or (isinstance(what, Ref) and _is_a_sequence(run, what.number)):
            found |= learns(run, what)
        elif isinstance(what, Ref) and has_parameters(run, what.number):
            found.add(what.number)
    return found


def _is_a_sequence(run: Run, number: int) -> bool:
    """Whether it is of a class of the user's whose forward is torch's own, of all its layers."""
    made = run.vm.objects.get(number)
    if made is None or made.cls < 0:
        return False
    is_own = hierarchy.class_attribute(run.vm, made.cls, "forward") is not None
    return not is_own and hierarchy.library_class(run.vm, made.cls) == _SEQUENCE


_SEQUENCE = "torch.nn.Sequential"


def switches(run: Run, seq: Seq, beside: Collection[int] = ()) -> Iterator[Choice]:
    """The conditions that decide in a forward which layers take part, besides some.

    What one round of a `while` leaves out the next may use, before it is over.
    """
    for node, way in walk(seq):
        if isinstance(node, Choice) and not has_more_rounds(way):
            arms = [arm.body for arm in node.arms if not _raises(arm.body)]
            exits = [arm.items[-1] if arm.items else None for arm in arms]
            left = next((each for each in exits if isinstance(each, Exit)), None)
            behind = _behind(run, way, left) if left is not None else set()
            layers = [
                (used(run, arm) | (set() if isinstance(end, Exit) else behind)) - {*beside}
                for arm, end in zip(arms, exits, strict=True)
            ]
            if any(each != layers[0] for each in layers[1:]):
                yield node


def has_more_rounds(way: Way) -> bool:
    """Whether it stands in a `while` within one step of the training."""
    loops = [step.node for step in way if isinstance(step.node, Loop)]
    steps = [number for number, loop in enumerate(loops) if learns_in(loop)]
    inside = loops[steps[-1] + 1 :] if steps else loops
    return any(isinstance(loop.node, ast.While) for loop in inside)


def learns_in(loop: Loop) -> bool:
    """Whether there is a backward in its rounds."""
    return any(True for _ in events(loop.body, "backward"))


def _behind(run: Run, way: Way, left: Exit) -> set[int]:
    """The layers that are used behind a condition, but for whoever leaves there."""
    found: set[int] = set()
    for depth in range(len(way) - 1, -1, -1):
        found |= used(run, Seq(way[depth].rest))
        around = way[depth - 1].node if depth else None
        if isinstance(around, Called) or (isinstance(around, Loop) and left.kind != "return"):
            break
    return found


def decided_by(
    run: Run, seq: Seq, beside: Collection[int] = ()
) -> Iterator[tuple[Value, Place, ast.AST]]:
    """What decides in a forward which layers take part, and where: a condition, or an index."""
    for choice in switches(run, seq, beside):
        yield choice.condition, choice.place, choice.test
    for event, _ in events(seq, "one_of_parts"):
        if any(has_parameters(run, each) for each in parts(run, event.values["of"].what)):
            yield event.values["index"], event.place, event.node


def depends(run: Run, condition: Value, forward: Forward) -> bool:
    """Whether what a forward is given decides a condition."""
    return bool(decided_from(run, condition) & forward.given)
