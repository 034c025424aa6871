"""Where the ways of the ranks part, so that one waits for what the other never does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise, takewhile
from typing import Literal

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.machine import BY_SOME
from ddpdoctor.lint.engine.interpreter.objects.members import default
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.statements.handling import ANY_ERROR, kinds
from ddpdoctor.lint.engine.interpreter.tree import (
    Arm,
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Node,
    Seq,
    Step,
    Way,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK,
    EVERYONE,
    FALSE,
    NONE,
    NOTHING,
    RANK,
    RANKS,
    WORLD,
    Const,
    Either,
    Place,
    Ref,
    Table,
    Tensor,
    Term,
    Value,
    What,
    Why,
)
from ddpdoctor.lint.engine.libraries.torch import COMPARISONS
from ddpdoctor.lint.engine.queries.doing import MAIN, is_for_one, is_the_starters
from ddpdoctor.lint.engine.queries.stepping import is_in_step, is_made_up
from ddpdoctor.lint.engine.queries.words import (
    Word,
    Words,
    classes,
    has_loops,
    is_world,
    letter,
    letters,
    speaks,
)
from ddpdoctor.lint.engine.queries.wrapping import has_no_buffers, made_by, parts
from ddpdoctor.lint.engine.trees import targets

Left = Literal["", "continue", "break", "return", "end", "raise", "assert"]


@dataclass(frozen=True, slots=True)
class Met:
    """Something of a way that other ranks hear: an event, or a call that leads to one."""

    node: ast.AST
    path: str
    event: Event
    chain: tuple[Called, ...] = ()
    """The calls that lead to it from where the ways part, outermost first."""
    sure: bool = True
    """Whether it is reached whenever the way is taken."""


@dataclass(frozen=True, slots=True)
class Parting:
    """A condition that ranks answer differently, and what comes of it."""

    condition: Value
    node: ast.AST
    """The If, While, IfExp, BoolOp, Try, Assert, or the loop itself."""
    test: ast.AST
    path: str
    left: Left
    """How the ranks that part leave, "" where both ways go on together."""
    exit: Exit | None
    met: tuple[Met, ...]
    """What some ranks do and others do not."""
    both: bool = False
    """Whether both ways communicate."""
    loop: Loop | None = None
    """The loop around it, or that itself runs unequally often."""
    mask: int = EVERYONE
    """The ranks that do what is met, where that is known."""
    way: Way = ()
    instead: Met | None = None
    """What the others do at this place, who come to the same in another order."""

    @property
    def why(self) -> Why | None:
        """Why the ranks answer differently."""
        return self.condition.why

    @property
    def repeats(self) -> bool:
        """Whether it is a loop that ranks run unequally often."""
        return self.loop is not None and self.loop.node is self.node

    @property
    def by_rank(self) -> bool:
        """Whether the rank decides, and not what was computed from it."""
        return self.condition.agree.kind == "rank"

    @property
    def sure(self) -> bool:
        """Whether flow shows that they do."""
        return self.condition.agree.sure

    @property
    def place(self) -> Place:
        """Where the condition stands."""
        return Place(self.path, getattr(self.test, "lineno", 1))


def partings(run: Run) -> list[Parting]:
    """All partings of a program."""
    found = run.answers.get("partings")
    if found is None:
        words = hearing(run)
        found = [*_ByRank(run, words).find(), *_local(run, words)]
        found = [x for x in found if not is_made_up(x.node, x.condition, x.way, words)]
        if run.spent:  # what makes it right may come where the program was not followed
            found = [each for each in found if any(True for _ in _later(each.way, words))]
            found = [each for each in found if not _is_cut(each)]
        found = [each for each in found if not is_the_starters(each.way) and not is_for_one(run)]
        found = [each for each in map(partial(_of_those_who_left, run), found) if each.met]
        run.answers["partings"] = found = list(_first_causes(found))
    result: list[Parting] = found
    return result


def _first_causes(found: list[Parting]) -> Iterator[Parting]:
    """Those without what ranks answer differently only as some have left a loop at one of these."""
    left = {id(each.test) for each in found if each.left == "break"}
    for each in found:
        chain_ = each.why.chain() if each.why is not None else ()
        if not any(
            why.text == BY_SOME and id(why.node) in left and why.node is not each.test
            for why in chain_
        ):
            yield each


def hearing(run: Run) -> Words:
    """What the ranks of a program hear of each other."""
    words: Words | None = run.answers.get("words")
    if words is None:
        _note_what_shares_nothing(run)
        words = run.answers["words"] = Words(_reduced(run))
    return words


def _of_those_who_left(run: Run, parting: Parting) -> Parting:
    """A parting without what none of the ranks that leave would have come to.

    `if not every and rank != 0: return` keeps nobody from what stands under `if every:`.
    """
    from ddpdoctor.lint.engine.queries.holding import conditions, facts, following

    choice = parting.way[-1].node if parting.way else None
    arms = choice.arms if isinstance(choice, Choice) and parting.exit is not None else ()
    given = list(next((arm.given for arm in arms if leaves(arm.body) is parting.exit), ()))
    if parting.exit is not None and parting.exit.kind == "return":
        given += [each for each in conditions(parting.way) if not isinstance(each[0], Table)]
    if not given:
        return parting
    implied = run.vm.implied
    all_given = (pair for what, is_so in given for pair in following(what, implied, holds=is_so))
    ruled_out = {(what, not is_so) for what, is_so in all_given}
    kinds = {each.event.kind for each in parting.met}
    ways = {id(event): way for event, way in events(run.root, *kinds)}
    left = [
        each for each in parting.met if ruled_out.isdisjoint(facts(ways[id(each.event)], implied))
    ]
    return replace(parting, met=tuple(left))


def _note_what_shares_nothing(run: Run) -> None:
    """A forward without a graph, of a wrapped module without buffers, waits for no other rank."""
    for event, _ in events(run.root, "forward"):
        model = event.values["model"]
        module = run.vm.store.get((model.what, "module")) or model
        if "no_grad" in event.scopes and has_no_buffers(run, module.what):
            event.values["shares_buffers"] = FALSE


def _is_cut(parting: Parting) -> bool:
    """Whether the loop around it was not followed to the end of a round: values may yet differ."""
    around = (step.node for step in reversed(parting.way))
    loop = next((x for x in around if isinstance(x, Loop) and x.node is not parting.node), None)
    return loop is not None and loop.is_cut


def _reduced(run: Run) -> Callable[[Event], bool]:
    """Whether a backward concerns all ranks: not where its loss comes of bare models alone.

    Nor where it comes of those that some ranks have wrapped in a group of their own, or where none
    is wrapped yet. Of which model a loss comes may not be known: where another comes of a wrapper,
    this one is taken for a bare model's.
    """
    early = _before_wrapping(run)
    among = _of_wrappers(run)
    return lambda backward: id(backward) not in early and among(backward)


def _before_wrapping(run: Run) -> set[int]:
    """The backwards that are run before anything is wrapped, or goes through a wrapper."""
    done = list(events(run.root, "wrap", "forward", "backward"))
    shared = [(event, way) for event, way in done if _is_shared(event)]
    rounds = {id(step.node) for _, way in shared for step in way if isinstance(step.node, Loop)}
    return {
        id(event)
        for event, way in takewhile(lambda each: not _is_shared(each[0]), done)
        if event.kind == "backward" and rounds.isdisjoint(id(step.node) for step in way)
    }


def _is_shared(event: Event) -> bool:
    going = event.kind == "forward" and is_world(event.values.get("group"))
    return going or event.kind == "wrap"


def _of_wrappers(run: Run) -> Callable[[Event], bool]:
    """Whether the loss of a backward comes, or may come, of a wrapped model."""
    wrapping = [event.values for event, _ in events(run.root, "wrap") if letter(event)]
    forwards = [event.values for event, _ in events(run.root, "forward")]
    going = [each.get("model") for each in forwards if is_world(each.get("group"))]
    made = [values["wrapper"].what for values in wrapping]
    known = {what.number for what in made if isinstance(what, Ref)}
    if not wrapping and not going:
        return lambda backward: False
    if len(known) < len(set(made)) or not all(
        each is not None and isinstance(each.what, Ref) and each.what.number in known
        for each in going
    ):
        return lambda backward: True
    inside = {
        part: values["wrapper"].what.number
        for values in wrapping
        for part in parts(run, values["module"].what)
        if isinstance(values["wrapper"].what, Ref)
    }
    backwards = list(events(run.root, "backward"))
    losses = [made_by(event.values.get("loss")) for event, _ in backwards]
    is_traced = any(each in known or each in inside for of in losses for each in of)
    prepared = _prepared(run)
    reduced = {
        id(event)
        for (event, way), of in zip(backwards, losses, strict=True)
        if not known.isdisjoint(of)
        or (not of and not is_traced)
        or any(inside.get(each) in prepared.get(_round(way), ()) for each in of)
    }
    return lambda backward: id(backward) in reduced


def _prepared(run: Run) -> dict[int, set[int]]:
    """The wrappers whose forward is run, by the loop in which it is: its hooks are ready there.

    What is computed past the wrapper then is reduced too; elsewhere a backward of the bare module
    concerns this rank alone.
    """
    found: dict[int, set[int]] = {}
    for event, way in events(run.root, "forward"):
        model = event.values.get("model")
        if model is not None and isinstance(model.what, Ref) and "no_grad" not in event.scopes:
            for loop in (0, *(id(step.node) for step in way if isinstance(step.node, Loop))):
                found.setdefault(loop, set()).add(model.what.number)
    return found


def _round(way: Way) -> int:
    """The innermost loop around something, 0 where there is none."""
    return next((id(step.node) for step in reversed(way) if isinstance(step.node, Loop)), 0)


# --- what is met


def met(
    items: list[Node],
    chain: tuple[Called, ...] = (),
    sure: bool = True,
    hears: Callable[[Event], object] = letter,
) -> Iterator[Met]:
    """What other ranks hear of these, with the node of the outermost call that leads to it."""
    for node in items:
        if isinstance(node, Event):
            if hears(node):
                at: Event | Called = chain[0] if chain else node
                yield Met(at.node, at.path, node, chain, sure)
        elif isinstance(node, Called):
            yield from _first_ones(met(node.body.items, (*chain, node), sure, hears))
        elif isinstance(node, Choice):
            inner = (
                sure
                and node.condition.agree.kind != "unknown"
                and not node.condition.agree.divergent
            )
            for arm in node.arms:
                yield from met(arm.body.items, chain, inner, hears)
        elif isinstance(node, Loop):
            yield from met(node.body.items, chain, sure, hears)


def _first_ones(found: Iterator[Met]) -> Iterator[Met]:
    """The first forward, and the first of what is heard in any case."""
    seen: set[bool] = set()
    for each in found:
        is_forward = each.event.kind == "forward"
        if is_forward not in seen:
            seen.add(is_forward)
            yield each


def all_met(items: list[Node], hears: Callable[[Event], object] = letter) -> Iterator[Met]:
    """The same, but every event of what is called."""
    for node in items:
        if isinstance(node, Event):
            if hears(node):
                yield Met(node.node, node.path, node)
        elif isinstance(node, Called | Loop):
            yield from all_met(node.body.items, hears)
        elif isinstance(node, Choice):
            for arm in node.arms:
                yield from all_met(arm.body.items, hears)


# --- by rank


def _decided_by_rank(node: Choice) -> Choice | None:
    """The same, where the rank decides, alone or together with what else each asks for itself.

    That is `rank == 0 and own`: some never go the way on which something is done. Where it is
    `rank == 0 or own`, all may.
    """
    what, agree = node.condition.what, node.condition.agree
    if not isinstance(what, Table):
        return None
    if agree.kind == "rank":
        return node
    doing = [arm for arm in node.arms if leaves(arm.body) or any(True for _ in met(arm.body.items))]
    if agree.kind == "local" and doing and all(arm.mask != EVERYONE for arm in doing):
        return replace(node, condition=Value(what, BY_RANK, node.condition.why))
    return None


class _ByRank:
    def __init__(self, run: Run, words: Words) -> None:
        self.run = run
        self.words = words
        self.ranks = classes(run.root)
        self.found: list[Parting] = []

    def find(self) -> list[Parting]:
        if len(self.ranks) > 1 and self._differs(self.run.root):
            self._blame(self.run.root, EVERYONE, ())
        return self.found

    def _differs(self, seq: Seq, mask: int = EVERYONE) -> bool:
        said = {self.words.of(seq, rank) for rank in self.ranks if mask & (1 << rank)}
        heard = {each for each in said if each[1] != "raise"}
        return len(heard) > 1

    def _blame(self, seq: Seq, mask: int, way: Way) -> None:
        paired = self._paired(seq, mask)
        for index, node in enumerate(seq.items):
            here = (*way, Step(seq, index))
            if isinstance(node, Called | Loop):
                if self._differs(node.body, mask):
                    self._blame(node.body, mask, here)
            elif isinstance(node, Choice):
                if index in paired:
                    continue
                if (decided := _decided_by_rank(node)) is not None:
                    mask = self._choice(decided, seq.items[index + 1 :], mask, here)
                else:
                    for arm in node.arms:
                        if self._differs(arm.body, mask & arm.mask):
                            self._blame(arm.body, mask & arm.mask, here)

    def _paired(self, seq: Seq, mask: int) -> set[int]:
        """Choices whose ways meet each other's: "the main process first", or if and else apart.

        From the first of them to the last all ranks say the same, one after the other.
        """
        ranks = [rank for rank in self.ranks if mask & (1 << rank)]
        apart = [index for index, node in enumerate(seq.items) if self._parts(node, ranks)]
        paired: set[int] = set()
        for first in apart:
            if first in paired:
                continue
            said: dict[int, Word] = dict.fromkeys(ranks, ())
            begun = first
            for last in (each for each in apart if each >= first):
                between, node = seq.items[begun:last], [seq.items[last]]
                for rank in ranks:
                    told = self.words.of_items(between, rank)[0]
                    # What may be said in a loop of attempts, or not, is silence if nothing is.
                    told = told if speaks(told) else ()
                    said[rank] += told + self.words.of_items(node, rank)[0]
                begun = last + 1
                if len(set(said.values())) == 1:
                    paired |= {each for each in apart if first <= each <= last}
                    break
        return paired

    def _parts(self, node: Node, ranks: list[int]) -> bool:
        """Whether ranks say different things in it, and all go on behind it."""
        if not isinstance(node, Choice | Called):
            return False
        if isinstance(node, Choice) and any(leaves(arm.body) for arm in node.arms):
            return False
        return len({self.words.of_items([node], rank)[0] for rank in ranks}) > 1

    def _choice(self, node: Choice, rest: list[Node], mask: int, way: Way) -> int:
        """Blame a choice of the rank; the ranks that go on."""
        going = 0
        arms = [arm for arm in node.arms if arm.mask & mask]
        exits = [leaves(arm.body) for arm in arms]
        for arm, left in zip(arms, exits, strict=True):
            if left is None:
                going |= arm.mask & mask
        self._arms(node, arms, exits, mask, way)
        for arm, left in zip(arms, exits, strict=True):
            inner = mask & arm.mask
            if left is None or left.kind == "raise":
                continue
            others = [each for each, out in zip(arms, exits, strict=True) if out is None]
            if not others:
                continue
            goes_on = others[0]
            heard = list(met(rest, hears=self.words.hears))
            loop = next((s.node for s in reversed(way) if isinstance(s.node, Loop)), None)
            if left.kind == "break" and loop is not None:
                heard = heard or list(met(loop.body.items, hears=self.words.hears))
            if left.kind == "end" and not heard:
                heard = list(_later(way, self.words))
            if left.kind == "return" and not heard:
                heard = list(_behind_in_the_function(way, self.words))
            if heard:
                self.found.append(
                    Parting(
                        node.condition,
                        node.node,
                        node.test,
                        node.path,
                        left.kind,  # type: ignore[arg-type]
                        left,
                        tuple(heard),
                        loop=loop,
                        mask=goes_on.mask & mask & ~inner,
                        way=way,
                    )
                )
        return going or mask

    def _arms(
        self,
        node: Choice,
        arms: list[Arm],
        exits: list[Exit | None],
        mask: int,
        way: Way,
    ) -> None:
        spoken = []
        for arm in arms:
            spoken.append(self.words.of(arm.body, self._first(arm.mask & mask))[0])
        if len(spoken) > 1 and all(each == spoken[0] for each in spoken):
            return
        talking = [word for word in spoken if speaks(word)]
        alike = all(letters(each) == letters(talking[0]) for each in talking)
        if len(talking) > 1 and alike and any(has_loops(word) for word in talking):
            return  # a protocol: who sends and who receives stand in different arms
        if len(talking) > 1 and alike and not any(exits):
            self._in_another_order(node, arms, mask, way)
            return
        for arm, word, left in zip(arms, spoken, exits, strict=True):
            if left is not None and left.kind == "raise":
                continue
            others = [other for each, other in zip(arms, spoken, strict=True) if each is not arm]
            answered = letters(tuple(others))

            def alone(event: Event, answered: set[tuple[str, str]] = answered) -> bool:
                return self.words.hears(event) and letter(event) not in answered

            heard = list(met(arm.body.items, hears=alone))
            if not heard or not speaks(word):
                continue
            self.found.append(
                Parting(
                    node.condition,
                    node.node,
                    node.test,
                    node.path,
                    "",
                    None,
                    tuple(heard),
                    both=len(talking) > 1,
                    mask=arm.mask & mask,
                    way=way,
                )
            )

    def _first(self, mask: int) -> int:
        """A rank of these."""
        found = next((rank for rank in self.ranks if mask & (1 << rank)), None)
        return (mask & -mask).bit_length() - 1 if found is None else found

    def _in_another_order(self, node: Choice, arms: list[Arm], mask: int, way: Way) -> None:
        """Blame ways on which the same is heard, otherwise ordered."""
        one, other, *_ = (
            list(all_met(arm.body.items, self.words.hears))
            for arm in arms
            if speaks(self.words.of(arm.body, self._first(arm.mask & mask))[0])
        )
        pairs = zip(one, other, strict=False)
        apart = ((a, b) for a, b in pairs if letter(a.event) != letter(b.event))
        if (first := next(apart, None)) is not None:
            self.found.append(
                Parting(
                    node.condition,
                    node.node,
                    node.test,
                    node.path,
                    "",
                    None,
                    first[:1],
                    both=True,
                    mask=mask,
                    way=way,
                    instead=first[1],
                )
            )


def leaves(seq: Seq) -> Exit | None:
    """The exit at which a sequence always ends, if it is not its end; of several the nearest."""
    again: Exit | None = None
    for node in seq.items:
        if isinstance(node, Exit):
            return again if again is not None and node.kind == "raise" else node
        if isinstance(node, Choice):
            exits = [leaves(arm.body) for arm in node.arms]
            if _takes_every_error(node) and exits[0] is not None and exits[0].kind in _ERRORS:
                exits = exits[1:]
            goes_on = (each for each in exits if each is not None and each.kind == "continue")
            nearest = next(goes_on, None)
            if exits and all(each is not None for each in exits):
                return nearest or exits[0]
            again = again or nearest
        if isinstance(node, Called):
            inner = leaves(node.body)
            if inner is not None and inner.kind in ("end", "raise"):
                return inner
    return None


def _takes_every_error(choice: Choice) -> bool:
    """Whether it is a `try` that lets no error pass, but for those that its handlers raise."""
    handlers = choice.node.handlers if isinstance(choice.node, ast.Try) else []
    return any(not ANY_ERROR.isdisjoint(kinds(each.type)) for each in handlers)


_ERRORS = ("raise", "assert")


def leaves_somewhere(seq: Seq) -> Exit | None:
    """An exit that some way through a sequence takes: one that goes on rather than a raise."""
    exits = list(_exits(seq))
    return next((each for each in exits if each.kind != "raise"), next(iter(exits), None))


def _exits(seq: Seq) -> Iterator[Exit]:
    for node in seq.items:
        if isinstance(node, Exit):
            yield node
            return
        if isinstance(node, Choice):
            for arm in node.arms:
                yield from _exits(arm.body)


def is_tried_again(way: Way, done: Exit | None, failed: list[Exit | None]) -> bool:
    """Whether a loop takes the ranks that failed back to what they missed, where the others wait.

    Those leave the loop when all have come, and nothing else is heard on the way round. `done` and
    `failed` are the exits of both in the choice at the end of the way.
    """
    tried = way[-1].node.node
    decides = _settled([*tried.body, *tried.orelse]) if isinstance(tried, ast.Try) else set()
    calls: list[ast.AST] = []
    passed: list[Node] = []
    for step in reversed(way):
        if isinstance(step.node, Loop):
            again = all(each is None or each.kind == "continue" for each in failed)
            over = done is not None and done.kind in ("break", "return")
            over = over or not decides.isdisjoint(_tested(step.node, calls))
            return again and over and not any(True for _ in met(passed))
        if isinstance(step.node, Called):
            if any(_returned(each) != _returned(done) for each in failed):
                calls.append(step.node.node)
                decides.add(ast.unparse(step.node.node))
            done, failed = None, [None]
        passed += step.seq.items[: step.index]
        if None in failed:
            passed += step.rest
        behind = leaves(Seq(step.rest))
        done, failed = done or behind, [each or behind for each in failed]
    return False


def _settled(body: list[ast.stmt]) -> set[str]:
    """What statements set to a constant, which is so ever after."""
    return {
        ast.unparse(target)
        for part in body
        for each in ast.walk(part)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
        for target in targets(each)
    }


def _tested(loop: Loop, calls: list[ast.AST]) -> set[str]:
    """What is read where it is decided whether a loop goes on; of a name, the call that it is."""
    tests: list[ast.AST] = [loop.node.test] if isinstance(loop.node, ast.While) else []
    tests += [
        each.test
        for each in loop.body.items
        if isinstance(each, Choice) and any(leaves(arm.body) for arm in each.arms)
    ]
    read = {ast.unparse(each) for test in tests for each in ast.walk(test) if _is_read(each)}
    for each in ast.walk(loop.node):
        inside = ast.walk(each.value) if isinstance(each, ast.Assign) else ()
        if not read.isdisjoint(map(ast.unparse, targets(each))):
            read |= {ast.unparse(inner) for inner in inside if inner in calls}
    return read


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Call)


def _returned(left: Exit | None) -> What:
    return left.value.what if left is not None and left.value is not None else NONE.what


def _behind_in_the_function(way: Way, words: Words) -> Iterator[Met]:
    """What is met behind a place in its function, which a return leaves out; loops begin again."""
    for step in reversed(way[:-1]):
        if isinstance(step.node, Called):
            return
        if isinstance(step.node, Loop):
            yield from met(step.node.body.items, hears=words.hears)
        yield from met(step.rest, hears=words.hears)


def _later(way: Way, words: Words) -> Iterator[Met]:
    """What is met after a place, in all that is around it; loops begin again."""
    for step in reversed(way):
        if isinstance(step.node, Loop):
            yield from met(step.node.body.items, hears=words.hears)
        yield from met(step.rest, hears=words.hears)


# --- by a value of the rank's own


def _local(run: Run, words: Words) -> Iterator[Parting]:
    seen: set[tuple[int, int]] = set()
    count = 0
    for node, way in walk(run.root):
        count += 1
        if count > 20_000:
            return
        if isinstance(node, Choice):
            agree = node.condition.agree
            what = node.condition.what
            if not agree.divergent or _decided_by_rank(node) is not None:
                continue
            if _is_of_its_turns(run, node.condition, way):
                continue  # who has had as many turns answers the same
            if is_in_step(node, node.condition, way, words):
                continue
            if agree.kind == "rank" and _deals(run, what):
                loop = _loop_around(way)
                if loop is None or folding.is_for_all(loop.count.what):
                    continue
                if any(_makes_up(run, step.node, node) for step in way):
                    continue
                if not all(each.agree.divergent for each in _bounds(run, loop)):
                    continue
                # As often but for the last few rounds, of which not each rank may have one.
                decides = Value(what, replace(agree, sure=False), node.condition.why)
                node = replace(node, condition=decides)
            for each in _of_choice(node, way, words):
                key = (id(each.node), id(each.exit.node) if each.exit else 0)
                if key not in seen:
                    seen.add(key)
                    yield each
        elif isinstance(node, Loop) and node.count.agree.divergent and not _is_bounded(run, node):
            if any(_makes_up(run, node, each) for each, _ in walk(node.body)):
                continue
            if _is_of_its_turns(run, node.count, way) or is_in_step(node, node.count, way, words):
                continue
            heard = tuple(all_met(node.body.items, words.hears))
            key = (id(node.node), -1)
            if heard and key not in seen and not _in_join(heard):
                seen.add(key)
                yield Parting(
                    node.count, node.node, node.node, node.path, "", None, heard, loop=node, way=way
                )


def _deals(run: Run, what: What) -> bool:
    """Whether a condition gives each rank as many rounds, by what it joined the others as."""
    joins = (event.values.get("rank", NONE).what for event, _ in events(run.root, "init"))
    known: dict[What, What] = {each: RANK for each in joins if isinstance(each, Term)}
    known |= dict.fromkeys((each for each in run.vm.sizes if isinstance(each, Term)), WORLD)
    return folding.deals_rounds(_with(what, known))


def _with(what: What, known: dict[What, What]) -> What:
    """A term with something else for some of its parts."""
    if what in known or not isinstance(what, Term):
        return known.get(what, what)
    return Term(what.op, tuple(_with(each, known) for each in what.args))


def _is_of_its_turns(run: Run, condition: Value, way: Way) -> bool:
    """Whether something goes by what was counted in those rounds alone that are dealt to a rank."""
    for step, inner in pairwise(way):
        around = step.node
        if isinstance(around, Choice) and around.condition.agree.kind == "rank":
            taken = next(arm for arm in around.arms if arm.body is inner.seq)
            what = around.condition.what
            dealt = Term("not", (what,)) if taken.holds is False else what
            if _deals(run, dealt) and _counts_turns(condition, around.condition):
                return True
    return False


def _makes_up(run: Run, around: Node, node: Node) -> bool:
    """Whether a loop ends by the turns that a rank has had: lacks it one, it has one more later."""
    if not isinstance(around, Loop) or not isinstance(around.node, ast.While):
        return False
    if not isinstance(node, Choice) or node.condition.agree.kind != "rank":
        return False
    return _counts_turns(around.count, node.condition) and _deals(run, node.condition.what)


def _counts_turns(condition: Value, deal: Value) -> bool:
    """Whether a condition compares what is counted, and is the rank's own by a deal alone."""
    why, what = condition.why, condition.what
    if why is None or deal.why is None or why.root.node is not deal.why.root.node:
        return False
    if what == NOTHING:  # what has been put together in those rounds
        return condition.agree.kind == "local"
    if isinstance(what, Term) and what.op == "not":
        (what,) = what.args
    return isinstance(what, Term) and what.op in _COMPARED and all(map(_is_counted, what.args))


