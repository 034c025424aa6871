"""What no pitfall explains: named by family, with the same ranks, lines and certainty."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Died, Raised, callers, first_line, last_seen
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Loader, named, signal_name

_NATIVE = "Look at the last place: a crash of native code, of an extension or of a data loader."
_ABORTED = (
    "Look at what was printed last: native code, or gloo where calls of unlike sizes met "
    "(EnforceNotMet): then look at what each rank did there."
)
_NOBODY_KNOWS = (
    "Find out who sent it: a scheduler that had enough of the job, a person, or another program."
)
_USE_LESS = "Use less memory: smaller batches, fewer data-loader workers, or a larger limit."
_MAYBE_MEMORY = "See dmesg for whom the kernel has killed; if it was this one, use less memory."


@detector(precedence=330)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each kind of incident left; exceptions before deaths."""
    case.explain(*(raised := case.raised))
    if faults := [each for each in raised if each.exception.type != "KeyboardInterrupt"]:
        yield _raised(case, faults)
    if case.died:
        case.explain(*(died := case.died))
        yield _died(case, died)


def _raised(case: Case, raised: list[Raised]) -> Finding:
    first = min(raised, key=lambda each: (each.exception.time, each.rank.rank))
    same = [
        each
        for each in raised
        if (each.exception.type, each.exception.place)
        == (first.exception.type, first.exception.place)
    ]
    others = [each for each in raised if each not in same]
    joined = any(each.rank.groups for each in same)
    message = first_line(first.exception.message)
    ranks = tuple(each.rank.rank for each in same)
    empty = _gave_nothing(first)
    return Finding(
        code="DDP400" if joined else "DDP100",
        title="exception" if joined else "exception-before-init",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(
            *(
                RankPlace(
                    ranks=(each.rank.rank,),
                    place=each.exception.place,
                    doing=f"raised {each.exception.type}",
                    stack=each.exception.frames,
                )
                for each in (*same, *others)
            ),
            *callers(ranks, first.exception.user, first.exception.place),
            *(
                RankPlace(ranks=ranks, place=each.place, doing="builds the loader")
                for each in empty
            ),
        ),
        evidence=tuple(map(_too_few, empty)),
        cause=f"{first.exception.type}: {message}",
        raised=f"{first.exception.type}: {message}",
        cure=Cure(text="Mend the exception; the other ranks' errors follow from it."),
        consequences=case.consequences(),
    )


def _gave_nothing(raised: Raised) -> list[Loader]:
    """The loader that was gone through last before the exception, if it had no batch."""
    over = [
        (epoch.ended, loader, epoch)
        for loader in raised.rank.loaders
        for epoch in loader.epochs.values()
        if epoch.ended is not None and epoch.ended < raised.exception.time
    ]
    _, loader, epoch = max(over, key=lambda each: each[0], default=(0.0, None, None))
    return [loader] if loader is not None and epoch is not None and not epoch.batches else []


def _too_few(loader: Loader) -> str:
    batch = f" of {loader.batch_size}" if loader.batch_size else ""
    of = f", which has {loader.length} samples for all ranks" if loader.length else ""
    return f"just before, its loader gave no batch{batch}: it reads {loader.dataset}{of}"


def _in_forward(case: Case, died: list[Died]) -> Iterator[RankPlace]:
    """Where others lost an aborted rank in a forward of DDP, which sends its buffers round."""
    if all(each.signal != signal.SIGABRT for each in died):
        return
    dead = [each.rank for each in died]
    for rank in case.evidence.ranks:
        ending = rank.ending or (rank.thrown[-1] if rank.thrown else None)
        if rank in dead or ending is None or ending.place is None:
            continue
        if any(frame.function.endswith("_pre_forward") for frame in ending.frames):
            yield RankPlace(
                ranks=(rank.rank,),
                place=ending.place,
                doing="lost it in forward",
                phase="forward",
                stack=ending.frames,
            )


def _died(case: Case, died: list[Died]) -> Finding:
    starved = [each.rank.rank for each in died if each.rank.fate and each.rank.fate.out_of_memory]
    kills = case.evidence.memory_kills
    if died[0].signal != signal.SIGKILL:
        cure = _ABORTED if died[0].signal == signal.SIGABRT else _NATIVE
    elif starved:
        cure = _USE_LESS
    else:
        cure = _MAYBE_MEMORY if kills else _NOBODY_KNOWS
    names = sorted({signal_name(each.signal) for each in died})
    return Finding(
        code="DDP400",
        title="rank-died",
        severity="error",
        certainty="proven",
        ranks=tuple(each.rank.rank for each in died),
        places=(
            *(last_seen(each.rank, "was last seen here") for each in died),
            *_in_forward(case, died),
        ),
        cause=f"{named(each.rank.rank for each in died)} ended by {', '.join(names)}."
        + (f" The kernel says that it was out of memory ({named(starved)})." if starved else ""),
        cure=Cure(text=cure),
        evidence=(f"meanwhile the kernel killed {kills} for want of memory",)
        if kills and not starved
        else (),
        consequences=case.consequences(),
    )
