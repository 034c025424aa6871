"""A patient: a script, how it is launched, and what a doctor must say about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddpdoctor.catalog import Finding

FOLDER = Path(__file__).parent
_MARK = re.compile(r"# <-- (DDP\d\d\d)")
_HEADER = re.compile(r"^# (style|nproc|launch): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Patient:
    """One script."""

    script: Path
    style: str
    nproc: int
    launch: str
    marks: frozenset[tuple[str, int]]
    """Code and line, any of which counts as the cause. Empty for a correct script."""

    @property
    def name(self) -> str:
        """As in "local_stop/buggy"."""
        return f"{self.script.parent.name}/{self.script.stem}"

    @property
    def command(self) -> list[str]:
        """As a user would start it."""
        script = str(self.script)
        match self.launch:
            case "torchrun":
                return ["torchrun", "--standalone", f"--nproc-per-node={self.nproc}", script]
            case "accelerate":
                return [
                    *("accelerate", "launch", "--cpu", "--num_machines=1", "--mixed_precision=no"),
                    *("--dynamo_backend=no", f"--num_processes={self.nproc}", script),
                ]
            case "python" | "spawn":
                return ["python", script]
        raise ValueError(f"{script}: nobody launches by {self.launch!r}")

    @classmethod
    def read(cls, script: Path) -> Patient:
        """What the script says about itself."""
        source = script.read_text(encoding="utf-8")
        header = dict(_HEADER.findall(source))
        lines = enumerate(source.splitlines(), 1)
        return cls(
            script=script,
            style=header.get("style", ""),
            nproc=int(header.get("nproc", 2)),
            launch=header.get("launch", "torchrun").strip(),
            marks=frozenset((code, line) for line, text in lines for code in _MARK.findall(text)),
        )


@dataclass(frozen=True)
class Score:
    """What was said about one patient, against what should have been."""

    patient: Patient
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def named(self) -> Finding | None:
        """The finding with the right code and a marked line."""
        return next((f for f in self.findings if self._is_right(f)), None)

    @property
    def noise(self) -> tuple[Finding, ...]:
        """Findings beside the right one; those that call nothing wrong (info) are none."""
        return tuple(f for f in self.findings if f.severity != "info" and f is not self.named)

    @property
    def is_good(self) -> bool:
        """Whether the bug was named, and nothing else."""
        return bool(self.named) == bool(self.patient.marks) and not self.noise

    def _is_right(self, finding: Finding) -> bool:
        script = self.patient.script.name
        return any(
            (finding.code, each.place.line) in self.patient.marks
            and Path(each.place.file).name == script
            for each in finding.places
            if each.place is not None
        )


def patients(names: Sequence[str] = ()) -> list[Patient]:
    """All patients, or those whose name starts with one of `names`."""
    scripts: Iterable[Path] = sorted(FOLDER.glob("*/*.py"))
    found = [Patient.read(script) for script in scripts]
    return [p for p in found if not names or p.name.startswith(tuple(names))]
