"""How a rank of a test dies while a checkpoint is written."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ddpdoctor.stack import checkpoint


@contextmanager
def killed_at(save: int | None) -> Iterator[None]:
    """Kill this rank by SIGKILL when it saves for the so-manieth time, if it is the one to die.

    DIES names the rank; rank 0 dies while it writes, another one while rank 0 does.
    """
    if save is None or os.environ["RANK"] != os.environ.get("DIES", "0"):
        yield
        return
    original, seen = checkpoint.save, 0

    def counted(state: dict[str, Any], path: Path, world: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == save:
            if world.is_main:
                torch.save(state, path.with_name(f".{path.name}.torn.tmp"))
            os.kill(os.getpid(), signal.SIGKILL)
        original(state, path, world)

    checkpoint.save = counted
    try:
        yield
    finally:
        checkpoint.save = original
