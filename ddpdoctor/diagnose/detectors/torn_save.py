"""DDP503: a rank was killed while it saved over the checkpoint that it had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Died
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import FileEvent, signal_name


@detector(precedence=235)
def detect(case: Case) -> Iterator[Finding]:
    """Name the save that a signal ended, if the same path held a whole checkpoint before."""
    for died in case.died:
        save = _unfinished(died)
        if save is None or not _held_another(case, save):
            continue
        rank, name = died.rank.rank, Path(save.path).name
        case.explain(died)
        yield Finding(
            code="DDP503",
            title="torn-save",
            severity="error",
            certainty="proven",
            ranks=(rank,),
            places=(RankPlace(ranks=(rank,), place=save.place, doing=f"save({name})"),),
            cause=f"rank {rank} was ended by {signal_name(died.signal)} while it saved "
            f"over {name}: the old checkpoint is lost, and the new one is not whole.",
            cure=Cure(
                text="Write to a temporary file beside it, fsync, and rename it with os.replace()."
            ),
            consequences=case.consequences(),
        )


def _unfinished(died: Died) -> FileEvent | None:
    """The save that was under way, the last thing this rank did to a file."""
    last = died.rank.files[-1] if died.rank.files else None
    return last if last and last.action == "save" and last.ended is None else None


def _held_another(case: Case, save: FileEvent) -> bool:
    """Whether this run has saved to the path before, or loaded from it, and it is there still."""
    held = False
    files = (file for rank in case.evidence.ranks for file in rank.files)
    for file in sorted(files, key=lambda each: each.begun):
        if file is save or file.error:
            continue
        if file.path == save.path:
            held = file.action in ("save", "load", "replace")
        elif file.action == "replace" and file.source == save.path:
            held = False
    return held
