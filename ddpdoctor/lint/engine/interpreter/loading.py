"""The files that a program consists of: parsed once, and what each binds at its top."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ddpdoctor.lint.engine.libraries import Library, calls_something, is_of_interest
from ddpdoctor.lint.engine.locator import Locator
from ddpdoctor.lint.engine.source import Source, Unreadable
from ddpdoctor.lint.engine.trees import Function

# Files without any of these words do nothing that concerns other ranks.
_INTEREST = re.compile(
    r"distributed|[Rr]ank|RANK|backward\(|torch\.save|torch\.load|accelerat|fabric|exit\(|Sampler"
    r"|DataLoader|listdir|glob|makedirs|mkdir|barrier|reduce|gather|broadcast|deepspeed|no_sync"
    r"|os\.path|isfile|exists\(|time\(\)|random|is_main|master|environ|argparse|nn\.Module|\.save\("
)
# What a finding may begin with beside calls of libraries: a launcher's variable, a moving average,
# a loss that is a constant.
_BY_ITSELF = re.compile(
    r"RANK|local.rank|async_op|\(1(\.0)? - \w+\) \*|return torch\.(tensor|zeros|FloatTensor)"
)


def does_something(text: str, library: Library | None = None) -> bool:
    """Whether a finding may begin in this text; else it is run only where others call it."""
    calls = library.calls_something(text) if library is not None else calls_something(text)
    return calls or _BY_ITSELF.search(text) is not None


MAX_FILE = 600_000
_SMALL = 8_000


def _is_dull(text: str) -> bool:
    return _INTEREST.search(text) is None


@dataclass(slots=True, eq=False)
class Text:
    """A parsed file."""

    path: str
    tree: ast.Module
    source: Source
    bindings: dict[str, list[ast.stmt]]
    """Name -> the statements at the top that bind it."""
    stars: list[ast.ImportFrom] = field(default_factory=list)
    has_main: bool = False
    _statements: list[tuple[int, int, str]] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _nodes: list[ast.AST] = field(default_factory=list)
    _generators: dict[int, bool] = field(default_factory=dict)
    _around: dict[ast.AST, Function | ast.Lambda | None] = field(default_factory=dict)
    _set_later: dict[str, list[ast.expr]] | None = None

    @property
    def lines(self) -> list[str]:
        """The lines of the file."""
        if not self._lines:
            self._lines = self.source.lines
        return self._lines

    @property
    def nodes(self) -> list[ast.AST]:
        """All of the file, outer ones first: several ask for it."""
        if not self._nodes:
            self._nodes = list(ast.walk(self.tree))
        return self._nodes

    @property
    def set_later(self) -> dict[str, list[ast.expr]]:
        """The names at the top that functions give another value, and what they give them."""
        if self._set_later is None:
            some = self.nodes if "global " in self.source.text else ()
            names = [name for each in some if isinstance(each, ast.Global) for name in each.names]
            self._set_later = {name: [] for name in names}
            for each in some if names else ():
                for target in each.targets if isinstance(each, ast.Assign) else ():
                    if isinstance(target, ast.Name) and target.id in self._set_later:
                        self._set_later[target.id].append(each.value)  # type: ignore[attr-defined]
        return self._set_later

    @property
    def is_script(self) -> bool:
        """Whether it does more than to define things."""
        return self.has_main or any(self._runs(each) for each in self.tree.body)

    def _runs(self, statement: ast.stmt) -> bool:
        """Whether a statement at the top does something, and does not only define."""
        match statement:
            case ast.For() | ast.While() | ast.With() | ast.Expr(value=ast.Call() | ast.Await()):
                return True
            case ast.If() | ast.Try():
                return any(self._runs(each) for each in [*statement.body, *statement.orelse])
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Assert() | ast.Match():
                written = "\n".join(self.lines[statement.lineno - 1 : statement.end_lineno])
                return does_something(written) or self.meets_others(statement)
            case ast.FunctionDef():
                return any(self.dotted(x) == "atexit.register" for x in statement.decorator_list)
        return False

    def meets_others(self, node: ast.stmt) -> bool:
        """Whether something in it is called that has to do with other ranks."""
        calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
        return any(is_of_interest(self.dotted(each.func)) for each in calls)

    def dotted(self, node: ast.expr) -> str:
        """What an expression stands for by the imports at the top, "" where nothing says so."""
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        for statement in self.bindings.get(node.id, ()) if isinstance(node, ast.Name) else ():
            if isinstance(statement, ast.Import | ast.ImportFrom):
                return _imported(statement, node.id)  # type: ignore[attr-defined]
        return ""

    def is_imported(self, name: str) -> bool:
        """Whether nothing but imports at the top binds a name."""
        return all(
            isinstance(each, ast.Import | ast.ImportFrom) for each in self.bindings.get(name, ())
        )

    def is_plain_import(self, statement: ast.stmt) -> bool:
        """Whether a statement imports names that can be looked for when they are asked for."""
        return isinstance(statement, ast.Import | ast.ImportFrom) and all(
            self.is_imported(name) for name in _bound(statement)
        )

    def is_generator(self, node: Function | ast.Lambda) -> bool:
        """Whether a function of this file yields."""
        known = self._generators.get(id(node))
        if known is None:
            lines = self.lines[node.lineno - 1 : node.end_lineno]
            known = any("yield" in line for line in lines) and _yields(node)
            self._generators[id(node)] = known
        return known

    def function(self, node: ast.AST) -> Function | ast.Lambda | None:
        """The innermost function in which a node stands; None outside of all."""
        stack: list[tuple[ast.AST, Function | ast.Lambda | None]] = []
        if not self._around:
            stack.append((self.tree, None))
        while stack:
            each, outer = stack.pop()
            self._around[each] = outer
            inner = each if isinstance(each, Function | ast.Lambda) else outer
            stack += [(child, inner) for child in ast.iter_child_nodes(each)]
        return self._around.get(node)

    def statement(self, line: int) -> tuple[int, int, str]:
        """First and last line of the innermost statement on a line, and its function."""
        if not self._statements:
            _statements(self.tree.body, "", self._statements)
        around = [each for each in self._statements if each[0] <= line <= each[1]]
        best = min(around, key=lambda each: each[1] - each[0], default=(line, line, ""))
        return best[0], best[1], best[2] or "<module>"


def _statements(body: list[ast.stmt], name: str, into: list[tuple[int, int, str]]) -> None:
    for statement in body:
        inner = name
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        parts = [
            each
            for part in ("body", "orelse", "finalbody", "handlers", "cases")
            for each in getattr(statement, part, [])
        ]
        blocks = [each for each in parts if isinstance(each, ast.stmt)]
        for each in parts:
            if isinstance(each, ast.ExceptHandler | ast.match_case):
                blocks += each.body
        if blocks:
            last = max(first, min(each.lineno for each in blocks) - 1)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{name}.{statement.name}" if name else statement.name
        into.append((first, last, name))
        _statements(blocks, inner, into)


def _imported(statement: ast.Import | ast.ImportFrom, name: str) -> str:
    for each in statement.names:
        bound = each.asname or each.name.partition(".")[0]
        if bound == name and isinstance(statement, ast.ImportFrom):
            return f"{statement.module}.{each.name}" if not statement.level else ""
        if bound == name:
            return each.name if each.asname else bound
    return ""


def _yields(node: Function | ast.Lambda) -> bool:
    stack: list[ast.AST] = list(ast.iter_child_nodes(node))
    while stack:
        each = stack.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(each))
    return False


_SET_IN = re.compile(r"^\s*(?!self\b)(\w+)\.(\w+) = ", re.MULTILINE)


class Loader:
    """Finds and parses the files of a project."""

    def __init__(
        self, source: Callable[[str], Source], locator: Locator, files: Sequence[str] = ()
    ) -> None:
        self._source = source
        self.locator = locator
        self.files = files
        """The files that are linted together."""
        self._texts: dict[str, Text | None] = {}
        self._set_by_others: dict[str, set[str]] | None = None

    def text(self, path: str, *, always: bool = False) -> Text | None:
        """A file, None where it cannot be read or does nothing of interest."""
        known = self._texts.get(path)
        if known is not None or (path in self._texts and not always):
            return known
        self._texts[path] = None
        try:
            source = self._source(path)
            size = len(source.text)
            if not always and (size > MAX_FILE or (size > _SMALL and _is_dull(source.text))):
                return None
            tree = source.tree
        except (Unreadable, RecursionError):
            return None
        found = Text(path, tree, source, {})
        _index(tree.body, found)
        self._texts[path] = found
        return found

    def find(self, importer: str, name: str) -> tuple[str, str] | None:
        """(file, what is left of the dotted name) of an import, if it is of this project."""
        found = self.locator.locate(importer, name)
        if found is None or not self.locator.is_near(importer, found[0]):
            return None
        return found

    def is_set_by_others(self, path: str, name: str) -> bool:
        """Whether another file gives this name of a module a value, as `module.NAME = ...`."""
        if self._set_by_others is None:
            self._set_by_others = defaultdict(set)
            for each in self.files:
                for module, set_ in self._set_from(each):
                    self._set_by_others[set_].add(module)
        return Path(path).stem in self._set_by_others.get(name, ())

    def _set_from(self, path: str) -> Iterator[tuple[str, str]]:
        """(module, name) of what a file sets in what it imports."""
        try:
            text = self._source(path).text
        except Unreadable:
            return
        for owner, name in _SET_IN.findall(text):
            renamed = re.findall(rf"(\w+) as {owner}\b", text)
            if renamed or re.search(rf"import .*\b{owner}\b", text):
                yield (renamed[0] if renamed else owner), name

    def beside(self, importer: str, package: str) -> list[str]:
        """The names of the modules in a package of this project; "" is the importer's folder."""
        folder = self.locator.folder(importer, package)
        return self.locator.modules_in(folder) if folder is not None else []


