"""The state of a run in the head: where values are kept, who calls whom, what has happened."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.store import TOLD, State, Store
from ddpdoctor.lint.engine.interpreter.tree import (
    Arm,
    Choice,
    Event,
    Exit,
    Seq,
    events,
)
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    GRADIENTS,
    MODE,
    NONE,
    NOTHING,
    RANKS,
    WORLD,
    Chosen,
    Class,
    Const,
    Either,
    Func,
    Given,
    Lib,
    ModuleRef,
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
    has_identity,
    term,
)
from ddpdoctor.lint.engine.libraries import Effect, Library
from ddpdoctor.lint.engine.libraries.torch import ASKING
from ddpdoctor.lint.engine.trees import Function

NUMBERED = "#numbered"
"""Of a generator: the counter with which `enumerate` hands on what it yields."""
MAX_CALLS = 40
FUEL = 180_000
ALONE = 4_000
ALL_ALONE = 40_000
OF_RANKS = 60_000
"""More for a function that nobody is seen to call, once it turns out to be a program of ranks."""
TO_THE_END = 360_000
"""More for a file that is started and is a program of ranks, to come to its end with."""
READING = 10_000
ELSEWHERE = ""
AT_TOP = 3_000
"""What the statements that bind one name of an imported module may use."""
UNBOUND = "#unbound "
"""Before a name: which ranks have given it no value."""
EITHER = "either"
"""How what is another value on each way was computed."""
BY_SOME = "some ranks alone go this way"
UNSEEN = "an exception may reach this rank alone"
BOUND = "it is handed over beforehand"
KEPT = "what is kept of each rank's own data differs in number"


_KNOWN = frozenset((*sys.stdlib_module_names, "torch", "numpy", "mpi4py"))
"""Libraries of which a name stands for a function, a class or a module, and never for None."""


class Left(Exception):
    """An expression that does not come back: the process ends in it, or an error is raised."""


class Spent(Exception):
    """There is no fuel left: what was seen so far is all that is known."""


@dataclass(slots=True, eq=False)
class FunctionInfo:
    """A function of the project."""

    number: int
    node: Function | ast.Lambda
    module: Any
    """The loaded module (program.Loaded)."""
    name: str
    owner: int = -1
    """The class whose method it is."""
    scope: int = 0
    defaults: dict[str, Value] = field(default_factory=dict)
    is_generator: bool = False


@dataclass(slots=True, eq=False)
class ClassInfo:
    """A class of the project."""

    number: int
    node: ast.ClassDef
    module: Any
    name: str
    scope: int
    bases: tuple[Value, ...] = ()
    fields: list[str] = field(default_factory=list)
    """Of a dataclass or named tuple: its fields in order."""


@dataclass(slots=True, eq=False)
class Object:
    """Something that was made."""

    number: int
    type: str
    """The dotted name of a library's type, list, dict, set, generator, or "" for a user's class."""
    cls: int
    node: ast.AST
    path: str
    effect: Effect | None = None
    """What a library's table says of its type."""


@dataclass(slots=True)
class Made:
    """How a tensor, or something unknown, was computed."""

    by: str
    """forward, or the name of an operator, a method or a function."""
    of: tuple[Value, ...]
    node: ast.AST
    path: str
    inside: Event | None
    """The `no_sync` that was entered."""
    order: int
    """Which computation of the program it was."""
    mask: int
    """The ranks that computed it."""


@dataclass(slots=True)
class LoopRecord:
    """A loop that is being run."""

    depth: int
    conditions: int
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)
    turn: Value = NONE
    """What is another in every round: the element that it goes through."""
    looked_up: dict[What, Value] = field(default_factory=dict)
    """By dictionary: what it held under that element as it was first asked for it."""
    count: Value = NONE
    """As of a `Loop`."""


