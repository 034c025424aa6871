"""Records results that nobody can have read: of a collective whose tensor is gone as it returns.

Followed is, of a few calls of each line, the tensor that all_reduce or broadcast works on in place.
What dies before the code that called it has done anything more, and shares its memory with nothing,
was a copy for this call alone.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sys
import weakref
from types import CodeType, FrameType
from typing import Any

from ddpdoctor.watch.digests import is_capturing
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_users, outwards

_IN_PLACE = frozenset({"all_reduce", "broadcast"})
_MOST, _MOST_ON_GPU = 4096, 64
"""Elements up to which an input is digested; to read them on a GPU waits for it."""
_IDLE = frozenset({"POP_TOP", "LOAD_CONST", "NOP", "CACHE", "PRECALL", "RETURN_VALUE"}) | {
    "RETURN_CONST",
    "END_SEND",
}
_THEIRS = "/distributed_c10d.py"
_ENDS = ("RETURN_VALUE", "RETURN_CONST")
LET_GO = 0.001
"""Seconds in which gloo's thread lets go of what it has worked on, once that is done.

What it holds on to for longer dies there, when the code that called has already gone on.
"""
_followed: dict[int, weakref.ref[Any]] = {}


@harmless
def follow(log: Log, op: str, args: tuple[Any, ...], fields: dict[str, Any]) -> bool:
    """Digest what such a call is given, and write it down if its result is let go unread.

    Returns whether the result is followed.
    """
    tensor = args[0][0] if args and isinstance(args[0], list) and args[0] else None
    # A handle holds the tensor as long as it likes; where torch does not say, there may be one.
    if op not in _IN_PLACE or tensor is None or getattr(args[-1], "asyncOp", True):
        return False
    if not log.steps or not _is_plain(tensor):  # what comes before the training warms up
        return False
    numbers = tuple(tensor.detach().reshape(-1).tolist())
    if any(number != number for number in numbers):  # no NaN is another, and all hash otherwise
        return False
    fields["input"] = f"{hash(numbers) & 0xFFFF_FFFF:x}"
    inner = list(itertools.takewhile(_is_not_users, outwards(sys._getframe(1))))
    frame = inner[-1].f_back if inner else None
    # torch's own, as that of broadcast_object_list, makes tensors for itself, and reads them.
    theirs = [f.f_code.co_name for f in inner if f.f_code.co_filename.endswith(_THEIRS)]
    if frame is None or theirs != [op] or not _is_whole(tensor):
        return False
    call = {name: fields.get(name) for name in ("group", "seq", "op", "place")}
    key, call_site, around = id(tensor), _where(frame), _where(frame.f_back)

    def gone(reference: Any) -> None:
        if _followed.get(key) is not reference:
            return
        del _followed[key]
        if log.exiting or sys.is_finalizing():
            return
        if _has_read_nothing(sys._getframe(), call_site, around):
            log.write("lost", **call)

    _followed[key] = weakref.ref(tensor, harmless(gone))
    return True


def _is_not_users(frame: FrameType) -> bool:
    return not is_users(frame.f_code)


def _is_plain(tensor: Any) -> bool:
    import torch

    if type(tensor) is not torch.Tensor or tensor.requires_grad:
        return False
    most = {"cpu": _MOST, "cuda": _MOST_ON_GPU}.get(tensor.device.type, 0)
    return 0 < tensor.numel() <= most and not is_capturing([tensor])


def _is_whole(tensor: Any) -> bool:
    """Whether its memory is its own: nothing else shows what is written there."""
    import torch

    count = torch._C._storage_Use_Count  # private
    fresh = torch.empty(1)
    owners, own = (count(each.untyped_storage()._cdata) for each in (tensor, fresh))
    is_alone: bool = owners == own and not tensor._is_view()
    return is_alone and tensor.untyped_storage().resizable()


_Where = tuple[int, CodeType, int]


def _where(frame: FrameType | None) -> _Where | None:
    """A frame, by its number, which another may have later; its code; and how far it has come."""
    return None if frame is None else (id(frame), frame.f_code, frame.f_lasti)


def _has_read_nothing(now: FrameType, call: _Where | None, around: _Where | None) -> bool:
    """Whether the code that made a call has done nothing since but to return.

    If it has returned, who called it is still at that: else that has the tensor, and may read it.
    """
    if call is None:
        return False
    number, code, at = call
    caller = next((f for f in outwards(now) if id(f) == number and f.f_code is code), None)
    after = _after(code, at)
    if caller is not None:
        here = caller.f_lasti
        return here >= at and all(name in _IDLE for offset, name in after if offset <= here)
    innermost = next((f for f in outwards(now) if is_users(f.f_code)), None)
    if around is None or _where(innermost) != around:
        return False
    until = next((n for n, (_, name) in enumerate(after) if name in _ENDS), len(after))
    return all(name in _IDLE for _, name in after[: until + 1])


@functools.lru_cache(maxsize=256)
def _after(code: CodeType, at: int) -> list[tuple[int, str]]:
    """The instructions that follow this offset, as they stand."""
    return [(each.offset, each.opname) for each in dis.get_instructions(code) if each.offset > at]
