"""DDP513: some ranks resumed from a checkpoint, and the others began anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.parting import explain_parting, has_parted
from ddpdoctor.evidence import FileEvent, RankEvidence, StateLoad, named

_SHARING = ("broadcast", "all_gather", "scatter", "all_reduce", "recv")
_SHARDED = "ZeroRedundancyOptimizer"


@detector(precedence=275, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that loaded an optimizer's state, or another epoch, that others did not."""
    ranks = case.evidence.ranks
    resumed = {rank.rank: load for rank in ranks if (load := _optimizer_load(rank))}
    if not resumed:
        resumed = _other_epochs(case)
    lone = len(resumed) < len(ranks) and all(rank.wrappers for rank in ranks)
    if not resumed or not lone:
        return
    loaded = [rank for rank in ranks if rank.rank in resumed]
    if any(_shared_later(rank, resumed[rank.rank]) for rank in loaded):
        return
    if not all(_trained_after(rank, min(e.time for e in resumed.values())) for rank in ranks):
        return
    case.told.add("DDP513")
    consequences = explain_parting(case) if has_parted(case) else ()
    yield _finding(ranks, loaded, resumed, consequences)


def _optimizer_load(rank: RankEvidence) -> StateLoad | None:
    loads = [load for load in rank.state_loads if load.of == "optimizer"]
    return loads[0] if loads and loads[0].name != _SHARDED else None


def _other_epochs(case: Case) -> dict[int, StateLoad]:
    """The ranks that loaded a module alone and then began a loader at an epoch of their own."""
    if not has_parted(case):
        return {}
    for kin in loaders.training(case.evidence):
        begun = {rank: loaders.first_epoch(loader).sampler_epoch for rank, loader in kin.items()}
        if None in begun.values() or len(set(begun.values())) == 1:
            continue
        return {rank.rank: rank.state_loads[0] for rank in case.evidence.ranks if rank.state_loads}
    return {}


def _shared_later(rank: RankEvidence, load: StateLoad) -> bool:
    """Whether the user's code told the others something after the load and before the training."""
    begun = [
        epoch.begun
        for loader in rank.loaders
        for epoch in loader.epochs.values()
        if epoch.begun > load.time
    ]
    until = min(begun, default=float("inf"))
    return any(
        c.op in _SHARING and c.place is not None and load.time < c.begun < until
        for c in rank.collectives
    )


def _trained_after(rank: RankEvidence, time: float) -> bool:
    return any(
        epoch.begun > time and epoch.batches
        for loader in rank.loaders
        for epoch in loader.epochs.values()
    )


def _finding(
    ranks: list[RankEvidence],
    loaded: list[RankEvidence],
    resumed: dict[int, StateLoad],
    consequences: tuple[str, ...],
) -> Finding:
    names = tuple(rank.rank for rank in loaded)
    fresh = [rank for rank in ranks if rank.rank not in resumed]
    first = resumed[names[0]]
    file = _file(loaded[0], first)
    elsewhere = {f.place for rank in fresh for f in rank.files if f.action == "load"}
    places = [RankPlace(ranks=names, place=first.place, doing="load_state_dict")]
    if file is not None and file.place not in elsewhere:
        doing = f"torch.load({Path(file.path).name})"
        places.insert(0, RankPlace(ranks=names, place=file.place, doing=doing))
        places += callers(names, file.way, file.place)
    others = named(rank.rank for rank in fresh)
    what = f"the state of {first.name}" + (f" from {Path(file.path).name}" if file else "")
    return Finding(
        code="DDP513",
        title="resume-on-one-rank",
        severity="error",
        certainty="proven",
        ranks=names,
        places=tuple(places),
        cause=f"{named(names)} resumed {what}; {others} did not, and trained on from a fresh "
        "state.",
        cure=Cure(text="Decide on rank 0 whether to resume, broadcast it, and load on every rank."),
        consequences=consequences,
    )


def _file(rank: RankEvidence, load: StateLoad) -> FileEvent | None:
    """The checkpoint that was read last before the load."""
    read = [f for f in rank.files if f.action == "load" and f.begun < load.time and not f.error]
    return read[-1] if read else None
