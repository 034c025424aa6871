"""From a general finding and the reason that the source gives to the narrower name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from ddpdoctor.annotate.rounds import LoopStatement, is_left_by_a_lap, left_by_others
from ddpdoctor.annotate.source import Sources, is_foreign
from ddpdoctor.annotate.text import read
from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.evidence import Place, named
from ddpdoctor.lint.engine.interpreter.machine import BY_SOME
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Seq,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import text
from ddpdoctor.lint.engine.libraries.objects import ENDS_A_LOOP
from ddpdoctor.lint.reason import Line, Reason

_STANDOFFS = {
    "deadlock",
    "early-exit",
    "collective-order-mismatch",
    "collective-shape-mismatch",
    "partial-new-group",
}
PROVEN = "that these ranks wait for each other for ever is proven; why they parted is concluded"
_UNSEEN = "the exception is concluded from the source, nobody has seen it"
_HEARD = ("collective", "forward", "backward", "group", "wrap", "send", "recv")
_ANSWERS = {"send": "recv", "recv": "send"}
_WAYS_OUT = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_NOT_WAITING = ("ended", "together")
_CALLERS = 3
_DECISIONS = 3


@dataclass(frozen=True, slots=True)
class Party:
    """Ranks that went one way, with the lines that led them there, outermost first."""

    at: RankPlace
    stack: tuple[Line, ...]
    other: Party | None = None
    """Of the others, those that share most of its way."""
    gone: tuple[int, ...] = ()
    """Ranks that have ended."""

    @property
    def trains(self) -> bool:
        """Whether it is in a backward."""
        return self.at.phase == "backward" or self.at.doing.startswith("in backward")

    @property
    def waits(self) -> str:
        """What it does, and where."""
        if self.at.doing.startswith(("raised ", "in ")):  # that the others were gone; elsewhere
            inside = "backward" if self.trains else "call"
            return f"the {inside} at {self.at.place}"
        return f"{self.at.doing} ({self.at.place})"


@dataclass(frozen=True, slots=True)
class Name:
    """What the source makes of a finding."""

    code: str
    title: str
    cause: str
    cure: str
    doing: str = "decides which way a rank goes"


def by_its_cause(finding: Finding, sources: Sources) -> Finding:
    """The finding under the name that the source gives it, or as it was."""
    if finding.title in _STANDOFFS:
        return _standoff(finding, sources)
    if finding.title == "send-recv-deadlock":
        return _with_ways(finding, sources)
    if finding.title == "exception":
        return _exception(finding, sources)
    return _timeout(finding, sources) if finding.title == "timeout" else finding


def _standoff(finding: Finding, sources: Sources) -> Finding:
    """The first reason, the surest of all parties and then the nearest, that has a name.

    Who has ended has left every loop: that explains it better than a way out of an inner one, after
    which the next round begins. That one rank talks to another under a condition of its number is
    how it has to be, and explains something only where nothing else does. And the disk, which most
    ranks share, is less likely to be the reason than what each computes of its own data.
    """
    has_ended = finding.title == "early-exit"
    found = [
        (
            (
                _is_talk(reason),
                reason.rank[0],
                reason.cause == "disk" and not (has_ended and reason.is_outermost),
                reason.rank,
                has_ended and not reason.is_outermost,
            ),
            number,
            reason.distance,
            reason,
            party,
        )
        for number, party in enumerate(_parties(finding, sources))
        for reason in _first(sources.reasons(party))
        if _is_asked(finding, reason, party) and not _is_made_either_way(reason, party, sources)
    ]
    for *_, reason, party in sorted(found, key=lambda each: each[:3]):
        if name := _name(finding, reason, party, sources):
            exit_ = reason.turn.exit
            more = exit_ is not None and any(
                each.turn.exit is exit_ and each.turn.node is not reason.turn.node
                for *_, each, _ in found
            )
            return _renamed(finding, name, reason, party, sources, alone=not more)
    left = _left_by_some(finding, sources) or _ended_for_a_library(finding, sources)
    return left or _with_ways(finding, sources)


def _first(reasons: Sequence[Reason]) -> Iterator[Reason]:
    """Without those where ranks differ only because one of the others has parted them before."""
    tests = [(each.turn.node.path, getattr(each.test, "lineno", 0)) for each in reasons]
    for reason, own in zip(reasons, tests, strict=True):
        why = reason.why
        parted = (why.place.path, why.place.line) if why and why.text == BY_SOME else None
        if parted == own or parted not in tests:  # a loop may part them by what it has made
            yield reason


def _is_asked(finding: Finding, reason: Reason, party: Party) -> bool:
    """Whether this kind of reason may be that of a finding, which may have its own name already."""
    if reason.left == "end" and finding.title == "deadlock" and not party.gone:
        return False  # who leaves there has ended, and waits nowhere
    if finding.code == "DDP408":
        return reason.kind == "order"  # that only its members make a group is what it says
    if finding.code in ("DDP403", "DDP417"):
        one_line = len({each.stack or (each.place,) for each in finding.places if each.place}) == 1
        # Calls of two lines, or of a helper's for two, that met are the same in nothing but their
        # kind: ranks have parted.
        parted = finding.code == "DDP403" or reason.kind == "rank"
        return reason.kind == "order" or (parted and not one_line)
    return True


def _parties(finding: Finding, sources: Sources) -> Iterator[Party]:
    parties = [Party(each, sources.stack(each)) for each in finding.places if each.place]
    gone = tuple(r for each in finding.places if each.phase == "ended" for r in each.ranks)
    for party in parties:
        if party.at.phase in _NOT_WAITING or not party.stack:
            continue
        others = [
            (sources.shared(party.stack, other.stack), other)
            for other in parties
            if not set(other.at.ranks) <= set(party.at.ranks)
            and other.stack
            and other.at.phase not in _NOT_WAITING
            # Those that stand where it stands are of the same party, told rank by rank.
            and not sources.alike(party.stack, other.stack)
        ]
        closest = max(others, key=lambda each: each[0], default=(0, None))[1]
        yield Party(party.at, party.stack, closest, gone)


def _renamed(
    finding: Finding, name: Name, reason: Reason, party: Party, sources: Sources, *, alone: bool
) -> Finding:
    """With the culprits' place and the decision first, and the way there; then the others.

    `alone`: whether nothing else that ranks may answer differently leads to the same way out.
    """
    ranks = party.at.ranks
    at = sources.place(reason.path, reason.line)
    places = [party.at, RankPlace(ranks=ranks, place=at, doing=name.doing)]
    others = [place for place in finding.places if place is not party.at]
    if name.code in ("DDP207", "DDP405", "DDP410", "DDP418") or reason.turn.shape == "left":
        places.reverse()
    known = {at, *(each.place for each in finding.places)}
    places += _calls(party, sources, known)
    places += _comes_of(reason, ranks, sources, known)
    # Of two equal sides, those that refresh, or go on looping, are named: the source is about them.
    is_tie = name.code in ("DDP207", "DDP418", "DDP505") and not finding.ranks
    is_theirs = is_tie or name.code in ("DDP401", "DDP406")
    concluded = finding.certainty == "proven" and not (reason.fits and alone)
    parted = (PROVEN,) if concluded and finding.title == "deadlock" else ()
    met = (finding.cause,) if finding.is_suspicion else ()
    return finding.model_copy(
        update={
            "code": name.code,
            "title": name.title,
            "severity": "warning" if finding.is_suspicion else finding.severity,
            "certainty": "evidence" if concluded else finding.certainty,
            "evidence": (*finding.evidence, *parted, *met),
            "cause": name.cause,
            "cure": Cure(text=name.cure),
            "ranks": ranks if is_theirs else finding.ranks,
            "places": (*places, *others),
        }
    )


def _left_by_some(finding: Finding, sources: Sources) -> Finding | None:
    """Why is not known, but some are in a loop, and others behind it: DDP405.

    DDP207 of one that trains on all of something, and is gone through in one way.
    """
    if finding.title != "deadlock" or finding.code != "DDP400":
        return None
    for party in _parties(finding, sources):
        found = left_by_others(party.stack, party.other.stack) if party.other else None
        path, loop = found or ("", None)
        if party.other is None or loop is None:
            continue
        if not isinstance(loop, ast.While) and not (party.trains and _takes_all(loop)):
            continue
        at = sources.place(path, loop.lineno)
        here, there = named(party.at.ranks), named(party.other.at.ranks)
        head = _head(loop)
        rounds = (
            f"{there} left the loop `{head}` ({PurePath(path).name}:{loop.lineno}), and {here} "
            "went on in it; they have not made equally many rounds, or not the same in each"
        )
        name = _stop(rounds) if isinstance(loop, ast.While) else _uneven(f"{rounds}.")
        ranks = party.at.ranks
        if (lap := is_left_by_a_lap(path, loop, party.other.stack)) is not None:
            at, ranks = sources.place(lap[0], lap[1].lineno), party.other.at.ranks
            name = _unequal(
                f"{party.other.waits} runs once for each of `{_head(lap[1])}` "
                f"({PurePath(at.file).name}:{at.line}), and {here} went on from there: the ranks "
                "do not have equally many."
            )
        told = _with_ways(finding, sources)
        first = RankPlace(ranks=ranks, place=at, doing=name.doing)
        return told.model_copy(
            update={
                "code": name.code,
                "title": name.title,
                "certainty": "evidence",
                "evidence": (*told.evidence, PROVEN),
                "cause": name.cause,
                "cure": Cure(text=name.cure),
                "places": (first, *(each for each in told.places if each.place != at)),
            }
        )
    return None


def _head(loop: LoopStatement) -> str:
    if isinstance(loop, ast.While):
        return f"while {text(loop.test)}"
    return f"for {text(loop.target, 20)} in {text(loop.iter, 40)}"


def _takes_all(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether it has a round, of one kind, for each part of something."""
    is_counted = isinstance(loop.iter, ast.Call) and text(loop.iter.func) == "range"
    return not is_counted and not any(isinstance(each, _WAYS_OUT) for each in ast.walk(loop))


