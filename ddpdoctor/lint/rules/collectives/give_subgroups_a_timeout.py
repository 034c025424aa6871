"""Subgroup without the timeout of its parent.

## What it does
Finds `new_group` without `timeout=` where `init_process_group` was given one, and timeouts that
are plain numbers. A group that is asked for ranks and sizes alone waits for nothing.

## Why is this bad?
A new group does not inherit the timeout: with a world timeout of 8 s a subgroup still waits 30
minutes (measured, gloo). A number instead of a `timedelta` raises TypeError.

## Example
```python
dist.init_process_group("gloo", timeout=timedelta(minutes=2))
pair = dist.new_group([0, 1])
```

## Use instead
```python
dist.init_process_group("gloo", timeout=timedelta(minutes=2))
pair = dist.new_group([0, 1], timeout=timedelta(minutes=2))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.library.facts import ASKED
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.queries.sharding import is_used, numbers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP415", name="subgroup-default-timeout", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield subgroups that fall back to the default timeout, and timeouts of the wrong type."""
    timed: Event | None = None
    for event, _ in events(run.root, "init", "group"):
        timeout = event.values.get("timeout")
        if timeout is not None and isinstance(timeout.constant, int | float):
            yield Hit(
                event.node,
                "timeout is a number: it must be a timedelta, a number raises TypeError",
                help=f"timeout=timedelta(seconds={timeout.constant})",
                confidence="certain",
                path=event.path,
            )
        elif event.kind == "init":
            timed = event if timeout is not None and not timeout.is_const(None) else None
        elif timed is None or timeout is not None or not _is_written_out(event):
            continue
        elif not _is_asked_alone(run, event):
            yield Hit(
                event.node,
                "this group does not inherit the timeout given to init_process_group",
                notes=(Related.at(timed.place, "init_process_group() is given one"),),
                help="pass the same `timeout=` to new_group",
                stands=_is_used(run, event),
                path=event.path,
            )


def clears(run: Run) -> Iterator[tuple[ast.AST, str]]:
    """The groups in which nobody waits, whoever else might be given them."""
    for event, _ in events(run.root, "group"):
        if run.is_entry and not run.spent and _is_asked_alone(run, event):
            yield event.node, event.path


def _is_written_out(event: Event) -> bool:
    """Whether all arguments of a `new_group` are there to see."""
    call = event.node
    if event.name != "new_group" or not isinstance(call, ast.Call):
        return False
    return all(keyword.arg for keyword in call.keywords) and len(call.args) < 2


def _is_asked_alone(run: Run, group: Event) -> bool:
    """Whether a group is asked for ranks and sizes, and nobody waits in it."""
    asked = run.vm.store.get((group.values["made"].what, ASKED)) is not None
    return asked and not _is_used(run, group)


def _is_used(run: Run, group: Event) -> bool:
    """Whether a group is given to anything that is done, beside being kept."""
    return is_used(run, numbers(group.values["made"]), "group", "set_attribute")
