"""Where a program computes something from the outputs of a model's parts."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Loop,
    Seq,
    Way,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import Ref
from ddpdoctor.lint.engine.queries.consuming import outputs, uses
from ddpdoctor.lint.engine.queries.forwards import learns, learns_in
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.reading import reads
from ddpdoctor.lint.engine.queries.wrapping import attributes

_OF_FORWARDS = frozenset({"bare_forward", "iterate", "use", "cut"})


def computed_from_parts(run: Run, inside: Set[int]) -> Iterator[tuple[Event, list[ast.AST]]]:
    """Each part that has weights and is called by its name in training, with its first call.

    And where something is computed from what it gives, be it nowhere; parts of whose output that is
    not known are left out.
    """
    calls: dict[int, list[Event]] = {}
    given: dict[int, list[int]] = {}
    outer: Event | None = None
    for event, way in events(run.root, "bare_forward") if inside else ():
        model = event.values["model"].what
        if outer is not None and outer.node is event.node:
            continue  # a part of the sequence that is called here
        outer = event
        if not isinstance(model, Ref) or model.number not in inside or not _is_named(run, event):
            continue
        loops = [step.node for step in way if isinstance(step.node, Loop)]
        if "no_grad" in event.scopes or not any(map(learns_in, loops)):
            continue
        found = outputs(event) if _only_returns(way) else None
        calls.setdefault(model.number, []).append(event)
        given.setdefault(model.number, []).extend([-1] if found is None else found)
    used = uses(run) if calls else {}
    for number, done in calls.items():
        if -1 in given[number] or not learns(run, Ref(number)):
            continue
        own = {id(each.node) for each in done}
        nodes = [node for site in given[number] for node in used.get(site, ())]
        yield done[0], [node for node in nodes if id(node) not in own]


@dataclass(frozen=True, slots=True)
class Dropped:
    """One of the outputs that a comprehension has of one layer after the other, read by nobody."""

    call: Event
    name: str
    """What it is called; "" where it is one of a list of which some are read by their number."""


def dropped(run: Run, inside: Set[int]) -> Iterator[Dropped]:
    """Outputs of layers that are each called once, in a comprehension, and that nobody reads."""
    called: dict[int, dict[Ref, Event]] = {}
    places: Counter[Ref] = Counter()
    for event, way in events(run.root, "bare_forward", "use") if inside else ():
        model = event.values["model"].what
        if not isinstance(model, Ref) or model.number not in inside or "no_grad" in event.scopes:
            continue
        loops = [step.node for step in way if isinstance(step.node, Loop)]
        if event.kind == "bare_forward" and any(map(learns_in, loops)):
            here = called.setdefault(id(event.node), {})
            places[model] += model not in here
            here.setdefault(model, event)
        else:
            places[model] += 2
    for here in called.values():
        model, call = next(iter(here.items()))
        if learns(run, model) and all(places[each] == 1 for each in here):
            yield from (Dropped(call, name) for name in _unread(run, call))


def _unread(run: Run, call: Event) -> Iterator[str]:
    source = run.source(call.path)
    function = source.function(call.node) if source is not None else None
    if function is None:
        return
    nodes = list(ast.walk(function))
    read = {each.id for each in nodes if isinstance(each, ast.Name) and _is_read(each)}
    if read & {"locals", "vars", "eval", "exec"}:
        return
    counted = {
        each.value.id
        for each in nodes
        if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name)
        if isinstance(each.slice, ast.Constant | ast.UnaryOp)
    }
    for each in nodes:
        if not isinstance(each, ast.Assign) or not _calls_in_turn(each.value, call.node):
            continue
        for target in each.targets:
            if isinstance(target, ast.Tuple | ast.List):
                for one in target.elts:
                    if isinstance(one, ast.Name) and one.id not in read:
                        yield one.id
                    elif isinstance(one, ast.Attribute) and not reads(run, one.attr):
                        yield one.attr
            elif isinstance(target, ast.Name) and target.id in counted:
                yield ""


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _calls_in_turn(value: ast.AST, call: ast.AST) -> bool:
    """Whether a comprehension has what this call gives, of one layer after the other."""
    made = value if isinstance(value, ast.ListComp | ast.GeneratorExp) else None
    if made is None or not isinstance(call, ast.Call):
        return False
    bound = {
        each.id
        for generator in made.generators
        for each in ast.walk(generator.target)
        if isinstance(each, ast.Name)
    }
    asked = {each.id for each in ast.walk(call.func) if isinstance(each, ast.Name)}
    return bool(bound & asked) and any(each is call for each in ast.walk(made.elt))


def arms_with_all(run: Run, nodes: list[ast.AST]) -> Iterator[tuple[Choice, Way, set[int]]]:
    """The conditions under one arm of which all of these stand, with all that stands there."""
    if "arms" not in run.answers:
        run.answers["arms"] = list(_arms(run))
    for choice, way, within in run.answers["arms"]:
        if all(id(node) in within for node in nodes):
            yield choice, way, within


def _arms(run: Run) -> Iterator[tuple[Choice, Way, set[int]]]:
    """Each arm of a condition that both are gone on from, with all nodes of what it runs.

    So are the nodes of the functions that are called there alone.
    """
    everywhere = _calls(run.root)
    for choice, way in walk(run.root):
        if not isinstance(choice, Choice) or not isinstance(choice.node, ast.If):
            continue
        if any(leaves(arm.body) for arm in choice.arms):
            continue
        for arm in choice.arms:
            alone = {name for name, here in _calls(arm.body).items() if here == everywhere[name]}
            functions = [each.node for each in run.vm.visited.values() if each.name in alone]
            written = (*(choice.node.body if arm.holds else choice.node.orelse), *functions)
            yield choice, way, {id(node) for part in written for node in ast.walk(part)}


def _calls(body: Seq) -> Counter[str]:
    """How often each function is called there."""
    return Counter(each.name for each, _ in walk(body) if isinstance(each, Called))


def _is_named(run: Run, event: Event) -> bool:
    """Whether it is called by the name that it has somewhere, and not by somebody in between."""
    func = event.node.func if isinstance(event.node, ast.Call) else None
    model = event.values["model"].what
    return isinstance(func, ast.Attribute) and any(
        name == func.attr and value.what == model
        for held in attributes(run).values()
        for name, value in held.items()
    )


def _only_returns(way: Way) -> bool:
    """Whether a forward has told nobody anything but what it returns."""
    inner = way[-1].rest[0] if way[-1].rest else None
    if not isinstance(inner, Called):
        return True
    return all(event.kind in _OF_FORWARDS for event, _ in events(inner.body))