def _ended_for_a_library(finding: Finding, sources: Sources) -> Finding | None:
    """A rank has left a loop that a library runs, and the source tells that loop to end: DDP405."""
    frames = [frame.file for each in finding.places for frame in each.stack]
    if finding.title != "early-exit" or not any(
        is_foreign(f) and "/torch/" not in f for f in frames
    ):
        return None
    gone = tuple(rank for each in finding.places if each.phase == "ended" for rank in each.ranks)
    own = dict.fromkeys(each.place.file for each in finding.places if each.place is not None)
    found = [(file, *each) for file in own if not is_foreign(file) for each in _ends(file)]
    if not gone or not found:
        return None
    file, node, test = found[0]
    at = sources.place(file, node.lineno)
    under = f" under `{text(test)}`" if test is not None else ""
    name = _stop(
        f"{named(gone)} left a loop that a library runs, which `{ast.unparse(node)}` "
        f"({PurePath(file).name}:{node.lineno}) ends{under}, and the others went on in it"
    )
    told = _with_ways(finding, sources)
    return told.model_copy(
        update={
            "code": name.code,
            "title": name.title,
            "certainty": "evidence",
            "cause": name.cause,
            "cure": Cure(text=name.cure),
            "places": (RankPlace(ranks=gone, place=at, doing=name.doing), *told.places),
        }
    )


