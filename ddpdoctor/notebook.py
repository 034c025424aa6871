"""`%load_ext ddpdoctor`: each cell is read before it runs; the ranks that it starts are watched.

A deadlock is told while the cell hangs, the rest when it ends; on stderr, and nothing where nothing
is wrong.
"""

from __future__ import annotations

import json
import linecache
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ddpdoctor import watch
from ddpdoctor.annotate import annotate
from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Place
from ddpdoctor.lint.command import LintOptions, examine, shown
from ddpdoctor.lint.configuration import UsageError
from ddpdoctor.postmortem.material import NothingToRead
from ddpdoctor.postmortem.reading import read
from ddpdoctor.report.job import of_job
from ddpdoctor.report.model import render
from ddpdoctor.run.worlds import Worlds

_NAME = "notebook.ipynb"
_CELLS = "cells.py"
_PAUSE = 0.5
"""Seconds between two looks at the ranks of a cell that runs."""
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
        self._before = 0
        """How many cells the notebook has numbered. Its count alone differs between IPythons."""
        self._cells: list[str] = []
        """By the number that the notebook shows beside each; "" for those that lint cannot read."""
        self._ran: list[str] = []
        """All of them, as IPython has handed them to Python."""
        self._told: set[Path] = set()
        self._run_dir = Path(f"reports/run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
        self._run_dir = self._run_dir.absolute()
        watch.start(self._run_dir)
        self._worlds = Worlds(self._run_dir, alone=True)
        self._over = threading.Event()
        """Set while no cell runs."""
        self._attending = threading.Thread()
        shell.events.register("pre_run_cell", self.begin)
        shell.events.register("post_run_cell", self.conclude)

    def leave(self) -> None:
        """Listen no more."""
        self._shell.events.unregister("pre_run_cell", self.begin)
        self._shell.events.unregister("post_run_cell", self.conclude)
        self._worlds.close()

    def begin(self, info: Any) -> None:
        """Read a cell that is about to run, and attend to the ranks that it starts."""
        self._read(info)
        self._over.clear()
        if not self._attending.is_alive():  # a cell may run another
            self._attending = threading.Thread(target=self._attend, daemon=True)
            self._attending.start()

    def conclude(self, result: Any) -> None:
        """Tell what went wrong with the ranks of a cell that has ended, and was not told before."""
        self._before = result.execution_count or self._before  # None: one without a number
        self._over.set()
        if self._attending.is_alive():
            self._attending.join()
        self._judge()

    def _read(self, info: Any) -> None:
        """Tell what `lint` finds in a cell, after all that ran before it."""
        self._ran += [""] * (self._before - len(self._ran))
        self._cells += [""] * (self._before - len(self._cells))
        self._ran[self._before :] = [self._shell.transform_cell(str(info.raw_cell))]
        cells = [*self._cells[: self._before], str(info.raw_cell)]
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

    def _attend(self) -> None:
        """Tell of a deadlock at once: the cell would go on for half an hour."""
        while not self._over.wait(_PAUSE):
            self._worlds.note_deaths()
            self._worlds.poll()
            if any(world.folder not in self._told for world in self._worlds.deadlocked):
                self._judge()
                print("ddpdoctor: interrupt the kernel to end it", file=sys.stderr)
                return

    def _judge(self) -> None:
        """Tell what went wrong with the ranks that nothing was told of."""
        new = {*self._run_dir.glob("attempt-*")} - self._told
        if not new:
            return
        self._told |= new
        try:
            findings = read(self._run_dir).judge()
        except NothingToRead:  # no rank has written anything
            return
        findings = annotate(self._in_one_file(findings))
        if findings:
            told = of_job("diagnose", [], findings, subject=("ddpdoctor", "diagnose"))
            print(render(told, "text"), end="", file=sys.stderr)

    def _in_one_file(self, findings: list[Finding]) -> list[Finding]:
        """With their places in a file that holds all cells, as nobody can read those of a cell."""
        file, text, begins = self._run_dir / _CELLS, "", dict[str, int]()
        for number, cell in enumerate(self._ran, 1):
            if not cell:
                continue
            text += f"# cell {number}\n"
            begins[cell.strip()] = text.count("\n")
            text += f"{cell.rstrip()}\n"
        file.write_text(text, encoding="utf-8")

        def there(place: Place) -> Place:
            cell = "".join(linecache.getlines(place.file)).strip()
            if cell not in begins or Path(place.file).exists():
                return place
            return replace(place, file=str(file), line=begins[cell] + place.line)

        return [_moved(each, there) for each in findings]


def _moved(finding: Finding, there: Callable[[Place], Place]) -> Finding:
    places = tuple(
        at.model_copy(
            update={
                "place": at.place and there(at.place),
                "stack": tuple(map(there, at.stack)),
            }
        )
        for at in finding.places
    )
    return finding.model_copy(update={"places": places})
