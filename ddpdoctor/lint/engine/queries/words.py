"""What one rank communicates on its way through a part of the program, as a word.

Two ranks that go different ways meet each other if their words are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Node,
    Seq,
)
from ddpdoctor.lint.engine.interpreter.values import RANKS, Lib, Value

Word = tuple[Any, ...]
Said = tuple[Word, str]
"""(what is communicated, how the part is left: "" at its end, else the kind of exit)."""

_MAX = 4000


def is_world(group: Value | None) -> bool:
    """Whether a group argument means all ranks."""
    if group is None or group.is_const(None):
        return True
    what = group.what
    return isinstance(what, Lib) and what.name.endswith("WORLD")


def letter(event: Event) -> tuple[str, str] | None:
    """What an event means to other ranks, None where it concerns this rank alone."""
    if event.kind == "collective":
        return ("collective", event.name) if is_world(event.values.get("group")) else None
    if event.kind == "group":
        locally = event.values.get("locally")
        return None if locally is not None and locally.is_const(True) else ("group", event.name)
    if event.kind == "wrap":
        return ("wrap", event.name) if is_world(event.values.get("kw_process_group")) else None
    if event.kind == "backward":
        return None if {"no_sync", "join"} & {*event.scopes} else ("backward", "backward")
    if event.kind == "forward":
        alone = "join" in event.scopes or not is_world(event.values.get("group"))
        buffers = event.values.get("shares_buffers")
        if buffers is not None and buffers.is_const(False) and "no_grad" in event.scopes:
            alone = True  # there is nothing that it would wait for
        return None if alone else ("forward", "forward")
    return None


class Words:
    """The words of the parts of one program."""

    def __init__(self, is_reduced: Callable[[Event], bool]) -> None:
        self._known: dict[tuple[int, int], Said] = {}
        self._is_reduced = is_reduced
        """Whether a backward is: else it concerns nobody else."""
        self._spent = 0

    def hears(self, event: Event) -> bool:
        """Whether an event concerns other ranks."""
        said = letter(event)
        return said is not None and (said[0] != "backward" or self._is_reduced(event))

    def of(self, seq: Seq, rank: int) -> Said:
        """What a rank says on its way through a sequence."""
        key = (id(seq), rank)
        if key not in self._known:
            self._known[key] = self.of_items(seq.items, rank)
        return self._known[key]

    def of_items(self, items: Iterable[Node], rank: int) -> Said:
        """What a rank says on its way through these."""
        found: list[Any] = []
        remaining = list(items)
        has_returned = False
        for index, node in enumerate(remaining):
            self._spent += 1
            if self._spent > _MAX * 50:
                return tuple(found), ""
            if isinstance(node, Event):
                if self.hears(node):
                    found.append(letter(node))
            elif isinstance(node, Exit):
                if node.kind == "raise" and has_returned:
                    return tuple(found), "return"
                return tuple(found), node.kind
            elif isinstance(node, Called):
                inner, left = self.of(node.body, rank)
                found.extend(inner)
                if left in ("end", "raise", "assert"):
                    return tuple(found), left
            elif isinstance(node, Loop):
                inner, left = self.of(node.body, rank)
                if not _is_silent(inner):
                    found.append(("loop", inner))
                if left in ("end", "assert"):
                    return tuple(found), left
                # A search that returns what it finds, and raises only where it finds nothing.
                has_returned = has_returned or _may_return(node.body, 1 << rank)
            else:
                done = self._choice(node, remaining[index + 1 :], rank, found)
                if done is not None:
                    return done
        return tuple(found), ""

    def _choice(self, node: Choice, rest: list[Node], rank: int, found: list[Any]) -> Said | None:
        bit = 1 << rank
        arms = [arm for arm in node.arms if arm.mask & bit]
        sure = [arm for arm in arms if not arm.opened & bit]
        if sure:
            arms = sure[:1]
        if not arms:
            return None
        said = [self.of(arm.body, rank) for arm in arms]
        if len(said) == 1:
            found.extend(said[0][0])
            return (tuple(found), said[0][1]) if said[0][1] else None
        if all(each == said[0] for each in said):
            found.extend(said[0][0])
            return (tuple(found), said[0][1]) if said[0][1] else None
        if all(not each[1] for each in said):
            found.append(("alt", *(each[0] for each in said)))
            return None
        after = self.of_items(rest, rank)
        ways = []
        for word, left in said:
            ways.append((word, left) if left else (word + after[0], after[1]))
        alive = [way for way in ways if way[1] not in ("raise", "assert")]
        if len(set(alive)) == 1:
            found.extend(alive[0][0])
            return tuple(found), alive[0][1]
        found.append(("alt", *ways))
        kinds = {way[1] for way in ways}
        return tuple(found), kinds.pop() if len(kinds) == 1 else ""


def _is_silent(word: Word) -> bool:
    """Whether in a round of a loop nothing is said, and no way goes further than out of the loop.

    Where nothing is said it is all one whether a round is gone through to its end.
    """
    for each in word:
        if each[0] != "alt":
            return False
        for way in each[1:]:
            told = len(way) == 2 and isinstance(way[1], str)
            said, left = way if told else (way, "")
            if left not in ("", "continue", "break") or not _is_silent(said):
                return False
    return True


def _may_return(seq: Seq, bit: int) -> bool:
    """Whether a rank may leave by a return in a part."""
    for node in seq.items:
        if isinstance(node, Exit) and node.kind == "return":
            return True
        if isinstance(node, Choice) and any(
            arm.mask & bit and _may_return(arm.body, bit) for arm in node.arms
        ):
            return True
        if isinstance(node, Loop) and _may_return(node.body, bit):
            return True
    return False


def classes(root: Seq) -> list[int]:
    """One rank of each kind that conditions tell apart."""
    masks: set[int] = set()
    stack: list[Seq] = [root]
    seen: set[int] = set()
    while stack:
        seq = stack.pop()
        if id(seq) in seen:
            continue
        seen.add(id(seq))
        for node in seq.items:
            if isinstance(node, Choice):
                for arm in node.arms:
                    masks.add(arm.mask)
                    masks.add(arm.opened)
                    stack.append(arm.body)
            elif isinstance(node, Loop | Called):
                stack.append(node.body)
    found: dict[tuple[bool, ...], int] = {}
    ordered = sorted(masks)
    for rank in range(RANKS):
        found.setdefault(tuple(bool(mask & (1 << rank)) for mask in ordered), rank)
    return list(found.values())


def has_loops(word: Word) -> bool:
    """Whether a word goes on for nobody knows how long, or one way or another."""
    return any(letter[0] in ("loop", "alt") for letter in word)


def letters(word: Word) -> set[tuple[str, str]]:
    """All that may be said in a word, in its loops and on its other ways as well."""
    if len(word) == 2 and word[0] in _KINDS and isinstance(word[1], str):
        return {(word[0], word[1])}
    return {each for part in word if isinstance(part, tuple) for each in letters(part)}


_KINDS = ("collective", "group", "wrap", "backward", "forward")


def speaks(word: Word, *, forwards: bool = True) -> bool:
    """Whether anything in a word is heard by other ranks."""
    for each in word:
        if not each:
            continue
        if each[0] == "loop":
            if speaks(each[1], forwards=forwards):
                return True
        elif each[0] == "alt":
            for way in each[1:]:
                inner = (
                    way[0]
                    if len(way) == 2 and isinstance(way[1], str) and isinstance(way[0], tuple)
                    else way
                )
                if speaks(inner, forwards=forwards):
                    return True
        elif each[0] != "forward" or forwards:
            return True
    return False
