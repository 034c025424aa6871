"""Whether a file is a whole checkpoint, without loading it."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import torch

from ddpdoctor.stack.errors import CheckpointError


def verify_checkpoint(path: Path) -> None:
    """Raise CheckpointError, with the reason, unless `path` is a whole file of torch.save.

    It accepts both of torch's formats: the zip archive of today, with check sums or without them
    (`torch.serialization.set_crc32_options(False)`), and the older one of torch 1.5 and before,
    which has none. It reads the file once.

    What it says is true of the moment: nothing hinders another process from writing to the file
    afterwards. Only a writer that replaces files whole (`checkpoint.replacing`) does.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            begins_like_zip = file.read(4) == b"PK\x03\x04"
    except OSError as error:
        raise CheckpointError(f"cannot read checkpoint {path}: {error.strerror}") from error
    if size == 0:
        raise CheckpointError(f"{path} is empty")
    if begins_like_zip:
        _verify_archive(path)
    else:
        _verify_old(path)


def _verify_archive(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[2]: name for name in archive.namelist()}
            if "data.pkl" not in names:
                raise CheckpointError(f"{path} is a zip archive, but not one of torch.save")
            for info in archive.infolist():
                _verify_record(archive, info, path)
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise CheckpointError(f"{path} is not a whole checkpoint: {error}") from error


def _verify_record(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> None:
    # Written without check sums, every record says that its sum is 0: there is nothing to compare
    # then, and zipfile's own test would call each of them damaged. That the sum is truly 0 happens
    # for an empty record, and else once in 2**32.
    if info.CRC == 0 and info.file_size > 0:
        del info.CRC  # what has no sum is not compared
    with archive.open(info) as record:
        length = 0
        while part := record.read(1 << 20):
            length += len(part)
    if length != info.file_size:
        raise CheckpointError(f"{path} is not a whole checkpoint: {info.filename} is cut off")


def _verify_old(path: Path) -> None:
    # That format has no sums and no directory: whether all storages are there shows only when it
    # is read, which `weights_only` does without running code.
    try:
        torch.load(io.BytesIO(path.read_bytes()), map_location="cpu", weights_only=True)
    except Exception as error:  # a torn file of that format shows itself in nearly any of them
        raise CheckpointError(
            f"{path} is not a whole checkpoint, of neither format of torch.save"
        ) from error
