"""DDP214: a rank decides what to keep by a metric of its own shard.

Seen: the last number that a rank read off a tensor before it saved, or the last array of which a
metric may be made, was another one on each rank, and the ranks had communicated nothing in between;
of an array, they have not even waited for each other: they may give it to one rank by files. What
is read once in every step is of the training: who evaluates after it may do so without such a
number, and decide by that. That it decides is what the source says: alone this is worth no word, so
it is told as a note, which `annotate` makes a warning where the save stands under a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import FileEvent, Place, RankEvidence, named
from ddpdoctor.evidence.events.reads import Read

_ENOUGH, _STEPS = 2, 8
_GIVING = frozenset({"reduce", "gather", "recv"})
"""By which one rank is given what those of the others are."""
_WAYS = 4
"""So many ways to a save are told: one that keeps the first may be none that decides."""


@detector(precedence=436)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the saves that follow such a number."""
    ranks = [rank for rank in case.evidence.ranks if rank.of(Read)]
    if len(ranks) < 2 or not all(rank.wrappers for rank in case.evidence.ranks):
        return
    unlike = _unlike(ranks)
    for rank in ranks:
        saves: dict[tuple[Place, ...], tuple[FileEvent, Read]] = {}
        for save in rank.files:
            if save.action != "save" or not save.step or save.way in saves:
                continue
            read = _before(rank, save)
            if read is not None and read.place in unlike:
                saves[save.way] = save, read
        if saves:
            yield _finding(tuple(r.rank for r in ranks), rank, [*saves.values()])
            return


def _unlike(ranks: list[RankEvidence]) -> set[Place | None]:
    """The lines at which ranks have read different numbers, several times."""
    values: dict[tuple[Place | None, int], dict[int, str]] = {}
    for rank in ranks:
        for read in rank.of(Read):
            values.setdefault((read.place, read.number), {})[rank.rank] = read.value
    often: dict[Place | None, int] = {}
    for (place, _), of in values.items():
        if len(of) == len(ranks) and len(set(of.values())) > 1:
            often[place] = often.get(place, 0) + 1
    found = {place for place, times in often.items() if times >= _ENOUGH}
    return {place for place in found if not any(_is_of_steps(rank, place) for rank in ranks)}


def _is_of_steps(rank: RankEvidence, place: Place | None) -> bool:
    """Whether the line was read once in each of many steps on end."""
    at = {read.number: read.step for read in rank.of(Read) if read.place == place}
    on_end = [at[number + 1] - step == 1 for number, step in at.items() if number + 1 in at]
    return len(on_end) >= _STEPS and all(on_end)


def _before(rank: RankEvidence, save: FileEvent) -> Read | None:
    """The last number that was read before a save, if nothing was communicated since."""
    earlier = [read for read in rank.of(Read) if read.time < save.begun and not read.aside]
    if not earlier:
        return None
    last = earlier[-1]
    told = any(
        call.place is not None
        and (call.op != "barrier" or last.many)
        and last.time < call.begun < save.begun
        for call in rank.collectives
    )
    return None if told or _was_given(rank, earlier) else last


def _was_given(rank: RankEvidence, reads: list[Read]) -> bool:
    """Whether the last number may be one of all ranks: the others have given it theirs before."""
    last = reads[-1]
    since = max((read.time for read in reads[:-1] if read.place == last.place), default=0.0)
    return any(
        since < call.begun < last.time and (call.root == rank.rank or call.op == "recv")
        for call in rank.collectives
        if call.op in _GIVING and call.place is not None
    )


def _finding(
    numbers: tuple[int, ...], rank: RankEvidence, saves: list[tuple[FileEvent, Read]]
) -> Finding:
    _, read = saves[0]
    what = "numbers" if read.many else "a number"
    return Finding(
        code="DDP214",
        title="metric-not-reduced",
        severity="info",
        certainty="evidence",
        is_suspicion=True,
        ranks=(rank.rank,),
        places=(
            RankPlace(ranks=numbers, place=read.place, doing=f"reads {what} of its own shard"),
            *(
                RankPlace(ranks=(rank.rank,), place=save.place, doing="saves", stack=save.way)
                for save, own in saves[:_WAYS]
                if own.place == read.place
            ),
            *callers(numbers, read.way, read.place)[:1],
        ),
        cause=f"rank {rank.rank} saved after {what} that it had for itself: {named(numbers)} "
        f"read different ones at {read.place}, and nothing was reduced before the save.",
        cure=Cure(text="Reduce the metric over the ranks (all_reduce sums and counts) first."),
    )
