"""`%load_ext ddpdoctor`, in a shell that has IPython's events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ddpdoctor
from ddpdoctor import watch
from tests.postmortem.test_run_directory import blocked

Capture = pytest.CaptureFixture[str]


class Shell:
    """Calls what was registered, as IPython does around each cell."""

    def __init__(self) -> None:
        self.heard: dict[str, list[Callable[[Any], None]]] = {}
        self.events = SimpleNamespace(register=self.register, unregister=self.unregister)

    def register(self, event: str, function: Callable[[Any], None]) -> None:
        self.heard.setdefault(event, []).append(function)

    def unregister(self, event: str, function: Callable[[Any], None]) -> None:
        self.heard[event].remove(function)

    def run(self, cell: str, does: Callable[[], object] = lambda: None) -> None:
        for function in self.heard["pre_run_cell"]:
            function(SimpleNamespace(raw_cell=cell))
        does()
        for function in self.heard["post_run_cell"]:
            function(SimpleNamespace())


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch, "start", lambda folder: folder.mkdir(parents=True))
    shell = Shell()
    ddpdoctor.load_ipython_extension(shell)
    ddpdoctor.load_ipython_extension(shell)
    return shell


def test_a_cell_is_read_with_those_that_ran_before_it(shell: Shell, capsys: Capture) -> None:
    shell.run("%matplotlib inline\nimport torch.distributed as dist")
    shell.run("def broken(:")
    assert capsys.readouterr().err == ""
    shell.run("if dist.get_rank() == 0:\n    dist.barrier()")
    told = capsys.readouterr().err
    assert told.count("✖ DDP401") == 1
    assert "cell 2:2:5" in told
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


def test_it_can_be_unloaded(shell: Shell) -> None:
    ddpdoctor.unload_ipython_extension(shell)
    ddpdoctor.unload_ipython_extension(shell)
    assert shell.heard == {"pre_run_cell": [], "post_run_cell": []}
