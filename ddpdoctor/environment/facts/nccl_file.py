"""NCCL's own configuration files, read as NCCL reads them (nccl: src/misc/param.cc, initEnv)."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.environment.facts.machine import Machine, NoAnswer
from ddpdoctor.environment.model import FileSetting

_OF_THE_HOST = "etc/nccl.conf"


def settings(machine: Machine) -> tuple[FileSetting, ...]:
    """Every line that sets something, in the order in which they count: the first of a name wins.

    Raises NoAnswer where a file is there and cannot be read.
    """
    return tuple(setting for path in _files(machine) for setting in _read(machine, path))


def _files(machine: Machine) -> Iterator[Path]:
    """NCCL_CONF_FILE or, without it, ~/.nccl.conf; then /etc/nccl.conf."""
    if named := machine.environ.get("NCCL_CONF_FILE"):
        yield machine.root / named  # an absolute path stays what it is; there is no ~ in it
    elif home := _home():
        yield machine.root / home.relative_to("/") / ".nccl.conf"
    yield machine.root / _OF_THE_HOST


def _home() -> Path | None:
    # Of the user database: NCCL does not look at HOME.
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None


def _read(machine: Machine, path: Path) -> Iterator[FileSetting]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
        return
    except OSError as error:
        raise NoAnswer(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(text.split("\n"), 1):
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            yield FileSetting(
                file=machine.redactor.text(str(path)),
                line=number,
                name=name,
                value=machine.redactor.value(name, value),
            )
