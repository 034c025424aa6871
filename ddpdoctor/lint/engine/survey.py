"""What one file tells the rest of the project: its functions, whom they call, what they sync.

One pass over the tree. A survey is small and picklable, so that it can be cached by content and
handed to other processes.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from functools import lru_cache

from ddpdoctor.lint.engine import imports as importing
from ddpdoctor.lint.engine.trees import CHILDREN, Function, dotted, is_constant, last_name
from ddpdoctor.lint.engine.vocabulary import (
    COLLECTIVES,
    MAIN_NAME,
    RANK_CALL,
    RANK_NAME,
    SAMPLER,
    UNIFORM_NAME,
    collective,
    is_wrapper,
)

_BUILTINS = frozenset(dir(builtins))
_EXTERNAL_WORDS = """
    torch numpy np os sys time math json re pathlib logging typing collections functools random
    itertools copy shutil argparse warnings dataclasses abc enum subprocess datetime tqdm wandb
    pandas scipy sklearn matplotlib torchvision PIL yaml pickle
"""
_EXTERNAL = frozenset(_EXTERNAL_WORDS.split())
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(slots=True)
class Callee:
    """One call inside a function, as far as other files may care."""

    name: str
    """Resolved through the imports of its file: `.utils.sync`, `sync`, `self.sync`."""
    line: int
    sure: bool
    """Runs whenever the function runs, distributed or not aside."""
    params: tuple[tuple[str, str], ...] = ()
    """(the callee's position or keyword, the caller's parameter that is passed there)."""


@dataclass(slots=True)
class FunctionSurvey:
    """One function or method; `<module>` is the code outside of all."""

    name: str
    line: int
    params: tuple[str, ...] = ()
    calls: list[Callee] = field(default_factory=list)
    collectives: list[tuple[str, int, bool]] = field(default_factory=list)
    """(operation, line, sure) of those over the default group, not under a rank condition."""
    called_params: set[str] = field(default_factory=set)
    """Parameters that the function calls: `def evaluate(model): model(x)`."""
    returns_rank: bool = False
    effects: dict[str, int] = field(default_factory=dict)
    """init, sampler, save, rank_save, load -> the first line that does it."""
    types: dict[str, str] = field(default_factory=dict)
    """Local name -> class it is built from."""


@dataclass(slots=True)
class ClassSurvey:
    """The bases of a class, and the classes that its attributes are built from."""

    bases: tuple[str, ...]
    types: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Survey:
    """What one file tells the rest."""

    path: str
    imports: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    functions: dict[str, FunctionSurvey] = field(default_factory=dict)
    classes: dict[str, ClassSurvey] = field(default_factory=dict)


def survey(path: str, tree: ast.Module) -> Survey:
    """Survey one parsed file."""
    return _Surveyor(path).run(tree)


class _Surveyor:
    def __init__(self, path: str) -> None:
        self.out = Survey(path)

    def run(self, tree: ast.Module) -> Survey:
        top = FunctionSurvey("<module>", 1)
        self.out.functions[top.name] = top
        self._block(tree.body, top, "", "", True, False)
        return self.out

    def _block(
        self,
        body: list[ast.stmt],
        into: FunctionSurvey,
        prefix: str,
        cls: str,
        sure: bool,
        by_rank: bool,
    ) -> None:
        for node in body:
            kind = node.__class__
            if kind is ast.Expr or kind is ast.Return:
                if kind is ast.Return:
                    self._return(node, into)
                self._expressions(node, into, sure, by_rank)
            elif kind is ast.Assign or kind is ast.AnnAssign:
                self._assign(node, into, cls)
                self._expressions(node, into, sure, by_rank)
            elif kind is ast.If:
                assert isinstance(node, ast.If)
                self._expressions(node.test, into, sure, by_rank)
                nature = nature_of(node.test)
                inner = sure and nature == "uniform"
                rank = by_rank or nature == "rank"
                self._block(node.body, into, prefix, cls, inner, rank)
                if node.orelse:
                    self._block(node.orelse, into, prefix, cls, inner, rank)
                if node.body[-1].__class__ in _EXITS:
                    sure, by_rank = inner, rank
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._function(node, prefix, cls)
            elif kind is ast.ClassDef:
                assert isinstance(node, ast.ClassDef)
                name = prefix + node.name
                bases = (self._resolve(base) for base in node.bases)
                self.out.classes[name] = ClassSurvey(tuple(base for base in bases if base))
                self._block(node.body, into, f"{name}.", name, False, by_rank)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self.out.imports.update(importing.of_import(node))
                if isinstance(node, ast.ImportFrom) and (star := importing.stars(node)):
                    self.out.stars.append(star)
            elif isinstance(node, ast.With | ast.AsyncWith):
                for item in node.items:
                    self._expressions(item, into, sure, by_rank)
                self._block(node.body, into, prefix, cls, sure, by_rank)
            else:
                self._other(node, into, prefix, cls, sure, by_rank)

    def _other(
        self,
        node: ast.stmt,
        into: FunctionSurvey,
        prefix: str,
        cls: str,
        sure: bool,
        by_rank: bool,
    ) -> None:
        """Loops, try, match: what is inside may not run; `try` and `finally` bodies do."""
        certain = sure and isinstance(node, ast.Try)
        for name in CHILDREN[node.__class__]:
            value = getattr(node, name, None)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                inner = certain and name in ("body", "finalbody")
                self._block(value, into, prefix, cls, inner, by_rank)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.ExceptHandler | ast.match_case):
                        self._block(item.body, into, prefix, cls, False, by_rank)
                    elif isinstance(item, ast.AST):
                        self._expressions(item, into, sure, by_rank)
            elif isinstance(value, ast.AST):
                self._expressions(value, into, sure, by_rank)

    def _function(self, node: Function, prefix: str, cls: str) -> None:
        every = node.args.posonlyargs + node.args.args
        params = tuple(arg.arg for arg in every + node.args.kwonlyargs)
        new = FunctionSurvey(prefix + node.name, node.lineno, params)
        self.out.functions[new.name] = new
        self._block(node.body, new, f"{new.name}.", cls, True, False)

    def _return(self, node: ast.stmt, into: FunctionSurvey) -> None:
        value = getattr(node, "value", None)
        if value is not None and not isinstance(value, ast.Constant):
            into.returns_rank = into.returns_rank or nature_of(value) == "rank"

    def _assign(self, node: ast.stmt, into: FunctionSurvey, cls: str) -> None:
        value = getattr(node, "value", None)
        if not isinstance(value, ast.Call):
            return
        built = self._resolve(value.func)
        if not built or not built.rpartition(".")[2][:1].isupper():
            return
        found = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in found:
            if isinstance(target, ast.Name):
                into.types[target.id] = built
            elif isinstance(target, ast.Attribute) and dotted(target.value) == "self" and cls:
                self.out.classes[cls].types[target.attr] = built

    def _expressions(self, root: ast.AST, into: FunctionSurvey, sure: bool, by_rank: bool) -> None:
        stack = [root]
        pop, push = stack.pop, stack.append
        while stack:
            node = pop()
            kind = node.__class__
            if kind is ast.Call:
                self._call(node, into, sure, by_rank)  # type: ignore[arg-type]
            for name in CHILDREN[kind]:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    stack.extend(value)
                elif value is not None and CHILDREN[value.__class__]:
                    push(value)

    def _call(self, node: ast.Call, into: FunctionSurvey, sure: bool, by_rank: bool) -> None:
        func = node.func
        if func.__class__ is ast.Name:
            name: str = func.id
            if name in into.params:
                into.called_params.add(name)
                return
            if name in _BUILTINS:
                return
            name = self.out.imports.get(name, name)
        else:
            name = self._resolve(func)
            if not name:
                return
            head, _, rest = name.partition(".")
            if head in into.types and "." not in rest:
                name = f"{into.types[head]}.{rest}"
        if effect := _effect(name, node):
            into.effects.setdefault(effect, node.lineno)
        if operation := _default_group(name, node):
            if not by_rank:
                into.collectives.append((operation, node.lineno, sure))
            return
        head = name.partition(".")[0]
        if head in _EXTERNAL or (
            "." in name and head not in ("self", "cls", "super") and (not self._known(name, func))
        ):
            return
        into.calls.append(Callee(name, node.lineno, sure, _passed(node, into.params)))

    def _known(self, name: str, func: ast.expr) -> bool:
        first = dotted(func).partition(".")[0]
        return name.startswith(".") or first in self.out.imports or name[:1].isupper()

    def _resolve(self, node: ast.AST) -> str:
        return importing.resolve(node, self.out.imports)


_EFFECTS = {
    "torch.distributed.init_process_group": "init",
    "torch.distributed.distributed_c10d.init_process_group": "init",
} | dict.fromkeys(SAMPLER, "sampler")


def _effect(name: str, node: ast.Call) -> str:
    effect = _EFFECTS.get(name, "")
    given = {each.arg for each in node.keywords}
    if effect == "sampler" and (given & {"num_replicas", "rank", None} or len(node.args) > 1):
        return ""  # told what it would otherwise ask the process group
    return effect


def _default_group(name: str, node: ast.Call) -> str:
    if is_wrapper(name):
        return "DistributedDataParallel()"
    operation = collective(name)
    return operation if operation and not names_group(node, operation) else ""


def names_group(node: ast.Call, operation: str) -> bool:
    """Whether a collective is called on a group of its own, or may be (a star hides it)."""
    position = COLLECTIVES.get(operation)
    value: ast.expr | None = None
    for each in node.keywords:
        if each.arg is None:
            return True
        if each.arg in ("group", "process_group", "pg"):
            value = each.value
    if value is None and position is not None and len(node.args) > position:
        value = node.args[position]
    if any(isinstance(each, ast.Starred) for each in node.args):
        return True
    return value is not None and not is_constant(value, None) and last_name(value) != "WORLD"


def _passed(node: ast.Call, params: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    if not params:
        return ()
    found = [
        (str(position), value.id)
        for position, value in enumerate(node.args)
        if isinstance(value, ast.Name) and value.id in params
    ]
    found += [
        (each.arg, each.value.id)
        for each in node.keywords
        if each.arg and isinstance(each.value, ast.Name) and each.value.id in params
    ]
    return tuple(found)


def nature_of(test: ast.expr) -> str:
    """A quick look at a condition: "rank", "uniform" (alike on all ranks) or "open"."""
    nature = "uniform"
    stack: list[ast.AST] = [test]
    while stack:
        node = stack.pop()
        kind = node.__class__
        if kind is ast.Name or kind is ast.Attribute:
            of_name = _nature_of_name(last_name(node))
            if of_name == "rank":
                return "rank"
            nature = of_name if of_name == "open" else nature
            continue
        for name in CHILDREN[kind]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                stack.extend(each for each in value if each is not None)
            elif value is not None:
                stack.append(value)
    return nature


@lru_cache(maxsize=8192)
def _nature_of_name(name: str) -> str:
    if RANK_NAME.match(name) or MAIN_NAME.match(name) or RANK_CALL.match(name):
        return "rank"
    return "uniform" if UNIFORM_NAME.search(name) else "open"
