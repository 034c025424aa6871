"""What was said of one script, by `run` or by `lint`, against what is wrong with it."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ddpdoctor import api
from ddpdoctor.lint.linter import imported_of

CODES = {
    "params-added-after-ddp": "DDP305",
    "gather-list-alias": "DDP420",
    "rank-conditional-collective": "DDP401",
    "backend-device-mismatch": "DDP116",
    "metric-not-reduced": "DDP214",
    "checkpoint-loaded-one-rank": "DDP513",
    "rank-divergent-file-check": "DDP513 DDP402 DDP405",
    "grad-norm-double-reduced": "DDP421",
    "local-rank-argument": "DDP112",
    "device-ids-on-cpu-module": "DDP116",
    "double-launch": "DDP114",
    "identical-rng-across-ranks": "DDP205",
    "filesystem-race": "DDP514",
    "module-converted-after-ddp": "DDP305",
    "rank-conditional-ddp-forward": "DDP406",
    "unseeded-dataset-shuffle": "DDP217",
    "collective-inside-join": "DDP422",
    "rank-local-skip": "DDP307",
    "rendezvous-port-per-rank": "DDP118",
    "resume-state-only-rank0": "DDP513",
    "hash-order-nondeterminism": "DDP413 DDP213",
    "not-distributed-under-torchrun": "DDP115 DDP112",
    "checkpoint-race": "DDP501 DDP407",
    "rank-local-clock-decision": "DDP405",
    "rank-divergent-path": "DDP514",
    "sampler-seed-differs": "DDP204",
    "sampler-and-shuffle": "DDP209",
}
"""Of each cause, the codes that name it."""
FINER = {
    "DDP118": "DDP105 DDP108",
    "DDP217": "DDP204 DDP206",
    "DDP320": "DDP300",
    "DDP321": "DDP300",
    "DDP420": "DDP402 DDP403",
    "DDP421": "DDP214",
    "DDP422": "DDP402",
}
"""Codes that the catalogue's authors did not have yet, and what they would have called it."""
_NEAR = 2
_PATIENCE = 60.0
"""Seconds after which a person would press Ctrl-C."""
_GRACE = 15.0


@dataclass(frozen=True)
class Outcome:
    """What was said of one script."""

    kind: str
    name: str
    findings: list[dict[str, Any]]
    codes: frozenset[str] = frozenset()
    """Those that name the cause; empty if it has no name."""
    script: str = ""
    """The name of the file with the culprit."""
    lines: frozenset[int] = frozenset()
    exit_code: int | None = None

    @property
    def graver(self) -> list[dict[str, Any]]:
        """What calls something wrong."""
        return [each for each in self.findings if each["severity"] != "info"]

    @property
    def right(self) -> list[dict[str, Any]]:
        """Of that, what names the cause."""
        return [each for each in self.graver if not self.codes or each["code"] in self.codes]

    @property
    def has_cause(self) -> bool:
        """The right code was given."""
        return bool(self.right) and (bool(self.codes) or self.has_line)

    @property
    def has_line(self) -> bool:
        """The right code was given, with a line of the culprit."""
        return any(
            Path(place["file"]).name == self.script and place["line"] in self.lines
            for each in self.right
            for place in _places(each)
        )

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.kind != "buggy":
            return "ACCUSED" if self.graver else "ok"
        return "ok" if self.has_line else "LINE" if self.has_cause else "MISS"