def _is_counted(what: object) -> bool:
    if not isinstance(what, Term):
        return isinstance(what, Const)
    is_computed = what.op in _ARITHMETIC and all(map(_is_counted, what.args))
    return is_computed or what.op in ("joined", "option", "counter", "add_up", "len")


_ARITHMETIC = ("Add", "Sub", "Mult", "FloorDiv", "Mod")


def _is_bounded(run: Run, loop: Loop) -> bool:
    """Whether all ranks leave a loop at the same round, whatever they have left."""
    return any(each.agree.kind == "same" for each in _bounds(run, loop))


def _bounds(run: Run, loop: Loop) -> Iterator[Value]:
    """The conditions by which a loop is left before it has gone through all there is."""
    for each in loop.body.items if isinstance(loop.node, ast.For | ast.AsyncFor) else ():
        if isinstance(each, Choice) and _comes_true(run, loop, each.condition.what):
            exits = [leaves(arm.body) for arm in each.arms]
            if any(out is not None and out.kind == "break" for out in exits):
                yield each.condition


def _comes_true(run: Run, loop: Loop, what: What) -> bool:
    """Whether a condition changes in some round: no setting decides it for the whole loop."""
    if not isinstance(what, Term):
        return isinstance(what, Tensor | Either)
    if what.op in ("and", "or"):
        decided = (_comes_true(run, loop, each) for each in what.args)
        return all(decided) if what.op == "and" else any(decided)
    if what.op == "not":
        return _comes_true(run, loop, what.args[0])
    sides = what.args if what.op in _COMPARED else (what,)
    changed = [changes(run, loop, each) for each in sides]
    return any(changed) and all(
        is_other or not _is_no_limit(run, each)
        for each, is_other in zip(sides, changed, strict=True)
    )


