"""`%load_ext ddpdoctor`, in a shell that has IPython's events."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ddpdoctor
from ddpdoctor import watch
from tests.patience import within
from tests.postmortem.test_run_directory import blocked, log_of, write

Capture = pytest.CaptureFixture[str]


class Shell:
    """Calls what was registered, as IPython does around each cell."""

    def __init__(self) -> None:
        self.execution_count = 1  # of the cell that loads the extension
        self.heard: dict[str, list[Callable[[Any], None]]] = {}
        self.events = SimpleNamespace(register=self.register, unregister=self.unregister)

    def register(self, event: str, function: Callable[[Any], None]) -> None:
        self.heard.setdefault(event, []).append(function)

    def unregister(self, event: str, function: Callable[[Any], None]) -> None:
        self.heard[event].remove(function)

    def transform_cell(self, cell: str) -> str:
        return cell.lstrip("\n")

    def run(self, cell: str, does: Callable[[], object] = lambda: None) -> None:
        for function in self.heard["pre_run_cell"]:
            function(SimpleNamespace(raw_cell=cell))
        does()
        self.execution_count += 1
        for function in self.heard["post_run_cell"]:
            function(SimpleNamespace(execution_count=self.execution_count))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch, "start", lambda folder: folder.mkdir(parents=True))
    shell = Shell()
    ddpdoctor.load_ipython_extension(shell)
    ddpdoctor.load_ipython_extension(shell)
    for function in shell.heard["post_run_cell"]:
        function(SimpleNamespace(execution_count=shell.execution_count))
    return shell


def test_a_cell_is_read_with_those_that_ran_before_it(shell: Shell, capsys: Capture) -> None:
    shell.run("%matplotlib inline\nimport torch.distributed as dist")
    shell.run("def broken(:")
    assert capsys.readouterr().err == ""
    shell.run("if dist.get_rank() == 0:\n    dist.barrier()")
    told = capsys.readouterr().err
    assert told.count("✖ DDP401") == 1
    assert "cell 4:2:5" in told, "the number that the notebook shows beside it"
    shell.run("print('well')")
    assert capsys.readouterr().err == "", "what was told is not told again"


def test_what_happened_to_the_ranks_of_a_cell_is_told_once(shell: Shell, capsys: Capture) -> None:
    (run,) = Path("reports").iterdir()
    shell.run("train()", lambda: blocked(run))
    told = capsys.readouterr().err
    assert "deadlock proven" in told
    assert "train.py:8" in told
    shell.run("1 + 1")
    assert capsys.readouterr().err == ""


def test_a_cell_that_hangs_is_told_of_while_it_does(shell: Shell, capsys: Capture) -> None:
    (run,) = Path("reports").iterdir()
    told = ""

    def hang() -> None:
        nonlocal told
        blocked(run)

        def hears() -> bool:
            nonlocal told
            told += capsys.readouterr().err
            return "interrupt the kernel" in told

        assert within(60, hears)

    shell.run("train()", hang)
    assert told.count("deadlock proven") == 1
    assert "train.py:8" in told
    assert capsys.readouterr().err == "", "what was told is not told again"


@pytest.mark.parametrize(
    "name",
    ["<ipython-input-2-0123456789ab>", "/tmp/ipykernel_7/1234567.py"],
    ids=["shell", "kernel"],
)
def test_the_line_of_a_cell_is_told_and_read(shell: Shell, capsys: Capture, name: str) -> None:
    imports = "import torch.distributed as dist"
    train = (
        "def main():\n    if dist.get_rank() == 0:\n        dist.barrier()\n    dist.all_reduce(t)"
    )
    linecache.cache[name] = (len(train), None, train.splitlines(keepends=True), name)
    (run,) = Path("reports").iterdir()
    shell.run(f"\n\n{imports}")
    shell.run(train)

    def hang() -> None:
        logs = {0: log_of(0, "barrier", 3), 1: log_of(1, "all_reduce", 4)}
        write(run, {rank: text.replace("/home/u/train.py", name) for rank, text in logs.items()})

    capsys.readouterr()
    shell.run("notebook_launcher(main)", hang)
    told = capsys.readouterr().err
    assert "DDP401 rank-conditional-collective · deadlock proven" in told
    assert "cells.py:6" in told
    assert "        dist.barrier()" in told


def test_it_can_be_unloaded(shell: Shell) -> None:
    ddpdoctor.unload_ipython_extension(shell)
    ddpdoctor.unload_ipython_extension(shell)
    assert shell.heard == {"pre_run_cell": [], "post_run_cell": []}
