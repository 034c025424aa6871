"""What can be refused is refused before a training, not after hours of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch.distributed as dist

from ddpdoctor.stack.errors import CheckpointError, DataError
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import World


def prepare_folder(folder: Path, world: World) -> None:
    """Make the output folder, and see whether it can be written to. A collective.

    Raises CheckpointError on all ranks where it cannot.
    """
    on_main(world, lambda: _prepare(folder))


def require_equal(digest: str, what: str, world: World) -> None:
    """Raise DataError on all ranks unless each of them has the same `digest`. A collective."""
    if world.world_size > 1:
        digests: list[str] = [""] * world.world_size
        dist.all_gather_object(digests, digest)
        if len(set(digests)) > 1:
            raise DataError(f"the ranks were given different {what}")


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CheckpointError(f"cannot write into {folder}: {error.strerror}") from error
