"""Errors that one rank raises while the others go on to meet."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter.errors import catches
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Arm,
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
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    Const,
    Either,
    Place,
    Table,
    Tuple,
    Value,
    What,
    Why,
    text,
)
from ddpdoctor.lint.engine.queries.doing import doers, in_try
from ddpdoctor.lint.engine.queries.partings import Parting, leaves, met
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.engine.trees import last_name
from ddpdoctor.lint.rule import Related

_NEXT = 3
_FEW = 2
_OWN = ("data", "shard", "chance")
_SENDS = ("put", "put_nowait", "send")
_TOLD = ("format_exc", "format_exception", "exc_info")
"""What gives the error that is being handled, without its name."""


@dataclass(frozen=True, slots=True)
class LoneError:
    """An error of some ranks."""

    node: ast.AST
    path: str
    notes: tuple[str | Related, ...] = ()
    why: Why | None = None


def lone_errors(run: Run) -> Iterator[LoneError]:
    """Errors by the disk's answer to one rank, right before all ranks meet."""
    seen: set[int] = set()
    for node, way in walk(run.root):
        if not isinstance(node, Exit) or node.kind != "raise" or id(node.node) in seen:
            continue
        if not isinstance(node.node, ast.Raise) or _is_caught(way):
            continue
        by_rank = _alone_by_the_disk(way)
        if by_rank is None:
            continue
        index = next(i for i, step in enumerate(way) if step.node is by_rank)
        after = list(met(way[index].rest[:_NEXT]))
        if after and any(arm.body.items for arm in by_rank.arms):
            seen.add(id(node.node))
            note = Related.at(by_rank.place, f"they meet after the `if {text(by_rank.test)}`")
            yield LoneError(node.node, node.path, (note,))


def _alone_by_the_disk(way: Way) -> Choice | None:
    """What some ranks alone pass, behind which the disk's answer decides, and nothing unknown."""
    choices = [step.node for step in way if isinstance(step.node, Choice)]
    by_rank = next((each for each in choices if _is_by_rank(each.condition)), None)
    if by_rank is None or not any(each.condition.agree.cause == "disk" for each in choices):
        return None
    behind = [each.condition.agree for each in choices[choices.index(by_rank) + 1 :]]
    return by_rank if all(a.kind in ("same", "rank") or a.cause == "disk" for a in behind) else None


def _is_by_rank(condition: Value) -> bool:
    return isinstance(condition.what, Table) and condition.agree.kind in ("rank", "local")


def _is_caught(way: Way) -> bool:
    return any(isinstance(s.node, Choice) and isinstance(s.node.node, ast.Try) for s in way)


def caught_errors(run: Run) -> Iterator[LoneError]:
    """Errors by what a rank holds that are caught around a collective: it goes on without it."""
    told: set[int] = set()
    for node, way in walk(run.root):
        if not isinstance(node, Exit) or node.kind != "raise":
            continue
        for number, choice, handler, arm in _catchers(run, node, way):
            inside = way[number + 1 :]
            left = leaves(arm.body)
            if left is not None and left.kind == "raise":
                continue  # to the next one around it
            decided = next((s.node for s in inside if _is_by_own_data(s.node)), None)
            missed = [each for each in met([x for s in inside for x in s.rest]) if each.sure]
            collective = next((each for each in missed if each.event.kind == "collective"), None)
            is_settled = hands_on(handler) or any(True for _ in met(arm.body.items))
            is_settled = is_settled or _ends(way[: number + 1], left)
            if decided is None or collective is None or is_settled or id(handler) in told:
                break
            told.add(id(handler))
            notes = (
                Related.at(node.place, "a rank raises it by its own data"),
                Related.at(collective.event.place, f"it misses {collective.event.name}()"),
            )
            yield LoneError(handler, choice.path, notes)
            break


def raised(run: Run, parting: Parting) -> tuple[Related, ...]:
    """Of a `try` by which ranks part: where the program itself raises what is caught there."""
    if not isinstance(parting.node, ast.Try):
        return ()
    places: dict[Place, None] = {}
    for node, way in walk(run.root):
        if isinstance(node, Exit) and node.kind == "raise":
            around = (choice.node for _, choice, _, _ in _catchers(run, node, way))
            if next(around, None) is parting.node:
                places[node.place] = None
    return tuple(Related.at(each, "it is raised here") for each in [*places][:_FEW])


def _catchers(run: Run, error: Exit, way: Way) -> Iterator[tuple[int, Choice, ast.AST, Arm]]:
    """The `try`s on the way to an error that catch it, innermost first, each with its handler."""
    for number, step in reversed([*enumerate(way[:-1])]):
        choice = step.node
        if not isinstance(choice, Choice) or not isinstance(choice.node, ast.Try):
            continue
        if way[number + 1].seq is choice.arms[0].body:
            caught = catching(run.vm, choice, error)
            if caught is not None:
                yield number, choice, *caught


