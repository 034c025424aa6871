"""DDP304, DDP302 and DDP314: work for the network or the graph that nobody needs."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Certainty, Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import Replica, groups

_HOOK = "comm hook"
"""How the reason begins where something else than DDP reduces its gradients."""

ENOUGH = 8
"""Steps before it is believed that no parameter is ever unused."""


@detector(precedence=425)
def detect(case: Case) -> Iterator[Finding]:
    """One finding a wrapper and kind."""
    if not case.ended_well:
        return
    told: set[tuple[str, int]] = set()
    for number, replicas in groups(case):
        for finding in (*_every_micro_batch(replicas), *_needless_search(replicas)):
            if (finding.code, number) not in told:
                told.add((finding.code, number))
                yield finding


def _every_micro_batch(replicas: tuple[Replica, ...]) -> Iterator[Finding]:
    """Passes of one line, several to a step, each of them reduced; or one that was not to be."""
    if any("held backward" in replica.training.places for replica in replicas):
        yield _warning(
            "DDP314",
            "no-sync-wrong-scope",
            "no_sync() is around a backward alone, where it has no effect: the forward pass before "
            "has decided, and the gradients are reduced.",
            "Put the forward pass under no_sync() too.",
            replicas,
            "held backward",
        )
        return
    counts = [count for replica in replicas for count in replica.training.repeats]
    whole = all(len(replica.training.repeats) > 1 for replica in replicas)
    reasons = {replica.training.kept_out for replica in replicas}
    hooked = any(reason.startswith(_HOOK) for reason in reasons)
    # Ranks may differ where they have a hook of their own, which sends after each pass as DDP does.
    if not whole or min(counts) < 2 or any(r and not r.startswith(_HOOK) for r in reasons):
        return
    if any("n" in window for replica in replicas for window in replica.training.windows):
        return
    most = max(counts)
    yield _warning(
        "DDP304",
        "accumulation-syncs-every-step",
        f"each of the {most} micro-batches of a step reduces its gradients; only the last has to.",
        "Run forward and backward of all but the last micro-batch under model.no_sync().",
        replicas,
        "backward",
        certainty="evidence" if hooked else "proven",
    )


def _needless_search(replicas: tuple[Replica, ...]) -> Iterator[Finding]:
    for replica in replicas:
        wrapper, training = replica.wrapper, replica.training
        if not wrapper.find_unused or wrapper.static_graph or training.always_used is not True:
            return
        if training.steps < ENOUGH or any("n" in window for window in training.windows):
            return  # of passes without a reduction DDP adds up which parameters were used
    steps = min(replica.training.steps for replica in replicas)
    yield _warning(
        "DDP302",
        "needless-find-unused",
        f"find_unused_parameters=True searches the graph at every step, and in {steps} steps no "
        "parameter was unused.",
        "Leave find_unused_parameters off.",
        replicas,
        "",
        certainty="evidence",
    )


def _warning(
    code: str,
    title: str,
    cause: str,
    cure: str,
    replicas: tuple[Replica, ...],
    line: str,
    certainty: Certainty = "proven",
) -> Finding:
    ranks = tuple(replica.rank.rank for replica in replicas)
    places = dict.fromkeys(
        place
        for replica in replicas
        for name in (line, "forward" if line else "")
        if (place := replica.training.places.get(name)) is not None
    )
    wrapped = RankPlace(ranks=ranks, place=replicas[0].wrapper.place, doing="wrapped the model")
    return Finding(
        code=code,
        title=title,
        severity="warning",
        certainty=certainty,
        ranks=ranks,
        places=(*(RankPlace(ranks=ranks, place=p, doing="runs") for p in places), wrapped),
        cause=cause,
        cure=Cure(text=cure),
    )