@dataclass(slots=True)
class TryRecord:
    """A try whose body is being run."""

    depth: int
    conditions: int
    raised: list[State] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Frame:
    """A function that is being run, or the code of a module or class."""

    scope: int
    scopes: tuple[int, ...]
    """Where names are looked for, innermost first."""
    module: Any
    function: FunctionInfo | None
    call: ast.AST | None
    depth: int
    conditions: int
    name: str = "<module>"
    bound: Value | None = None
    """self, or cls."""
    owner: int = -1
    returns: list[tuple[Value, State]] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    on_yield: Callable[[Value], Value] | None = None
    elsewhere: dict[str, int] = field(default_factory=dict)
    """Names declared global or nonlocal -> their scope."""
    loops: list[LoopRecord] = field(default_factory=list)

    @property
    def around(self) -> tuple[int, ...]:
        """The scopes that the function was defined in, also while a comprehension is run."""
        return self.scopes[self.scopes.index(self.scope) + 1 :]


@dataclass(slots=True)
class Path:
    """One way of a choice to run."""

    holds: bool | None
    mask: int
    opened: int
    run: Callable[[], Value | None]
    """Gives the value of an expression (NONE for statements), or None where it leaves."""
    given: tuple[tuple[What, bool], ...] = ()
    """As of an `Arm`."""


