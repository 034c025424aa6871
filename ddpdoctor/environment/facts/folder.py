"""What the file system does under a folder of checkpoints, found out by trying."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

from ddpdoctor.environment.facts.machine import Machine, NoAnswer
from ddpdoctor.environment.model import Folder, Unknown

_REMOTE = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.ceph-fuse", "9p", "afs"),
    *("orangefs", "panfs", "wekafs", "virtiofs"),
)


def folder(machine: Machine, chosen: Path | None) -> Folder:
    """The file system of a folder, and whether saving there as one should is possible.

    Writes into a folder of its own, which is gone afterwards. Raises NoAnswer where it cannot.
    """
    path = (chosen or Path()).resolve()
    if not path.is_dir():
        raise NoAnswer(f"{path} is no folder")
    kind = _filesystem(machine, path)
    space = os.statvfs(path)
    try:
        room = tempfile.TemporaryDirectory(prefix=".ddpdoctor-", dir=path)
    except OSError as error:
        writable = False
        why = Unknown(unknown=f"nothing can be written there: {error.strerror}")
        replaces: bool | Unknown = why
        syncs: bool | Unknown = why
        locks: bool | Unknown = why
    else:
        writable = True
        with room as name:
            inside = Path(name)
            replaces = machine.find(lambda _: _replaces(inside))
            syncs = machine.find(lambda _: _syncs(inside))
            locks = machine.find(lambda _: _locks(inside))
    return Folder(
        path=machine.redactor.text(str(path)),
        filesystem=kind,
        remote=kind in _REMOTE,
        chosen=chosen is not None,
        writable=writable,
        free=space.f_bavail * space.f_frsize,
        replaces=replaces,
        syncs=syncs,
        locks=locks,
    )


def is_remote(machine: Machine, path: Path) -> bool:
    """Whether it lies on another machine, for other hosts to see. Raises OSError."""
    return _filesystem(machine, path) in _REMOTE


def _filesystem(machine: Machine, path: Path) -> str:
    """The type of what is mounted at the longest mount point above the path."""
    kind, longest = "unknown", -1
    for line in machine.read("proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].encode().decode("unicode_escape")
        if path.is_relative_to(point) and len(point) >= longest:
            kind, longest = right.split()[0], len(point)
    return kind


def _replaces(room: Path) -> bool:
    old, new = room / "old", room / "new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    try:
        new.replace(old)
    except OSError:
        return False
    return old.read_bytes() == b"new" and not new.exists()


def _syncs(room: Path) -> bool:
    file = room / "file"
    file.write_bytes(b"bytes")
    try:
        for path in (file, room):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError:
        return False
    return True


def _locks(room: Path) -> bool:
    # Two open files of one process exclude each other as those of two processes do.
    with (room / "lock").open("w") as first, (room / "lock").open("w") as second:
        try:
            fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
