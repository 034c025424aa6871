"""What the interpreter knows of a value: what it is, whether ranks agree on it, and why.

A value that the rank decides is, where it can be, a table: one entry for each rank of a job of
`RANKS` ranks on nodes of `PER_NODE`. `rank == 0` is then (True, False, False, ...), and so every
way of writing the same condition is the same value.

Nobody changes what is here once it is made. It is not `frozen` all the same: it would take three
times as long to make, and little is made as often.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self, TypeGuard, cast

RANKS = 16
PER_NODE = 8
EVERYONE = (1 << RANKS) - 1
FIRST_HOST = (1 << PER_NODE) - 1
"""The ranks of the first host, which alone have the number there that they have in the job."""

Kind = Literal["same", "unknown", "rank", "local"]
Cause = Literal[
    "", "data", "shard", "clock", "disk", "chance", "order", "exception", "signal", "machine"
]
_ORDER: dict[str, int] = {"same": 0, "unknown": 1, "rank": 2, "local": 3}


# --- agreement


@dataclass(slots=True, unsafe_hash=True)
class Agreement:
    """Whether all ranks hold the same value."""

    kind: Kind
    cause: Cause = ""
    """Of a local value: where it comes from."""
    sure: bool = True
    """Whether flow shows it; False where a name or a habit suggests it."""
    divergent: bool = field(init=False, repr=False, compare=False)
    """Whether ranks may hold different values."""

    def __post_init__(self) -> None:
        self.divergent = self.kind in ("rank", "local")


SAME = Agreement("same")
SAME_LIKELY = Agreement("same", sure=False)
UNKNOWN = Agreement("unknown")
BY_RANK = Agreement("rank")
BY_RANK_LIKELY = Agreement("rank", sure=False)


@lru_cache(maxsize=64)
def local(cause: Cause, sure: bool = True) -> Agreement:
    """The agreement of a value of this rank's own."""
    return Agreement("local", cause, sure)


def mix(one: Agreement, other: Agreement) -> Agreement:
    """The agreement of what is computed from both.

    In which order the same things came is the least of what can make a value a rank's own.
    """
    if one is other or one == other:
        return one
    if _ORDER[one.kind] < _ORDER[other.kind]:
        one, other = other, one
    if one.kind == other.kind:
        if one.cause != other.cause and "order" in (one.cause, other.cause):
            return other if one.cause == "order" else one
        return one if one.sure else other
    if one.kind == "rank" and other.kind == "unknown":
        return BY_RANK_LIKELY
    return one


# --- provenance


@dataclass(slots=True, unsafe_hash=True)
class Place:
    """A line of a file."""

    path: str
    line: int


@dataclass(slots=True, unsafe_hash=True)
class Why:
    """Why we think what we think of a value: this, because of that."""

    text: str
    place: Place
    of: Why | None = None
    node: ast.AST | None = field(default=None, compare=False, repr=False)
    """What stands at the place, where that is known."""

    def chain(self) -> Iterator[Why]:
        """From the value back to where its nature comes from."""
        each: Why | None = self
        while each is not None:
            yield each
            each = each.of

    @property
    def root(self) -> Why:
        """Where the nature of the value comes from."""
        *_, last = self.chain()
        return last


# --- what a value is


