"""Operations on what is known: constants, tables of constants, and terms."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK_LIKELY,
    LOCAL_RANK,
    MODE,
    NODE_RANK,
    NOTHING,
    OPEN,
    RANK,
    RANKS,
    SAME,
    UNKNOWN,
    WORLD,
    Class,
    Const,
    Either,
    Func,
    Lib,
    Many,
    Partial,
    Ref,
    Table,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    blended,
    how_many,
    is_device,
    local,
    term,
    within,
)

_MOST_BITS = 64


def _power(base: Any, exponent: Any) -> Any:
    """`base ** exponent`, OPEN where it would be too large to compute."""
    is_small = max(abs(base), abs(exponent)) <= _MOST_BITS
    return base**exponent if is_small else OPEN


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Pow: _power,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}
_LIMIT = 2000
DATA_METHODS = frozenset(
    [
        "item",
        "tolist",
        "unique",
        "max",
        "min",
        "mean",
        "sum",
        "any",
        "all",
        "norm",
        "argmax",
        "argmin",
        "nonzero",
        "isnan",
        "isinf",
    ]
)
"""Of a tensor: they give what its data are, and never None."""
_NEVER_NONE = (Ref, Lib, Tensor, Tuple, Many, Class, Func)
NUMERIC = frozenset(each.__name__ for each in _BINARY)
"""The operators that reckon."""
_COMPUTED = NUMERIC.union(
    ("text", "path", "len", "counter", "not"), (each.__name__ for each in _COMPARE)
)
"""What a term is then computed by: no number, and nothing computed of such, is None."""
_OF_NUMBERS = ("math.", "numpy.", "random.", "time.", "os.")
_OF_SETTINGS = ("json.", "yaml.", "ruamel.yaml.", "toml.", "tomllib.", "omegaconf.")
_NUMBERS = _COMPUTED.union(("option", "range", "drawn", "and", "or"))
_IN_THEM = ("of", "item", "element")


def is_number(what: Term) -> bool:
    """Whether it is reckoned, given on the command line, or read in a file of settings."""
    while what.op in _IN_THEM and isinstance(what.args[0], Term):
        what = what.args[0]
    return what.op in _NUMBERS or (
        what.op == "lib" and str(what.args[0]).startswith(_OF_NUMBERS + _OF_SETTINGS)
    )


def _tried(function: Callable[..., Any], *args: Any) -> Any:
    if any(each is OPEN for each in args):
        return OPEN
    try:
        result = function(*args)
    except Exception:  # whatever a user's constants do to each other is not known
        return OPEN
    if isinstance(result, str | bytes | tuple) and len(result) > _LIMIT:
        return OPEN
    if isinstance(result, int) and abs(result) > 1 << 64:
        return OPEN
    plain = isinstance(result, bool | int | float | str | bytes | tuple | None)
    return result if plain else OPEN


def entries(value: Value) -> tuple[Any, ...] | None:
    """The value on each rank of the model job, None where it is no constant anywhere."""
    what = value.what
    if isinstance(what, Table):
        return what.entries
    found = concrete(value)
    return None if found is OPEN else (found,) * RANKS


def concrete(value: Value) -> Any:
    """A constant, or a tuple of constants; the world size of the model job; else OPEN."""
    what = value.what
    if isinstance(what, Const):
        return what.value
    if isinstance(what, Tuple):
        items = tuple(concrete(each) for each in what.items)
        return OPEN if any(each is OPEN for each in items) else items
    return of_world(what)


def of_world(what: What, size: int = RANKS) -> Any:
    """The value of a term over the world size alone, by default in the model job; else OPEN."""
    if what == WORLD:
        return size
    if isinstance(what, Term) and what.op in _BY_NAME:
        parts = [of_world(each, size) if isinstance(each, Term) else each for each in what.args]
        parts = [each.value if isinstance(each, Const) else each for each in parts]
        if all(isinstance(each, int | float) for each in parts):
            return _tried(_BY_NAME[what.op], *parts)
    return OPEN


_SIZES = (2, 3, RANKS)
"""Of worlds: what is so in all of these has nothing to do with the size of the model job."""
_BY_NAME = {kind.__name__: function for kind, function in _BINARY.items()}
_COMPARED = {kind.__name__: function for kind, function in _COMPARE.items()}


def deals_rounds(what: What) -> bool:
    """Whether a condition is true in as many rounds for each rank: `number % world == rank`."""
    turns = [[in_round(what, rank, each) for each in range(RANKS)] for rank in range(RANKS)]
    if any(each is OPEN for turn in turns for each in turn):
        return False
    return len({sum(map(bool, turn)) for turn in turns}) == 1


def is_for_all(count: What) -> bool:
    """Whether a `range` is as long as a multiple of the world, whatever it is else made of.

    Of a number that is written down nothing is known to be wrong if two ranks can share it.
    """
    if not isinstance(count, Term) or count.op != "range":
        return False
    if isinstance(number := how_many(count), Const):
        return bool(number.value % 2 == 0)
    bounds = [[in_round(each, 0, 0, prime) for each in count.args] for prime in _PRIMES]
    known = all(isinstance(each, int) for row in bounds for each in row)
    return known and all(len(range(*row)) % RANKS == 0 for row in bounds if 0 not in row[2:])


def is_multiple(number: object) -> bool:
    """Whether a number is a multiple of that of the ranks, whatever it is else made of."""
    found = [in_round(number, 0, 0, prime) for prime in _PRIMES]
    return all(isinstance(each, int) and each % RANKS == 0 for each in found)


_PRIMES = (1009, 2003)


def added(before: What, after: What) -> int | None:
    """The number by which a value is more than it was, None where it is another."""
    total = 0
    while after != before:
        if not isinstance(after, Term) or after.op not in ("Add", "Sub"):
            return None
        left, by = after.args
        if not isinstance(by, Const) or not isinstance(by.value, int):
            return None
        total += by.value if after.op == "Add" else -by.value
        after = left
    return total


def in_round(what: object, rank: int, number: int | Mapping[What, Any], unknown: Any = OPEN) -> Any:
    """What a term is for a rank in a round of a loop, `unknown` where that cannot be told.

    `number` is that of the round, or what stands for each of several terms, as loops' counters.
    """
    if isinstance(what, Const | Table):
        return what.value if isinstance(what, Const) else what.entries[rank]
    if not isinstance(what, Term) or what == WORLD:
        return RANKS if what == WORLD else unknown
    if not isinstance(number, int) and what in number:
        return number[what]
    if what.op == "counter":
        return number if isinstance(number, int) else unknown
    if what.op == "not":
        inner = in_round(what.args[0], rank, number, unknown)
        return OPEN if inner is OPEN else not inner
    if what.op in ("and", "or"):
        each = [in_round(part, rank, number, unknown) for part in what.args]
        return OPEN if OPEN in each else (all if what.op == "and" else any)(each)
    function = _BY_NAME.get(what.op) or _COMPARED.get(what.op)
    if function is None:
        return unknown
    return _tried(function, *(in_round(each, rank, number, unknown) for each in what.args))


def on_each_rank(function: Callable[..., Any], of: Sequence[Value]) -> Value | None:
    """What a function makes of what each rank has; None where that is not known of any.

    Where it is the same on all of them, it is what they agree on.
    """
    columns = [column for column in map(entries, of) if column is not None]
    if len(columns) < len(of) or any(of_world(each.what) is not OPEN for each in of):
        return None
    found = tuple(_tried(function, *row) for row in zip(*columns, strict=True))
    if all(each is OPEN for each in found):
        return None
    if OPEN not in found and len(set(map(repr, found))) == 1:
        agree, why = blended([each for each in of if not isinstance(each.what, Table)])
        return Value(Const(found[0]), agree, why)
    agree, why = blended(of)
    return Value(_table(found, *of), agree, why)


def binary(op: ast.operator, left: Value, right: Value) -> Value:
    """`left op right`."""
    left, right = _field(left), _field(right)
    agree, why = blended((left, right))
    function = _BINARY.get(op.__class__)
    if isinstance(left.what, Tensor) or isinstance(right.what, Tensor):
        return Value(_tensor(left, right), agree, why)
    if agree.divergent and _is_where_it_stands(op, left.what, right.what):
        return Value(term(op.__class__.__name__, left.what, right.what), SAME)
    if isinstance(left.what, Table) or isinstance(right.what, Table):
        if isinstance(op, ast.Sub) and (without := _without(left, right)) is not None:
            return without
        one, other = entries(left), entries(right)
        if function and one is not None and other is not None:
            found = tuple(_tried(function, a, b) for a, b in zip(one, other, strict=True))
            if any(each is not OPEN for each in found):
                table = replace(_table(found, left, right), is_counted_on=True)
                return Value(table, agree, why)
        turned = _of_node(op, right, left) if isinstance(op, ast.Add) else None
        if (of_node := turned or _of_node(op, left, right)) is not None:
            return Value(of_node, BY_RANK_LIKELY, why)
        if agree.divergent and not {left.what, right.what} & {NOTHING}:
            return Value(term(op.__class__.__name__, left.what, right.what), agree, why)
        return Value(
            NOTHING if agree.divergent else term("mixed", left.what, right.what), agree, why
        )
    if isinstance(left.what, Const) and isinstance(right.what, Const) and function:
        result = _tried(function, left.what.value, right.what.value)
        if result is not OPEN:
            return Value(Const(result), agree, why)
    if isinstance(op, ast.Add) and isinstance(left.what, Tuple) and isinstance(right.what, Tuple):
        return Value(Tuple(left.what.items + right.what.items), agree, why)
    if agree.cause == "clock" and isinstance(op, ast.FloorDiv) and _is_long(right):
        agree, why = UNKNOWN, None
    name = op.__class__.__name__
    return Value(term(name, _part(left), _part(right)), agree, why)


def _without(whole: Value, rank: Value) -> Value | None:
    """What is left of a sum of which the rank is taken away again that was added."""
    what = whole.what
    if not isinstance(what, Term) or what.op != "Add" or whole.agree.kind != "rank":
        return None
    first, second = what.args
    rest = first if second == rank.what else second if first == rank.what else None
    if rest is None or any(isinstance(each, Table) for each in within(rest)):
        return None
    return Value(rest, SAME if whole.agree.sure else UNKNOWN)


def _field(value: Value) -> Value:
    """A number in what a model gives: with one of its methods nothing could be computed."""
    what = value.what
    is_field = isinstance(what, Partial) and isinstance(what.callee.what, Tensor) and not what.bound
    return Value(what.callee.what, value.agree, value.why) if is_field else value  # type: ignore[union-attr]


def _of_node(op: ast.operator, rank: Value, number: Value) -> Table | None:
    """The rank by how many of them there are on a node, whoever says how many that are.

    It may be other groups that so many belong to: they, too, have a first one each. A product may
    be that of the hosts and what each has: all there are, or all that come before this host's.
    """
    is_number = isinstance(number.what, Term) and number.what != NOTHING
    if rank.what not in (RANK, LOCAL_RANK) or not is_number or number.agree.divergent:
        return None
    is_product = isinstance(number.what, Term) and number.what.op == "Mult"
    if rank.what == LOCAL_RANK:
        return RANK if is_product and isinstance(op, ast.Add) else None
    if isinstance(op, ast.Mod):
        return RANK if is_product else LOCAL_RANK
    return NODE_RANK if isinstance(op, ast.FloorDiv) else None


def _table(found: tuple[Any, ...], *of: Value) -> Table:
    """What was computed of these for each rank."""
    by_world = (
        each.what.by_world if isinstance(each.what, Table) else of_world(each.what) is not OPEN
        for each in of
    )
    return Table(found, any(by_world))


def is_span_of(first: What, last: What) -> bool:
    """Whether `range(first, last)` has as many numbers wherever it begins: `range(i, i + n)`."""
    begin, end = _polynomial(first, 0), _polynomial(last, 0)
    if begin is None or end is None:
        return False
    unknown = begin.keys() - {()}
    return bool(unknown) and not _sum(end, begin, -1).keys() & unknown


def is_equally_long(bounds: tuple[What, ...]) -> bool:
    """Whether `range(first, last, step)` has as many numbers on each rank: the rank cancels out.

    By the sum of products that `last - first` is, with each rank's own number in the rank's place.
    """
    if len(bounds) < 2 or any(map(_is_by_rank, bounds[2:])):
        return False
    spans = []
    for rank in range(RANKS):
        first, last = (_polynomial(each, rank) for each in bounds[:2])
        if first is None or last is None:
            return False
        spans.append(_sum(last, first, -1))
    return all(each == spans[0] for each in spans)


def _is_where_it_stands(op: ast.operator, left: What, right: What) -> bool:
    """Whether a number is the same in each round of the ranks' spans: `i - first`, `i % 10`.

    The counter of such a span is where it begins and the number of the round; what of the first is
    each rank's own cancels out, or is a multiple of what is divided by.
    """
    if not any(map(_is_in_a_span, (*within(left), *within(right)))):
        return False
    by = right.value if isinstance(op, ast.Mod) and isinstance(right, Const) else 0
    if isinstance(op, ast.Mod) and not (isinstance(by, int) and by > 0):
        return False
    what = left if by else Term(op.__class__.__name__, (left, right))
    found = [_polynomial(what, rank) for rank in range(RANKS)]
    rests = [each and {key: n % by if by else n for key, n in each.items()} for each in found]
    plain = [each and {key: n for key, n in each.items() if n} for each in rests]
    return None not in found and all(each == plain[0] for each in plain)


def _is_in_a_span(what: object) -> bool:
    """Whether it counts from a number that may be each rank's own."""
    is_counter = isinstance(what, Term) and what.op == "counter" and len(what.args) > 1
    return is_counter and isinstance(what.args[1], Const | Table | Term)  # type: ignore[attr-defined]


