"""`%load_ext ddpdoctor`: each cell is read before it runs; the ranks that it starts are watched.

What is told goes to stderr, and nothing where nothing is wrong.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ddpdoctor import api, watch
from ddpdoctor.lint.command import LintOptions, examine, shown
from ddpdoctor.lint.configuration import UsageError
from ddpdoctor.report.job import of_job
from ddpdoctor.report.model import render

_NAME = "notebook.ipynb"
_doctors: dict[int, _Doctor] = {}


def load(shell: Any) -> None:
    """Begin, in the kernel whose shell this is."""
    if id(shell) not in _doctors:
        _doctors[id(shell)] = _Doctor(shell)


def unload(shell: Any) -> None:
    """Say no more; ranks that this kernel starts go on to write."""
    if (doctor := _doctors.pop(id(shell), None)) is not None:
        doctor.leave()


class _Doctor:
    """Knows the cells that have run, and which ranks were told of."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._cells: list[str] = []
        self._told: set[Path] = set()
        self._run_dir = Path(f"reports/run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
        self._run_dir = self._run_dir.absolute()
        watch.start(self._run_dir)
        shell.events.register("pre_run_cell", self.read)
        shell.events.register("post_run_cell", self.judge)

    def leave(self) -> None:
        """Listen no more."""
        self._shell.events.unregister("pre_run_cell", self.read)
        self._shell.events.unregister("post_run_cell", self.judge)

    def read(self, info: Any) -> None:
        """Tell what `lint` finds in a cell that is about to run, after all that ran before it."""
        cells = [*self._cells, str(info.raw_cell)]
        document = {"cells": [{"cell_type": "code", "source": cell} for cell in cells]}
        options = LintOptions(paths=("-",), stdin_filename=_NAME, jobs=1)
        try:
            report = examine(options, json.dumps(document).encode())
        except UsageError as error:  # of the configuration
            print(f"ddpdoctor: {error}", file=sys.stderr)
            return
        if report.troubles:  # it cannot be parsed: Python says so
            return
        self._cells = cells
        report.diagnostics = [each for each in report.diagnostics if each.cell == len(cells)]
        if report.diagnostics:
            print(shown(report, "text"), end="", file=sys.stderr)

    def judge(self, result: Any) -> None:
        """Tell what went wrong with the ranks that a cell has started."""
        new = {*self._run_dir.glob("attempt-*")} - self._told
        if not new:
            return
        self._told |= new
        try:
            findings = api.diagnose(self._run_dir)
        except ValueError:  # no rank has written anything
            return
        if findings:
            told = of_job("diagnose", [], findings, subject=("ddpdoctor", "diagnose"))
            print(render(told, "text"), end="", file=sys.stderr)
