"""What a program does with the output of a module: who computes something from it, if anybody."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import EITHER
from ddpdoctor.lint.engine.interpreter.objects.hierarchy import library_base
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import (
    Either,
    Func,
    Many,
    Partial,
    Ref,
    Tensor,
    Term,
    Tuple,
    Value,
)
from ddpdoctor.lint.engine.queries.wrapping import attributes

_SILENT = ("print", "bare_forward", "forward", "iterate", "make", "put")
"""What is told of a tensor in these is a use of it only where something is computed as well."""
_CONTAINERS = ("list", "dict", "set")
Uses = dict[int, list[ast.AST]]


def uses(run: Run) -> Uses:
    """Site of a tensor -> where something is computed from it, or done with it."""
    found: Uses | None = run.answers.get("uses")
    if found is None:
        found = run.answers["uses"] = {}
        for what, made in run.vm.made.items():
            own = {what.site} if isinstance(what, Tensor) else set()
            for site in {each for value in made.of for each in sites(run, value)} - own:
                found.setdefault(site, []).append(made.node)
        for event, _ in events(run.root):
            if event.kind not in _SILENT and not is_kept(run, event):
                for site in {each for value in event.values.values() for each in sites(run, value)}:
                    found.setdefault(site, []).append(event.node)
    return found


def is_kept(run: Run, event: Event) -> bool:
    """Whether it is only given a name in an object of the user's: who reads it there computes."""
    return event.kind == "set_attribute" and _is_plain(run, event.values["owner"].what)


def _is_plain(run: Run, what: object) -> bool:
    made = run.vm.objects.get(what.number) if isinstance(what, Ref) else None
    return made is not None and made.cls >= 0 and not library_base(run.vm, made.cls)


def sites(run: Run, value: Value) -> Iterator[int]:
    """The tensors that a value is, holds, or is made of."""
    stack: list[object] = [value.what]
    seen: set[object] = set()
    while stack:
        each = stack.pop()
        if isinstance(each, Tensor):
            yield each.site
            made = run.vm.made.get(each)
            if made is not None and made.by == EITHER and each not in seen:
                seen.add(each)
                stack += [option.what for option in made.of]
        elif isinstance(each, Term):
            stack += each.args
            stack += [one.what for one in run.vm.tensors_on_some_ways.get(each, ())]
        elif isinstance(each, Tuple):
            stack += [item.what for item in each.items]
        elif isinstance(each, Many):
            stack.append(each.element.what)
        elif isinstance(each, Partial):
            stack += [each.callee.what, *(bound.what for bound in each.bound)]
            stack += [value.what for _, value in each.named]
        elif isinstance(each, Func):
            stack += [value.what for value in (*each.bound, *(value for _, value in each.named))]
            scopes = [scope for scope in each.scopes if scope not in seen]
            seen.update(scopes)
            stack += [value.what for scope in scopes for value in _names(run).get(scope, ())]
        elif isinstance(each, Either):
            stack += [option.what for option in each.options]
        elif isinstance(each, Ref) and each.number not in seen:
            seen.add(each.number)
            if run.vm.objects[each.number].type in _CONTAINERS or _is_plain(run, each):
                stack += [value.what for value in attributes(run).get(each, {}).values()]


def _names(run: Run) -> dict[int, list[Value]]:
    """Scope -> what its names were last: a function that sees them may compute from them."""
    found: dict[int, list[Value]] | None = run.answers.get("names")
    if found is None:
        found = run.answers["names"] = {}
        for kept in (run.vm.store.below, run.vm.store.now):
            for (owner, _), value in kept.items():
                if isinstance(owner, int):
                    found.setdefault(owner, []).append(value)
    return found


def outputs(event: Event) -> list[int] | None:
    """The tensors that a forward has given; None where some of it is no tensor that is known."""
    result = event.values.get("result")
    what = result.what if result is not None else None
    parts = [each.what for each in what.items] if isinstance(what, Tuple) else [what]
    found = [each.site for each in parts if isinstance(each, Tensor)]
    return found if found and len(found) == len(parts) else None
