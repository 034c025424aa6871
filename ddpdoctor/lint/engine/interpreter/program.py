"""A program as the interpreter runs it: its modules, its entry points, and what nobody calls."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from ddpdoctor.lint.engine.interpreter.calls import call_function, call_value, instantiate
from ddpdoctor.lint.engine.interpreter.expressions import evaluate
from ddpdoctor.lint.engine.interpreter.library.forwards import forward
from ddpdoctor.lint.engine.interpreter.loading import Loader, Text
from ddpdoctor.lint.engine.interpreter.machine import (
    ALL_ALONE,
    ALONE,
    AT_TOP,
    FUEL,
    OF_RANKS,
    TO_THE_END,
    ClassInfo,
    Frame,
    FunctionInfo,
    Left,
    Machine,
    Object,
    Spent,
)
from ddpdoctor.lint.engine.interpreter.names import hinted
from ddpdoctor.lint.engine.interpreter.objects import hierarchy, members
from ddpdoctor.lint.engine.interpreter.reading import gives_samples, read_by_workers
from ddpdoctor.lint.engine.interpreter.registering import register, register_for
from ddpdoctor.lint.engine.interpreter.statements.blocks import run_block
from ddpdoctor.lint.engine.interpreter.store import Kept, Store
from ddpdoctor.lint.engine.interpreter.tree import Seq
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    NOTHING,
    UNKNOWN,
    Class,
    Func,
    Lib,
    ModuleRef,
    Table,
    Term,
    Value,
    term,
)
from ddpdoctor.lint.engine.libraries import Library
from ddpdoctor.lint.engine.trees import Function

_DEEP = 9_000


@dataclass(slots=True, eq=False)
class Loaded:
    """A module of the program."""

    path: str
    name: str
    scope: int
    text: Text
    is_entry: bool
    asked: set[str] = field(default_factory=set)
    """Names whose statements have been run, or are being run."""
    out_of_turn: set[str] = field(default_factory=set)
    """Names of an entry that were asked for before their turn, by the one that is being run."""


@dataclass(slots=True, eq=False)
class Run:
    """What came of running one entry point, or one lone function, in the head."""

    path: str
    root: Seq
    vm: Machine
    name: str = "<module>"
    line: int = 0
    """Of a lone function: where it is defined."""
    is_entry: bool = True
    """Whether the program starts so; else it is a function that nobody is seen to call."""
    spent: bool = False
    answers: dict[str, Any] = field(default_factory=dict)
    """What queries have found."""
    earlier: tuple[Run, ...] = ()
    """What of the same file was run before: the program itself, and other lone functions."""

    @property
    def paths(self) -> Iterable[str]:
        """The files that were run, the program's own first."""
        program: Program = self.vm.program
        return dict.fromkeys((self.path, *program.paths))

    def source(self, path: str) -> Text | None:
        """A file that was run."""
        program: Program = self.vm.program
        return program.loader.text(path, always=True)