class Open:
    """An entry of a table that is not known, though it is no rank's own."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "OPEN"


OPEN = Open()


@dataclass(slots=True, unsafe_hash=True)
class Const:
    """A number, string, boolean, None or Ellipsis."""

    value: Any
    kind: str = ""

    def __post_init__(self) -> None:
        self.kind = self.value.__class__.__name__


Given = tuple["What", bool, bool]
"""What ranks agree on, whether that holds, and of which answer of a condition it is said."""


@dataclass(slots=True, unsafe_hash=True)
class Table:
    """One constant for each rank of the model job; OPEN where it is not known."""

    entries: tuple[Any, ...]
    by_world: bool = field(default=False, compare=False)
    """It was computed of the world size: a smaller job's ranks are not the first of the model's."""
    is_counted_on: bool = field(default=False, compare=False)
    """It was computed, be it to the same numbers: `rank + host * 8` on the first of the hosts."""
    given: tuple[Given, ...] = field(default=(), compare=False)
    """What else holds where it is true, or false: `every` in `every and rank == 0`."""
    variable: str = field(default="", compare=False)
    """It is the text of this variable, of which no number was made yet: "0" is there as "1" is."""

    def ranks(self) -> tuple[int, int]:
        """Masks of the ranks for which it is true, and for which it is open."""
        true = opened = 0
        for rank, entry in enumerate(self.entries):
            if entry is OPEN:
                opened |= 1 << rank
            elif entry:
                true |= 1 << rank
        return true, opened


class Term:
    """Something unknown that has an identity: a parameter, an attribute, an operation on terms.

    Equal ones are one object: values are looked up by them all the time.
    """

    __slots__ = ("args", "op", "size")
    _known: ClassVar[dict[tuple[str, tuple[Any, ...]], Term]] = {}
    op: str
    args: tuple[Any, ...]
    size: int

    def __new__(cls, op: str, args: tuple[Any, ...] = ()) -> Self:
        """The term of this operation on these."""
        found = cls._known.get((op, args))
        if found is None:
            found = object.__new__(cls)
            found.op, found.args = op, args
            found.size = 1 + sum(each.size if isinstance(each, Term) else 1 for each in args)
            cls._known[op, args] = found
        return cast("Self", found)

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.args))})"


NOTHING = Term("?")
"""Nothing is known of it: another is not the same."""


@dataclass(slots=True, unsafe_hash=True)
class Tensor:
    """A tensor, by where it was made; `of` are the modules whose forward it comes from.

    The module inside of a wrapper that is called itself counts as minus the wrapper.
    """

    site: int
    of: frozenset[int] = frozenset()


@dataclass(slots=True, unsafe_hash=True)
class Tuple:
    """A tuple, or the content of a list, element by element."""

    items: tuple[Value, ...]


@dataclass(slots=True, unsafe_hash=True)
class Many:
    """The content of a container of which one element stands for all."""

    element: Value
    number: Const | Term = NOTHING
    """How many there are."""


class Ref:
    """An object by the place that made it; its attributes are kept in the store.

    Equal ones are one object, as terms are.
    """

    __slots__ = ("number",)
    _known: ClassVar[dict[int, Ref]] = {}
    number: int

    def __new__(cls, number: int) -> Self:
        """The object of this number."""
        found = cls._known.get(number)
        if found is None:
            found = object.__new__(cls)
            found.number = number
            cls._known[number] = found
        return cast("Self", found)

    def __repr__(self) -> str:
        return f"Ref({self.number})"


@dataclass(slots=True, unsafe_hash=True)
class Lib:
    """Something of a library, by its dotted name."""

    name: str


@dataclass(slots=True, unsafe_hash=True)
class ModuleRef:
    """A module of the project, by its path."""

    path: str


@dataclass(slots=True, unsafe_hash=True)
class Class:
    """A class of the project, by the number of its definition."""

    number: int


@dataclass(slots=True, unsafe_hash=True)
class Func:
    """A function with what it closes over: scopes, bound arguments, scopes of decorators."""

    number: int
    scopes: tuple[int, ...] = ()
    bound: tuple[Value, ...] = ()
    named: tuple[tuple[str, Value], ...] = ()
    within: tuple[str, ...] = ()
    """Scopes that a decorator puts around each call, such as `no_grad`."""
    flags: frozenset[str] = frozenset()
    """property, staticmethod, classmethod, contextmanager."""


@dataclass(slots=True, unsafe_hash=True)
class Partial:
    """Something of a library, or unknown, with arguments bound."""

    callee: Value
    bound: tuple[Value, ...] = ()
    named: tuple[tuple[str, Value], ...] = ()


@dataclass(slots=True, unsafe_hash=True)
class Chosen:
    """A condition by which something is one of two."""

    condition: Value
    test: ast.AST
    yes: What


@dataclass(slots=True, unsafe_hash=True)
class Either:
    """One of several."""

    options: tuple[Value, ...]
    masks: tuple[int, ...] = ()
    """Of each, the ranks that may hold it, where the rank decides."""
    chosen: Chosen | None = None
    """What has decided which of the two it is, where that is known."""

    def table(self, entry: Callable[[Value], Any]) -> Table | None:
        """What something is of each rank's own, OPEN where it is not known which that is."""
        if not self.masks:
            return None
        entries: list[Any] = []
        for rank in range(RANKS):
            mine = zip(self.options, self.masks, strict=True)
            found = {entry(each) for each, mask in mine if mask & (1 << rank)}
            entries.append(found.pop() if len(found) == 1 else OPEN)
        return Table(tuple(entries))


What = (
    Const
    | Table
    | Term
    | Tensor
    | Tuple
    | Many
    | Ref
    | Lib
    | ModuleRef
    | Class
    | Func
    | Partial
    | Either
)


@dataclass(slots=True)
class Value:
    """What it is, whether ranks agree on it, and why we think so."""

    what: What
    agree: Agreement = SAME
    why: Why | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash(self.what)

    @property
    def constant(self) -> Any:
        """The constant that it is, OPEN for anything else."""
        return self.what.value if isinstance(self.what, Const) else OPEN

    def is_const(self, *values: object) -> bool:
        """Whether it is one of these constants (True is not 1)."""
        mine = self.constant
        return any(mine == each and mine.__class__ is each.__class__ for each in values)


