"""From a general finding and the source to the narrower name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ddpdoctor.annotate.source import (
    Condition,
    Loop,
    Sources,
    Stand,
    conditions,
    exits,
    handled,
    is_fixed,
    is_set,
    is_tried,
    leaving,
)
from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.evidence import Place
from ddpdoctor.lint.engine.guards import Guard, guards
from ddpdoctor.lint.engine.rank import rank_guards
from ddpdoctor.lint.engine.trees import Function, last_name, text

_STANDOFFS = {
    "deadlock",
    "early-exit",
    "collective-order-mismatch",
    "collective-shape-mismatch",
    "partial-new-group",
}
_PROVEN = "that these ranks wait for each other for ever is proven; why they parted is concluded"
_CALLERS = 3
_DISK = frozenset({"exists", "isfile", "isdir", "is_file", "is_dir", "listdir", "glob", "iglob"})
_REFRESH = re.compile(r"(^|[._])(refresh|reload|restore|ema)(_|$)", re.I)


@dataclass(frozen=True, slots=True)
class Party:
    """Ranks that went one way, with the lines that led them there, innermost first."""

    at: RankPlace
    way: list[Stand]
    parted: int
    """So many of the innermost lines are beyond where the parties' ways part."""
    beside: Stand | None
    """The line where another party stands in the function where the ways part."""


@dataclass(frozen=True, slots=True)
class Name:
    """What the source makes of a finding."""

    code: str
    title: str
    cause: str
    cure: str
    decision: Place | None = None
    """The line of the decision."""
    doing: str = "decides which way a rank goes"
    is_seen: bool = False
    """The ranks that went this way are those of which the source says so; else it is concluded."""


def named(finding: Finding, sources: Sources) -> Finding:
    """The finding under the name that the source gives it, or as it was."""
    try:
        if finding.title in _STANDOFFS:
            parties = list(_parties(finding, sources))
            explanations = [
                *(_unordered, _by_rank, _by_value, _by_the_disk, _by_loop, _by_branch),
            ]
            if finding.code in ("DDP403", "DDP408", "DDP417"):
                explanations = [_unordered] if _one_line(finding) else [_unordered, _by_rank]
            for explain in explanations:
                for party in parties:
                    if name := explain(finding, party, parties):
                        return _renamed(finding, name, party)
        elif finding.title == "exception":
            return _exception(finding, sources)
        elif finding.title == "timeout":
            return _timeout(finding, sources)
    except RecursionError:
        return finding
    return finding


def _one_line(finding: Finding) -> bool:
    return len({each.place for each in finding.places}) == 1


def _renamed(finding: Finding, name: Name, party: Party) -> Finding:
    """With the culprits' place first, then the decision, then the others as they were."""
    ranks = party.at.ranks
    decision = [RankPlace(ranks=ranks, place=name.decision, doing=name.doing)]
    places = [party.at, *(decision if name.decision else [])]
    others = [place for place in finding.places if place is not party.at]
    others += _calls(party, name, {each.place for each in finding.places})
    if name.code in ("DDP405", "DDP410", "DDP418"):
        places.reverse()
    # Of two equal sides, those that refresh, or go on looping, are named: the source is about them.
    is_tie = name.code in ("DDP418", "DDP505") and not finding.ranks
    is_theirs = is_tie or name.code in ("DDP401", "DDP406")
    concluded = finding.certainty == "proven" and not name.is_seen
    parted = (_PROVEN,) if concluded and finding.title == "deadlock" else ()
    return finding.model_copy(
        update={
            "code": name.code,
            "title": name.title,
            "certainty": "evidence" if concluded else finding.certainty,
            "evidence": (*finding.evidence, *parted),
            "cause": name.cause,
            "cure": Cure(text=name.cure),
            "ranks": ranks if is_theirs else finding.ranks,
            "places": (*places, *others),
        }
    )


def _calls(party: Party, name: Name, known: set[Place | None]) -> Iterator[RankPlace]:
    """The lines on its way to where it waits, from where the ways part, innermost first."""
    way = dict.fromkeys(stand.place for stand in party.way[1 : max(party.parted, 1)])
    for place in [each for each in way if each not in {*known, name.decision}][:_CALLERS]:
        yield RankPlace(ranks=party.at.ranks, place=place, doing="calls it")