_COMPARED = COMPARISONS | {"Is", "IsNot"}


def changes(run: Run, loop: Loop, what: object) -> bool:
    """Whether something may be another in each round of a loop."""
    if isinstance(what, Ref):
        return run.vm.type_of(Value(what)) in ("list", "dict", "set")
    if not isinstance(what, Term):
        return isinstance(what, Tensor)
    made = run.vm.made.get(what)
    is_new = what == NOTHING or what.op == "counter" or what in loop.counted
    is_new = is_new or (made is not None and made.order > loop.begun)
    return is_new or any(changes(run, loop, each) for each in what.args)


def _is_no_limit(run: Run, what: What) -> bool:
    """Whether a bound is one that no loop comes to, or an option that is off unless it is given."""
    off = default(run.vm, Value(what))
    if off is not None:
        return off.is_const(None) or _is_number(off, lambda number: number <= 0)
    return _is_number(Value(what), lambda number: number >= _NEVER)


def _is_number(value: Value, holds: Callable[[float], bool]) -> bool:
    return isinstance(value.constant, int | float) and holds(value.constant)


_NEVER = 10**8
"""Rounds: more than a day of them, a millisecond each."""


def _in_join(heard: tuple[Met, ...]) -> bool:
    return all("join" in each.event.scopes for each in heard)