Polynomial = dict[tuple[str, ...], Any]
"""The factor of each product of unknowns, in the order of their texts."""


def _polynomial(what: What, rank: int) -> Polynomial | None:
    """What a term is on one rank; None where something is not known at all."""
    if isinstance(what, Const | Table):
        number = what.value if isinstance(what, Const) else what.entries[rank]
        return {(): number} if isinstance(number, int) else None
    if what == NOTHING:
        return None
    if isinstance(what, Term) and what.op in ("Add", "Sub", "Mult") and len(what.args) == 2:
        left, right = (_polynomial(each, rank) for each in what.args)
        if left is None or right is None:
            return None
        if what.op != "Mult":
            return _sum(right, left, 1) if what.op == "Add" else _sum(left, right, -1)
        found: Polynomial = {}
        for one, factor in left.items():
            for other, more in right.items():
                found = _sum(found, {tuple(sorted(one + other)): factor * more}, 1)
        return found
    if isinstance(what, Term) and _is_in_a_span(what):
        site, first = what.args
        begin = _polynomial(first, rank)
        return None if begin is None else _sum(begin, {(repr(Term("counter", (site,))),): 1}, 1)
    return None if _is_by_rank(what) else {(repr(what),): 1}


def _sum(left: Polynomial, right: Polynomial, sign: int) -> Polynomial:
    both = {key: left.get(key, 0) + sign * right.get(key, 0) for key in {*left, *right}}
    return {key: factor for key, factor in both.items() if factor}


