"""The rules, one file each, found by looking: a new file here is a new rule.

A rule about what a program does has ABOUT and `check(run)`. One about how a file is written has
CODE, NAME, CONFIDENCE and `check(module)`; WORDS and ALSO spare it the files that do not
concern it (see Rule). The docstring is the documentation, under the headings of `HEADINGS`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from functools import cache

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.rule import About, Hit, Rule

HEADINGS = ("What it does", "Why is this bad?", "Example", "Use instead")


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the codes."""
    found = []
    for package in pkgutil.iter_modules(__path__, f"{__name__}."):
        family = importlib.import_module(package.name)
        for each in pkgutil.iter_modules(family.__path__, f"{package.name}."):
            module = importlib.import_module(each.name)
            if about := getattr(module, "ABOUT", None):
                found.append(_of_run(about, module.check, module.__doc__ or ""))
                continue
            found.append(
                Rule(
                    code=module.CODE,
                    name=module.NAME,
                    confidence=module.CONFIDENCE,
                    check=module.check,
                    words=getattr(module, "WORDS", ()),
                    also=getattr(module, "ALSO", ()),
                    documentation=(module.__doc__ or "").strip(),
                )
            )
    return tuple(sorted(found, key=lambda rule: (rule.code, rule.check.__module__)))


def _of_run(about: About, check: Callable[[Run], Iterable[Hit]], documentation: str) -> Rule:
    return Rule(
        code=about.code,
        name=about.name,
        confidence=about.confidence,
        check=check,
        words=(),
        documentation=documentation.strip(),
        of_run=True,
    )
