"""Where values are kept: in layers that can be taken back, so that arms can be joined."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK_LIKELY,
    EVERYONE,
    LOCAL_RANK,
    NONE,
    NOTHING,
    OPEN,
    RANK,
    RANK_IN,
    RANKS,
    SAME,
    WORLD,
    Agreement,
    Chosen,
    Class,
    Const,
    Either,
    Func,
    Lib,
    Many,
    Partial,
    Place,
    Ref,
    Table,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    Why,
    blended,
    grown_from,
    has_identity,
    how_many,
    is_device,
    is_layer,
    mix,
)

Key = tuple[Any, str]
"""(scope or object, name)."""
Writes = dict[Key, Value]
MOST = 4
"""As many things as may be meant are followed one by one."""
MODELS = "#models"
"""Of an accelerator: the modules that it has wrapped, bare, as its hooks are given them."""
_REMEMBERED = 16
"""Of what is one of so many, it is remembered of which."""
ROWS_OF = "#tuples"
"""Of what is another thing on each way: the tuples among them."""
UNWRAPPED = "the wrapper is taken off"
PERHAPS = "#perhaps"
"""Of a wrapper: it may be something unknown instead, such as another library's."""

LET_IN = "#let in"
"""Of a list: a condition has decided of one thing after the other whether it is put there."""
OF_SOME = "#of some"
"""Of a number: some ranks reckon it in another way, as the last one does the end of its part."""
SHUFFLED = "#shuffled"
"""Of a list of which ranks are not known to have unequally much: what was in it when shuffled."""
NONE_UNSEEN = "#never None"
"""Of what is another thing on each way: on none of them is it None, as far as that is seen."""
OR_NONE = "#or None"
"""Of what is None on some ways and something on others: how ranks agree on which way they went."""
OF_OBJECTS = "#of objects"
"""Of what is another thing on each way: one of them is an object."""
OF_NUMBERS = "#of numbers"
"""Of what is another thing on each way: all of them are numbers, texts, settings or None."""
GRADED = "#graded"
"""Of a tensor: that it was seen to go backward."""
AS_CONDITION = "#as condition"
"""Of what ranks do not agree on: whether they agree on its being true, as a text of the rank is."""
SET_BY_SOME = "they alone set it"
ROUNDS = "rounds"
"""How often one goes through something that nobody fills."""
TOLD = "#told"
"""Under which it is kept by which collective all ranks were given what a tensor holds."""
SENT = "#sent"
"""Of what one rank has sent to all: what they hold of it now, and that rank as a mask."""


_keep = dict.__setitem__
"""What `Kept` does where the name is known already."""