def _is_by_rank(what: What) -> bool:
    """Whether the rank, or what nobody knows, is within a term."""
    return any(isinstance(each, Table) or each == NOTHING for each in within(what))


_LONG = 600
"""Seconds: ranks that ask the clock for a time this coarse nearly always get the same."""
_FINE = re.compile(r"%-?[MSsfTcXrR]")


def _is_long(value: Value) -> bool:
    return isinstance(value.constant, int | float) and value.constant >= _LONG


def is_coarse(format: Value) -> bool:
    """Whether a time in this format is of hours or days."""
    return isinstance(format.constant, str) and not _FINE.search(format.constant)


CLOCKED = "clocked"
"""The operation that gives a time as a text, in whole seconds or coarser."""


def is_of_seconds(format: Value) -> bool:
    """Whether a time in this format says nothing of parts of a second."""
    return isinstance(format.constant, str) and "%f" not in format.constant


def is_of_a_time(format: Value) -> bool:
    """Whether it is a format of a time, and not one of a number."""
    return isinstance(format.constant, str) and bool(_FIELD.search(format.constant))


_FIELD = re.compile(r"%-?[A-Za-z]")


def _part(value: Value) -> Any:
    what = value.what
    if isinstance(what, Either) and all(isinstance(each.what, Const) for each in what.options):
        return term("either", *(each.what for each in what.options))
    return what if isinstance(what, Const | Term | Ref | Lib | Table) else NOTHING