def _parties(finding: Finding, sources: Sources) -> Iterator[Party]:
    ways = [(each, sources.way(each.place, each.stack)) for each in finding.places if each.place]
    for each, way in ways:
        if each.doing.startswith("has ended"):
            continue
        if not each.stack and way:
            way = [way[0], *sources.callers(way[0])]
        parted, beside = len(way), None
        for other, their in ways:
            if other is not each and each.stack and other.stack:
                common, line = _common(way, their)
                if common == len(way) == len(their):
                    continue  # the same party, told rank by rank
                if len(way) - common <= parted:
                    parted, beside = len(way) - common, line
        yield Party(each, way, parted, beside)


def _common(way: list[Stand], other: list[Stand]) -> tuple[int, Stand | None]:
    """How many of the outermost lines two ways share; the line of the other where they part."""
    common = 0
    for mine, theirs in zip(reversed(way), reversed(other), strict=False):
        if mine.place != theirs.place:
            alike = mine.module is theirs.module and mine.function() is theirs.function()
            return common, theirs if alike else None
        common += 1
    return common, None


def _apart(party: Party) -> Iterator[tuple[Stand, Stand | None]]:
    """The lines beyond the parting, innermost first; with the outermost, the others' line there."""
    for number, stand in enumerate(party.way[: party.parted], 1):
        yield stand, party.beside if number == party.parted else None


def _conditions(party: Party) -> Iterator[Condition]:
    for number, (stand, beside) in enumerate(_apart(party)):
        for condition in conditions(stand, beside):
            # Who raises ends, unless it is caught, and is no rank that waits or has ended well.
            if condition.leaves != "raise" or any(map(is_tried, party.way[number:])):
                yield condition


def _by_rank(finding: Finding, party: Party, parties: list[Party]) -> Name | None:
    """DDP401, DDP406, DDP410: the rank decides."""
    for condition in _conditions(party):
        if condition.kind != "rank":
            continue
        line, what = party.at.place, party.at.doing.split(",")[0]
        if finding.title == "early-exit" and _ends_the_program(condition, party):
            return _leave(f"{what} ({line}) {condition.told}", condition.place)
        if finding.title == "collective-shape-mismatch" and _both_under(condition, party, parties):
            return None
        if "(forward)" in party.at.doing:
            return Name(
                "DDP406",
                "rank0-only-evaluation",
                f"the forward of the DDP wrapper {condition.told}: it broadcasts buffers, and the "
                "other ranks never take part.",
                "Evaluate on all ranks, or call the bare module (model.module) on this one.",
                condition.place,
                is_seen=True,
            )
        return Name(
            "DDP401",
            "rank-conditional-collective",
            f"{what} ({line}) {condition.told}: the other ranks never reach it.",
            "Call it on every rank.",
            condition.place,
            is_seen=True,
        )
    return None


def _ends_the_program(condition: Condition, party: Party) -> bool:
    """Whether the exit is one from the outermost function, or from the interpreter."""
    outermost = [stand.place.function for stand in party.way if stand.place.function != "<module>"]
    home = bool(outermost) and condition.place.function == outermost[-1]
    return condition.leaves == "exit" or (condition.leaves == "return" and home)


def _both_under(condition: Condition, party: Party, parties: list[Party]) -> bool:
    """Whether another party stands under the same condition, in its other arm."""
    return any(
        other.place == condition.place
        for each in parties
        if each is not party
        for other in _conditions(each)
    )


def _by_value(finding: Finding, party: Party, parties: list[Party]) -> Name | None:
    """DDP307, DDP402, DDP405, DDP505: a value of the rank's own decides."""
    for condition in _conditions(party):
        if condition.kind != "local":
            continue
        if condition.leaves == "continue":
            return _skip(condition.told, condition.place)
        if condition.leaves in ("break", "return", "exit") or condition.way == "loop":
            return _stop(condition.told, condition.place)
        if any(_REFRESH.search(each.place.function) for each in party.way):
            return Name(
                "DDP505",
                "rank-divergent-refresh",
                f"{party.at.doing} ({party.at.place}) {condition.told}.",
                "Decide on a value that all ranks share: reduce or broadcast it first.",
                condition.place,
            )
        return _order(f"{party.at.doing} ({party.at.place}) {condition.told}.", condition.place)
    for stand, beside in _apart(party):
        if handler := handled(stand, beside):
            line = f"{Path(stand.place.file).name}:{handler.lineno}"
            told = f"is skipped by a rank where an exception is caught ({line})"
            return _skip(told, stand.at(handler))
    return None