class Program:
    """The modules, functions and classes that entry points meet."""

    def __init__(
        self,
        loader: Loader,
        words: frozenset[str] = frozenset(),
        imported: frozenset[str] | None = None,
    ) -> None:
        self.loader = loader
        self.words = words
        """Those of OF_MANY_RANKS that occur in any of the files."""
        self.imported_files = imported
        """The files that others import; None where nobody has said."""
        self.watched: frozenset[tuple[str, int]] = frozenset()
        """First lines of statements at which ranks stand: that they are reached is told."""
        self.functions: list[FunctionInfo] = []
        self.classes: list[ClassInfo] = []
        self.below = Kept()
        """The values of the modules that entry points import, the same for all of them."""
        self.distributed: set[int] = set()
        self.objects: dict[int, Object] = {}
        self.sites: dict[Any, int] = {}
        self.rounds: dict[int, list[ast.AST]] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._modules: dict[str, Loaded] = {}
        self.registered: set[str] = set()
        """The modules that have put into registries what they do."""
        self._written: dict[Any, Any] = {}
        self._named_tuples: dict[int, ast.ClassDef] = {}
        self._scopes = 0

    def written_out(self, node: ast.AST, write: Callable[..., Any], *more: Any) -> Any:
        """What a statement is short for: the same nodes each time it is run."""
        key = (node, write, more)
        if key not in self._written:
            self._written[key] = write(node, *more)
        return self._written[key]

    def new_scope(self) -> int:
        """A number for a scope."""
        self._scopes -= 1
        return self._scopes

    # --- modules

    @property
    def paths(self) -> Iterable[str]:
        """The files that any entry point has met."""
        return self._modules

    def load(self, text: Text, *, entry: bool = False) -> Loaded:
        """A module, loaded once."""
        if entry:
            name = "__main__" if text.has_main else text.path
            return Loaded(text.path, name, self.new_scope(), text, is_entry=True)
        known = self._modules.get(text.path)
        if known is None:
            known = Loaded(text.path, text.path, self.new_scope(), text, is_entry=False)
            self._modules[text.path] = known
        return known

    def package(self, vm: Machine, importer: Loaded, inner: str) -> Value:
        """What `import name.inner` binds: a folder has modules without a file of its own, too."""
        name, *rest = inner.split(".")
        bound, module = (self.module(vm, importer, each) for each in (name, inner))
        if isinstance(bound.what, Lib) and isinstance(module.what, ModuleRef):
            path = PurePath(module.what.path)
            above = [*path.parents][len(rest) - 1 + (path.name == "__init__.py")]
            return Value(ModuleRef(str(above / "__init__.py")))
        return bound

    def module(self, vm: Machine, importer: Loaded, name: str) -> Value:
        """What `import name as other` binds."""
        found = self.loader.find(importer.path, name)
        if found is not None and not found[1]:
            if self.loader.text(found[0]) is not None:
                register(vm, found[0])
                return Value(ModuleRef(found[0]))
            return Value(Term("module", (found[0],)), UNKNOWN)
        return Value(Lib(name))

    def imported(self, vm: Machine, importer: Loaded, base: str, name: str) -> Value:
        """What `from base import name` binds."""
        whole = f"{base}{'' if base.endswith('.') or not base else '.'}{name}"
        found = self.loader.find(importer.path, whole)
        if found is None:
            found = self.loader.find(importer.path, base) if base.strip(".") else None
            if found is None:
                return Value(Lib(vm.library.home(whole.lstrip("."))))
            found = (found[0], name)
        path, rest = found
        text = self.loader.text(path)
        if text is None:
            return hinted(vm, Value(Term("import", (path, rest)), UNKNOWN), rest)
        register(vm, path)
        if not rest:
            bound = self._bound_by_the_package(vm, importer, base, name)
            return bound if bound is not None else Value(ModuleRef(path))
        value = self.of_module(vm, path, rest.partition(".")[0])
        for part in rest.split(".")[1:]:
            value = members.attribute(vm, value, part, ast.Pass())
        return value

    def _bound_by_the_package(
        self, vm: Machine, importer: Loaded, base: str, name: str
    ) -> Value | None:
        """What a package itself calls by the name of one of its modules, as `launch.launch`."""
        found = self.loader.find(importer.path, base)
        text = self.loader.text(found[0]) if found is not None and not found[1] else None
        if text is None or text.path == importer.path:
            return None
        return self.global_of(vm, self.load(text), name)

    def import_all(self, vm: Machine, importer: Loaded, base: str, scope: int) -> None:
        """`from base import *`: its names are looked for when they are asked for."""

    def defined_in(self, path: str) -> list[str]:
        """The names of the functions and classes that a module has, its own or another's."""
        text = self.loader.text(path)
        if text is None:
            return []
        inner = (
            self.loader.find(path, "." * each.level + (each.module or "")) for each in text.stars
        )
        others = [name for found in inner if found for name in self.defined_in(found[0])]
        return [*(name for name, made in text.bindings.items() if _defines(made[0])), *others]

    def of_module(self, vm: Machine, path: str, name: str) -> Value:
        """`module.name`."""
        entry = vm.frames[0].module
        text = entry.text if entry.path == path else self.loader.text(path)
        if text is None:
            inner = self._module_in(path, name)
            return inner or Value(Term("import", (path, name)), UNKNOWN)
        loaded = entry if entry.path == path else self.load(text)
        found = vm.store.get((loaded.scope, name)) or self.global_of(vm, loaded, name)
        found = self.set_by_then(vm, loaded, name) or found
        if found is not None:
            return found
        inner = self._module_in(path, name)
        return inner or hinted(vm, Value(term("global", path, name), UNKNOWN), name)

    def _module_in(self, path: str, name: str) -> Value | None:
        """The module of this name in a package."""
        inner = self.loader.find(path, f".{name}") if path.endswith("__init__.py") else None
        if inner is None or inner[1] or self.loader.text(inner[0]) is None:
            return None
        return Value(ModuleRef(inner[0]))

    def scope_of(self, vm: Machine, path: str) -> int:
        """The scope of a module's names."""
        text = self.loader.text(path)
        return self.load(text).scope if text is not None else 0

    def global_of(self, vm: Machine, module: Loaded, name: str) -> Value | None:
        """A module's name; what binds it is run when it is asked for."""
        found = vm.store.get((module.scope, name))
        if found is not None or name in module.asked:
            return found
        vm.files.add(module.path)
        statements = module.text.bindings.get(name, [])
        if module.is_entry and not module.text.is_imported(name):
            self._run_out_of_turn(vm, module, name, statements)
        else:
            module.asked.add(name)
            self._run_beneath(vm, module, statements)
        found = vm.store.get((module.scope, name))
        if found is None:
            found = self._through_stars(vm, module, name)
            if found is not None:
                vm.store.below[module.scope, name] = found
        return found

    def set_by_then(self, vm: Machine, module: Loaded, name: str) -> Value | None:
        """What a name is by the time that a function nobody is seen to call is called.

        Another function may have given it what it is to hold, as `setup()` does: who knows. Nor is
        it known of a program that joins no group what has been done where one is joined.
        """
        if (vm.joined and not vm.alone) or (module.scope, name) in vm.store.now:
            return None
        set_later = module.text.set_later.get(name) if vm.alone else None
        if set_later is None and not self._is_set_by_others(module, name):
            return None
        given = [self._told(vm, module, each) for each in set_later or ()]
        by_rank = [each for each in given if isinstance(each.what, Table)]
        if by_rank:
            return by_rank[0]
        return hinted(vm, Value(term("global", module.path, name), UNKNOWN), name)

    def _is_set_by_others(self, module: Loaded, name: str) -> bool:
        made = module.text.bindings.get(name, ())
        is_plain = bool(made) and all(isinstance(e, ast.Assign | ast.AnnAssign) for e in made)
        return is_plain and self.loader.is_set_by_others(module.path, name)

    def _told(self, vm: Machine, module: Loaded, node: ast.expr) -> Value:
        """What an expression is by itself, whatever the function around it may know of its names.

        What it does on the way is not done.
        """
        if not isinstance(node, ast.Call):
            return Value(NOTHING, UNKNOWN)
        out, depth = vm.out, vm.store.open()
        vm.out = Seq()
        vm.frames.append(self._frame(module))
        try:
            return evaluate(vm, node)
        except Left:
            return Value(NOTHING, UNKNOWN)
        finally:
            vm.frames.pop()
            vm.store.drop(depth)
            vm.out = out

    def _run_out_of_turn(
        self, vm: Machine, module: Loaded, name: str, statements: list[ast.stmt]
    ) -> None:
        """Run what binds a name of the entry that was asked for before its turn came.

        What this asks for in turn is run once, not once for each order in which it can be asked;
        what was asked for in vain is not asked for again.
        """
        is_first = not module.out_of_turn
        if name not in module.out_of_turn:
            module.out_of_turn.add(name)
            # A program's own loop has its turn, and defines nothing.
            defining = [each for each in statements if not isinstance(each, ast.While)]
            try:
                self._run_at_top(vm, module, defining, vm.store)
            finally:
                if is_first:
                    module.out_of_turn.clear()
        if is_first and vm.store.get((module.scope, name)) is None:
            module.asked.add(name)

    def _through_stars(self, vm: Machine, module: Loaded, name: str) -> Value | None:
        for star in module.text.stars:
            base = "." * star.level + (star.module or "")
            found = self.loader.find(module.path, base)
            text = self.loader.text(found[0]) if found is not None and not found[1] else None
            if text is not None:
                if name in text.bindings or text.stars:
                    value = self.global_of(vm, self.load(text), name)
                    if value is not None:
                        return value
            elif found is None and vm.library.exact(f"{base}.{name}") is not None:
                return Value(Lib(f"{base}.{name}"))
        return None

    def _run_beneath(self, vm: Machine, module: Loaded, statements: list[ast.stmt]) -> None:
        """Run statements for all entry points alike: what they do to libraries is forgotten."""
        into, fuel, joined = vm.store.beneath(), vm.fuel, vm.joined
        reserve, vm.reserve = vm.reserve, 0
        into.open()
        vm.fuel = AT_TOP
        try:
            with contextlib.suppress(Spent):
                self._run_at_top(vm, module, statements, into)
        finally:
            vm.fuel, vm.joined, vm.reserve = fuel, joined, reserve
            into.drop(1)
            for key, value in into.close().items():
                if not isinstance(key[0], Lib):
                    into.now[key] = value

    def _run_at_top(
        self, vm: Machine, module: Loaded, statements: list[ast.stmt], into: Store
    ) -> None:
        store, out, mask = vm.store, vm.out, vm.mask
        conditions, scopes, tries = vm.conditions, vm.scopes, vm.tries
        vm.store, vm.out = into, Seq()
        vm.conditions, vm.scopes, vm.tries = [], [], []
        vm.frames.append(self._frame(module))
        try:
            for statement in statements:
                run_block(vm, [statement])
        finally:
            vm.frames.pop()
            vm.store, vm.out, vm.mask = store, out, mask
            vm.conditions, vm.scopes, vm.tries = conditions, scopes, tries

    def _frame(self, module: Loaded) -> Frame:
        return Frame(module.scope, (module.scope,), module, None, None, 0, 0)

    def found_by_name(self, vm: Machine, name: str) -> Value | None:
        """Something of the project by a library's name: never."""
        return None

    # --- definitions

    def number_of(self, node: ast.AST, module: Loaded) -> int | None:
        """The number of a function or class, if its definition has been run."""
        return self._numbers.get((id(node), module.scope))

    def define(self, vm: Machine, node: Function | ast.Lambda, name: str) -> Func:
        """A function, with what it closes over."""
        frame = vm.frame
        vm.closed_over.update(frame.scopes)
        number = self.number_of(node, frame.module)
        if number is None:
            number = len(self.functions)
            self._numbers[id(node), frame.module.scope] = number
            info = FunctionInfo(number, node, frame.module, name)
            info.is_generator = frame.module.text.is_generator(node)
            self.functions.append(info)
        info = self.functions[number]
        spec = node.args
        positional = [*spec.posonlyargs, *spec.args]
        for parameter, default in zip(
            positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True
        ):
            info.defaults[parameter.arg] = evaluate(vm, default)
        for parameter, default_ in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if default_ is not None:
                info.defaults[parameter.arg] = evaluate(vm, default_)
        if frame.name.startswith("class "):
            info.owner = int(frame.owner)
            info.name = f"{self.classes[info.owner].name}.{name}"
            return Func(number, frame.scopes[1:])
        return Func(number, frame.scopes)

    def define_named_tuple(
        self, vm: Machine, node: ast.AST, name: str, defaults: dict[str, Value | None]
    ) -> Value:
        """The class that `collections.namedtuple` makes: fields -> what they are by default."""
        if id(node) not in self._named_tuples:
            (made,) = ast.parse("class _: pass").body  # which fields it has depends on the Python
            assert isinstance(made, ast.ClassDef)
            made.name = name
            for each in ast.walk(made):
                ast.copy_location(each, node)
            self._named_tuples[id(node)] = made
        value = self.define_class(vm, self._named_tuples[id(node)])
        info = self.classes[value.what.number]  # type: ignore[union-attr,index]
        info.bases, info.fields = (Value(Lib("typing.NamedTuple")),), list(defaults)
        for field_, default in defaults.items():
            if default is not None:
                vm.store.put((info.scope, field_), default)
        return value

    def define_class(self, vm: Machine, node: ast.ClassDef) -> Value:
        """A class: its body is run."""
        frame = vm.frame
        number = self.number_of(node, frame.module)
        if number is None:
            number = len(self.classes)
            self._numbers[id(node), frame.module.scope] = number
            self.classes.append(ClassInfo(number, node, frame.module, node.name, self.new_scope()))
        info = self.classes[number]
        info.bases = tuple(evaluate(vm, each) for each in node.bases)
        names = [
            evaluate(vm, d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list
        ]
        is_data = any(
            isinstance(each.what, Lib)
            and each.what.name.rpartition(".")[2] in ("dataclass", "define")
            for each in names
        ) or any(
            isinstance(each.what, Lib)
            and each.what.name.rpartition(".")[2] in ("NamedTuple", "BaseModel", "BaseSettings")
            for each in info.bases
        )
        if is_data:
            info.fields = [
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            ]
        inner = Frame(
            info.scope,
            (info.scope, *frame.scopes),
            frame.module,
            None,
            node,
            max(vm.store.depth - 1, 0),
            len(vm.conditions),
            f"class {node.name}",
            owner=number,
        )
        vm.frames.append(inner)
        try:
            run_block(vm, node.body)
        finally:
            vm.frames.pop()
        return Value(Class(number))


def _defines(statement: ast.stmt) -> bool:
    """Whether it gives its name to a function or class, or to what another module has so named."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.ImportFrom)
    return isinstance(statement, kinds)


# --- running


def run_file(
    program: Program, library: Library, path: str, fuel: int = FUEL, *, joins: bool = True
) -> Run | None:
    """Run a file as Python would run it as a script.

    With `joins` it is in no process group until it is seen to join one. If it is never seen to, it
    is run again, as one that may be in a group from the first: who has made it is not known.
    """
    text = program.loader.text(path, always=True)
    if text is None:
        return None
    vm = Machine(program, library, fuel)
    vm.reserve = TO_THE_END if fuel == FUEL else 0
    loaded = program.load(text, entry=text.is_script)
    vm.files.add(path)
    vm.frames.append(program._frame(loaded))
    run = Run(path, vm.root, vm)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEP))
    try:
        if loaded.is_entry:
            vm.starts = joins or _starts_ranks(text)
            register_for(vm, text)
            run_block(vm, [each for each in text.tree.body if not text.is_plain_import(each)])
    except (Spent, RecursionError):
        run.spent = True
        vm.frames[1:] = []
    finally:
        sys.setrecursionlimit(limit)
    if joins and vm.took_for_alone and not (vm.joined or _starts_ranks(text)):
        return run_file(program, library, path, fuel, joins=False)
    run.root = vm.root
    return run


def _starts_ranks(text: Text) -> bool:
    """Whether a script mentions torch's `spawn`: it hands ranks what they do."""
    return _OF_SPAWN.search(text.source.text) is not None and any(
        getattr(each, "attr", "") in _SPAWNS
        or (isinstance(each, ast.ImportFrom) and any(a.name in _SPAWNS for a in each.names))
        for each in text.nodes
    )


_OF_SPAWN = re.compile(r"torch\s*\.\s*multiprocessing|from\s+torch\s+import[^#]*multiprocessing")
_SPAWNS = ("spawn", "start_processes")


def run_alone(run: Run, wanted: set[int], fuel: int = ALONE) -> Iterator[Run]:
    """Run the functions of a file that nobody is seen to call, with whatever arguments.

    `wanted` are the lines of their definitions. Functions that others call come after those. Each
    gets so much fuel.
    """
    vm = run.vm
    program: Program = vm.program
    loaded = vm.frames[0].module
    depth = vm.store.depth
    made: dict[int, Value] = {}
    left = max(ALL_ALONE, fuel)
    reserve = OF_RANKS if fuel == ALONE else 0
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEP))
    try:
        for name, value, owner in _lone(vm, loaded, wanted):
            assert isinstance(value.what, Func)
            info = vm.functions[value.what.number]
            if id(info.node) in vm.visited:
                continue
            if left <= 0:
                return
            vm.fuel, vm.saving, vm.reserve = min(fuel, left), 0, reserve
            if owner < 0 or owner not in made:
                made.clear()
                vm.store.drop(depth)
                vm.store.open()
            vm.store.drop(depth + 1)
            vm.out = vm.root = Seq()
            vm.conditions, vm.scopes, vm.tries, vm.joined = [], [], [], False
            vm.of_ranks, vm.starts = loaded.text.meets_others(info.node), False
            vm.alone = True
            vm.mask = (1 << 16) - 1
            vm.frames = [program._frame(loaded)]
            found = Run(run.path, vm.root, vm, name, info.node.lineno, is_entry=False)
            try:
                _call_alone(vm, value.what, owner, info, made)
            except (Spent, RecursionError):
                found.spent = True
                vm.frames[1:] = []
            except Left:
                pass
            if vm.reserve < reserve:  # the whole of it was used, and of this as much as there is
                left, reserve = left - min(fuel, left), vm.fuel if vm.fuel > 0 else 0
            else:
                left -= min(fuel, left) - max(vm.fuel, 0)
            vm.reserve = 0
            found.root = vm.root
            yield found
    finally:
        sys.setrecursionlimit(limit)


