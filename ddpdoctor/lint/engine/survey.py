"""What one file tells the rest of the project: what it imports, its functions, whom they call.

One pass over the tree. A survey is small, so that it can be cached by content and handed to other
processes.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field

from ddpdoctor.lint.engine import imports as importing
from ddpdoctor.lint.engine.libraries import is_of_interest
from ddpdoctor.lint.engine.trees import CHILDREN, Function, dotted

_BUILTINS = frozenset(dir(builtins))
_EXTERNAL_WORDS = """
    torch numpy np os sys time math json re pathlib logging typing collections functools random
    itertools copy shutil argparse warnings dataclasses abc enum subprocess datetime tqdm wandb
    pandas scipy sklearn matplotlib torchvision PIL yaml pickle
"""
_EXTERNAL = frozenset(_EXTERNAL_WORDS.split())


@dataclass(slots=True)
class FunctionSurvey:
    """One function or method; `<module>` is the code outside of all."""

    line: int
    acts: bool = False
    """Whether it calls what concerns other ranks."""
    calls: list[str] = field(default_factory=list)
    """Resolved through the imports of its file: `.utils.sync`, `sync`, `self.sync`."""
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
    out = Survey(path, functions={"<module>": FunctionSurvey(1)})
    _Surveyor(out).block(tree.body, out.functions["<module>"], "", "", frozenset())
    return out


class _Surveyor:
    def __init__(self, out: Survey) -> None:
        self.out = out

    def block(
        self,
        body: list[ast.stmt],
        into: FunctionSurvey,
        prefix: str,
        cls: str,
        params: frozenset[str],
    ) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._function(node, prefix, cls)
            elif isinstance(node, ast.ClassDef):
                name = prefix + node.name
                bases = (self._resolve(base) for base in node.bases)
                self.out.classes[name] = ClassSurvey(tuple(base for base in bases if base))
                self.block(node.body, into, f"{name}.", name, params)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self.out.imports.update(importing.of_import(node))
                if isinstance(node, ast.ImportFrom) and (star := importing.stars(node)):
                    self.out.stars.append(star)
            else:
                self._assign(node, into, cls)
                self._parts(node, into, prefix, cls, params)

    def _parts(
        self,
        node: ast.stmt,
        into: FunctionSurvey,
        prefix: str,
        cls: str,
        params: frozenset[str],
    ) -> None:
        """The blocks of a statement, and the calls of its expressions."""
        for name in CHILDREN[node.__class__]:
            value = getattr(node, name, None)
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, ast.stmt):
                    self.block([item], into, prefix, cls, params)
                elif isinstance(item, ast.ExceptHandler | ast.match_case):
                    self.block(item.body, into, prefix, cls, params)
                elif isinstance(item, ast.AST):
                    self._calls(item, into, params)

    def _function(self, node: Function, prefix: str, cls: str) -> None:
        spec = node.args
        params = frozenset(each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))
        new = self.out.functions[prefix + node.name] = FunctionSurvey(node.lineno)
        self.block(node.body, new, f"{prefix}{node.name}.", cls, params)

    def _assign(self, node: ast.stmt, into: FunctionSurvey, cls: str) -> None:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Call):
            return
        built = self._resolve(node.value.func)
        if not built or not built.rpartition(".")[2][:1].isupper():
            return
        for target in node.targets if isinstance(node, ast.Assign) else (node.target,):
            if isinstance(target, ast.Name):
                into.types[target.id] = built
            elif isinstance(target, ast.Attribute) and dotted(target.value) == "self" and cls:
                self.out.classes[cls].types[target.attr] = built

    def _calls(self, root: ast.AST, into: FunctionSurvey, params: frozenset[str]) -> None:
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Call):
                self._call(node, into, params)
            for name in CHILDREN[node.__class__]:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    stack.extend(value)
                elif value is not None and CHILDREN[value.__class__]:
                    stack.append(value)

    def _call(self, node: ast.Call, into: FunctionSurvey, params: frozenset[str]) -> None:
        func = node.func
        if isinstance(func, ast.Name):
            if func.id in params or func.id in _BUILTINS:
                return
            name = self.out.imports.get(func.id, func.id)
        else:
            name = _of_super(func) or self._resolve(func)
            head, _, rest = name.partition(".")
            if head in into.types and "." not in rest:
                name = f"{into.types[head]}.{rest}"
        if not name:
            return
        head = name.partition(".")[0]
        if is_of_interest(name):
            into.acts = True
        elif head not in _EXTERNAL and (
            "." not in name or head in ("self", "cls", "super") or self._is_known(name, func)
        ):
            into.calls.append(name)

    def _is_known(self, name: str, func: ast.expr) -> bool:
        first = dotted(func).partition(".")[0]
        return name.startswith(".") or first in self.out.imports or name[:1].isupper()

    def _resolve(self, node: ast.AST) -> str:
        return importing.resolve(node, self.out.imports)


def _of_super(func: ast.AST) -> str:
    """`super.name` of what `super().name` calls, "" for anything else."""
    asked = func.value if isinstance(func, ast.Attribute) else None
    is_super = isinstance(asked, ast.Call) and dotted(asked.func) == "super"
    return f"super.{func.attr}" if is_super and isinstance(func, ast.Attribute) else ""
