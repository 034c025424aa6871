"""A buffer as large as this rank's own batch.

## What it does
Finds buffers of a wrapped model that its forward makes anew in the size of what it is given, where
batches are padded to the longest of their own samples. One that begins with room for 512 and more,
and only grows, is told as information: most data are shorter.

## Why is this bad?
DDP sends the buffers of rank 0 to all ranks before each forward. Where they have another size, gloo
raises on some ranks, and NCCL hangs or writes past the end.

## Example
```python
if length > self.table.shape[0]:
    self.table = self.angles(length)  # of register_buffer
```

## Use instead
```python
class Rotary(nn.Module):
    def __init__(self, dim, start):
        super().__init__()
        self.table = self.angles(start)  # a plain attribute, which DDP does not send
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import Const, Term, Value, What, within
from ddpdoctor.lint.engine.libraries.torch import ORDERINGS
from ddpdoctor.lint.engine.queries.doing import is_the_starters
from ddpdoctor.lint.engine.queries.wrapping import computed_from, origins, parts, wrappers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP403", name="collective-shape-mismatch", confidence="likely")

_ROOM = 512
_MADE = """
    arange empty eye full linspace new_empty new_full new_ones new_zeros ones rand randn zeros
"""
_MAKERS = frozenset(_MADE.split())
"""What makes a tensor as large as it is told."""


def check(run: Run) -> Iterator[Hit]:
    """Yield the buffers that a wrapper's forward makes in the size of its own batch."""
    registered = _registered(run)
    told: set[int] = set()
    for forward, way in events(run.root, "forward") if registered else ():
        wrap = wrappers(run).get(forward.values["model"].what)
        inner = way[-1].rest[0] if way[-1].rest else None
        shares = forward.values.get("shares_buffers")
        if wrap is None or not isinstance(inner, Called) or is_the_starters(way):
            continue
        if (shares is not None and shares.is_const(False)) or not _is_padded(run, forward, way):
            continue
        inside = parts(run, wrap.values["module"].what)
        for event, to in events(inner.body, "set_attribute", "register"):
            buffer = _named(event)
            of = getattr(buffer[0], "number", None) if buffer is not None else None
            if buffer not in registered or of not in inside or id(event.node) in told:
                continue
            size = _own_size(run, event.values["value" if "value" in event.values else "buffer"])
            if buffer is None or size is None:
                continue
            told.add(id(event.node))
            first = registered[buffer]
            yield Hit(
                event.node,
                "each rank makes this buffer as large as its own batch: DDP sends rank 0's to all",
                notes=(
                    Related.at(first.place, "it is registered"),
                    Related.at(forward.place, "the next forward sends it to all ranks"),
                ),
                why=size.why,
                help="keep it as a plain attribute, make it large enough at once, or "
                "DDP(..., broadcast_buffers=False)",
                harmless=_only_grows(to) and _has_room(run, first),
                path=event.path,
            )


def _registered(run: Run) -> dict[tuple[What, str], Event]:
    """(module, name) -> where its buffer was first registered."""
    found: dict[tuple[What, str], Event] = {}
    for event, _ in events(run.root, "register"):
        buffer = _named(event)
        if buffer is not None and "buffer" in event.values:
            found.setdefault(buffer, event)
    return found


def _named(event: Event) -> tuple[What, str] | None:
    """The module and the name that something is given in it."""
    if event.kind == "set_attribute":
        return event.values["owner"].what, event.name
    name = event.values["name"].constant if "name" in event.values else None
    return (event.values["object"].what, name) if isinstance(name, str) else None


def _is_padded(run: Run, forward: Event, way: Way) -> bool:
    """Whether what a wrapper is given is as long as the longest of this rank's own samples."""
    given = [value for name, value in forward.values.items() if name.startswith(("arg", "kw_"))]
    begun = [step.begun for step in way if isinstance(step.node, Loop)]
    loaders = {each.values["over"].what for each in begun if each is not None}
    for event, read in run.vm.workers.items():
        if event.values["object"].what in loaders:
            given += [each.values["element"] for each, _ in events(read, "batch")]
    return any(_pads(part) for value in given for part in _made_of(run, value))


def _pads(what: What) -> bool:
    """Whether it is padded to the longest, or the length of the longest."""
    for each in within(what):
        if isinstance(each, Term) and each.op == "lib" and each.args:
            name = str(each.args[0]).rpartition(".")[2]
            if name == "pad_sequence" or (name == "max" and "len(" in repr(each)):
                return True
    return False


def _made_of(run: Run, value: Value) -> Iterator[What]:
    """What a value was computed from, with what it was told."""
    for each in origins(run, value):
        yield each.what
        made = run.vm.made.get(each.what)
        yield from (one.what for one in (made.of if made is not None else ()))


def _own_size(run: Run, value: Value) -> Value | None:
    """The size that a tensor, or one that it was computed from, was made with, if it is a batch's.

    As many samples as there are in a batch all ranks have.
    """
    for _, made in computed_from(run, value):
        for size in made.of if made.by in _MAKERS else ():
            if size.agree.kind == "local" and any(map(_is_a_length, within(size.what))):
                return size
    return None


def _is_a_length(what: object) -> bool:
    """`x.shape[k]`, or `x.size(k)`, of which is not the first."""
    if not isinstance(what, Term):
        return False
    if what.op == "of":  # the size of the first is known as such
        return what.args[1:] == ("size",)
    shape, index = what.args if what.op == "item" else (None, None)
    is_shape = isinstance(shape, Term) and shape.op == "of" and shape.args[1] in ("shape", "size")
    return is_shape and isinstance(index, Const) and index.value != 0


def _only_grows(way: Way) -> bool:
    """Whether it stands where a length is compared with another."""
    choices = [step.node for step in way if isinstance(step.node, Choice)]
    terms = (each for choice in choices for each in within(choice.condition.what))
    return any(isinstance(each, Term) and each.op in ORDERINGS for each in terms)


def _has_room(run: Run, first: Event) -> bool:
    """Whether a buffer is registered with room for more than most samples need."""
    sizes = [
        each.constant
        for _, made in computed_from(run, first.values["buffer"])
        if made.by in _MAKERS
        for each in made.of
    ]
    return any(isinstance(each, int) and each >= _ROOM for each in sizes)