def run_forward(run: Run, module: Value) -> tuple[Seq, list[Value]] | None:
    """Run a module's forward with unknown arguments, and take back all that it changes.

    (what it does, the arguments); None where it does not come to its end.
    """
    vm = run.vm
    made = vm.object(module)
    if made is None:
        return None
    found = hierarchy.class_attribute(vm, made.cls, "forward") if made.cls >= 0 else None
    if found is not None:
        found = vm.store.get((found.what, "__wrapped__")) or found
    given: dict[str, Value] = {}
    if found is not None and isinstance(found.what, Func):
        given = unknown_arguments(vm, vm.functions[found.what.number], skip=1)
    args = [] if given else [Value(Term("parameter", (made.number, "input")), UNKNOWN)]
    done = _run_aside(vm, lambda: forward(vm, module, args, given, made.node))
    return None if done is None else (done, [*args, *given.values()])


def run_hook(run: Run, hook: Value, state: Value, node: ast.AST) -> Seq | None:
    """What the hook of a wrapper does with a bucket of gradients."""
    bucket = Value(run.vm.new(node, "torch.distributed.GradBucket"))
    return run_apart(run, hook, [state, bucket], node)


def run_apart(run: Run, function: Value, args: list[Value], node: ast.AST) -> Seq | None:
    """What a function does with these, None where it does not come to its end.

    All that it changes is taken back.
    """
    vm, made = run.vm, run.vm.made
    vm.made = dict(made)
    try:
        return _run_aside(vm, lambda: call_value(vm, function, args, {}, node))
    finally:
        vm.made = made


