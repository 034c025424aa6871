"""The rules, one file each, found by looking: a new file here is a new rule.

A rule's file has CODE, NAME, CONFIDENCE and `check(module)`; WORDS, ALSO and FACTS spare it the
files that do not concern it (see Rule). Its docstring is its documentation, under the headings of
`HEADINGS`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ddpdoctor.lint.rule import Rule

HEADINGS = ("What it does", "Why is this bad?", "Example", "Use instead")


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the codes."""
    found = []
    for package in pkgutil.iter_modules(__path__, f"{__name__}."):
        family = importlib.import_module(package.name)
        for each in pkgutil.iter_modules(family.__path__, f"{package.name}."):
            module = importlib.import_module(each.name)
            found.append(
                Rule(
                    code=module.CODE,
                    name=module.NAME,
                    confidence=module.CONFIDENCE,
                    check=module.check,
                    words=getattr(module, "WORDS", ()),
                    also=getattr(module, "ALSO", ()),
                    facts=getattr(module, "FACTS", ()),
                    documentation=(module.__doc__ or "").strip(),
                )
            )
    return tuple(sorted(found, key=lambda rule: (rule.code, rule.check.__module__)))