def _ends(file: str) -> Iterator[tuple[ast.Assign, ast.expr | None]]:
    """Where a file tells a library's loop to end, and the condition that it stands under."""
    source = read(file)
    for node in ast.walk(source.tree) if source is not None else ():
        if not isinstance(node, ast.Assign) or source is None:
            continue
        sets = any(isinstance(to, ast.Attribute) and to.attr in ENDS_A_LOOP for to in node.targets)
        if sets and not (isinstance(node.value, ast.Constant) and not node.value.value):
            tests = (each.test for each in source.around(node) if isinstance(each, ast.If))
            yield node, next(tests, None)


def _with_ways(finding: Finding, sources: Sources) -> Finding:
    """As it was, with the lines that led the parties to where they are, and what decided there."""
    known = {each.place for each in finding.places}
    more: list[RankPlace] = []
    for party in _parties(finding, sources):
        decided = sources.decisions(party) if finding.title == "deadlock" else []
        more += (
            RankPlace(ranks=party.at.ranks, place=place, doing="decides on the way there")
            for place in [each for each in decided if each not in known][:_DECISIONS]
        )
        more += _calls(party, sources, known)
        known |= {each.place for each in more}
    return finding.model_copy(update={"places": (*finding.places, *more)})


def _calls(party: Party, sources: Sources, known: set[Place | None]) -> Iterator[RankPlace]:
    """The lines on its way to where it waits, from where the ways part, innermost first."""
    shared = sources.shared(party.stack, party.other.stack) if party.other is not None else 0
    way = dict.fromkeys(sources.place(*line) for line in reversed(party.stack[shared:-1]))
    for place in [each for each in way if each not in known][:_CALLERS]:
        yield RankPlace(ranks=party.at.ranks, place=place, doing="calls it")


