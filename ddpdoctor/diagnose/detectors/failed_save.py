"""DDP511: a save failed on one rank, and the others, who do not know, wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, first_line
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.parting import explain_parting, has_parted
from ddpdoctor.diagnose.sharing import made_later
from ddpdoctor.evidence import FileEvent, RankEvidence

_ASKED_TO_END = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")


@detector(precedence=245)
def detect(case: Case) -> Iterator[Finding]:
    """Name the save and its error; the waiting of the others is what came of it."""
    raised = {each.rank.rank: each for each in case.raised}
    for rank in case.evidence.ranks:
        save = _failed(rank)
        if save is None:
            continue
        fatal = raised.get(rank.rank)
        if fatal is not None:
            if made_later(case.evidence, rank, save):
                continue  # DDP407 tells it
            others = case.deadlock is not None or bool(case.casualties)
            if not others or fatal.exception.message[:80] not in save.error:
                continue
            case.explain(fatal)
            consequences = case.consequences()
        elif has_parted(case) and _is_last_thing(rank, save):
            consequences = explain_parting(case)
        else:
            continue
        yield _finding(rank, save, consequences)
        return


def _failed(rank: RankEvidence) -> FileEvent | None:
    saves = [file for file in rank.files if file.action in ("save", "replace")]
    if not saves or not saves[-1].error or saves[-1].error.startswith(_ASKED_TO_END):
        return None
    return saves[-1]


def _is_last_thing(rank: RankEvidence, save: FileEvent) -> bool:
    """Whether this rank took no step after the failure: what parted the ranks is then this."""
    return not any(
        epoch.steps and epoch.begun > save.begun
        for loader in rank.loaders
        for epoch in loader.epochs.values()
    )


def _finding(rank: RankEvidence, save: FileEvent, consequences: tuple[str, ...]) -> Finding:
    name = Path(save.path).name
    return Finding(
        code="DDP511",
        title="failed-save-unshared",
        severity="error",
        certainty="proven",
        ranks=(rank.rank,),
        places=(RankPlace(ranks=(rank.rank,), place=save.place, doing=f"{save.action}({name})"),),
        cause=f"saving {name} failed on rank {rank.rank} ({first_line(save.error)}), and the other "
        "ranks were not told: they go on as if it had succeeded.",
        cure=Cure(
            text="Broadcast whether the save succeeded, and raise on every rank if it did not."
        ),
        evidence=(first_line(save.error),),
        consequences=consequences,
    )