def _is_by_own_data(node: Node) -> bool:
    return isinstance(node, Choice) and node.condition.agree.cause in _OWN


def catching(vm: Machine, choice: Choice, error: Exit) -> tuple[ast.AST, Arm] | None:
    """The handler that catches an error, and what it does."""
    raised = error.value.what if error.value is not None else NOTHING
    for arm in choice.arms[1:]:
        event = arm.body.items[0] if arm.body.items else None
        if not isinstance(event, Event) or event.kind != "caught":
            continue
        if catches(vm, event.values["kind"].what, raised):
            return event.node, arm
    return None


def _ends(way: Way, left: Exit | None) -> bool:
    """Whether a rank ends in the handler, or behind the `try` with an error, and meets nobody."""
    if left is not None and left.kind == "end":
        return True
    for step in reversed(way):
        if isinstance(step.node, Loop):
            if left is None or left.kind == "continue":
                return False
            left = None if left.kind == "break" else left
        elif isinstance(step.node, Called):
            left = None
        if left is None:
            if any(True for _ in met(step.rest)):
                return False
            left = leaves(Seq(step.rest))
        if left is not None and left.kind in ("raise", "end"):
            return left.is_failure
    return False


def hands_on(handler: ast.AST) -> bool:
    """Whether what is caught, or words of it, goes to another process: to who has started this."""
    return isinstance(handler, ast.ExceptHandler) and any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _SENDS
        and any(_tells(part, handler.name) for each in call.args for part in ast.walk(each))
        for statement in handler.body
        for call in ast.walk(statement)
    )


def _tells(part: ast.AST, caught: str | None) -> bool:
    if isinstance(part, ast.Call):
        return last_name(part.func) in _TOLD
    if isinstance(part, ast.Constant):
        return isinstance(part.value, str)
    return isinstance(part, ast.Name) and part.id == caught


def missing_things(run: Run) -> Iterator[LoneError]:
    """Uses of what some ranks do not have: it is None there."""
    told: set[What] = set()
    for event, way in events(run.root, "of_some"):
        owner = event.values["owner"]
        assert isinstance(owner.what, Either)
        who = doers(way)
        nothing = owner.what.table(lambda each: each.is_const(None))
        lacking = nothing.ranks()[0] & who.mask & event.values["ranks"].constant if nothing else 0
        if not lacking or owner.what in told or in_try(way) or not owner.agree.sure:
            continue
        if all(_is_clear(each) for each in who.choices):
            told.add(owner.what)
            yield LoneError(event.node, event.path, why=owner.why)


def missing_names(run: Run) -> Iterator[LoneError]:
    """Readings of a name that has a value on some ranks alone, by the others too."""
    told: set[str] = set()
    for event, way in events(run.root, "unbound"):
        lacking, who = event.values["lacking"], doers(way)
        assert isinstance(lacking.what, Table)
        if not lacking.what.ranks()[0] & who.mask or in_try(way) or not lacking.agree.sure:
            continue
        if event.name not in told and all(_is_clear(each) for each in who.choices):
            told.add(event.name)
            yield LoneError(event.node, event.path, why=lacking.why)


def _is_clear(choice: Choice) -> bool:
    """Whether a condition does not ask, in words that nobody knows, if the thing is there."""
    is_rank = isinstance(choice.condition.what, Table)
    return is_rank or choice.condition.agree.kind == "same" or choice.node is choice.test


def unwanted_lists(run: Run) -> Iterator[LoneError]:
    """Lists that a collective takes of the root alone, given by every rank."""
    for event, way in events(run.root, "collective"):
        root, given = event.values.get("root") or Value(Const(0)), event.values.get("of_root")
        if (
            given is None
            or run.vm.type_of(given) != "list"
            or not is_world(event.values.get("group"))
        ):
            continue
        number, who = root.constant, doers(way)
        if not isinstance(number, int) or not who.mask & ~(1 << number):
            continue
        if _is_filled(run, given) and all(map(_is_of_known_ranks, who.choices)):
            yield LoneError(event.node, event.path, (f"the root is rank {number}",))


def _is_of_known_ranks(choice: Choice) -> bool:
    """Whether it is no condition that asks for a rank, of a group that is not known."""
    condition = choice.condition
    return condition.agree.kind != "rank" or isinstance(condition.what, Table)


def _is_filled(run: Run, given: Value) -> bool:
    held = run.vm.store.get((given.what, "[]"))
    return held is None or held.what != Tuple(())