def _run_aside(vm: Machine, run: Callable[[], object]) -> Seq | None:
    outside, vm.out, depth = vm.out, Seq(), vm.store.open()
    vm.fuel, vm.saving, frames = ALONE, 0, len(vm.frames)
    vm.conditions, vm.scopes, vm.tries, vm.mask = [], [], [], EVERYONE
    try:
        run()
        return vm.out
    except (Left, Spent, RecursionError):
        return None
    finally:
        del vm.frames[frames:]
        vm.store.drop(depth)
        vm.out = outside


def _lone(vm: Machine, loaded: Loaded, wanted: set[int]) -> list[tuple[str, Value, int]]:
    found: list[tuple[str, Value, int]] = []
    for name, statements in loaded.text.bindings.items():
        last = statements[-1]
        if not isinstance(last, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            continue
        if not any(last.lineno <= line <= (last.end_lineno or 0) for line in wanted):
            continue
        value = vm.store.get((loaded.scope, name))
        if value is None and not loaded.is_entry:
            value = vm.program.global_of(vm, loaded, name)
        if value is None:
            continue
        if isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef):
            itself = _itself(vm, last, value, loaded)
            if last.lineno in wanted and itself is not None:
                found.append((name, itself, -1))
        elif isinstance(value.what, Class):
            info = vm.classes[value.what.number]
            for each in info.node.body:
                if (
                    isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                    and each.lineno in wanted
                ):
                    method = vm.store.get((info.scope, each.name))
                    itself = _itself(vm, each, method, loaded)
                    if itself is not None:
                        found.append((f"{name}.{each.name}", itself, info.number))
    called = {
        each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
        for each in loaded.text.nodes
        if isinstance(each, ast.Call)
    }
    classes: dict[int, bool] = {}
    for item in found:
        classes[item[2]] = classes.get(item[2], True) and _is_called(item, called)

    def order(item: tuple[str, Value, int]) -> tuple[bool, int, bool]:
        """Methods of one class together, where its first one comes."""
        by_others = _is_called(item, called)
        return by_others if item[2] < 0 else classes[item[2]], item[2], by_others

    found.sort(key=order)
    return found