def _places(finding: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in finding["places"]:
        if each.get("place"):
            yield each["place"]


def accepted(source: str, culprits: Sequence[int]) -> frozenset[int]:
    """The lines that count: the whole statement, and two lines on either side."""
    lines = {line + by for line in culprits for by in range(-_NEAR, _NEAR + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if any(line in span for line in culprits):
                lines.update(span)
    return frozenset(lines)


def command(folder: Path, entry: dict[str, Any]) -> list[str]:
    """As its author starts it; but on a CPU `accelerate launch` starts no more than one process."""
    if "command" in entry:
        return shlex.split(entry["command"].format(root=folder))
    script = str(folder / entry["file"])
    if entry["launch"] in ("torchrun", "accelerate"):
        return ["torchrun", "--standalone", f"--nproc-per-node={entry['world_size']}", script]
    return ["python", script]


def run(command: Sequence[str], work: Path | None = None) -> tuple[list[dict[str, Any]], int]:
    """The findings of `ddpdoctor run` in a folder, or in one of its own, and its exit code."""
    with tempfile.TemporaryDirectory(prefix="stranger-") as home:
        report = Path(home) / "report.json"
        if work is None:
            (work := Path(home) / "work").mkdir()
        watched = [
            *("ddpdoctor", "run", "--run-dir", str(Path(home) / "run"), "--format", "json"),
            *("-o", str(report), "--", *command),
        ]
        job = subprocess.Popen(
            watched,
            cwd=work,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            try:
                code = job.wait(_PATIENCE if number == signal.SIGINT else _GRACE)
                break
            except subprocess.TimeoutExpired:
                _send(job.pid, number)
        else:
            code = job.wait()
        said = json.loads(report.read_text()) if report.exists() else {"findings": []}
        return said["findings"], code


def _send(leader: int, number: int) -> None:
    """To the doctor and to all that it has started, as a terminal's Ctrl-C would."""
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(leader).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
    with contextlib.suppress(OSError):
        os.kill(leader, number)


def lint(script: Path) -> tuple[list[dict[str, Any]], int]:
    """What `ddpdoctor lint` finds in a script and what it imports, and its exit code."""
    found = api.lint(script, *imported_of([str(script)]))
    code = int(any(each.severity == "error" for each in found))
    return [each.model_dump(mode="json") for each in found], code


def outcomes(
    folder: Path, names: Sequence[str], only: str, *, by_lint: bool = False
) -> Iterator[Outcome]:
    """Every script, one after the other."""
    lists = [*sorted(folder.glob("manifest*.json")), *folder.glob("correct.json")]
    entries = [entry for each in lists for entry in json.loads(each.read_text())]
    listed = {entry["id"] for entry in entries}
    for script in sorted((folder / "correct").glob("*.py")):
        if script.stem not in listed:
            default = {"launch": "torchrun", "world_size": 4}
            entries.append({"id": script.stem, "file": script.name, **default})
    for entry in entries:
        kinds = ("buggy", "clean") if "culprit_line" in entry else ("correct",)
        for kind in kinds:
            if only not in ("", kind) or not _is_wanted(entry["id"], names):
                continue
            if by_lint and kind == "buggy" and not entry.get("static_detectable", True):
                continue
            if by_lint:
                findings, code = lint(folder / kind / entry["file"])
            else:
                findings, code = run(command(folder / kind, entry))
            if kind == "correct":
                yield Outcome(kind, entry["id"], findings, exit_code=code)
                continue
            culprit = folder / kind / entry.get("culprit_file", entry["file"])
            named = entry["code"] if "code" in entry else CODES.get(entry["cause"], "").split()
            codes = named or []
            yield Outcome(
                kind,
                entry["id"],
                findings,
                frozenset(codes or ()) | {c for c in FINER if {*FINER[c].split()} & {*codes}},
                culprit.name,
                accepted(culprit.read_text(), entry["culprit_line"]),
                code,
            )


def _is_wanted(name: str, names: Sequence[str]) -> bool:
    return not names or any(name.startswith(each) for each in names)


def told(outcome: Outcome, *, verbose: bool) -> str:
    """One script in words."""
    lines = [f"{outcome.verdict:<8} {outcome.kind:<8} {outcome.name} (exit {outcome.exit_code})"]
    if verbose or outcome.verdict != "ok":
        for each in outcome.findings:
            where = ", ".join(f"{p['file'].rpartition('/')[2]}:{p['line']}" for p in _places(each))
            grade = f"{each['severity']}, {each['certainty']}"
            lines.append(f"    {each['code']} {each['title']} [{grade}] {where}: {each['cause']}")
    return "\n".join(lines)
