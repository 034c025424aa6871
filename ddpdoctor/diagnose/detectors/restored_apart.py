"""DDP513: after the last step some ranks restored the model, and then all measured it together.

Seen: a load changed what DDP had kept alike, on some ranks only or to something else on each; no
step and no broadcast followed, and all ranks reduced something at a line at which they had reduced
before: the same measure, of models that are not the same any more. What it measures is concluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import divergences, is_a_replica
from ddpdoctor.evidence import Collective, Place, RankEvidence, StateLoad, named

_MEASURED = ("all_reduce", "reduce", "all_gather", "gather", "all_gather_into_tensor")


@detector(precedence=412, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, where a model was restored so."""
    ranks = case.evidence.ranks
    if len(ranks) < 2 or not case.ended_well or not all(map(is_a_replica, ranks)):
        return
    if not all(map(_told_its_steps, ranks)):
        return
    loads = {rank.rank: load for rank in ranks if (load := _last(rank)) is not None}
    contents = {load.content for load in loads.values()}
    if not loads or (len(loads) == len(ranks) and len(contents) == 1):
        return
    if any(each.code == "DDP513" for each in case.found) or divergences(case):
        return  # who had parted before is changed by what makes them alike again
    measured = [_measured_again(ranks[number], load) for number, load in loads.items()]
    together = [_lines(rank.collectives) for rank in ranks]
    places = {
        place
        for place in set.intersection(*measured)
        if len({lines[place] for lines in together}) == 1
    }
    if not places:
        return
    numbers = tuple(loads)
    load = loads[numbers[0]]
    others = [rank.rank for rank in ranks if rank.rank not in loads]
    unlike = f"{named(others)} did not" if others else "each loaded something else"
    place = min(places, key=str)
    everyone = tuple(rank.rank for rank in ranks)
    yield Finding(
        code="DDP513",
        title="resume-on-one-rank",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=load.place, doing="load_state_dict"),
            RankPlace(ranks=everyone, place=place, doing="reduce what they measure"),
            *callers(numbers, load.way, load.place),
        ),
        cause=f"after the last step {named(numbers)} restored the model, and {unlike}: what is "
        f"reduced at {place} then comes of models that differ.",
        cure=Cure(text="Load on every rank, or measure on the rank that has loaded alone."),
    )


def _last(rank: RankEvidence) -> StateLoad | None:
    """The last load into a wrapped model, if no step came after it."""
    loads = [each for each in rank.state_loads if each.wrapper is not None and each.changed]
    return loads[-1] if loads and loads[-1].step >= rank.steps > 0 else None


def _told_its_steps(rank: RankEvidence) -> bool:
    """Whether all its steps are known: before its end, they are those of a moment ago."""
    return rank.leaving is not None or rank.exiting is not None


def _measured_again(rank: RankEvidence, load: StateLoad) -> set[Place]:
    """Lines at which it has reduced before the load and after."""
    own = [call for call in rank.collectives if call.place is not None and call.op != "barrier"]
    after = [call for call in own if call.begun > load.time]
    if not all(call.op in _MEASURED for call in after):
        return set()  # it has told the others
    return set(_lines(after)) & set(_lines([call for call in own if call.begun < load.time]))


def _lines(calls: list[Collective]) -> Counter[Place]:
    """How often each line reduces."""
    return Counter(c.place for c in calls if c.place is not None and c.op in _MEASURED)