def _itself(vm: Machine, node: Function, made: Value | None, module: Loaded) -> Value | None:
    """A function or method, whatever a decorator has made of it."""
    number = vm.program.number_of(node, module)
    if number is None or made is None:
        return None
    return Value(Func(number, (module.scope,), flags=getattr(made.what, "flags", frozenset())))


def _is_called(item: tuple[str, Value, int], called: set[str]) -> bool:
    name = item[0]
    first, _, last = name.rpartition(".")
    return (last in called) if last != "__init__" else first in called


def _call_alone(
    vm: Machine, what: Func, owner: int, info: FunctionInfo, made: dict[int, Value]
) -> None:
    """Run a function; methods of one class run on one object, which keeps what they have set."""
    has_self = owner >= 0 and "staticmethod" not in what.flags
    arguments = unknown_arguments(vm, info, skip=1 if has_self else 0)
    args: list[Value] = []
    if has_self:
        if "classmethod" in what.flags:
            args = [Value(Class(owner))]
        else:
            is_first = owner not in made
            if is_first:
                made[owner] = _instance(vm, owner, info)
            if _is_read(vm, owner, info):
                _read(vm, owner, made[owner], info)
                return
            if is_first and _is_read_by_its_base(vm, owner):
                _read(vm, owner, made[owner], info)
            args = [made[owner]]
            if info.name.endswith(".__init__"):
                return
            if info.name.rpartition(".")[2] in _AROUND:
                _call_around(vm, owner, made[owner])
                return
    call_function(vm, what, args, arguments, info.node)