def _of_choice(node: Choice, way: Way, words: Words) -> Iterator[Parting]:
    mask = EVERYONE
    for step in way[:-1]:
        if isinstance(step.node, Choice):
            inner = next(s for s in way if s is step)
            following = way[way.index(inner) + 1].seq
            for arm in step.node.arms:
                if arm.body is following:
                    mask &= arm.mask
    rank = (mask & -mask).bit_length() - 1 if mask else 0
    said = [words.of(arm.body, rank) for arm in node.arms]
    exits = [leaves(arm.body) for arm in node.arms]
    loop = _loop_around(way)
    if isinstance(node.node, ast.Try) and loop is None and not _in_any_loop(way):
        return
    going = [
        (arm, word)
        for arm, (word, _), left in zip(node.arms, said, exits, strict=True)
        if left is None
    ]
    for (word, _), left in zip(said, exits, strict=True):
        if left is None or left.is_failure:
            continue
        others = [each for each in exits if each is not left]
        back: list[Exit | None] = [left] if left.kind == "continue" else others
        silent = not any(
            speaks(each) for (each, _), out in zip(said, exits, strict=True) if out in back
        )
        if silent and is_tried_again(way, None if left in back else left, back):
            continue
        heard = list(_missed(left.kind, way, loop, words, rank, going, word))
        if heard:
            yield Parting(
                node.condition,
                node.node,
                node.test,
                node.path,
                left.kind,  # type: ignore[arg-type]
                left,
                tuple(heard),
                loop=loop,
                way=way,
            )
    is_tried = isinstance(node.node, ast.Try | ast.TryStar)
    behind = chain(met(way[-1].rest, hears=words.hears), _behind_in_the_function(way, words))
    all_return = all(left is not None and left.kind == "return" for left in exits)
    misses_nothing = loop is None and not is_tried and next(behind, None) is None
    if all_return or misses_nothing:  # who returns
        going = [
            (arm, word)
            for arm, (word, _), left in zip(node.arms, said, exits, strict=True)
            if left is None or left.kind == "return"
        ]
    if len(going) > 1:
        spoken = [word for _, word in going]
        if any(each != spoken[0] for each in spoken[1:]):
            talking = [word for word in spoken if speaks(word)]
            by_rank = node.condition.agree.kind == "rank"
            if by_rank and len(talking) > 1 and any(has_loops(word) for word in talking):
                return  # a protocol, as in `_ByRank`
            heard = [each for arm, _ in going for each in met(arm.body.items, hears=words.hears)]
            then = _behind_the_call(way) if all_return else way[-1].rest
            if heard and not _is_agreed_on(node, heard, then, words):
                yield Parting(
                    node.condition,
                    node.node,
                    node.test,
                    node.path,
                    "",
                    None,
                    tuple(heard),
                    both=len(talking) > 1,
                    loop=loop,
                    way=way,
                )