def _tensor(*values: Value) -> Tensor:
    made = [each.what for each in values if isinstance(each.what, Tensor)]
    return Tensor(0, frozenset().union(*(each.of for each in made)))


def unary(op: ast.unaryop, operand: Value) -> Value:
    """`-x`, `not x`, `~x`."""
    if isinstance(op, ast.Not):
        return negated(operand)
    if isinstance(operand.what, Table):
        function = operator.neg if isinstance(op, ast.USub) else operator.pos
        found = tuple(_tried(function, each) for each in operand.what.entries)
        return Value(_table(found, operand), operand.agree, operand.why)
    if isinstance(operand.what, Const) and isinstance(op, ast.USub | ast.UAdd):
        function = operator.neg if isinstance(op, ast.USub) else operator.pos
        result = _tried(function, operand.what.value)
        if result is not OPEN:
            return Value(Const(result), operand.agree, operand.why)
    if isinstance(operand.what, Tensor):
        return Value(_tensor(operand), operand.agree, operand.why)
    return Value(term(op.__class__.__name__, _part(operand)), operand.agree, operand.why)


def negated(value: Value) -> Value:
    """`not x`."""
    known = truth(value)
    if isinstance(value.what, Table):
        found = tuple(each if each is OPEN else not each for each in value.what.entries)
        given = tuple((what, holds, not when) for what, holds, when in value.what.given)
        return Value(replace(_table(found, value), given=given), value.agree, value.why)
    if known is not None:
        return Value(Const(not known), value.agree, value.why)
    if isinstance(value.what, Term) and value.what.op == "not":
        inner = value.what.args[0]
        if isinstance(inner, Term):
            return Value(inner, value.agree, value.why)
    part = value.what if isinstance(value.what, Tensor) else _part(value)
    return Value(term("not", part), value.agree, value.why)


