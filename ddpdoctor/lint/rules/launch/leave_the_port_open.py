"""A port that is written down.

## What it does
Finds programs whose ranks meet at one port that stands in the source, and that nobody can choose
from outside. It is told as information; a number that no port has is told as a fault.

## Why is this bad?
One process can listen on a port. The second job on a machine, and a first one that has not quite
ended, get EADDRINUSE, or ranks of two jobs meet each other. Under torchrun what it has chosen is
written over.

## Example
```python
os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "12355"
dist.init_process_group("nccl", rank=rank, world_size=world_size)
```

## Use instead
```python
os.environ.setdefault("MASTER_ADDR", "localhost")
os.environ.setdefault("MASTER_PORT", "12355")
dist.init_process_group("nccl", rank=rank, world_size=world_size)
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects.members import default
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import Value
from ddpdoctor.lint.engine.queries.doing import is_a_default
from ddpdoctor.lint.engine.queries.launching import overridden
from ddpdoctor.lint.engine.queries.paths import spelled
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP104", name="port-in-use", confidence="likely")

_HIGHEST = 65535
_AT_THE_END = re.compile(r"(?:tcp:/+.*)?:(\d+)", re.DOTALL)


def check(run: Run) -> Iterator[Hit]:
    """Yield ports that are constants of the program."""
    inits = [event for event, _ in events(run.root, "init") if "store" not in event.values]
    if not run.is_entry or not inits:
        return
    lost = [event for event, _ in overridden(run)]  # a graver word is said of these
    for event, way in events(run.root, "setenv"):
        if event.values["name"].is_const("MASTER_PORT") and not is_a_default(event, way):
            port = event.values["value"].constant
            if (
                str(port).isdigit()
                and int(str(port))
                and event not in lost
                and not all(_is_met_elsewhere(run, each, int(str(port))) for each in inits)
            ):
                yield _told(event.node, event.path, int(str(port)), inits[0])
    for event in inits:
        url = event.values.get("method")
        ports = [_port_of(each) for each in run.vm.store.options(url)] if url is not None else []
        if ports and all(ports):
            yield _told(*_where(run, event, ports[0]), ports[0], event)


def _is_met_elsewhere(run: Run, init: Event, port: int) -> bool:
    """Whether ranks meet at a URL with a port of its own: then none is asked of the environment."""
    url = init.values.get("method")
    options = run.vm.store.options(url) if url is not None else ()
    return bool(options) and all(
        _port_of(default(run.vm, each) or each) not in (0, port) for each in options
    )


def _port_of(url: Value) -> int:
    """The port at which ranks meet; 0 where it is none, or is put in from elsewhere."""
    last = spelled(url.what)[-1:]
    if not last or not isinstance(last[0], str):
        return 0
    found = _AT_THE_END.fullmatch(last[0])
    return int(found[1]) if found else 0


def _where(run: Run, init: Event, port: int) -> tuple[ast.AST, str]:
    """Where a port stands, and in which file: where the group is joined, if that is not seen."""
    for path in dict.fromkeys((init.path, *run.paths)):
        text = run.source(path)
        for node in text.nodes if text is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found = _AT_THE_END.fullmatch(node.value)
                if found and int(found[1]) == port:
                    return node, path
    return init.node, init.path


def _told(node: ast.AST, path: str, port: int, init: Event) -> Hit:
    is_none = port > _HIGHEST
    return Hit(
        node,
        f"{port} is above the highest port, {_HIGHEST}: no group can be joined there"
        if is_none
        else f"the port {port} is written down: a second job on this machine meets it there",
        notes=(Related.at(init.place, "the group is joined"),),
        help="leave it to the launcher, or set it where it is not set: os.environ.setdefault()",
        harmless=not is_none,
        path=path,
    )