def _comes_of(
    reason: Reason, ranks: tuple[int, ...], sources: Sources, known: set[Place | None]
) -> Iterator[RankPlace]:
    """Where the value was made by which the ways part."""
    for each in reason.chain:
        place = sources.place(each.path, each.line)
        if place not in known:
            known.add(place)
            yield RankPlace(ranks=ranks, place=place, doing=each.message)


# --- names


def _name(finding: Finding, reason: Reason, party: Party, sources: Sources) -> Name | None:
    if reason.kind == "order":
        return _unordered(reason)
    if reason.turn.shape == "loop":
        return None if _broke_off(finding, reason, party) else _loop(reason, party)
    if reason.kind == "rank":
        return _by_rank(finding, reason, party, sources)
    if reason.kind == "exception":
        return _after_exception(reason, party)
    if reason.cause == "disk" and not (reason.left == "break" and len(reason.chain) > 1):
        return _by_the_disk(reason, party)
    if reason.left == "raise" and reason.turn.shape == "left":
        return Name(
            "DDP404",
            "one-rank-raises",
            f"the loop around {party.at.place} is left by an exception, which is caught outside: "
            f"{party.waits} {_because(reason)}. The other ranks do not learn of it.",
            "Share the outcome (all_reduce a flag), and leave on every rank alike.",
            "is left by an exception",
        )
    if reason.left == "continue":
        return _skip(f"the step {_because(reason)}")
    if reason.left == "return" and reason.turn.shape == "passed" and _is_a_round(reason, party):
        if reason.asks_how_many and not party.at.phase:
            return _unequal(f"{party.waits} {_because(reason)}: the others never reach it.")
        if not (party.at.phase or _leaves_out_a_step(reason)):
            return _by_value(reason, party)
        return _skip(f"the step {_because(reason)}")
    if reason.left in ("break", "return", "end"):
        return _stop(f"the loop {_because(reason)}")
    if _is_a_farewell(reason):
        return _stop(f"{party.waits} {_because(reason)}, and leaves the loop after that")
    return _by_value(reason, party)


def _is_a_farewell(reason: Reason) -> bool:
    """Whether the arm that is taken leaves the loop around it in the end."""
    if reason.turn.shape != "arm" or not reason.in_loop:
        return False
    choice = reason.turn.node.node
    arms = (choice.body, choice.orelse) if isinstance(choice, ast.If) else ()
    taken = arms[reason.turn.arm] if reason.turn.arm < len(arms) else []
    return bool(taken) and isinstance(taken[-1], ast.Break | ast.Return)