def compared(left: Value, op: ast.cmpop, right: Value) -> Value:
    """`left op right`."""
    mine, theirs = _items(left), _items(right)
    if mine and len(mine) == len(theirs) and isinstance(op, ast.Eq):
        return _all_equal(mine, theirs)
    is_among = isinstance(op, ast.In | ast.NotIn) and isinstance(left.what, Table)
    row = _range(right.what) if is_among else None
    if row is not None and row[2] == Const(1):
        first, end = (Value(each, right.agree, right.why) for each in row[:2])
        is_one = both(compared(left, ast.GtE(), first), compared(left, ast.Lt(), end), True)
        return is_one if isinstance(op, ast.In) else negated(is_one)
    agree, why = blended((left, *mine, right, *theirs))
    function = _COMPARE[op.__class__]
    equality = isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq)
    if equality and right.is_const(None) and isinstance(left.what, Either):
        wanted = isinstance(op, ast.Is | ast.Eq)
        table = left.what.table(lambda each: each.is_const(None) == wanted)
        if table is not None:
            return Value(table, agree, why)
    if equality and right.is_const(None) and is_something(left):
        return Value(Const(isinstance(op, ast.IsNot | ast.NotEq)))
    identity = isinstance(op, ast.Is | ast.IsNot) and isinstance(right.what, Const)
    if identity and not right.is_const(None):
        function = operator.eq if isinstance(op, ast.Is) else operator.ne
    tensors = isinstance(left.what, Tensor) or isinstance(right.what, Tensor)
    if tensors and not isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn):
        # Element by element, as large as they are: what the rank has shaped is no rank.
        agree = local("", agree.sure) if agree.kind == "rank" else agree
        return Value(_tensor(left, right), agree, why)
    if isinstance(op, ast.In | ast.NotIn) and _is_identity(left):
        agree, why = UNKNOWN, None  # whether this very thing was seen before, is no address
    is_name = isinstance(op, ast.In | ast.NotIn) and isinstance(left.constant, str)
    if is_name and (tensors or right.what == NOTHING):
        agree, why = UNKNOWN, None  # by which names a model hands out its data, is not known
    if isinstance(left.what, Table) or isinstance(right.what, Table):
        one, other = entries(left), entries(right)
        if one is not None and other is not None:
            pairs = map(_of_one_kind, one, other)
            found = tuple(_tried(function, a, b) for a, b in pairs)
            first = found[0]
            if all(each is first for each in found) and first is not OPEN:
                return Value(Const(first))  # `rank == -1`: no rank of a distributed job
            if any(each is not OPEN for each in found):
                return Value(_table(found, left, right), agree, why)
        if is_among and agree.kind == "rank" and row is None:  # a step leaves numbers out
            agree = BY_RANK_LIKELY  # all ranks may be among those that are not known
        return Value(term(op.__class__.__name__, _part(left), _part(right)), agree, why)
    several = right.is_const(2) and isinstance(op, ast.Lt | ast.GtE)  # as `> 1` and `<= 1`
    known = right.is_const(0, 1) or several
    if _is_term(left) and known:
        sizes = [_tried(function, of_world(left.what, each), right.constant) for each in _SIZES]
        if sizes[0] is not OPEN and all(each == sizes[0] for each in sizes):
            return Value(Const(sizes[0]))
    one, other = concrete(left), concrete(right)
    if one is not OPEN and other is not OPEN and not _is_term(left) and not _is_term(right):
        result = _tried(function, one, other)
        if result is not OPEN:
            return Value(Const(result), agree, why)
    if left.what == MODE and isinstance(right.what, Const):
        is_mode = bool(right.what.value) == isinstance(op, ast.Eq | ast.Is)
        return Value(MODE) if is_mode else Value(term("not", MODE))
    if equality and isinstance(left.what, Term) and isinstance(right.constant, bool):
        wanted = right.constant == isinstance(op, ast.Eq | ast.Is)
        return left if wanted else negated(left)
    what = term(op.__class__.__name__, _part(left), _part(right))
    is_size = isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    is_size = is_size and not any(isinstance(each, Table) for each in within(what))
    if agree.kind == "rank" and is_size:  # of what the rank has seeded or shaped: it is no rank
        agree = local("", agree.sure)
    return Value(what, agree, why)