NONE = Value(Const(None))
TRUE = Value(Const(True))
FALSE = Value(Const(False))
RANK = Table(tuple(range(RANKS)))
LOCAL_RANK = Table(tuple(rank % PER_NODE for rank in range(RANKS)))
NODE_RANK = Table(tuple(rank // PER_NODE for rank in range(RANKS)))
IS_MAIN = Table(tuple(rank == 0 for rank in range(RANKS)))
IS_LOCAL_MAIN = Table(tuple(rank % PER_NODE == 0 for rank in range(RANKS)))
WORLD = Term("world")
RANK_IN = "rank in"
"""Of a group: the number that a rank has there."""
GRADIENTS = Lib("#gradients")
"""Who says for all that follows whether graphs are kept."""
GENERATORS = Lib("#generator")
"""The generators of the process: torch, python, numpy."""
FORKED = "forked"
"""That of torch while a scope has it apart, and restores it when it is left, on whatever way."""
MODE = Term("distributed")
"""Whether the job is distributed: what we claim concerns jobs that are."""

_MAX_TERM = 24
_MAX_LOGIC = 6 * _MAX_TERM
"""Of conditions, by whose parts it is known that others contradict them."""


_LARGE: dict[Term, Term] = {}
"""What stands for a term that is too large, for as often as it is computed."""


def term(op: str, *args: Any) -> Term:
    """A term; one that would grow too large keeps its identity alone, if it has one."""
    made = Term(op, args)
    if made.size <= (_MAX_LOGIC if op in ("and", "or", "not") else _MAX_TERM):
        return made
    if not has_identity(args):
        return NOTHING
    large = _LARGE.setdefault(made, Term("large", (len(_LARGE),)))
    if op == "Mult" and args[1:] == (WORLD,):  # a multiple of it, however
        return Term(op, (large, WORLD))
    return Term(op, (args[0], large)) if op == "lib" else large  # what has made it, of whatever


def within(what: object) -> Iterator[object]:
    """A term and all that it consists of."""
    yield what
    for each in what.args if isinstance(what, Term) else ():
        yield from within(each)


def is_device(what: object) -> TypeGuard[Term]:
    """Whether it is what `torch.device(...)` gives."""
    return isinstance(what, Term) and what.args[:1] == ("torch.device",)


def is_layer(what: object) -> TypeGuard[Term]:
    """Whether it is what a class of torch.nn gives of which nothing is kept, as an activation."""
    if not isinstance(what, Term) or what.op != "lib":
        return False
    *home, name = str(what.args[0]).split(".")
    is_home = home[:2] == ["torch", "nn"] and all(each.islower() for each in home)
    return is_home and name[:1].isupper()


def has_identity(what: object) -> bool:
    """Whether nothing in it is merely unknown: two unknowns need not be the same."""
    if isinstance(what, Term):
        return what != NOTHING and has_identity(what.args)
    if isinstance(what, tuple):
        return all(has_identity(each) for each in what)
    return True


def how_many(content: What) -> Const | Term:
    """The number of elements of a content, or of a `range`."""
    if isinstance(content, Tuple):
        return Const(len(content.items))
    if isinstance(content, Term) and content.op == "range":
        bounds = [each.value for each in content.args if isinstance(each, Const)]
        is_known = len(bounds) == len(content.args) and 0 not in bounds[2:]
        is_known = is_known and all(isinstance(each, int) for each in bounds)
        return Const(len(range(*bounds))) if is_known and bounds else term("len", content)
    return content.number if isinstance(content, Many) else NOTHING


_ONE = Const(1)


def grown(content: What, by: Const | Term = _ONE) -> Term:
    """The number of elements when as many are added."""
    return term("longer", how_many(content), by)


def grown_from(number: Const | Term) -> Iterator[Const | Term]:
    """A number, and those from which it has grown."""
    yield number
    while isinstance(number, Term) and number.op == "longer":
        number = number.args[0]
        yield number


def blended(values: Iterable[Value]) -> tuple[Agreement, Why | None]:
    """The agreement of what is computed from these, and the reason of the one that decides."""
    agree, why = SAME, None
    for each in values:
        new = mix(agree, each.agree)
        if new is not agree:
            if new.kind != agree.kind or new.cause != agree.cause or not agree.sure:
                why = each.why if each.agree.divergent or why is None else why
            agree = new
        elif why is None and each.agree.divergent:
            why = each.why
    return agree, why


def text(node: ast.AST, limit: int = 60) -> str:
    """The expression as written, shortened, on one line."""
    try:
        whole = " ".join(ast.unparse(node).split())
    except (RecursionError, ValueError):
        return "..."
    return whole if len(whole) <= limit else whole[: limit - 3] + "..."