def _is_a_round(reason: Reason, party: Party) -> bool:
    """Whether who returns there goes on with the next round: what it is called in is a loop's."""
    inside = _function_left(reason)
    for file, line in party.stack:
        text_ = read(file)
        node = text_.at(line) if text_ is not None else None
        if text_ is None or node is None or text_.function(node) is inside:
            return False
        if text_.is_in_a_loop(node):
            return True
    return False


def _function_left(reason: Reason) -> ast.AST | None:
    """The function in which it is decided; None at the top of a file."""
    source = read(reason.path)
    exit_ = source.at(reason.line) if source is not None else None
    return source.function(exit_) if source is not None and exit_ is not None else None


def _leaves_out_a_step(reason: Reason) -> bool:
    """Whether who returns there does not come to a backward or a step of the same function."""
    inside = _function_left(reason)
    return inside is not None and any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in ("backward", "step")
        and each.lineno > reason.line
        for each in ast.walk(inside)
    )


def _because(reason: Reason) -> str:
    """Where it stands, and why ranks differ in it."""
    if not reason.chain:
        return reason.told
    first = reason.chain[0]
    return f"{reason.told}, and {first.message} ({PurePath(first.path).name}:{first.line})"


def _unordered(reason: Reason) -> Name:
    """DDP413: the order of a set, which differs between processes."""
    return Name(
        "DDP413",
        "unordered-collectives",
        f"collectives run in the order of a set, `{text(reason.test)}` ({reason.where}), which "
        "each process has for itself.",
        "Sort: `for ... in sorted(...)`.",
        "goes through a set",
    )


def _by_rank(finding: Finding, reason: Reason, party: Party, sources: Sources) -> Name | None:
    """DDP401, DDP405, DDP406, DDP410: the rank decides."""
    if finding.title == "early-exit" and (
        reason.left == "end" or (reason.left == "return" and reason.is_outermost)
    ):
        return _leave(f"{party.waits} {reason.told}")
    has_left = reason.turn.shape == "left" or (
        finding.title == "early-exit" and reason.left == "break" and not party.at.phase
    )
    if has_left:
        line = f"the loop around {party.at.place} is left by `{reason.word}` under"
        told = f"{line} `{text(reason.test)}` ({reason.where})"
        return _stop(told) if reason.left == "break" else _leave(told)
    if finding.title == "collective-shape-mismatch" and _is_shared(reason, party, sources):
        return None
    if party.at.phase == "forward":
        return Name(
            "DDP406",
            "rank0-only-evaluation",
            f"the forward of the DDP wrapper {reason.told}: it broadcasts buffers, and the "
            "other ranks never take part.",
            "Evaluate on all ranks, or call the bare module (model.module) on this one.",
        )
    return Name(
        "DDP401",
        "rank-conditional-collective",
        f"{party.waits} {reason.told}: the other ranks never reach it.",
        "Call it on every rank.",
    )


def _is_talk(reason: Reason) -> bool:
    """Whether all that others hear of an arm that the rank decides on is a send or a recv."""
    node = reason.turn.node
    if reason.kind != "rank" or reason.turn.shape != "arm" or not isinstance(node, Choice):
        return False
    heard = {event.kind for event, _ in events(node.arms[reason.turn.arm].body, *_HEARD)}
    return bool(heard) and heard <= {*_ANSWERS}


def _is_made_either_way(reason: Reason, party: Party, sources: Sources) -> bool:
    """Whether the arms of a decision call the same: who went another one called it there.

    What one receives the other sends, and the other way round, is the same too.

    Those that stand in such an arm are not meant: what they wait for is another than this.
    """
    node = reason.turn.node
    if reason.turn.shape != "arm" or not isinstance(node, Choice):
        return False
    if isinstance(node.node, ast.Try | ast.TryStar):
        return False
    made = [_called(arm.body) for arm in node.arms]
    if len(made) < 2 or not made[0]:
        return False
    answered = [(_ANSWERS.get(name, name), root) for name, root in made[0]]
    is_talk = len(made) == 2 and answered != made[0]
    if made[1] != answered if is_talk else any(each != made[0] for each in made):
        return False
    return not _is_shared(reason, party, sources)