class Kept(Writes):
    """Values by (owner, name), which knows the names of each owner: it is one among thousands."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[Any, dict[str, None]] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        if key not in self:
            self.names.setdefault(key[0], {})[key[1]] = None
        _keep(self, key, value)

    def __delitem__(self, key: Key) -> None:
        super().__delitem__(key)
        del self.names[key[0]][key[1]]

    def of(self, owner: Any) -> dict[str, Value]:
        """What is kept of an object, in the order in which it came."""
        return {name: self[owner, name] for name in self.names.get(owner, ())}


@dataclass(slots=True)
class State:
    """What was written on one way through the program, and under which conditions ranks took it."""

    writes: Writes
    conditions: tuple[Value, ...] = ()
    mask: int = EVERYONE


@dataclass(slots=True)
class Store:
    """The values as they are now, over those of the imported modules.

    A layer is what its writes have replaced, so that they can be taken back.
    """

    below: Kept = field(default_factory=Kept)
    distributed: set[int] = field(default_factory=set)
    """Objects of which two alternatives mean the distributed job: wrappers, samplers."""
    owners: dict[Any, int] = field(default_factory=dict)
    """The ranks that have an object, of those that not all have made."""
    now: Kept = field(default_factory=Kept)
    layers: list[dict[Key, Value | None]] = field(default_factory=list)
    settled: dict[tuple[Value, ...], bool] = field(default_factory=dict)
    """Of one of several: whether all ranks are told alike which it is, wherever that is decided."""
    never_none: set[What] = field(default_factory=set)
    """What is another thing on each way, on all of them a number that is counted."""
    set_at: dict[Key, tuple[ast.AST, Place]] = field(default_factory=dict)
    """Where a name or an attribute was last given a value."""
    joins: dict[What, tuple[Value, ...]] = field(default_factory=dict)
    """Of what is another thing on each way: all of these, where they are not too many."""
    ways: dict[What, tuple[What, ...]] = field(default_factory=dict)
    """What was joined, each of which may have been so itself."""

    def get(self, key: Key) -> Value | None:
        """The value kept under a key."""
        found = self.now.get(key)
        return found if found is not None else self.below.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Keep a value."""
        now = self.now
        if self.layers:
            replaced = self.layers[-1]
            if key in replaced:
                _keep(now, key, value)
                return
            replaced[key] = now.get(key)
        now[key] = value

    def add(self, key: Key, value: Value) -> None:
        """Keep a value beside those that are kept under a key, once."""
        kept = self.get(key)
        before = kept.what.items if kept is not None and isinstance(kept.what, Tuple) else ()
        if all(each.what != value.what for each in before):
            self.put(key, Value(Tuple((*before, value))))

    def begin(self, key: Key, value: Value, made: Key | None = None) -> None:
        """Keep what was there before all that was done, unless something is kept.

        It was not there before its owner was made, as `made` was kept of it.
        """
        if self.get(key) is None:
            self.now[key] = value
            for layer in self.layers:
                if made is not None and layer.get(made, value) is None:
                    layer[key] = None
                    break

    def begin_all(self, writes: Writes, nothing: Value) -> None:
        """The same of several: on a way that does not come here, they are as they are made.

        What is kept as `nothing` is not there either, as after a round of a loop around.
        """
        for key, value in writes.items():
            if self.get(key) in (None, nothing):
                self.now[key] = value
            else:
                self.put(key, value)

    def of(self, owner: Any) -> dict[str, Value]:
        """All that is kept of an object."""
        return {**self.below.of(owner), **self.now.of(owner)}

    def held(self) -> dict[Ref, dict[str, Value]]:
        """All that objects hold, by object: asked of one by one, the whole store would be read."""
        found: dict[Ref, dict[str, Value]] = {}
        for kept in (self.below, self.now):
            for (owner, name), value in kept.items():
                if isinstance(owner, Ref):
                    found.setdefault(owner, {})[name] = value
        return found

    def keys_of(self, what: What) -> list[Key]:
        """Where this is kept."""
        return [key for key, each in {**self.below, **self.now}.items() if each.what == what]

    def guessed(self, guess: Why) -> list[tuple[Key, Value]]:
        """What is kept of which it is known what it is on each rank, if this guess is right."""
        kept = {**self.below, **self.now}
        return [
            (key, each)
            for key, each in kept.items()
            if each.agree == BY_RANK_LIKELY
            and each.why is not None
            and each.why.root == guess
            and (
                isinstance(each.what, Table) or (isinstance(each.what, Either) and each.what.masks)
            )
        ]

    def beneath(self) -> Store:
        """The values of the imported modules alone."""
        return Store(self.below, self.distributed, now=self.below)

    @property
    def depth(self) -> int:
        """How many layers there are."""
        return len(self.layers)

    def open(self) -> int:
        """Begin a layer; its number."""
        self.layers.append({})
        return len(self.layers) - 1

    def close(self) -> Writes:
        """Take back what the innermost layer has written."""
        now = self.now
        writes = {key: now[key] for key in self.layers[-1]}
        self._take_back()
        return writes

    def drop(self, depth: int) -> None:
        """Take back all that the layers from `depth` on have written."""
        while len(self.layers) > depth:
            self._take_back()

    def _take_back(self) -> None:
        now = self.now
        for key, old in self.layers.pop().items():
            if old is None:
                del now[key]
            else:
                _keep(now, key, old)

    def since(self, depth: int) -> Writes:
        """What was written in the layers from `depth` on."""
        return {key: self.now[key] for layer in self.layers[depth:] for key in layer}

    def join(self, states: list[State], tag: Any) -> None:
        """Go on from any of these states, as written over the current layer."""
        if not states:
            return
        if len(states) == 1:
            for key, value in states[0].writes.items():
                self.put(key, value)
            return
        keys: dict[Key, None] = {}
        for state in states:
            keys.update(dict.fromkeys(state.writes))
        conditions = divergent(states)
        for key in keys:
            old = self.get(key)
            own = self.owners.get(key[0])
            if own is not None:  # what becomes of it where nobody has it, nobody sees
                mine = [state for state in states if state.mask & own] or states
                by = divergent(mine) if len(mine) > 1 else []
            else:
                mine, by = states, conditions
            values = [state.writes.get(key, old) for state in mine]
            self.put(key, self._set_by_some(key, by, self.joined(values, mine, by, (tag, key))))

    def _set_by_some(self, key: Key, conditions: list[Value], value: Value) -> Value:
        """A value that is not the same on all ranks because of a condition, and where it is set."""
        if value.why is None or key not in self.set_at:
            return value
        if all(value.why is not each.why for each in conditions):
            return value
        node, place = self.set_at[key]
        return Value(value.what, value.agree, Why(SET_BY_SOME, place, value.why, node))

    def joined(
        self,
        values: list[Value | None],
        states: list[State],
        conditions: list[Value],
        tag: Any,
    ) -> Value:
        """One value for what is another on each way."""
        present = [each for each in values if each is not None]
        first = present[0]
        if len(present) == len(values):
            for each in present:
                if each is not first and (each.what != first.what or each.agree != first.agree):
                    break
            else:
                return first
        if len(present) < len(values):
            # Unbound on the other ways: who reads it has come this way.
            if len(present) == 1:
                return first
            return self.joined(list(present), [State({})] * len(present), [], tag)
        if _go_through_the_same(present):
            return Value(first.what, *blended(present))
        table = _by_mask(present, states)
        told = _all_told(present, states) or self._is_as_sent(present, states)
        agree, why = (SAME, None) if told else blended(present)
        same_what = all(each.what == first.what for each in present)
        if conditions and not same_what and not told:
            condition_agree, condition_why = blended(conditions)
            condition_agree = _by_number(present, condition_agree)
            if table is None or condition_agree.kind == "local":
                new = mix(agree, condition_agree)
                why = why if agree.divergent else condition_why
                agree = new
            else:
                agree = mix(agree, condition_agree)
                why = why if why is not None else condition_why
        if table is not None:
            return Value(table, agree, why)
        if not conditions and _are_of_two_groups(present):
            return Value(LOCAL_RANK, BY_RANK_LIKELY, why)
        if same_what:
            return Value(first.what, agree, why)
        found = _some_have_none(present, states) or self._either(present, states, conditions, tag)
        if isinstance(found, Term) and _is_told_by_rank(present, conditions):
            self.put((found, OF_SOME), Value(Const(True), agree, why))
        if found == NOTHING:  # of which another is not the same
            return Value(found, agree, why)
        if isinstance(found, Either) and any(state.conditions for state in states):
            self.settle(found, self._are_settled(present, states))
        if isinstance(found, Term):
            is_known = all(self._is_counted(each.what) for each in present)
            (self.never_none.add if is_known else self.never_none.discard)(found)
        if isinstance(found, Term) and agree.divergent and all(map(self.is_something, present)):
            self.put((found, NONE_UNSEEN), Value(Const(True)))
        if agree.divergent:
            asked = blended([*map(self.as_condition, present), *conditions])
            if not asked[0].divergent:
                self.put((found, AS_CONDITION), Value(Const(True), *asked))
        if any(each.is_const(None) for each in present):
            self.put((found, OR_NONE), Value(Const(True), *blended(conditions)))
        return Value(found, agree, why)

    def _is_as_sent(self, values: list[Value], states: list[State]) -> bool:
        """Whether who has sent something goes on with it, and all others with what they got."""
        given: set[What] = set()
        got: set[What] = set()
        is_told = True
        for value, state in zip(values, states, strict=True):
            sent, told = (
                state.writes.get((value.what, word)) or self.get((value.what, word))
                for word in (SENT, TOLD)
            )
            mine = sent.what.items if sent is not None and isinstance(sent.what, Tuple) else ()
            if mine and state.mask & ~mine[1].constant == 0:
                given.add(mine[0].what)
            elif value.agree.kind == "same" and state.mask != EVERYONE:
                got.add(value.what)
                is_told = is_told and told is not None
            else:
                return False
        return bool(given) and (is_told or len(given | got) == 1)

    def _are_settled(self, values: list[Value], states: list[State]) -> bool:
        conditions = (each for state in states for each in state.conditions)
        alike = all(each.agree.kind == "same" for each in conditions)
        return alike and all(self.is_settled(each.what) for each in values)

    def settle(self, one: Either, alike: bool) -> None:
        """Note whether all ranks are told alike which of several it is."""
        self.settled[one.options] = alike and self.settled.get(one.options, True)

    def is_settled(self, what: What) -> bool:
        """Whether it is one thing, or all ranks are told alike which of several it is."""
        return not isinstance(what, Either) or self.settled.get(what.options, False)

    def as_condition(self, value: Value) -> Value:
        """A value as far as ranks agree on its being true."""
        if not value.agree.divergent:
            return value
        if folding.truth(value) is not None or folding.is_text(value.what):
            return Value(value.what)
        kept = self.get((value.what, AS_CONDITION))
        return Value(value.what, kept.agree, kept.why) if kept is not None else value

    def _is_counted(self, what: object, inside: bool = False) -> bool:
        """Whether it is a number: reckoned of numbers, of what loops count, and of settings."""
        if isinstance(what, Const):
            return isinstance(what.value, int | float)
        if not isinstance(what, Term) or what in self.never_none or what == WORLD:
            return isinstance(what, Term)
        if what.op in ("parameter", "option"):
            return inside
        return what.op in ("counter", "len") or (
            what.op in folding.NUMERIC
            and all(self._is_counted(each, inside=True) for each in what.args)
        )

    def is_something(self, value: Value) -> bool:
        """Whether a value is not None as far as that is seen."""
        what = value.what
        if isinstance(what, Term) and what.op == "joined":
            return self.get((what, NONE_UNSEEN)) is not None
        if isinstance(what, Either):
            return all(map(self.is_something, what.options))
        return what != NOTHING and not value.is_const(None) and not isinstance(what, Table)

    def _either(
        self, values: list[Value], states: list[State], conditions: list[Value], tag: Any
    ) -> What:
        options: dict[What, Value] = {}
        for each in values:
            if isinstance(each.what, Either):
                options.update({option.what: option for option in each.what.options})
            else:
                options.setdefault(each.what, each)
        if not conditions:
            tables = [each.what for each in values if isinstance(each.what, Table)]
            consts = [each for each in values if isinstance(each.what, Const)]
            if len(tables) == 1 and len(consts) == len(values) - 1:
                return tables[0]
            mine = [
                each
                for each in options
                if isinstance(each, Ref) and each.number in self.distributed
            ]
            off = [e.what for e in values if e.why is not None and e.why.text == UNWRAPPED]
            if len(mine) == 1:
                # "its module if it is wrapped, else itself" is the module.
                held = self.get((mine[0], "module"))
                if any(isinstance(e.what, Term) and (not held or e != held) for e in values):
                    self.put((mine[0], PERHAPS), values[0])
                return off[0] if off else mine[0]
            inner = [self.get((each, "module")) for each in mine]
            taken_off = {one.what for each in off for one in self.options(Value(each))}
            if off and all(
                each and taken_off.issuperset(one.what for one in self.options(each))
                for each in inner
            ):
                return off[0]  # of wrappers that are made with other options on each way
        if len(options) == 1 or _is_one_file(list(options)):
            return next(iter(options))
        real = [each for each in options.values() if not each.is_const(None)]
        if all(isinstance(each.what, Class) for each in real):
            real = real[:MOST]  # what is kept of many kinds is not different from kind to kind
            options = {each.what: each for each in real}
        if len(options) <= MOST and real and all(_is_thing(each) for each in real):
            return Either(tuple(options.values()), chosen=_held_back_by(values, options))
        tuples = [each.what for each in values if isinstance(each.what, Tuple)]
        if len(tuples) == len(values) and len({len(each.items) for each in tuples}) == 1:
            columns = zip(*(each.items for each in tuples), strict=True)
            masks = [state.mask for state in states] if len(states) == len(values) else []
            ways = [State({}, mask=mask) for mask in masks] or [State({})] * len(values)
            return Tuple(
                tuple(
                    self.joined(list(column), ways, conditions, (tag, number))
                    for number, column in enumerate(columns)
                )
            )
        if all(isinstance(each.what, Many | Tuple) for each in options.values()):
            every = _elements(list(options.values()), conditions)
            one = self.joined(list(every), [State({})] * len(every), [], tag)
            return Many(one, _number([each.what for each in options.values()], tag))
        made = [each.what for each in options.values() if isinstance(each.what, Tensor)]
        if len(made) == len(options):
            return Tensor(hash(tag), frozenset().union(*(each.of for each in made)))
        if made and not conditions:
            return made[0]
        if tag is None:
            return NOTHING
        rows = [row for each in options.values() for row in self._rows(each)]
        joined = Term("joined", (hash(tag),))
        if rows:
            self.put((joined, ROWS_OF), Value(Tuple(tuple(rows))))
        if any(isinstance(each, Ref) for each in options):
            self.put((joined, OF_OBJECTS), Value(Const(True)))
        self.ways[joined] = tuple(options)
        several = {one.what: one for each in options.values() for one in self.options(each)}
        several.pop(joined, None)
        if len(several) <= _REMEMBERED:
            self.joins[joined] = tuple(several.values())
        if all(map(self.is_number, options)):
            self.put((joined, OF_NUMBERS), Value(Const(True)))
        return joined

    def options(self, value: Value) -> tuple[Value, ...]:
        """What something may be, itself where it is one thing."""
        if isinstance(value.what, Either):
            return value.what.options
        return self.joins.get(value.what, (value,))

    def is_number(self, what: What) -> bool:
        """Whether it is a number, a text, a setting or None, on whichever way: no object."""
        if isinstance(what, Const):
            return True
        if not isinstance(what, Term):
            return False
        return folding.is_number(what) or self.get((what, OF_NUMBERS)) is not None

    def _rows(self, value: Value) -> tuple[Value, ...]:
        """The tuples that something may be."""
        if isinstance(value.what, Tuple):
            return (value,)
        kept = self.get((value.what, ROWS_OF))
        return kept.what.items if kept is not None and isinstance(kept.what, Tuple) else ()


