"""DDP512: the disk is full of this run's own checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, first_line
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.parting import explain_parting, has_parted
from ddpdoctor.evidence import RankEvidence

_FULL = re.compile(
    r"No space left|quota exceeded|File too large|unexpected pos \d|file write failed", re.I
)
"""What a disk says that is full, and what torch.save makes of it."""
_MANY = 5
"""So many files are a pile, if none was ever deleted."""


@detector(precedence=240)
def detect(case: Case) -> Iterator[Finding]:
    """Name the save that found the disk full, where the same rank has kept all it saved before."""
    for rank in case.evidence.ranks:
        saves = [file for file in rank.files if file.action == "save"]
        if not saves or not _FULL.search(saves[-1].error):
            continue
        failed = saves[-1]
        folder = str(Path(failed.path).parent)
        kept = _kept(rank, folder)
        if len(kept) < _MANY:
            continue
        if case.raised:
            case.explain(*case.raised)
            consequences = case.consequences()
            case.casualties = []
        elif has_parted(case):
            consequences = explain_parting(case)
        else:
            continue
        yield Finding(
            code="DDP512",
            title="checkpoint-pile-up",
            severity="error",
            certainty="evidence",
            ranks=(rank.rank,),
            places=(
                RankPlace(
                    ranks=(rank.rank,),
                    place=failed.place,
                    doing=f"save({Path(failed.path).name})",
                ),
            ),
            cause=f"no space for {Path(failed.path).name}: this run has saved {len(kept)} files to "
            f"{Path(folder).name} before, and deleted none.",
            cure=Cure(text="Keep the last few checkpoints and the best, and delete the others."),
            evidence=(first_line(failed.error), f"kept: {', '.join(kept[:3])}, ..."),
            consequences=consequences,
        )
        return


def _kept(rank: RankEvidence, folder: str) -> list[str]:
    """The names of the files that a rank has saved to a folder; none if it deletes there at all."""
    names: dict[str, None] = {}
    for file in rank.files:
        if file.error:
            continue
        if file.action == "rmtree" or (file.action == "unlink" and _is_in(file.path, folder)):
            return []
        if file.action == "replace":
            names.pop(Path(file.source).name, None)
        if file.action in ("save", "replace") and _is_in(file.path, folder):
            names[Path(file.path).name] = None
    return list(names)


def _is_in(path: str, folder: str) -> bool:
    return str(Path(path).parent) == folder