def _called(part: Seq) -> list[tuple[str, str]] | None:
    """What other ranks hear of a part, in its order; None where that depends on something."""
    calls: list[tuple[str, str]] = []
    may_have_left = False
    for node in part.items:
        if isinstance(node, Exit):
            return calls
        inner: list[tuple[str, str]] | None = []
        if isinstance(node, Event) and node.kind in _HEARD:
            root = node.values.get("root")
            inner = [(node.name, repr(root.what) if root is not None else "")]
        elif isinstance(node, Called):
            inner = _called(node.body)
        elif isinstance(node, Choice | Loop):
            bodies = [arm.body for arm in node.arms] if isinstance(node, Choice) else [node.body]
            if any(True for body in bodies for _ in events(body, *_HEARD)):
                return None
            exits = (each for body in bodies for each, _ in walk(body) if isinstance(each, Exit))
            may_have_left = may_have_left or any(not each.is_failure for each in exits)
        if inner is None or (inner and may_have_left):
            return None
        calls += inner
    return calls


def _is_shared(reason: Reason, party: Party, sources: Sources) -> bool:
    """Whether another party stands under the same condition, in its other arm."""
    other = party.other
    return other is not None and any(
        each.turn.node.node is reason.turn.node.node
        for each in sources.reasons(replace(other, other=party))
    )


def _by_value(reason: Reason, party: Party) -> Name:
    """DDP307, DDP402, DDP505: a value of the rank's own decides whether it takes part."""
    if reason.reloads:
        return Name(
            "DDP505",
            "rank-divergent-refresh",
            f"{party.waits} {_because(reason)}.",
            "Decide on a value that all ranks share: reduce or broadcast it first.",
        )
    if reason.kind == "open":
        return _order(
            f"{party.waits} stands in an arm of `if {text(reason.test)}` ({reason.where}) that not "
            "all take."
        )
    if party.at.phase == "backward":
        return _skip(f"the step {_because(reason)}")
    return _order(f"{party.waits} {_because(reason)}.")


def _after_exception(reason: Reason, party: Party) -> Name | None:
    """DDP307, DDP404: a rank that has caught an exception goes on, with the next round or below."""
    caught = reason.handler or reason.way_out or reason.handed_back
    if caught is None or reason.left in ("raise", "end"):
        return None
    line = f"{PurePath(reason.path).name}:{caught.lineno}"
    if reason.handler is not None or (reason.handed_back and _is_a_round(reason, party)):
        return _skip(f"a rank where an exception is caught ({line}) goes on without it; {_UNSEEN}")
    return Name(
        "DDP404",
        "one-rank-raises",
        f"{party.waits} is left out by a rank where an exception is caught ({line}), and the "
        f"other ranks do not learn of it; {_UNSEEN}.",
        "Share the outcome, and leave on every rank alike.",
        "is left by an exception",
    )


def _by_the_disk(reason: Reason, party: Party) -> Name:
    """DDP513: what lies on the disk decides."""
    return Name(
        "DDP513",
        "resume-on-one-rank",
        f"{party.waits} {reason.told}: what lies on the disk decides, and the ranks have found "
        "different things there.",
        "Let rank 0 look, and broadcast what it has found.",
        "asks the disk",
    )


def _broke_off(finding: Finding, reason: Reason, party: Party) -> bool:
    """Whether those that have left the loop had more to go through: it was not over for them."""
    if isinstance(reason.test, ast.Call) and len(reason.test.args) != 1:
        return False  # islice(), or zip(): what else it is given may be over
    ended = [each for each in finding.places if each.phase == "ended"]
    left = [party.other.at] if party.other is not None else ended
    here = (reason.path, reason.line)
    return bool(left) and all(
        here in {(place.file, place.line) for place in each.unfinished} for each in left
    )