def _go_through_the_same(values: list[Value]) -> bool:
    """Whether each goes through one thing alike: with a progress bar, or without."""
    first = values[0].what
    number = how_many(first)
    is_of_rounds = isinstance(number, Term) and number.op == ROUNDS
    return is_of_rounds and all(
        how_many(each.what) == number and _counted_from(each.what) == _counted_from(first)
        for each in values
    )


def _counted_from(content: What) -> tuple[Any, ...]:
    """Of rounds: by what each part of one counts them, None for what does not count."""
    one = content.element.what if isinstance(content, Many) else None
    return tuple(
        each.what.args[1:] if isinstance(each.what, Term) and each.what.op == "counter" else None
        for each in (one.items if isinstance(one, Tuple) else ())
    )


def _are_of_two_groups(values: list[Value]) -> bool:
    """Whether one is the rank in the job, and others that in a group of which it may be one.

    Each group has a first rank, of which the others are told apart as those of a host are.
    """
    in_groups = {e.what for e in values if isinstance(e.what, Term) and e.what.op == RANK_IN}
    return bool(in_groups) and all(each.what in (RANK, *in_groups) for each in values)


def _all_told(values: list[Value], states: list[State]) -> bool:
    """Whether on each way it is what a collective has given to all ranks, the same on each."""
    told = (
        state.writes.get((value.what, TOLD)) for value, state in zip(values, states, strict=True)
    )
    first = next(told)
    return first is not None and all(each is not None and each == first for each in told)


