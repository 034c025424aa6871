"""What a collective is given, and whether somebody waits for it.

Of a few calls of each line: whether outputs share their memory, whether the input carries a graph,
and a digest of what a reduction is to add up. Of those that a script starts without waiting,
whether the handle is let go before anybody has asked for the result.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from ddpdoctor.watch import held
from ddpdoctor.watch.averages import Averages
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.labels import variables
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_users, outwards

_SMALL = 4096
"""Elements up to which the input of a reduction is digested."""
_FEW = 8
"""Numbers of which it is written down itself."""
GRADIENT = 3
"""By so many numbers a gradient is known."""
_FILLED = frozenset({"all_gather", "gather", "all_to_all"})
_REDUCED = frozenset({"all_reduce", "reduce"})
_THEIRS = ("/distributed_c10d.py", "/c10d_logger.py", "/contextlib.py")
_ASKING = ("get_future", "is_completed", "synchronize", "result", "block_current_stream")
_followed: dict[int, weakref.ref[Any]] = {}
_reduced: dict[int, weakref.ref[Any]] = {}
_MOST = 64
"""Tensors that are remembered as reduced in place."""


@harmless
def facts(op: str, args: tuple[Any, ...], averages: Averages) -> dict[str, Any]:
    """The fields of `evidence.Collective` that take a look at the tensors."""
    found: dict[str, Any] = {}
    if op in _FILLED and args and _share_memory(args[0]):
        found["aliased"] = True
    inputs = args[1] if op in _FILLED and len(args) > 1 else args[0]
    first = _first(inputs)
    if first is not None and (_has_graph(first) or (op in _FILLED and _is_detached(first))):
        found["graph"] = True
    if op == "all_reduce" and first is not None and _was_reduced(first):
        found["again"] = True
    if op in _REDUCED and first is not None and _is_small(first) and not _goes_back():
        values = first.detach().reshape(-1).tolist()
        found["content"] = _digest(values)
        if len(values) <= _FEW:
            found["values"] = values
        else:
            found["some"] = _spread(values)
        if len(values) == 1 and (losses := held.losses(first, values[0])):
            found["losses"] = losses
        elif len(values) <= _FEW and (means := averages.of(values) or held.averages(values)):
            found["means"] = [mean for mean, _ in means]
            found["terms"] = [count for _, count in means]
        found["counted"] = bool(found["content"]) and any(v >= 1 and v.is_integer() for v in values)
    elif op in _REDUCED and first is not None and _is_small(first, whole=True):
        found["some"] = _spread(first.detach().reshape(-1).tolist())
    return found


def _was_reduced(tensor: Any) -> bool:
    """Whether it is one that was reduced in place before; it is from now on."""
    before = _reduced.get(id(tensor))
    if before is not None and before() is tensor:
        return True
    if len(_reduced) >= _MOST:
        for number in [number for number, kept in _reduced.items() if kept() is None]:
            del _reduced[number]
    if len(_reduced) < _MOST:
        _reduced[id(tensor)] = weakref.ref(tensor)
    return False


def _spread(values: list[Any]) -> list[Any]:
    """A few sums of them, always of the same places: of a table most numbers may be zero."""
    size = -(-len(values) // _FEW)
    return [sum(values[at : at + size]) for at in range(0, len(values), size)]


@harmless
def gradient(known: dict[tuple[float, ...], str], args: tuple[Any, ...]) -> str | None:
    """Whose gradient this is, or the first of several that it holds, if it is one of those."""
    tensor = _first(args[0])
    if tensor is None or not tensor.numel():
        return None
    head = tuple(tensor.detach().reshape(-1)[:GRADIENT].tolist())
    return known.get(head)


def _has_graph(tensor: Any) -> bool:
    return bool(tensor.requires_grad and tensor.grad_fn is not None)


def _is_detached(tensor: Any) -> bool:
    """Whether the line that gives it holds the same memory under a name of its own, with a graph.

    `detach()` leaves no trace on what it gives.
    """
    frame = next((each for each in outwards(sys._getframe(2)) if is_users(each.f_code)), None)
    if frame is None or tensor.requires_grad or not tensor.numel():
        return False
    start, kind = tensor.data_ptr(), type(tensor)
    own = (each for each in variables(frame).values() if isinstance(each, kind))
    return any(_has_graph(each) and each.data_ptr() == start for each in own)


def _goes_back() -> bool:
    """Whether this is called by a backward pass: gradients are alike where what follows is alike.

    The sum of them is right, as what they are of was used on every rank.
    """
    from torch import _C

    asked = getattr(_C, "_current_graph_task_id", None)  # private
    return asked is not None and asked() >= 0


def _share_memory(outputs: Any) -> bool:
    """Whether two of several tensors begin at one address."""
    while isinstance(outputs, (list, tuple)) and outputs and isinstance(outputs[0], (list, tuple)):
        outputs = outputs[0]
    if not isinstance(outputs, (list, tuple)) or len(outputs) < 2:
        return False
    starts = [tensor.data_ptr() for tensor in outputs if tensor.numel()]
    return len(set(starts)) < len(starts)


def _first(inputs: Any) -> Any:
    while isinstance(inputs, (list, tuple)) and inputs:
        inputs = inputs[0]
    return inputs if hasattr(inputs, "requires_grad") else None


def _is_small(tensor: Any, *, whole: bool = False) -> bool:
    """Whether these are few numbers; `whole`: counts, as integers."""
    kinds = not tensor.is_complex() and tensor.dtype.itemsize > 1
    is_meant = kinds and not tensor.is_floating_point() if whole else tensor.is_floating_point()
    return bool(is_meant and tensor.device.type == "cpu" and 0 < tensor.numel() <= _SMALL)


def _digest(values: list[float]) -> str:
    """Exact for what is small; "" where every element is a whole number, as counts are."""
    if all(value == int(value) for value in values if abs(value) < 1e15):
        return ""
    return f"{hash(tuple(values)) & 0xFFFF_FFFF_FFFF_FFFF:x}"


@harmless
def is_direct() -> bool:
    """Whether the user's own line has called torch.distributed, and no library in between."""
    frame = sys._getframe(2)
    while frame is not None and "/ddpdoctor/watch/" in frame.f_code.co_filename:
        frame = frame.f_back  # type: ignore[assignment]
    while frame is not None and frame.f_code.co_filename.endswith(_THEIRS):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and is_users(frame.f_code)


def follow(log: Log, work: Any, fields: dict[str, Any]) -> None:
    """Write it down if this handle is let go and nobody has waited for it."""
    key = id(work)
    call = {name: fields.get(name) for name in ("group", "seq", "op", "place")}

    def gone(reference: Any) -> None:
        if _followed.get(key) is reference:
            del _followed[key]
            if not log.exiting and not sys.is_finalizing():
                log.write("dropped", **call)

    _followed[key] = weakref.ref(work, harmless(gone))


def awaited(work: Any) -> None:
    """Somebody has waited for it, or asked how it is."""
    _followed.pop(id(work), None)


@harmless
def listen(work_type: Any) -> None:
    """Wrap the other ways to ask for a result."""

    def around(name: str) -> None:
        original = getattr(work_type, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def ask(work: Any, *args: Any, **kwargs: Any) -> Any:
            awaited(work)
            return original(work, *args, **kwargs)

        setattr(work_type, name, ask)

    for name in _ASKING:
        around(name)