class Machine:
    """Everything that a run in the head changes."""

    def __init__(self, program: Any, library: Library, fuel: int = FUEL) -> None:
        self.program = program
        self.library = library
        self.store = Store(program.below, program.distributed)
        self.out = Seq()
        self.root = self.out
        self.mask = EVERYONE
        self.conditions: list[Value] = []
        self.frames: list[Frame] = []
        self.tries: list[TryRecord] = []
        self.scopes: list[str] = []
        self.lazily: frozenset[int] = frozenset()
        """The calls whose generator begins with the loop that goes through it, by their nodes."""
        self.objects: dict[int, Object] = program.objects
        self.handed: set[int] = set()
        """The objects that something unknown was given, or of which something else is asked."""
        self.born: list[int] = []
        """The objects that were made, in order, by number."""
        self.functions: list[FunctionInfo] = program.functions
        self.classes: list[ClassInfo] = program.classes
        self.visited: dict[int, FunctionInfo] = {}
        """The functions that were run, by their nodes."""
        self.fuel = fuel
        self.reserve = 0
        """What is added once, if it is `of_ranks` when the fuel is spent."""
        self.of_ranks = False
        """Whether ranks were started, have joined a group, share a model, or meet."""
        self.enough = fuel // 2
        """As long as there is so much, loops are run in detail."""
        self.saving = fuel // 4 * 3
        """With less, what was seen to be `quiet` is not run again."""
        self.quiet: dict[tuple[int, bool, tuple[object, ...]], int] = {}
        """How often a function only computed, by what decides it; -1 where it did more."""
        self.following: tuple[tuple[int, bool, tuple[object, ...]], ...] = ()
        """The calls that are being followed, by what decides them."""
        self.read_buffers: dict[tuple[int, bool, tuple[object, ...]], tuple[Value, ...]] = {}
        """The buffers that what such a function gives was computed from."""
        self.made: dict[What, Made] = {}
        self.tensors_on_some_ways: dict[Term, tuple[Value, ...]] = {}
        """How what is not known was computed, as far as it was seen."""
        self.computations = 0
        self.inside: Event | None = None
        """The `no_sync` that is entered here."""
        self.reading = READING
        """The fuel for what the workers of loaders do."""
        self.wrapped: dict[Any, int] = {}
        """Module -> the wrapper that was put around it."""
        self.unbound: set[str] = set()
        """The names that have a value on some ranks alone, somewhere."""
        self.had: set[tuple[What, str]] = set()
        """Attributes that all ranks have read before anybody was seen to set them."""
        self.buffers: dict[What, What] = {}
        """The tensors that are buffers of a module -> that module."""
        self.restored: set[int] = set()
        """The objects that were given a state out of a file."""
        self.modes: dict[What, bool] = {MODE: True, term("not", MODE): False}
        """What says whether this is distributed, and with which answer it is."""
        self.answered: dict[What, bool] = {}
        """The settings by which this way is gone, with their answers: they answer so again."""
        self.implied: dict[tuple[What, bool], frozenset[tuple[What, bool]]] = {}
        """What is true, or false, after some of several ways only -> what holds on all of these."""
        self.given: dict[What, tuple[Given, ...]] = {}
        """As of a `Table`, of other conditions in which ranks part: `every and i % n == rank`."""
        self.draws: dict[ast.AST, str] = {}
        """Calls that draw at random, with what they draw by: torch.randn."""
        self.drawn: dict[What, str] = {}
        """What was drawn at random, with what it was drawn by."""
        self.there = EVERYONE
        """The ranks of the model job that the program may have: it may say it is on one host."""
        self.joined = False
        """Whether a process group has been joined."""
        self.sizes: set[What] = {WORLD}
        """What says of how many ranks it is."""
        self.numbered: set[Why] = set()
        """Why something is the rank: who started the process gave it a number to join as."""
        self.indexed: set[Why | None] = set()
        """The same, where it counts the processes that one has started, on its own machine."""
        self.apart = False
        """Whether this is a worker of a loader that begins as a new process, in no group."""
        self.starting: dict[ast.AST, Callable[[], None]] = {}
        """The processes that a loop starts, and that begin when it has been left."""
        self.alone = False
        """Whether it is a function that nobody is seen to call: what was done before, who knows."""
        self.starts = False
        """Whether this program starts its ranks, or joins the group, itself: is in none before."""
        self.took_for_alone = False
        """Whether it asked for a group before it was seen to join one."""
        self.spawned: list[tuple[int, int]] = []
        """The functions that were run as ranks, and as which argument each was given its number."""
        self.single: frozenset[tuple[int, int]] = frozenset()
        """Those that another way of a choice starts: run here with a number written down, alone."""
        self.keeps_cut = False
        """Whether a loop or choice into which the fuel lasts is told as far as it was followed."""
        self.exits: dict[Event, Seq] = {}
        """What is done at exit, by what was registered."""
        self.workers: dict[Event, Seq] = {}
        """What the workers of a loader do, by the making of the loader."""
        self.read: dict[object, Seq] = {}
        """What such workers did when last followed to the end, by what they are given."""
        self.own: list[int] = []
        """The scopes of the calls and comprehensions that were run, in order."""
        self.closed_over: set[int] = set()
        """The scopes that functions defined in them still see."""
        self.batches: dict[int, Ref] = {}
        """Site of a batch -> the loader that it comes from."""
        self.by_rank: dict[What, tuple[ast.AST, str]] = {}
        """What was computed with the rank -> where: the expression, and its file."""
        self.divided: dict[What, tuple[ast.AST, str]] = {}
        """Where a quotient was computed first."""
        self.evens_out = False
        """Whether anything was divided by the number of ranks, so that parts may be as large."""
        self.unmeasured: set[int] = set()
        """The nodes that deal out as many as a condition has let into a list."""
        self.lengths: dict[What, What] = {}
        """What an object of the user's says that its length is -> the object."""
        self.reads: dict[Term, set[str]] = {}
        """What was loaded -> the keys that were read of it, ELSEWHERE where it went on whole."""
        self._rounds: dict[int, list[ast.AST]] = program.rounds
        self._sites: dict[Any, int] = program.sites
        self.files: set[str] = set()
        self.watched: frozenset[tuple[str, int]] = program.watched

    # --- places

    @property
    def frame(self) -> Frame:
        """The innermost frame."""
        return self.frames[-1]

    @property
    def path(self) -> str:
        """The file that is being run."""
        path: str = self.frames[-1].module.path
        return path

    def place(self, node: ast.AST) -> Place:
        """Where a node of the file that is being run stands."""
        return Place(self.path, getattr(node, "lineno", 1))

    def why(self, text: str, node: ast.AST, of: Why | None = None) -> Why:
        """A reason that stands here."""
        return Why(text, self.place(node), of, node)

    def site(self, node: ast.AST, kind: str = "") -> int:
        """A number for a node in the context of the calls that lead to it."""
        calls = [id(frame.call) for frame in self.frames]
        key = (id(node), kind, self.frames[-1].module.scope, *calls)
        return self._sites.setdefault(key, len(self._sites) + 1)

    def own_scope(self) -> int:
        """A scope for the names of a call or a comprehension."""
        scope: int = self.program.new_scope()
        self.own.append(scope)
        return scope

    def round_of(self, node: ast.AST, number: int) -> ast.AST:
        """What stands for a call in a round of a loop, of which each is another context."""
        rounds = self._rounds.setdefault(id(node), [])
        while len(rounds) <= number:
            rounds.append(ast.copy_location(ast.Pass(), node))
        return rounds[number]

    def burn(self, amount: int = 1) -> None:
        """Use fuel. Raises Spent."""
        self.fuel -= amount
        if self.fuel < 0:
            self.refuel()

    def refuel(self) -> None:
        """Go on with the reserve, once the fuel is spent. Raises Spent."""
        if not self.reserve or not self.of_ranks:
            raise Spent
        self.fuel += self.reserve  # who has saved already goes on to
        self.saving = 8 * self.fuel if self.saving else self.reserve // 4 * 3
        self.reserve = 0

    def computed(self, value: Value, by: str, of: tuple[Value, ...], node: ast.AST) -> Value:
        """Remember how a value was computed."""
        if isinstance(value.what, Tensor | Term) and value.what != NOTHING:
            self.computations += 1
            inside, order = self.inside, self.computations
            self.made[value.what] = Made(by, of, node, self.path, inside, order, self.mask)
            told = self.store.get((of[0].what, TOLD)) if by in _AS_IT_IS and of else None
            if told is not None:
                self.store.put((value.what, TOLD), told)
        return value

    def note_read(self, owner: Value, key: Value | None = None) -> None:
        """Something that was loaded is read, by a key or as a whole."""
        name = key.constant if key is not None else None
        kept = name if isinstance(name, str) else ELSEWHERE
        for each in self.store.options(owner):
            if isinstance(each.what, Term) and each.what.op == "loaded":
                self.reads.setdefault(each.what, set()).add(kept)

    # --- objects

    def new(self, node: ast.AST, type: str, cls: int = -1, kind: str = "") -> Ref:
        """An object made at this place."""
        number = self.site(node, kind or type)
        self.objects[number] = Object(number, type, cls, node, self.path)
        self.born.append(number)
        made = Ref(number)
        owners = self.store.owners
        if self.mask == EVERYONE:
            owners.pop(made, None)
        else:
            owners[made] = owners.get(made, 0) | self.mask
        return made

    def object(self, value: Value) -> Object | None:
        """What is known of the making of an object."""
        return self.objects.get(value.what.number) if isinstance(value.what, Ref) else None

    def type_of(self, value: Value) -> str:
        """The dotted library type of an object, "" for anything else."""
        found = self.object(value)
        return found.type if found else ""

    # --- events

    @property
    def is_without_gradients(self) -> bool:
        """Whether no graph is kept of what is computed here."""
        mode = self.store.get((GRADIENTS, "mode"))
        is_off = mode is not None and mode.is_const(False) and "enable_grad" not in self.scopes
        return "no_grad" in self.scopes or is_off

    def emit(self, kind: str, name: str, node: ast.AST, /, **values: Value) -> Event:
        """Something was done."""
        inside, order = tuple(self.scopes), self.computations
        if self.is_without_gradients and "no_grad" not in inside:
            inside = ("no_grad", *inside)
        self.of_ranks = self.of_ranks or kind in _OF_RANKS
        event = Event(kind, name, node, self.path, values, inside, self.frame.name, order)
        self.out.items.append(event)
        return event

    def leave(self, kind: str, node: ast.AST, value: Value | None = None) -> None:
        """A way out was taken."""
        self.out.items.append(Exit(kind, node, self.path, value, tuple(self.scopes)))

    def state(self, depth: int, conditions: int) -> State:
        """What was written since, for whoever goes on from here."""
        return State(self.store.since(depth), tuple(self.conditions[conditions:]), self.mask)

    # --- branching

    def ways(
        self,
        condition: Value,
        yes: Callable[[], Value | None],
        no: Callable[[], Value | None],
    ) -> list[Path]:
        """The ways that ranks may go by a condition."""
        what = condition.what
        if isinstance(what, Table):
            true, opened = what.ranks()
            return [
                Path(True, true | opened, opened, yes),
                Path(False, EVERYONE & ~true, opened, no),
            ]
        known = self.truth(condition)
        if known is not None:
            return [Path(known, EVERYONE, 0, yes if known else no)]
        return [Path(True, EVERYONE, EVERYONE, yes), Path(False, EVERYONE, EVERYONE, no)]

    def was_seen_in(self, body: list[ast.stmt]) -> bool:
        """Whether a rank has been seen in there, whatever is thought to lead around it."""
        if not self.watched or not body:
            return False
        first, last = body[0].lineno, body[-1].end_lineno or body[-1].lineno
        return any(file == self.path and first <= line <= last for file, line in self.watched)

    def truth(self, value: Value) -> bool | None:
        """Whether a value is true, where that is known and alike on all ranks."""
        known = folding.truth(value)
        if known is not None:
            return known
        what = value.what
        if isinstance(what, Ref):
            made = self.objects.get(what.number)
            return None if made and made.type in ("list", "dict", "set", "generator") else True
        if isinstance(what, Lib):
            return True if self.is_known(what) else None
        if isinstance(what, Func | Class | ModuleRef | Partial):
            return True
        if isinstance(what, Term) and what.op == "not":
            answer = self.answered.get(what.args[0])
            return None if answer is None else not answer
        return self.answered.get(what) if isinstance(what, Term) else None

    def given_by(self, condition: Value) -> tuple[Given, ...]:
        """What else holds where a condition does, or does not."""
        what = condition.what
        if isinstance(what, Table):
            return what.given
        if not condition.agree.divergent:
            return ((what, True, True), (what, False, False)) if has_identity(what) else ()
        if isinstance(what, Term) and what.op == "not":
            inner = self.given.get(what.args[0], ())
            return tuple((each, holds, not when) for each, holds, when in inner)
        return self.given.get(what, ())

    def is_known(self, what: Lib) -> bool:
        """Whether it is of a library that is known, or one itself: else it may be any variable."""
        root, dot, _ = what.name.partition(".")
        known = root in _KNOWN or self.library.find(what.name) is not None
        return not dot or known or root.startswith("#")

    def _lacking(self, states: list[State]) -> dict[tuple[Any, str], Table]:
        """The names and attributes to which some ranks have given a value, and who has none."""
        found: dict[tuple[Any, str], Table] = {}
        for key in {key for each in states for key in each.writes}:
            is_name = isinstance(key[0], int | Ref) and key[1].isidentifier()
            if not is_name or self.store.get(key) is not None:
                continue
            has = lacks = 0
            for each in states:
                if key in each.writes:
                    has |= each.mask
                else:
                    lacks |= each.mask
            lacks &= ~has & self.store.owners.get(key[0], EVERYONE)
            if lacks:
                found[key] = Table(tuple(bool(lacks & (1 << rank)) for rank in range(RANKS)))
        return found

    def choose(
        self, node: ast.AST, test: ast.AST, condition: Value, paths: list[Path]
    ) -> Value | None:
        """Run the ways of a choice and join them; None where all of them leave."""
        before, outside = self.mask, self.out
        if isinstance(condition.what, Term) and len(paths) > 1:
            paths = self._of_the_mode(condition.what, paths)
        live = [path for path in paths if before & path.mask]
        if len(live) == 1 and before & live[0].mask == before:
            return live[0].run()
        live.sort(key=lambda path: not self._starts(node, path))
        arms: list[Arm] = []
        states: list[State] = []
        values: list[Value | None] = []
        holding: list[bool | None] = []
        decided, single, answered = condition, self.single, self.answered
        if condition.agree.divergent:
            why = self.why(BY_SOME, test, condition.why)
            decided = Value(condition.what, condition.agree, why)
        for path in live:
            self.mask = before & path.mask
            self.out = Seq()
            depth = self.store.open() + 1
            self.conditions.append(decided)
            self.answered = answered | dict(_settings(self, condition, path.holds))
            result, is_cut, started = None, True, len(self.spawned)
            try:
                result = path.run()
                is_cut = False
            except Left:
                is_cut = False
            finally:
                self.store.drop(depth)
                writes = self.store.close()
                self.conditions.pop()
                self.answered = answered
                opened = before & path.opened
                mask, wrote = before & path.mask, bool(writes)
                arm = Arm(mask, self.out, opened, path.holds, wrote, path.given)
                self.out = outside
                arms.append(arm)
                kept = condition.agree.divergent and any(each.writes for each in arms)
                is_told = (is_cut and self.keeps_cut) or len(arms) == len(live)
                if is_told and (kept or any(each.body.items for each in arms)):
                    choice = Choice(condition, node, test, self.path, arms, self.frame.name)
                    outside.items.append(choice)
            self.single |= frozenset(self.spawned[started:])
            if result is not None:
                states.append(State(writes, (decided,), self.mask))
                values.append(result)
                holding.append(path.holds)
        if len(states) == len(arms):  # else what follows is the other way
            self.single = single
        self._note_mode(condition, arms)
        self.mask = 0
        for state in states:
            self.mask |= state.mask
        if not states:
            self.mask = before
            return None
        going = self._of_several(condition, arms)
        if going is not None and len(states) == len(arms) == 2:
            states, values = [states[going]], [values[going]]  # alone nobody differs
            holding = [holding[going]]
        site = self.site(node, "choice")
        both = {path.holds for path in live} == {True, False} and len(states) == 2
        first = 0 if live[0].holds else 1
        keys = {key for each in states for key in each.writes} if len(states) > 1 else set()
        ways = {}
        for key in keys:
            old = self.store.get(key)
            ways[key] = [each.writes.get(key, old) for each in states]
        lacking = self._lacking(states) if isinstance(condition.what, Table) else {}
        self.store.join(states, site)
        for (scope, name), ranks in lacking.items():
            self.unbound.add(name)
            self.store.put((scope, UNBOUND + name), Value(ranks, condition.agree, decided.why))
        for key, way in ways.items():
            now = self.store.get(key)
            if now is None:
                continue
            self._note_implied(now, way, holding, condition)
            if not both:
                continue
            if isinstance(now.what, Either):
                self.store.put(key, _told_apart(now, way[first], way[1 - first], condition, test))
            else:
                self.either(now, way, node)
        if all(value is NONE for value in values):
            return NONE
        found = [State({}, state.conditions, state.mask) for state in states]
        divergent = [decided] if condition.agree.divergent and len(states) > 1 else []
        joined = self.store.joined(values, found, divergent, site)
        self._note_implied(joined, values, holding, condition)
        if both:
            joined = _told_apart(joined, values[first], values[1 - first], condition, test)
        return self.either(joined, values, node)

    def _of_several(self, condition: Value, arms: list[Arm]) -> int | None:
        """Which way several ranks go, where they meet on it, or join on it alone."""
        several = _for_several(condition)
        joining = [arm for arm in arms if _has(arm.body, "init")]
        if isinstance(condition.what, Term) and len(joining) == 1:
            several = self.modes.get(condition.what, several)
        for number, arm in enumerate(arms):
            if several is not None and arm.holds is several and (arm in joining or _meets(arm)):
                return number
        return None

    def _starts(self, node: ast.AST, path: Path) -> bool:
        """Whether ranks may be started on a way: what it does is told of the other ones."""
        if not isinstance(node, ast.If) or not node.orelse:
            return False
        called = self.program.written_out(node, _called, path.holds)
        return any(self._named(each) in _STARTERS for each in called)

    def _named(self, function: ast.expr) -> str:
        """The last name of what is called, as its library calls it."""
        name = str(getattr(function, "attr", getattr(function, "id", "")))
        known = (self.store.get((scope, name)) for scope in self.frame.scopes)
        found = next((each.what for each in known if each is not None), None)
        return found.name.rpartition(".")[2] if isinstance(found, Lib) else name

    def either(self, value: Value, of: list[Value | None], node: ast.AST) -> Value:
        """Remember of which values one is, where it is a tensor of its own, or such in a tuple."""
        if not isinstance(value.what, Tuple | Tensor | Term):
            return value
        options = tuple(each for each in of if each is not None)
        if isinstance(value.what, Term):
            tensors = tuple(each for each in options if isinstance(each.what, Tensor))
            if tensors:
                self.tensors_on_some_ways.setdefault(value.what, tensors)
            return value
        if isinstance(value.what, Tuple):
            rows = [each.what.items for each in options if isinstance(each.what, Tuple)]
            for number, part in enumerate(value.what.items):
                self.either(part, [row[number] for row in rows if number < len(row)], node)
            return value
        if value.what not in self.made and value.what not in [each.what for each in options]:
            self.computed(value, EITHER, options, node)
        return value

    def _note_implied(
        self, joined: Value, options: list[Value | None], holding: list[bool | None], by: Value
    ) -> None:
        """Note what holds on all the ways after which this is true, and after which it is not."""
        what = joined.what
        if not isinstance(what, Term) or what.op != "joined" or joined.agree.divergent:
            return
        for wanted in (True, False):
            ways: list[frozenset[tuple[What, bool]]] = []
            for each, holds in zip(options, holding, strict=True):
                if each is None or folding.truth(each) is (not wanted):
                    continue
                known = self.implied.get((each.what, wanted), frozenset())
                here = [(each.what, wanted), *([(by.what, holds)] if holds is not None else [])]
                ways.append(known.union(one for one in here if has_identity(one[0])))
            told = frozenset.intersection(*ways) if ways else frozenset()
            self.implied[what, wanted] = self.implied.get((what, wanted), told) & told
        modes = [self._mode_of(self.implied[what, wanted]) for wanted in (True, False)]
        if None not in modes and modes[0] is not modes[1]:
            self.modes[what] = modes[0] is True
            self.modes[term("not", what)] = modes[1] is True

    def _mode_of(self, facts: Iterable[tuple[What, bool]]) -> bool | None:
        """Whether the job is distributed where these hold, None where they do not tell."""
        told = (self.modes[what] is holds for what, holds in facts if what in self.modes)
        return next(told, None)

    def _note_mode(self, condition: Value, arms: list[Arm]) -> None:
        """Note that by this condition alone the process group is joined: else there is one rank."""
        if not isinstance(condition.what, Term) or condition.agree.divergent:
            return
        if not has_identity(condition.what):  # another condition of which nothing is known
            return
        joining = [arm.holds for arm in arms if _has(arm.body, "init")]
        several = _for_several(condition)
        if several is not None and not joining:  # or several of them share a model
            joining = [several for arm in arms if arm.holds is several and _has(arm.body, "wrap")]
        if len(joining) == 1 and joining[0] is not None:
            self.modes[condition.what] = joining[0]
            self.modes[folding.negated(condition).what] = not joining[0]
            if several is joining[0]:
                self.modes |= _asked_of_several(condition)

    def as_mode(self, value: Value) -> Value:
        """A condition by which a process group was joined, as the question whether it was."""
        wanted = self.modes.get(value.what) if isinstance(value.what, Term) else None
        return value if wanted is None else Value(MODE if wanted else term("not", MODE))

    def _of_the_mode(self, what: Term, paths: list[Path]) -> list[Path]:
        """Of "is this distributed?" the way that is, and that which makes it so."""
        wanted = self._in_a_job_of_several(what)
        if wanted is None:
            return paths
        first = [path for path in paths if path.holds is wanted]
        others = [path for path in paths if path.holds is not wanted]
        return [*first, *(path for path in others if self.joins(path))]

    def _in_a_job_of_several(self, what: What) -> bool | None:
        """What a condition says where the job is distributed, as `not distributed and quick`."""
        if what in self.modes or not isinstance(what, Term) or what.op not in ("and", "or"):
            return self.modes.get(what)
        told = {self._in_a_job_of_several(each) for each in what.args}
        decides = what.op == "or"
        return decides if decides in told else None

    def joins(self, path: Path) -> bool:
        """Whether a way joins the process group; it is run, and forgotten."""
        outside, mask, frame = self.out, self.mask, self.frame
        returned, yielded = len(frame.returns), len(frame.yields)
        loops = [(len(each.breaks), len(each.continues)) for each in frame.loops]
        raised = [len(each.raised) for each in self.tries]
        self.out = Seq()
        depth = self.store.open()
        try:
            path.run()
        except Left:
            pass
        finally:
            self.store.drop(depth)
            tried, self.out, self.mask = self.out, outside, mask
            del frame.returns[returned:]
            del frame.yields[yielded:]
            for loop, (breaks, continues) in zip(frame.loops, loops, strict=False):
                del loop.breaks[breaks:]
                del loop.continues[continues:]
            for each, count in zip(self.tries, raised, strict=False):
                del each.raised[count:]
        return _has(tried, "init")

    def each(self, value: Value, do: Callable[[Value], Value]) -> Value:
        """The same for each of several that a value may be, joined."""
        if not isinstance(value.what, Either):
            return do(value)
        options = [each for each in value.what.options if not each.is_const(None)]
        found = [do(option) for option in options or value.what.options]
        joined = self.store.joined(list(found), [State({})] * len(found), [], None)
        if isinstance(joined.what, Either):
            self.store.settle(joined.what, self.store.is_settled(value.what))
        chosen = value.what.chosen
        if chosen is None or len(options) != 2:
            return joined
        yes, no = found if options[0].what == chosen.yes else reversed(found)
        return _told_apart(joined, yes, no, chosen.condition, chosen.test)