def _elements(contents: list[Value], conditions: list[Value]) -> list[Value]:
    """The elements of several contents; what is not in all of them is there by the conditions."""
    held: list[dict[What, Value]] = []
    for content in contents:
        what = content.what
        items = what.items if isinstance(what, Tuple) else (what.element,)  # type: ignore[union-attr]
        held.append({})
        for item in items:
            several = item.what.options if isinstance(item.what, Either) else (item,)
            held[-1].update({each.what: each for each in several})
    found: dict[What, Value] = {}
    for each in held:
        found.update({what: value for what, value in each.items() if what not in found})
    by, why = blended(conditions)
    return [
        value
        if not by.divergent or all(what in each for each in held)
        else Value(what, mix(value.agree, by), value.why if value.agree.divergent else why)
        for what, value in found.items()
    ]


def _by_number(values: list[Value], by: Agreement) -> Agreement:
    """The agreement of contents of which the ways hold one each, on how many there are.

    What is drawn decides what is put somewhere, which may be as many on all ranks. Where it decides
    whether anything is, they are not.
    """
    if not all(isinstance(each.what, Many | Tuple) for each in values):
        return by
    numbers = {how_many(each.what) for each in values}
    if len(numbers) == 1 and has_identity(tuple(numbers)):
        return SAME
    known = sum(isinstance(each, Const) for each in numbers) > 1
    chains = [(each, list(grown_from(other))) for each in numbers for other in numbers - {each}]
    if known or any(each in chain for each, chain in chains):
        return replace(by, cause="data") if by.cause == "chance" else by
    return replace(by, sure=False)


