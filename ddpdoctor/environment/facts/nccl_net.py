"""Plugins by which NCCL could know more networks than its own, where the linker looks for them."""

from __future__ import annotations

import re
from pathlib import Path

from ddpdoctor.environment.facts.machine import Machine

_NAMES = "libnccl-net*.so*"
_CACHED = re.compile(rb"libnccl-net[\w.-]*\.so[\w.]*")
_LIBRARIES = "nvidia/nccl/lib"
"""Where the wheels put NCCL, below the folder of torch's."""


def net_plugins(machine: Machine, torch: str | None = None) -> tuple[str, ...]:
    """Files of them; `torch` is the folder in which it lies."""
    folders = [Path(one) for one in machine.environ.get("LD_LIBRARY_PATH", "").split(":") if one]
    folders += [Path(torch).parent / _LIBRARIES] if torch else []
    found = [str(file) for folder in folders for file in sorted(folder.glob(_NAMES))]
    try:
        cache = (machine.root / "etc/ld.so.cache").read_bytes()
    except OSError:
        cache = b""
    found += [name.decode() for name in _CACHED.findall(cache)]
    return tuple(machine.redactor.text(one) for one in dict.fromkeys(found))