def _behind_the_call(way: Way) -> list[Node]:
    """What follows on the call of the innermost function around the end of a way."""
    call = next((each for each in reversed(way[:-1]) if isinstance(each.node, Called)), None)
    return call.rest if call is not None else []


def _is_agreed_on(node: Choice, heard: list[Met], rest: list[Node], words: Words) -> bool:
    """Whether ranks tell each other of an error before anything else, and nobody waits by then.

    A forward waits for the others where it begins, and what fails in it or behind it fails later.
    """
    if not isinstance(node.node, ast.Try) or any(x.event.kind != "forward" for x in heard):
        return False
    following = next(met(rest, hears=words.hears), None)
    return following is not None and following.event.kind == "collective" and following.sure


@dataclass(frozen=True, slots=True)
class Leaving:
    """A condition that some ranks alone come to, and by which they may leave a loop."""

    choice: Choice
    """That condition."""
    by: Choice
    """By which those come there."""
    left: Exit
    met: tuple[Met, ...]
    """What the others go on to."""


def leavings(run: Run) -> Iterator[Leaving]:
    """The ways out of loops that some ranks alone may take, by whatever else they ask there."""
    if is_for_one(run):
        return
    words = hearing(run)
    for node, way in walk(run.root):
        if not isinstance(node, Choice) or node.condition.agree.kind == "rank":
            continue
        if isinstance(node.node, ast.Try):
            continue  # an error, of which other rules tell
        outs = [(arm, leaves(arm.body)) for arm in node.arms]
        arm, left = next(((a, out) for a, out in outs if out and out.kind in _OUT), (None, None))
        at = _where_some_come(way)
        loop = _loop_around(way)
        if arm is None or left is None or at is None or loop is None:
            continue
        if all(out is not None for _, out in outs):
            continue  # they leave in any case
        by, inside = way[at].node, way[at + 1].seq
        assert isinstance(by, Choice)
        others = [each for each in by.arms if each.body is not inside]
        too = any(out.kind in _OUT for each in others for out in _exits(each.body))
        if too or _tells(arm.body, by):
            continue
        rank = next((each for each in range(RANKS) if others[0].mask & (1 << each)), 0)
        heard = list(_missed(left.kind, way[: at + 1], loop, words, rank, [], ()))
        if heard and not _in_join(tuple(heard)) and not is_the_starters(way):
            yield Leaving(node, by, left, tuple(heard))