def _number(contents: list[What], tag: Any) -> Const | Term:
    """How many there are of contents of which it is one: at least as many as of the least."""
    numbers = {how_many(each) for each in contents}
    if len(numbers) == 1:
        return numbers.pop()
    chains = [list(grown_from(each)) for each in numbers]
    least = next((each for each in numbers if all(each in chain for chain in chains)), None)
    if tag is None:
        return NOTHING
    if least is None:
        return Term("joined", (hash(tag),))
    grows_here = isinstance(least, Term) and least.args[1:] == (hash(tag),)
    return least if grows_here else Term("longer", (least, hash(tag)))


def _some_have_none(values: list[Value], states: list[State]) -> Either | None:
    """Something that some ranks have, and others have None in its place."""
    masks = [state.mask for state in states]
    if len(masks) != len(values) or masks.count(masks[0]) == len(masks):
        return None
    found: dict[What, tuple[Value, int]] = {}
    for value, mask in zip(values, masks, strict=True):
        what = value.what
        if isinstance(what, Either) and not what.masks:
            return None
        parts = zip(what.options, what.masks, strict=True) if isinstance(what, Either) else ()
        for each, own in parts or ((value, mask),):
            found[each.what] = (each, found.get(each.what, (each, 0))[1] | (own & mask))
    others = [each for each in found if each != NONE.what]
    if len(found) != 2 or len(others) != 1 or not isinstance(others[0], _HELD):
        return None
    if others[0] == NOTHING:
        return None
    return Either(
        tuple(value for value, _ in found.values()), tuple(mask for _, mask in found.values())
    )


