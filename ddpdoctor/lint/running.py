"""Runs each file in the head, and what nobody calls alone, and asks the rules about it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence

from ddpdoctor.lint.concerned import SAMPLES
from ddpdoctor.lint.engine.interpreter.loading import Text, does_something
from ddpdoctor.lint.engine.interpreter.program import Program, Run, run_alone, run_file
from ddpdoctor.lint.engine.libraries import Library
from ddpdoctor.lint.judged import Function, Judged
from ddpdoctor.lint.judging import cleared, judge
from ddpdoctor.lint.rule import Rule

_WORD = re.compile(r"\w+")


def run_and_judge(
    path: str,
    program: Program,
    library: Library,
    rules: Sequence[Rule],
    *,
    alone: bool = True,
    reaching: frozenset[int] = frozenset(),
) -> Judged:
    """Run one file as a script, then its functions that it does not call.

    `reaching` are the lines of functions that call others which do something of interest.
    """
    out = Judged(path)
    run = run_file(program, library, path)
    if run is None:
        return out
    out.is_cut = run.spent
    out.found = list(judge(run, rules, out.troubles))
    out.right = frozenset(cleared(run, rules, out.troubles))
    out.visited = _visited(run)
    out.files = tuple(sorted(run.vm.files))
    text = run.source(path)
    assert text is not None
    if not alone:
        return out
    lines = _of_interest(text, reaching, library)
    lines -= {line for file, line in out.visited if file == path}
    earlier = [run]
    for lone in run_alone(run, lines):
        lone.earlier = tuple(earlier)
        earlier.append(lone)
        out.alone.setdefault((path, lone.line), []).extend(judge(lone, rules, out.troubles))
    out.files = tuple(sorted(run.vm.files))
    return out


def _imported(node: ast.Import | ast.ImportFrom, library: Library) -> set[str]:
    """The names that an import gives to what a finding may begin with."""
    home = (getattr(node, "module", None) or "").rpartition(".")[2]
    return {x.asname or x.name for x in node.names if does_something(f"{home}.{x.name}(", library)}


def _of_interest(text: Text, reaching: frozenset[int], library: Library) -> set[int]:
    """The lines of the functions that do what rules ask about, by whatever names."""
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    names: set[str] = set()
    found: set[int] = set()
    asked: Collection[int] = ()
    may_list = SAMPLES.search(text.source.text) is not None
    for node in text.nodes:
        if isinstance(node, ast.ClassDef) and may_list:
            found |= _giving_samples(text, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= _imported(node, library)
        elif isinstance(node, ast.Assign) and does_something(
            _written(text, node.value) + "(", library
        ):
            names |= {_last_name(each) for each in node.targets}
    words = {each.lineno: set(_WORD.findall(_written(text, each))) for each in functions}
    while True:
        new = [
            each
            for each in functions
            if each.lineno not in found
            and (
                each.lineno in reaching
                or not names.isdisjoint(words[each.lineno])
                or (each.lineno not in asked and does_something(_written(text, each), library))
            )
        ]
        asked = words.keys()
        if not new:
            return found
        found |= {each.lineno for each in new}
        names |= {each.name for each in new if not each.name.startswith("__")}


def _giving_samples(text: Text, node: ast.ClassDef) -> set[int]:
    """The lines of the methods of a class that give samples; of its making, where it has none.

    Where its base has them, that of the method that lists them.
    """
    functions = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    methods = {each.name: each.lineno for each in functions}
    found = {methods[name] for name in ("__getitem__", "__iter__") if name in methods}
    found = found or {methods[name] for name in ("__init__",) if name in methods}
    if found or not node.bases:
        return found
    return {each.lineno for each in functions if SAMPLES.search(_written(text, each))}


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _written(text: Text, node: ast.stmt | ast.expr) -> str:
    return "\n".join(text.lines[node.lineno - 1 : node.end_lineno])


def _visited(run: Run) -> frozenset[Function]:
    return frozenset((info.module.path, info.node.lineno) for info in run.vm.visited.values())