_OUT = ("break", "return")


def _where_some_come(way: Way) -> int | None:
    """The condition of the rank around the end of a way, within the same round of a loop."""
    for index in range(len(way) - 2, -1, -1):
        node = way[index].node
        if isinstance(node, Loop | Called):
            return None
        if isinstance(node, Choice) and _decided_by_rank(node) is not None:
            arm = next((each for each in node.arms if each.body is way[index + 1].seq), None)
            several = len(node.arms) > 1 and all(each.mask != EVERYONE for each in node.arms)
            # The others may do as the main rank has told them, in whatever way.
            is_main = arm is not None and arm.mask & MAIN
            return index if is_main and several else None
    return None


def _tells(body: Seq, by: Choice) -> bool:
    """Whether who leaves tells others so, or talks to single ones anyway."""
    told = any(letter(event) is not None for event, _ in events(body))
    return told or any(
        True for arm in by.arms for _ in events(arm.body, "send", "recv", "send_object")
    )


def _loop_around(way: Way) -> Loop | None:
    """The innermost loop of the same function."""
    for step in reversed(way[:-1]):
        if isinstance(step.node, Called):
            return None
        if isinstance(step.node, Loop):
            return step.node
    return None


def _in_any_loop(way: Way) -> bool:
    return any(isinstance(step.node, Loop) for step in way[:-1])


