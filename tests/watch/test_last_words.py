"""What elastic's launcher says of its end is put aside, and nothing else is."""

from __future__ import annotations

import fcntl
import logging
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ddpdoctor.evidence import LAST_WORDS, SUMMARY
from ddpdoctor.watch import last_words


class SignalException(Exception):
    """As elastic's."""

    __module__ = "launcher.elastic.multiprocessing.api"


class ChildFailedError(Exception):
    """As elastic's."""

    __module__ = "launcher.elastic.multiprocessing.errors"


def elastic() -> Any:
    """A module as elastic's, of which the watch needs two names."""

    def handle(number: int, frame: object) -> None:
        raise SignalException(f"got signal: {number}")

    module: Any = ModuleType(last_words.MODULE)
    module.SignalException, module._terminate_process_handler = SignalException, handle
    return module


@pytest.fixture
def printing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What stands on stderr; elastic's logger and another print there, as torch's do."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(last_words, "_LOGGERS", "launcher.elastic")  # torch's own may be set up
    logger = logging.getLogger("launcher")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "propagate", False)
    return lambda: capsys.readouterr().err


def end(run_dir: Path, number: int = signal.SIGTERM) -> None:
    """The launcher hears a signal, says so, and ends by its exception; others speak as well."""
    logging.getLogger("launcher").handlers = [logging.StreamHandler(sys.stderr)]
    module = elastic()
    last_words.install(run_dir, module)
    try:
        module._terminate_process_handler(number, None)
    except SignalException as error:
        logging.getLogger("launcher.elastic.agent.server.api").warning("shutting down")
        logging.getLogger("launcher.other").warning("of no launcher")
        sys.excepthook(SignalException, error, error.__traceback__)
    try:
        raise ValueError("a bug in the user's own launcher")
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)


def test_the_end_that_the_doctor_makes_is_put_aside_and_nothing_else(
    tmp_path: Path, printing: Any
) -> None:
    (tmp_path / LAST_WORDS).touch()
    end(tmp_path)
    told, printed = (tmp_path / LAST_WORDS).read_text(), printing()
    assert told.startswith("shutting down\nTraceback")
    assert told.endswith("SignalException: got signal: 15\n")
    assert printed.startswith("of no launcher\nTraceback")
    assert printed.endswith("ValueError: a bug in the user's own launcher\n")
    assert "SignalException" not in printed


@pytest.mark.parametrize("made", ["by nobody", "by another signal", "as a folder"])
def test_an_end_that_is_not_the_doctors_or_cannot_be_kept_is_printed(
    tmp_path: Path, printing: Any, made: str
) -> None:
    if made == "by another signal":
        (tmp_path / LAST_WORDS).touch()
    elif made == "as a folder":
        (tmp_path / LAST_WORDS).mkdir()
    end(tmp_path, signal.SIGINT if made == "by another signal" else signal.SIGTERM)
    printed = printing()
    assert "shutting down\nof no launcher\nTraceback" in printed
    assert "SignalException: got signal: " in printed
    assert "a bug in the user's own launcher" in printed


def test_a_hook_of_the_users_own_is_asked_as_ever(
    tmp_path: Path, printing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / LAST_WORDS).touch()
    asked: list[type] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: asked.append(kind))
    end(tmp_path)
    assert asked == [SignalException, ValueError]


def fail(run_dir: Path) -> None:
    """The launcher ends by the exception that says which ranks failed."""
    last_words.install(run_dir, elastic())
    try:
        raise ChildFailedError("train.py FAILED")
    except ChildFailedError as error:
        sys.excepthook(ChildFailedError, error, error.__traceback__)


def test_which_ranks_failed_is_left_to_a_doctor_that_is_there(
    tmp_path: Path, printing: Any
) -> None:
    summary = tmp_path / SUMMARY
    with summary.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        fail(tmp_path)
    assert printing() == ""
    assert summary.read_text().startswith("Traceback")
    assert summary.read_text().endswith("ChildFailedError: train.py FAILED\n")


@pytest.mark.parametrize("left", ["its file", "nothing"])
def test_which_ranks_failed_is_printed_where_no_doctor_is_left(
    tmp_path: Path, printing: Any, left: str
) -> None:
    if left == "its file":
        (tmp_path / SUMMARY).touch()
    fail(tmp_path)
    assert printing().endswith("ChildFailedError: train.py FAILED\n")
    assert not (tmp_path / SUMMARY).exists() or not (tmp_path / SUMMARY).read_text()