def _by_the_disk(finding: Finding, party: Party, parties: list[Party]) -> Name | None:
    """DDP513: what lies on the disk decides, and no other condition is this party's alone."""
    alone: list[tuple[Stand, Guard]] = []
    for number, (stand, beside) in enumerate(_apart(party)):
        shared = {id(g.test) for g in guards(beside.module, beside.node)} if beside else set()
        for guard in guards(stand.module, stand.node):
            # Who raises ends, unless it is caught, and is no rank that waits or has ended well.
            is_way = leaving(guard.node) != "raise" or any(map(is_tried, party.way[number:]))
            if id(guard.test) not in shared and is_way:
                alone.append((stand, guard))
    asking = [(stand, guard) for stand, guard in alone if _asks_the_disk(stand, guard.test)]
    if not asking or len(alone) > len(asking):
        return None
    stand, guard = asking[0]
    line = getattr(guard.node if guard.kind == "exit" else guard.test, "lineno", 0)
    after = "after an exit under" if guard.kind == "exit" else "under"
    return Name(
        "DDP513",
        "resume-on-one-rank",
        f"{party.at.doing} ({party.at.place}) stands {after} `{text(guard.test)}` "
        f"({Path(stand.place.file).name}:{guard.test.lineno}): what lies on the disk decides, and "
        "the ranks have found different things there.",
        "Let rank 0 look, and broadcast what it has found.",
        Place(stand.place.file, line, stand.module.qualname(guard.test)),
        "asks the disk",
    )


def _asks_the_disk(stand: Stand, test: ast.expr) -> bool:
    named = (stand.module.value(n) for n in ast.walk(test) if isinstance(n, ast.Name))
    values = [test, *(value for value in named if value is not None)]
    return any(
        isinstance(node, ast.Call) and last_name(node.func) in _DISK
        for value in values
        for node in ast.walk(value)
    )


def _skip(told: str, place: Place) -> Name:
    return Name(
        "DDP307",
        "rank-local-skip",
        f"one rank skips a step that the others take: the step {told}.",
        "Agree on the skip (all_reduce a flag), or contribute zeros.",
        place,
        "skips",
    )


def _stop(told: str, place: Place) -> Name:
    return Name(
        "DDP405",
        "local-stop-decision",
        f"each rank decides for itself when to stop: the loop {told}.",
        "Let rank 0 decide and broadcast, or reduce the value first.",
        place,
        "decides when to stop",
    )


def _leave(told: str, place: Place) -> Name:
    return Name(
        "DDP410",
        "early-exit",
        f"{told}: the ranks that left are waited for.",
        "Let all ranks leave together, after their last collective.",
        place,
        "leaves",
    )


def _order(cause: str, place: Place | None) -> Name:
    return Name(
        "DDP402",
        "collective-order-mismatch",
        f"the ranks call different collectives: {cause}",
        "Call the same collectives in the same order on every rank.",
        place,
    )


def _by_loop(finding: Finding, party: Party, parties: list[Party]) -> Name | None:
    """DDP405, DDP418: this party is in a loop that the others have left."""
    for stand, beside in reversed(list(_apart(party))):
        for loop in reversed(stand.module.loops(stand.node)):
            if beside is not None and stand.module.inside(beside.node, *loop.body):
                continue
            if name := _left(finding, stand, loop, party):
                return name
    return None


def _left(finding: Finding, stand: Stand, loop: Loop, party: Party) -> Name | None:
    """Why other ranks may have left a loop before this one."""
    file = Path(stand.place.file).name
    ways = list(exits(stand, loop))
    sure = [each for each in ways if each.by_rank or each.reason]
    sure = sure or (ways if is_fixed(stand, loop) else [])
    if sure:
        leave = sure[0]
        place, line = stand.at(leave.statement), f"{file}:{leave.test.lineno}"
        told = f"is left by `{leaving(leave.statement)}` under `{text(leave.test)}` ({line})"
        if leave.by_rank and leaving(leave.statement) != "break":
            return _leave(f"the loop around {party.at.place} {told}", place)
        return _stop(f"{told}, and {leave.reason}" if leave.reason else told, place)
    if isinstance(loop, ast.While) and not is_fixed(stand, loop):
        return _stop(f"runs `while {text(loop.test)}` ({file}:{loop.lineno})", stand.at(loop))
    if isinstance(loop, ast.For) and (guard := _acted_on_by_one(stand, loop)) is not None:
        told = f"goes through `{text(loop.iter)}` ({file}:{loop.lineno}), which is told how it goes"
        where = f"under `{text(guard.test)}` ({file}:{guard.test.lineno})"
        return _stop(f"{told} {where}, on some ranks only", stand.at(guard.test))
    if isinstance(loop, ast.For) and not is_fixed(stand, loop) and not _is_loader(loop):
        return Name(
            "DDP418",
            "data-dependent-collective",
            f"{party.at.doing} ({party.at.place}) runs once for each of `{text(loop.iter)}` "
            f"({file}:{loop.lineno}), and the ranks do not have equally many.",
            "Agree on the keys and counts first (all_gather_object), then communicate.",
            stand.at(loop),
            "runs unequally often",
        )
    return None


