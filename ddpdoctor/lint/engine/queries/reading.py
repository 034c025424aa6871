"""What is written in the files of a program, where a run does not show who reads a thing."""

from __future__ import annotations

import ast
import re

from ddpdoctor.lint.engine.interpreter.program import Run

_READS_ALL = re.compile(
    r"getattr\(self|_modules|self\.(named_)?children|self\.modules|__dict__|vars\(self"
)


def reads(run: Run, name: str) -> bool:
    """Whether any file of the program reads an attribute of this name, or has it as a string."""
    names: set[str] | None = run.answers.get("reads")
    if names is None:
        names = run.answers["reads"] = set()
        for path in sorted(run.vm.files):
            source = run.source(path)
            for node in source.nodes if source else ():
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    names.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.add(node.value)
    return name in names


def reads_all(run: Run, number: int) -> bool:
    """Whether a class goes through its attributes without naming them."""
    info = run.vm.classes[number]
    lines = info.module.text.lines[info.node.lineno - 1 : info.node.end_lineno]
    return any(_READS_ALL.search(line) for line in lines)
