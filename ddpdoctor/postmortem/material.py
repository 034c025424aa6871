"""What was found at a path, as evidence."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Evidence, open_file

_PATIENCE = 20
"""Seconds for the first byte of a pipe."""


class NothingToRead(Exception):
    """There is nothing at the path that could be diagnosed; the message says so in one line."""


@dataclass(frozen=True)
class Material:
    """One record of a job."""

    attempts: tuple[tuple[str, Evidence], ...]
    """Names, and what is known of the ranks; the last one is what the job ended with."""
    judge: Callable[[], list[Finding]]
    """Diagnoses the last attempt; how far such a record can be trusted is part of the judgement."""
    not_seen: tuple[str, ...] = ()


def read_hosts(folders: Sequence[Path]) -> Material:
    """The run directories of several hosts, as of one. Raises NothingToRead."""
    from ddpdoctor.postmortem import run_directory

    try:
        if (found := run_directory.read(folders)) is not None:
            return found
    except OSError as error:
        raise NothingToRead(f"cannot read {error.filename}: {error.strerror}") from error
    raise NothingToRead("of several paths, each must be what a host's doctor left (attempt-*)")


def read(path: Path) -> Material:
    """A run directory, flight-recorder dumps, or logs. Raises NothingToRead."""
    from ddpdoctor.postmortem import flight_recorder, log_folder, run_directory, text_log

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
            if flight_recorder.looks_like_dump(file.read(4096), path.name):
                return flight_recorder.read([path])
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
    from ddpdoctor.postmortem import text_log

    return text_log.read(stream, "standard input")