_AROUND = ("__enter__", "__exit__")
"""What is called before the body of a `with`, and after it: neither without the other."""


def _call_around(vm: Machine, owner: int, manager: Value) -> None:
    for name, given in zip(_AROUND, ([], [NONE, NONE, NONE]), strict=True):
        method = hierarchy.class_attribute(vm, owner, name)
        if method is not None and isinstance(method.what, Func):
            node = vm.functions[method.what.number].node
            call_function(vm, method.what, [manager, *given], {}, node)


def _read(vm: Machine, owner: int, made: Value, info: FunctionInfo) -> None:
    """A data set is made, and gives its samples."""
    event = vm.emit("data_set", vm.classes[owner].name, info.node, dataset=made)
    vm.workers[event] = read_by_workers(vm, {"dataset": made}, info.node)


def _is_read(vm: Machine, owner: int, info: FunctionInfo) -> bool:
    """Whether a method makes a data set, or gives its samples: then it does both."""
    return info.name.rpartition(".")[2] in _READING and gives_samples(vm, owner)


def _is_read_by_its_base(vm: Machine, owner: int) -> bool:
    """Whether a data set leaves it to its base how it is made and read."""
    own = {getattr(each, "name", "") for each in vm.classes[owner].node.body}
    return own.isdisjoint(_READING) and gives_samples(vm, owner)


