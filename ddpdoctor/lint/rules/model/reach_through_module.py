"""Attribute asked of the wrapper.

## What it does
Finds methods and attributes of the model asked of the DDP wrapper.

## Why is this bad?
The wrapper has only its own: AttributeError "'DistributedDataParallel' object has no attribute".
It raises in the distributed run alone.

## Example
```python
ddp_model.generate(x)
```

## Use instead
```python
ddp_model.module.generate(x)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import Const, Term, What, within
from ddpdoctor.lint.engine.queries.doing import in_try
from ddpdoctor.lint.engine.queries.holding import conditions, excludes, facts
from ddpdoctor.lint.rule import About, Fix, Hit, Related

ABOUT = About(code="DDP318", name="wrapper-attribute", confidence="certain")

_FORWARDS = ("setup", "setup_module")
"""Wraps whose wrapper hands on what it has not itself."""
_BY_CONFIGURATION = ("prepare", "prepare_model")
"""Wraps of which a file may say that they are another library's, which hands that on too."""


def check(run: Run) -> Iterator[Hit]:
    """Yield reads of what the wrapper does not have."""
    wraps = {
        event.values["wrapper"].what: (event, way)
        for each in (*run.earlier, run)
        for event, way in events(each.root, "wrap")
    }
    latest: dict[What, tuple[Event, Way]] = {}
    has_engine = any(True for _ in events(run.root, "engine"))
    if run.is_entry and _joins_otherwise(run):
        return
    for event, way in events(run.root, "wrap", "not_there"):
        wrapper = event.values["wrapper"].what
        if event.kind == "wrap":
            latest[wrapper] = event, way
            continue
        wrap, wrapped = {**wraps, **latest}.get(wrapper, (None, ()))
        if wrap is None or wrap.name in _FORWARDS or in_try(way) or excludes(wrapped, way):
            continue
        if any(_asks_what_it_is(what, wrap) for what, _ in conditions(way)):
            continue
        if has_engine and _choices(way) - _choices(wrapped):
            continue  # asked of the engine, by what decides that it is there
        if not isinstance(event.node, ast.Attribute):
            continue
        name = ast.unparse(event.node.value)
        is_open = any(_asks_for_none(what) and holds for what, holds in facts(way))
        yield Hit(
            event.node,
            f"the DDP wrapper `{name}` has no attribute `{event.name}`: AttributeError",
            notes=(Related.at(wrap.place, "it is wrapped"),),
            help=f"`{name}.module.{event.name}`",
            confidence="likely" if is_open or wrap.name in _BY_CONFIGURATION else ABOUT.confidence,
            fix=_fix(run, event, wrap),
            path=event.path,
        )


def _joins_otherwise(run: Run) -> bool:
    """Whether the program joins a group where it is set up in another way than it was read in.

    As by a default that a file overwrites: what was read of it then goes together with no wrapper.
    """
    if any(True for _ in events(run.root, "init", "spawn", "prepare")):
        return False
    texts = (text for path in run.vm.files if (text := run.source(path)) is not None)
    return any("init_process_group" in each.source.text for each in texts)


def _choices(way: Way) -> set[int]:
    """The choices on a way."""
    return {id(step.node) for step in way if isinstance(step.node, Choice)}


def _asks_what_it_is(what: What, wrap: Event) -> bool:
    """Whether a condition asks of which kind the wrapper is, in whatever words."""
    asked = wrap.values["wrapper"].what
    return any(
        isinstance(each, Term) and each.op in _OF_KINDS and asked in each.args
        for each in within(what)
    )


def _asks_for_none(what: What) -> bool:
    """Whether a condition asks if a thing is None of which nobody knows whether it ever is."""
    if not isinstance(what, Term) or what.op not in ("Is", "Eq") or what.args[1] != Const(None):
        return False
    return isinstance(what.args[0], Term) and what.args[0].op in ("joined", "element", "item")


_OF_KINDS = ("type", "isinstance", "issubclass", "hasattr", "callable")


def _fix(run: Run, event: Event, wrap: Event) -> Fix | None:
    """`.module` in between, where the model is wrapped in any case."""
    source = run.source(event.path)
    assert isinstance(event.node, ast.Attribute)
    if source is None or _is_conditional(run, wrap):
        return None
    return Fix((replace(source, event.node.value, f"{ast.unparse(event.node.value)}.module"),))


def _is_conditional(run: Run, wrap: Event) -> bool:
    source = run.source(wrap.path)
    return source is None or any(
        isinstance(each, ast.If | ast.IfExp) and any(inner is wrap.node for inner in ast.walk(each))
        for each in source.nodes
    )