def _missed(
    kind: str,
    way: Way,
    loop: Loop | None,
    words: Words,
    rank: int,
    going: list[tuple[Arm, tuple[object, ...]]],
    word: tuple[object, ...],
) -> Iterator[Met]:
    """What the ranks that leave do not take part in."""
    rest: list[Met] = []
    spoken: tuple[object, ...] = going[0][1] if going else ()
    if going:
        rest += met(going[0][0].body.items, hears=words.hears)
    for step in reversed(way):
        rest += met(step.rest, hears=words.hears)
        spoken = (*spoken, *words.of_items(step.rest, rank)[0])
        is_body = step.seq is loop.body if loop is not None else False
        if is_body and kind in ("continue", "break"):
            break
        if _is_body_of_call(step, way) and kind in ("return", "continue", "break"):
            break
    if kind == "continue":
        if spoken != word:
            yield from rest
        return
    if kind in ("break", "return") and loop is not None:
        around = _loops_around(way) if kind == "return" else [loop]
        for each in around:
            rest += met(each.body.items, hears=words.hears)
    elif kind == "return":
        if spoken == word:
            return
    elif kind == "end":
        rest += list(_later(way, words))
    yield from rest


def _is_body_of_call(step: object, way: Way) -> bool:
    index = next(i for i, each in enumerate(way) if each is step)
    return index > 0 and isinstance(way[index - 1].node, Called)


def _loops_around(way: Way) -> list[Loop]:
    found: list[Loop] = []
    for step in reversed(way[:-1]):
        if isinstance(step.node, Called):
            break
        if isinstance(step.node, Loop):
            found.append(step.node)
    return found