_READING = ("__init__", "__getitem__", "__iter__")


def unknown_arguments(vm: Machine, info: FunctionInfo, skip: int = 0) -> dict[str, Value]:
    """Whatever the parameters of a function may be given, but for the first so many."""
    spec = info.node.args
    positional = [*spec.posonlyargs, *spec.args]
    found = {}
    for parameter in (*positional[skip:], *spec.kwonlyargs):
        value = Value(term("parameter", id(info.node), parameter.arg), UNKNOWN)
        found[parameter.arg] = hinted(vm, value, parameter.arg)
    if spec.kwarg is not None:  # whoever calls it may name anything
        found["**"] = Value(term("parameter", id(info.node), spec.kwarg.arg), UNKNOWN)
    return found


def _instance(vm: Machine, number: int, info: FunctionInfo) -> Value:
    init = hierarchy.class_attribute(vm, number, "__init__")
    kwargs: dict[str, Value] = {}
    if init is not None:
        init = vm.store.get((init.what, "__wrapped__")) or init
    if init is not None and isinstance(init.what, Func):
        kwargs = unknown_arguments(vm, vm.functions[init.what.number], skip=1)
    elif vm.classes[number].fields:
        for name in vm.classes[number].fields:
            kwargs[name] = hinted(vm, Value(term("field", number, name), UNKNOWN), name)
    is_init = info.name.endswith(".__init__")
    outside, root = vm.out, vm.root
    if not is_init:
        vm.out = Seq()
    try:
        return instantiate(vm, Class(number), [], kwargs, info.node)
    finally:
        vm.out = outside
        vm.root = root


__all__ = ["Loaded", "Program", "Run", "Store", "run_alone", "run_file"]