def _settings(vm: Machine, condition: Value, holds: bool | None) -> Iterator[tuple[Term, bool]]:
    """What settings answer on the way on which a condition holds, or does not."""
    what = condition.what
    if holds is None or condition.agree.divergent or not isinstance(what, Term):
        return
    if _is_setting(vm, what):
        yield what, holds
    if what.op == "not" or what.op == ("and" if holds else "or"):
        for each in what.args:
            yield from _settings(vm, Value(each), holds is not (what.op == "not"))


def _is_setting(vm: Machine, what: object) -> bool:
    """Whether nothing but what the user has written on the command line decides it."""
    if not isinstance(what, Term):
        return isinstance(what, Const)
    if what.op == "of" and isinstance(what.args[0], Ref):
        return vm.type_of(Value(what.args[0])) == "argparse.Namespace"
    if what.op in ASKING:
        return all(_is_setting(vm, each) for each in what.args)
    return what.op == "option"


_STARTERS = ("spawn", "start_processes", "Process")
_OF_RANKS = ("collective", "init", "spawn", "wrap")


def _called(node: ast.If, holds: bool | None) -> list[ast.expr]:
    """What a way of a choice calls."""
    body = node.body if holds else node.orelse
    inside = (each for part in body for each in ast.walk(part))
    return [each.func for each in inside if isinstance(each, ast.Call)]


