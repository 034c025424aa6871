"""Installed packages are not the user's code, wherever they are installed."""

from __future__ import annotations

import json
import multiprocessing
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ddpdoctor.stack import trainer
from ddpdoctor.watch.places import as_frame, is_users_file, outwards


@pytest.mark.parametrize(
    "file",
    [
        json.__file__,
        torch.__file__,
        "/home/user/.local/lib/python3.11/site-packages/trainer/loop.py",
        "/usr/lib/python3/dist-packages/trainer/loop.py",
        "<string>",
    ],
)
def test_what_is_installed_is_not_the_users(file: str) -> None:
    assert not is_users_file(file)


@pytest.mark.parametrize("file", ["/home/user/train.py", "/data/site/packages/train.py", __file__])
def test_what_is_not_is(file: str) -> None:
    assert is_users_file(file)


def test_the_reproducers_and_the_stack_are_patients_wherever_they_are() -> None:
    assert is_users_file(trainer.__file__)


def test_a_frame_between_two_lines_is_where_its_function_begins() -> None:
    code = test_a_frame_between_two_lines_is_where_its_function_begins.__code__
    frame: Any = SimpleNamespace(f_code=code, f_lineno=None)
    assert as_frame(frame) == (__file__, code.co_firstlineno, code.co_qualname)


def _in_a_child(told: Any) -> None:
    told.send([frame.f_code.co_name for frame in outwards(sys._getframe())])


def test_a_process_that_was_forked_begins_where_it_was_started() -> None:
    context = multiprocessing.get_context("fork")
    hears, tells = context.Pipe(duplex=False)
    child = context.Process(target=_in_a_child, args=(tells,))
    child.start()
    assert hears.recv() == ["_in_a_child", "run", "_bootstrap"]
    child.join()