_HELD = (Ref, Term, Func, Partial, Class, Lib)


def _is_one_file(options: list[What]) -> bool:
    """Whether these are what was loaded from one file, to whatever device."""
    loads = [each for each in options if isinstance(each, Term) and each.op == "loaded"]
    return len(loads) == len(options) and len({each.args[0] for each in loads}) == 1


def _is_thing(value: Value) -> bool:
    """Whether a value is worth to be remembered as one of several."""
    what = value.what
    if isinstance(what, Term):
        return what.op == "text" or is_device(what) or _is_no_sync(value) or is_layer(what)
    return isinstance(what, Func | Class | Ref | Lib | Partial) or isinstance(value.constant, str)


def _is_no_sync(value: Value) -> bool:
    """Whether it is `model.no_sync`, whatever the model is."""
    what = value.what
    if isinstance(what, Partial):
        return dict(what.named).get("#", NONE).is_const("no_sync")
    return isinstance(what, Term) and what.op == "of" and what.args[1:] == ("no_sync",)


def _held_back_by(values: list[Value], options: Iterable[What]) -> Chosen | None:
    """What decides whether gradients are held back, in a job in which they are reduced at all."""
    found = [each.what for each in values if isinstance(each.what, Either) and each.what.chosen]
    if len(found) != 1 or {each.what for each in found[0].options} != set(options):
        return None
    return found[0].chosen if any(map(_is_no_sync, found[0].options)) else None


def divergent(states: Iterable[State]) -> list[Value]:
    """The conditions that ranks may answer differently, of all the ways."""
    found: dict[int, Value] = {}
    for state in states:
        for each in state.conditions:
            if each.agree.divergent:
                found[id(each)] = each
    return list(found.values())


def _is_told_by_rank(values: list[Value], conditions: list[Value]) -> bool:
    """Whether the rank decides which of two numbers it is."""
    numbers = all(isinstance(each.what, Const | Term | Table) for each in values)
    return len(values) == 2 and numbers and blended(conditions)[0].kind == "rank"


def _by_mask(values: list[Value], states: list[State]) -> Table | None:
    """Each rank's own constant, where the ways are told apart by rank."""
    masks = [state.mask for state in states]
    if len(masks) != len(values) or masks[0] in masks[1:]:
        return None
    entries: list[Any] = []
    for rank in range(RANKS):
        here = [value for value, mask in zip(values, masks, strict=True) if mask & (1 << rank)]
        found: list[Any] = []
        for value in here:
            if isinstance(value.what, Const):
                found.append(value.what.value)
            elif isinstance(value.what, Table):
                found.append(value.what.entries[rank])
            else:
                return None
        if not found:
            entries.append(OPEN)
        elif all(each is found[0] or each == found[0] for each in found[1:]):
            entries.append(found[0])
        else:
            entries.append(OPEN)
    return Table(tuple(entries))