def _told_apart(
    joined: Value, yes: Value | None, no: Value | None, condition: Value, test: ast.AST
) -> Value:
    """What is one of two, with the condition that decides which, for whoever calls it later."""
    what = joined.what
    if not isinstance(what, Either) or yes is None or no is None:
        return joined
    if {yes.what, no.what} != {each.what for each in what.options}:
        return joined
    chosen = Chosen(condition, test, yes.what)
    return Value(replace(what, chosen=chosen), joined.agree, joined.why)


def _has(seq: Seq, kind: str, depth: int = 12) -> bool:
    for each in seq.items:
        if isinstance(each, Event):
            if each.kind == kind:
                return True
        elif isinstance(each, Choice):
            if depth and any(_has(arm.body, kind, depth - 1) for arm in each.arms):
                return True
        elif not isinstance(each, Exit) and depth and _has(each.body, kind, depth - 1):
            return True
    return False


def _for_several(condition: Value) -> bool | None:
    """What it says where there are more than one of something of which nothing else is known."""
    what, holds = condition.what, True
    if isinstance(what, Term) and what.op == "not":
        what, holds = what.args[0], False
    if condition.agree.divergent or not isinstance(what, Term):
        return None
    if what.op in _OF_SEVERAL and what.args[1:] == _OF_SEVERAL[what.op]:
        return holds
    if what.op in _OF_ONE and what.args[1:] == _OF_ONE[what.op]:
        return not holds
    return None


def _asked_of_several(condition: Value) -> dict[What, bool]:
    """All the ways to ask whether there is more than one of what a condition asks for."""
    what = condition.what
    while isinstance(what, Term) and what.op == "not":
        what = what.args[0]
    assert isinstance(what, Term)
    several = ((op, number, True) for op, number in _OF_SEVERAL.items())
    one = ((op, number, False) for op, number in _OF_ONE.items())
    asked = {term(op, what.args[0], *number): holds for op, number, holds in (*several, *one)}
    negated = {term("not", each): not holds for each, holds in asked.items()}
    return dict((*asked.items(), *negated.items()))


_AS_IT_IS = ("item", "tolist", "numpy", "detach", "cpu", "bool", "int", "float")
"""By what a tensor gives what it holds, as it is."""
_OF_SEVERAL = {"Gt": (Const(1),), "GtE": (Const(2),), "NotEq": (Const(1),)}
_OF_ONE = {"LtE": (Const(1),), "Lt": (Const(2),), "Eq": (Const(1),)}


def _meets(arm: Arm) -> bool:
    """Whether ranks meet in it."""
    return any(True for _ in events(arm.body, "collective"))
