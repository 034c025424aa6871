"""Checkpoints that are whole or absent, whatever dies when; a failure reaches every rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import torch

from ddpdoctor.stack.errors import CheckpointError
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.process_group import World


def save(state: dict[str, Any], path: Path, world: World) -> None:
    """Write `state` to `path` from rank 0 alone. A collective: every rank must call it.

    Put bare module keys into `state` (`process_group.unwrap`). When it returns, the file is on the
    disk and every rank may read it. Raises CheckpointError on all ranks where rank 0 cannot write;
    the file that was there before is then untouched, and nothing half-written is left.
    """
    with together(world):
        if world.is_main:
            with replacing(path) as file:
                torch.save(state, file)


def load(
    path: Path,
    world: World,
    map_location: torch.device | str = "cpu",
    *,
    mmap: bool = False,
) -> dict[str, Any]:
    """Read `path` on every rank. A collective: every rank must call it.

    Every rank reads for itself, rather than rank 0 for all: the file is in the page cache by then,
    and nothing of the model's size travels through the group. Only tensors and plain values are
    read, no code is run (`weights_only`). Raises CheckpointError on all ranks where any cannot
    read, which is also how a folder that one host does not see shows itself. With `mmap` the ranks
    of a host share one copy in memory.
    """
    with together(world):
        try:
            state: dict[str, Any] = torch.load(
                path, map_location=map_location, weights_only=True, mmap=mmap
            )
        except OSError as error:
            raise CheckpointError(f"cannot read checkpoint {path}: {error.strerror}") from error
        except Exception as error:
            # A torn file shows itself in a dozen kinds of error, depending on where it ends.
            raise CheckpointError(f"{path} is not a whole checkpoint") from error
    return state


def prune(folder: Path, keep_last: int, best: Path | None, pattern: str = "*.pt") -> None:
    """Delete all but the last `keep_last` checkpoints by name, and `best`. For rank 0 alone.

    Also deletes the temporary files of a training that was killed while it saved.
    """
    checkpoints = sorted(folder.glob(pattern))
    surplus = checkpoints[: max(len(checkpoints) - keep_last, 0)]
    for path in (*surplus, *folder.glob(".*.tmp")):
        if path != best:
            path.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write that takes the place of `path` when, and only when, the block succeeds.

    A reader sees the old file or the new one, never a part. Raises CheckpointError where the disk
    refuses.
    """
    # In the same folder, as a rename is atomic only within a file system; and unique, so that two
    # writers cannot fill one file together.
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            # Before the rename: otherwise a power cut may keep the new name and lose its content.
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        _remove(temporary)
        refusal = _disk_error(error)
        if refusal is None:
            raise
        raise CheckpointError(f"cannot write {path}: {refusal}") from error


def _disk_error(error: BaseException | None) -> str | None:
    # torch.save buries "No space left on device" under a RuntimeError about an unexpected position.
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return None if error is None else error.strerror or str(error)


def _sync_folder(folder: Path) -> None:
    # The rename itself is on the disk only once the folder is.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