def _acted_on_by_one(stand: Stand, loop: ast.For) -> Guard | None:
    """The rank's condition under which the body does something to what the loop goes through."""
    module, through = stand.module, text(loop.iter)
    if isinstance(loop.iter, ast.Call):
        return None  # made for the loop
    functions = {each.name: each for each in ast.walk(module.tree) if isinstance(each, Function)}
    for call in (node for node in module.within(loop) if isinstance(node, ast.Call)):
        called = functions.get(last_name(call.func))
        done = [call, *(ast.walk(called) if called is not None else ())]
        acts = any(
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and text(each.func.value) == through
            for each in done
        )
        inside = [g.guard for g in rank_guards(module, call) if module.inside(g.guard.test, loop)]
        if acts and inside:
            return inside[0]
    return None


def _is_loader(loop: ast.For) -> bool:
    return any(
        "loader" in last_name(each).lower() or "batches" in last_name(each).lower()
        for each in ast.walk(loop.iter)
        if isinstance(each, ast.Name | ast.Attribute)
    )


def _by_branch(finding: Finding, party: Party, parties: list[Party]) -> Name | None:
    """DDP402: the parties stand in different arms of one condition."""
    for stand, beside in _apart(party):
        child = stand.node
        for parent in stand.module.ancestors(stand.node):
            if beside is None or parent is stand.function():
                break
            if isinstance(parent, ast.If) and child is not parent.test:
                arm = parent.body if child in parent.body else parent.orelse
                if stand.module.inside(beside.node, *arm):
                    break
                line = f"{Path(stand.place.file).name}:{parent.lineno}"
                told = f"stands in an arm of `if {text(parent.test)}` ({line}) that not all take."
                cause = f"{party.at.doing} ({party.at.place}) {told}"
                return _order(cause, stand.at(parent))
            child = parent
    return None


def _unordered(finding: Finding, party: Party, parties: list[Party]) -> Name | None:
    """DDP413: the order of a set, which differs between processes."""
    for stand in party.way:
        for loop in stand.module.loops(stand.node):
            if isinstance(loop, ast.For) and is_set(stand, loop.iter):
                line = f"{Path(stand.place.file).name}:{loop.lineno}"
                return Name(
                    "DDP413",
                    "unordered-collectives",
                    f"collectives run in the order of a set, `{text(loop.iter)}` ({line}), which "
                    "each process has for itself.",
                    "Sort: `for ... in sorted(...)`.",
                    stand.at(loop),
                    "goes through a set",
                )
    return None


def _exception(finding: Finding, sources: Sources) -> Finding:
    """DDP404: what only some ranks raise, by a decision of the script's own, while others wait."""
    if not finding.places:  # a log may tell of a failure and not of a line
        return finding
    first = finding.places[0]
    way = sources.way(first.place, first.stack)
    if not way or not finding.consequences:
        return finding
    by_rank = [c for stand in way for c in conditions(stand) if c.kind == "rank"]
    statement = way[0].module.statement(way[0].node)
    if not by_rank and not isinstance(statement, ast.Raise):
        return finding
    why = f" It {by_rank[0].told}." if by_rank else ""
    return finding.model_copy(
        update={
            "code": "DDP404",
            "title": "one-rank-raises",
            "cause": f"{finding.cause.rstrip('.')}.{why} The other ranks do not learn of it, and "
            "wait.",
            "cure": Cure(text="Share the outcome, and raise the same error on every rank."),
        }
    )


def _timeout(finding: Finding, sources: Sources) -> Finding:
    """DDP412: the work that outlasted the timeout was one rank's by a rank condition."""
    slow = next((p for p in finding.places if p.ranks and set(p.ranks) <= set(finding.ranks)), None)
    if slow is None:
        return finding
    for stand in sources.way(slow.place, slow.stack):
        for condition in conditions(stand):
            if condition.kind == "rank":
                return finding.model_copy(
                    update={
                        "code": "DDP412",
                        "title": "long-rank0-work",
                        "cause": f"{finding.cause} Meanwhile the work at {slow.place} "
                        f"{condition.told}.",
                        "places": (
                            slow,
                            RankPlace(ranks=slow.ranks, place=stand.place, doing="one rank's work"),
                            *(place for place in finding.places if place is not slow),
                        ),
                    }
                )
    return finding