def _loop(reason: Reason, party: Party) -> Name | None:
    """DDP405, DDP418: this party is in a loop that the others have left."""
    condition = text(reason.test)
    if isinstance(reason.turn.node.node, ast.While):
        return _stop(f"the loop runs `while {condition}` ({reason.where})")
    if reason.filled_by_some is not None:
        told = f"{party.waits} runs once for each of `{condition}` ({reason.where})"
        return Name(
            "DDP401",
            "rank-conditional-collective",
            f"{told}, which holds something on some ranks only: the other ranks never reach it.",
            "Call it on every rank.",
            "fills it on some ranks only",
        )
    if (act := reason.acted_on) is not None:
        where = f"under `{text(act.test)}` ({PurePath(act.path).name}:{act.test.lineno})"  # type: ignore[attr-defined]
        told = f"goes through `{condition}` ({reason.where}), which is told how it goes"
        return _stop(f"the loop {told} {where}, on some ranks only")
    if reason.kind == "open" and (reason.is_loader or party.at.phase):
        return None  # samplers deal out equally many, and who has more is told by what was seen
    if party.trains:
        return _uneven(
            f"{party.waits} runs once for each of `{condition}` ({reason.where}), and the ranks do "
            "not have equally many: who is done first leaves the others there."
        )
    return _unequal(
        f"{party.waits} runs once for each of `{condition}` ({reason.where}), and the ranks do not "
        "have equally many."
    )


def _uneven(told: str) -> Name:
    return Name(
        "DDP207",
        "uneven-batches",
        told,
        "Let all ranks run it equally often, or train under Join([model]).",
        "runs unequally often",
    )


def _unequal(told: str) -> Name:
    return Name(
        "DDP418",
        "data-dependent-collective",
        told,
        "Agree on the keys and counts first (all_gather_object), then communicate.",
        "runs unequally often",
    )


def _skip(told: str) -> Name:
    return Name(
        "DDP307",
        "rank-local-skip",
        f"one rank skips a step that the others take: {told}.",
        "Agree on the skip (all_reduce a flag), or contribute zeros.",
        "skips",
    )


def _stop(told: str) -> Name:
    return Name(
        "DDP405",
        "local-stop-decision",
        f"each rank decides for itself when to stop: {told}.",
        "Let rank 0 decide and broadcast, or reduce the value first.",
        "decides when to stop",
    )


def _leave(told: str) -> Name:
    return Name(
        "DDP410",
        "early-exit",
        f"{told}: the ranks that left are waited for.",
        "Let all ranks leave together, after their last collective.",
        "leaves",
    )


def _order(cause: str) -> Name:
    return Name(
        "DDP402",
        "collective-order-mismatch",
        f"the ranks call different collectives: {cause}",
        "Call the same collectives in the same order on every rank.",
    )


# --- what ends a job


def _exception(finding: Finding, sources: Sources) -> Finding:
    """DDP404: what only some ranks raise, by a decision of the script's own, while others wait."""
    if not finding.places or not finding.consequences:  # a log may tell of no line
        return finding
    first = finding.places[0]
    by_rank = sources.by_rank(sources.stack(first), first.ranks)
    if by_rank is None and not sources.raises(first.place):
        return finding
    why = f" It {by_rank.told}." if by_rank is not None else ""
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
    if slow is None or slow.place is None:
        return finding
    reason = sources.by_rank(sources.stack(slow), slow.ranks)
    if reason is None:
        return finding
    at = sources.place(*reason.at)
    return finding.model_copy(
        update={
            "code": "DDP412",
            "title": "long-rank0-work",
            "cause": f"{finding.cause} Meanwhile the work at {slow.place} {reason.told}.",
            "places": (
                slow,
                RankPlace(ranks=slow.ranks, place=at, doing="one rank's work"),
                *(place for place in finding.places if place is not slow),
            ),
        }
    )