def _range(what: What) -> tuple[What, What, What] | None:
    """Where a range, or a list of it, begins and ends, and its step."""
    if isinstance(what, Term) and what.op == "list":
        return _range(what.args[0])
    if not isinstance(what, Term) or what.op != "range":
        return None
    first = () if len(what.args) > 1 else (Const(0),)
    first, end, step = (*first, *what.args, Const(1))[:3]
    return first, end, step


def _is_identity(value: Value) -> bool:
    """Whether it is `id(...)` of something."""
    return isinstance(value.what, Term) and (value.what.op, *value.what.args[:1]) == ("local", "id")


def _of_one_kind(one: Any, other: Any) -> tuple[Any, Any]:
    """A number and a text that tells one as two numbers: `RANK` is text in the environment."""
    if isinstance(one, int) and isinstance(other, str) and other.isdecimal():
        return one, int(other)
    if isinstance(other, int) and isinstance(one, str) and one.isdecimal():
        return int(one), other
    return one, other


def _all_equal(left: tuple[Value, ...], right: tuple[Value, ...]) -> Value:
    """Whether the elements are equal, each to each: the rank may be one of them."""
    found = Value(Const(True))
    for one, other in zip(left, right, strict=True):
        found = both(found, compared(one, ast.Eq(), other), True)
    return found


