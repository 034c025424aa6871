"""How a module is laid out when it is wrapped: the order of its buffers, the memory it shares.

DDP sends parameters and buffers in the order in which they were registered, not by name.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.places import Frame, is_users

_MOST = 512


@harmless
def facts(module: Any) -> dict[str, Any]:
    """The fields of the event `layout`."""
    buffers: list[str] = []
    holders: list[Frame | None] = []
    writers: list[Frame | None] = []
    writing: dict[tuple[type, str], Frame | None] = {}
    for path, child in module.named_modules():
        own = [f"{path}.{name}".lstrip(".") for name in child._buffers]
        if own and len(buffers) < _MOST:
            buffers += own
            holders += [_maker(type(child))] * len(own)
            for name in child._buffers:
                if (key := (type(child), name)) not in writing:
                    writing[key] = _writer(*key)
                writers.append(writing[key])
    return {
        "buffers": buffers[:_MOST],
        "makers": holders[:_MOST],
        "writers": writers[:_MOST],
        "shared": _shared(module) or "",
    }


def _maker(cls: type) -> Frame | None:
    """The user's constructor that registers what a module of this class holds."""
    code = getattr(vars(cls).get("__init__"), "__code__", None)
    if code is None or not is_users(code):
        return None
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _writer(cls: type, buffer: str) -> Frame | None:
    """The user's line, of a method of this class, that puts something into a buffer."""
    into = re.compile(rf"\bself\.{re.escape(buffer)}\s*(\[.*\]\s*)?([-+*/@]?=[^=]|\.\w+_\()")
    for method in vars(cls).values():
        code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
        if code is None or method.__name__ == "__init__" or not is_users(code):
            continue
        lines, first = inspect.getsourcelines(code)
        for number, line in enumerate(lines, first):
            if into.search(line):
                return code.co_filename, number, code.co_qualname
    return None


def _shared(module: Any) -> str:
    """Which piece of memory, that other processes see too, holds the parameters; "" if none does.

    Told by the file that the kernel has mapped there.
    """
    trained = [p for p in module.parameters() if p.requires_grad and p.numel()]
    if not trained or not all(p.device.type == "cpu" and p.is_shared() for p in trained):
        return ""
    address = trained[0].data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, offset, device, inode, *_ = line.split()
        begin, _, end = span.partition("-")
        if int(begin, 16) <= address < int(end, 16):
            shared = access.endswith("s") and inode != "0"
            return f"{device}:{inode}:{int(offset, 16) + address - int(begin, 16)}" * shared
    return ""
