"""The rules, one file each, found by looking: a new file here is a new rule.

A rule has ABOUT and `check(run)`, which asks what a program was seen to do. The docstring is the
documentation, under the headings of `HEADINGS`. It may have `clears(run)` too: the places that a
program shows to be right, of which the run of another file then says nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import asdict
from functools import cache

from ddpdoctor.lint.rule import About, Rule

HEADINGS = ("What it does", "Why is this bad?", "Example", "Use instead")


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the codes."""
    found = []
    for package in pkgutil.iter_modules(__path__, f"{__name__}."):
        family = importlib.import_module(package.name)
        for each in pkgutil.iter_modules(family.__path__, f"{package.name}."):
            module = importlib.import_module(each.name)
            about: About = module.ABOUT
            documentation = (module.__doc__ or "").strip()
            clears = getattr(module, "clears", None)
            found.append(
                Rule(
                    **asdict(about), check=module.check, documentation=documentation, clears=clears
                )
            )
    return tuple(sorted(found, key=lambda rule: (rule.code, rule.check.__module__)))
