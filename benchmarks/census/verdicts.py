"""What a reader said of each finding in public repositories, and of defects that lint misses.

One file each in `verdicts/`: repository, commit, what it trains, and of each place file, line and a
digest of that line, the code, and the verdict: `true` (a defect as the rule says, there),
`debatable`, `false` (the claim is wrong) or `missed` (a defect found by reading; `needs` says which
inference it takes, `strength` whether it bites in every run or on a condition).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

FOLDER = Path(__file__).parent / "verdicts"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Verdict(_Strict):
    """One place."""

    file: str
    line: int = Field(gt=0)
    digest: str = Field(pattern="^[0-9a-f]{8}$")
    code: str = Field(pattern=r"^DDP[1-7]\d\d$")
    verdict: Literal["true", "debatable", "false", "missed"]
    why: str = Field(min_length=5)
    needs: str = ""
    strength: Literal["", "always", "conditional"] = ""

    @model_validator(mode="after")
    def _a_missed_one_says_what_it_takes(self) -> Verdict:
        if (self.verdict == "missed") != bool(self.needs and self.strength):
            raise ValueError(f"{self.file}:{self.line}: needs and strength belong to missed ones")
        return self


class Census(_Strict):
    """One repository that was read."""

    repository: str = Field(pattern="^[^/]+/[^/]+$")
    commit: str = Field(pattern="^[0-9a-f]{40}$")
    kind: str
    lines: int
    verdicts: tuple[Verdict, ...]

    @property
    def folder(self) -> str:
        """The name of its folder below the root."""
        return self.repository.replace("/", "+")

    def strays(self, sources: Path) -> list[Verdict]:
        """Verdicts whose line reads otherwise in these sources: another commit, or no such file."""
        return [
            each for each in self.verdicts if digest(sources / each.file, each.line) != each.digest
        ]


def census(folder: Path = FOLDER) -> list[Census]:
    """All repositories that were read."""
    files = sorted(folder.glob("*.yaml"))
    quick = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [Census(**yaml.load(file.read_text("utf-8"), quick)) for file in files]


def digest(file: Path, line: int) -> str:
    """Of one line without its indentation, "" where there is none; a notebook has no lines."""
    text = ""
    if file.suffix == ".py":
        try:
            text = file.read_text(encoding="utf-8", errors="replace").splitlines()[line - 1]
        except (OSError, IndexError):
            return ""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:8]