def _index(body: list[ast.stmt], into: Text) -> None:
    for statement in body:
        if is_main_guard(statement):
            into.has_main = True
            continue
        for name in _bound(statement):
            into.bindings.setdefault(name, []).append(statement)
        if isinstance(statement, ast.ImportFrom) and any(x.name == "*" for x in statement.names):
            into.stars.append(statement)
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name in _registered_in(statement, into):
                into.bindings[name].append(statement)


def _registered_in(statement: ast.stmt, of: Text) -> set[str]:
    """The names of a module that a definition's decorators may write into, as registries do."""
    found: set[str] = set()
    for each in statement.decorator_list:  # type: ignore[attr-defined]
        base = base_of(each)
        for made in of.bindings.get(base, ()):
            if isinstance(made, ast.FunctionDef) and made is not statement:
                found |= _written_into(made)
            elif isinstance(made, ast.Assign):
                found.add(base)
    return found & of.bindings.keys()


def _written_into(function: ast.FunctionDef) -> set[str]:
    """The names whose items a function sets, or whose methods it calls."""
    nodes = list(ast.walk(function))
    items = (e for e in nodes if isinstance(e, ast.Subscript) and isinstance(e.ctx, ast.Store))
    calls = (e.func for e in nodes if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute))
    return {base_of(each) for each in (*items, *calls)}


def base_of(node: ast.expr) -> str:
    """The name that a dotted, indexed or called expression begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_main_guard(statement: ast.stmt) -> bool:
    """Whether this is `if __name__ == "__main__":`."""
    return (
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Compare)
        and any(
            isinstance(each, ast.Name) and each.id == "__name__"
            for each in ast.walk(statement.test)
        )
    )


def _bound(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names):
            return [each.asname or each.name.partition(".")[0] for each in names]
        case ast.ImportFrom(names=names):
            return [each.asname or each.name for each in names]
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found = []
            for target in targets:
                base: ast.AST = target
                while isinstance(base, ast.Attribute | ast.Subscript):
                    base = base.value
                found += [each.id for each in ast.walk(base) if isinstance(each, ast.Name)]
            return found
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return [name]
        case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
            return [
                name
                for part in ("body", "orelse", "finalbody", "handlers")
                for each in getattr(statement, part, [])
                for inner in (each.body if isinstance(each, ast.ExceptHandler) else [each])
                for name in _bound(inner)
            ]
    return []