def _items(value: Value) -> tuple[Value, ...]:
    return value.what.items if isinstance(value.what, Tuple) else ()


def _is_term(value: Value) -> bool:
    return isinstance(value.what, Term)


def is_something(value: Value) -> bool:
    """Whether a value cannot be None."""
    what = value.what
    if isinstance(what, Term) and what.op == "call":
        return what.args[0] in DATA_METHODS
    if isinstance(what, Term) and what.op in _COMPUTED:
        return True
    return is_device(what) or isinstance(what, _NEVER_NONE) or what in (WORLD, MODE)


def is_text(what: What) -> bool:
    """Whether it is a text that something was put into: whatever that is, it is not empty."""
    if not isinstance(what, Term):
        return False
    if what.op == "text":
        begun = what.args[0] if what.args else None
        is_of_texts = len(what.args) > 1 and isinstance(what.args[1], str)
        return isinstance(begun, Const) and bool(begun.value) and not is_of_texts
    is_replaced = what.op == "call" and what.args[0] == "replace"
    return what.op == "path" or (is_replaced and all(map(_is_written, what.args[2:4])))


def _is_written(what: object) -> bool:
    entries = what.entries if isinstance(what, Table) else (what,)
    written = [each.value if isinstance(each, Const) else each for each in entries]
    return all(isinstance(each, str) for each in written)


def truth(value: Value) -> bool | None:
    """Whether a value is true, None where it is not known or differs between ranks."""
    what = value.what
    if isinstance(what, Const):
        return bool(what.value)
    if isinstance(what, Tuple):
        return bool(what.items)
    if isinstance(what, Table):
        if all(entry is not OPEN and bool(entry) for entry in what.entries):
            return True
        if all(entry is not OPEN and not entry for entry in what.entries):
            return False
    if isinstance(what, Either):
        told = {truth(each) for each in what.options}
        return told.pop() if len(told) == 1 else None
    return True if what == WORLD or isinstance(what, Func | Class) else None


def both(left: Value, right: Value, is_and: bool) -> Value:
    """`left and right`, or `left or right`, of two values that have no effects."""
    known = truth(left)
    if known is not None:
        return right if known == is_and else left
    known = truth(right)
    if known is not None and known == is_and and left.agree.kind != "rank":
        return left
    if known is not None and known != is_and and isinstance(right.constant, bool):
        return right  # `x and False`, `x or True`
    agree, why = blended((left, right))
    if left.what == MODE and right.what == MODE:
        return left
    if isinstance(left.what, Table) or isinstance(right.what, Table):
        if left.what == MODE and is_and:
            return right
        if left.what == term("not", MODE) and not is_and:
            return right
        if right.what == MODE and is_and:
            return left
        if right.what == term("not", MODE) and not is_and:
            return left
        one = entries(left) or (OPEN,) * RANKS
        other = entries(right) or (OPEN,) * RANKS
        found = tuple(_both(a, b, is_and) for a, b in zip(one, other, strict=True))
        return Value(_table(found, left, right), agree, why)
    return Value(term("and" if is_and else "or", _part(left), _part(right)), agree, why)


def _both(left: Any, right: Any, is_and: bool) -> Any:
    for each in (left, right):
        if each is not OPEN and bool(each) != is_and:
            return each
    if left is OPEN or right is OPEN:
        return OPEN
    return right
