"""What lies at a path, and the reader for it."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ddpdoctor.evidence import open_file
from ddpdoctor.postmortem import flight_recorder, log_folder, run_directory, text_log
from ddpdoctor.postmortem.material import Material, NothingToRead

_REPORT = re.compile(rb'\s*\{\s*"schema_version":\s*\d')
_PATIENCE = 20
"""Seconds for the first byte of a pipe."""


def read(*paths: Path) -> Material:
    """A run directory, or those of all hosts of a job; dumps, or logs. Raises NothingToRead."""
    return _read_one(paths[0]) if len(paths) == 1 else _read_hosts(paths)


def _read_hosts(folders: Sequence[Path]) -> Material:
    try:
        if (found := run_directory.read(folders)) is not None:
            return found
    except OSError as error:
        raise NothingToRead(f"cannot read {error.filename}: {error.strerror}") from error
    raise NothingToRead("of several paths, each must be what a host's doctor left (attempt-*)")


def _read_one(path: Path) -> Material:
    try:
        if path.is_dir():
            if (found := run_directory.read([path])) is not None:
                return found
            if dumps := flight_recorder.dumps_in(path):
                return flight_recorder.read(dumps)
            if logs := log_folder.logs_in(path):
                return text_log.read_files(logs)
            raise NothingToRead(
                f"{path} holds no run of ours (attempt-*/rank-*.log), no dumps and no logs"
            )
        if not path.is_file():  # as of <(zcat log.gz)
            with _pipe(path) as pipe:
                return text_log.read(pipe, str(path))
        with open_file(path) as file:
            start = file.read(4096)
            if flight_recorder.looks_like_dump(start, path.name):
                return flight_recorder.read([path])
            if _REPORT.match(start):
                raise NothingToRead(f"{path} is a report already: name the folder of the run")
            file.seek(0)
            return text_log.read(file, str(path))
    except OSError as error:
        raise NothingToRead(f"cannot read {path}: {error.strerror or error}") from error


def _pipe(path: Path) -> BinaryIO:
    """What somebody writes to. To open it in the plain way would wait for a writer for ever."""
    pipe = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    if not waiting.poll(_PATIENCE * 1000):
        pipe.close()
        raise NothingToRead(f"{path} is a pipe, and nobody has written to it for {_PATIENCE} s")
    os.set_blocking(pipe.fileno(), True)
    return pipe


def read_stream(stream: BinaryIO) -> Material:
    """A text log from standard input. Raises NothingToRead."""
    return text_log.read(stream, "standard input")
