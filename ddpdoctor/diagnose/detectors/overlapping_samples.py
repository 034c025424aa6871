"""DDP217, DDP204, DDP215, DDP202: ranks are given the same samples within an epoch.

Whoever deals them out. Seen: many samples were given to two ranks, at different times, before
either was given one for the second time, or in one whole pass over a loader in which far fewer were
given again. Were they drawn at random and put back, or alike in the data, a rank would get about
half as many twice as it has in common with another. What torch's DistributedSampler deals out
differs by itself: samples that are alike are so in the data, unless the order was another on each
rank. The last of these passes does not count: where ranks shall make equally many, it is filled up
with samples from the beginning. That this was one epoch is concluded where no loader tells it:
ranks report to each other at its end, and where they do not, only so many passes count that the
epoch must have been longer. What all are given in the same pass may be meant (a batch of all
ranks): that is told only where each has done the work of the others, as what the ranks have reduced
was the same on all of them too, or their losses were; or as all that they were given was the same
to begin with, and gradients came back of all samples on every rank, so that none took a part of
them for itself. After most of the passes that were looked at they may part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, takewhile

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import exchanges, is_a_replica
from ddpdoctor.diagnose.shuffles import apart, common, seeded_alike
from ddpdoctor.evidence import RankEvidence, Training, named
from ddpdoctor.evidence.events.given import Given
from ddpdoctor.evidence.events.losses import Loss

_MANY = 12
"""With so many in common, one that is drawn with putting back would have been given twice."""
_SHARE = 0.1
_APART = 6
"""So many times as many in common as one is given twice."""
_PASSES = 8
_NEW = 4
"""So many passes or losses have to be new: a batch that is fitted again and again is meant."""
_MOST = 0.75
"""More of the samples than a part that a rank would take for itself."""
_ORDERED = "Deal out an order that all ranks share: shuffle with a seed that is the same on all."
_NUMBERED = "Deal it out by the number of the worker among all ranks' workers: rank * workers + id."
_DEALT = "Give each rank samples of its own: a DistributedSampler, or a slice by rank."


@detector(precedence=470)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first model that is given such samples."""
    ranks = case.evidence.ranks
    if len(ranks) < 2 or not all(map(is_a_replica, ranks)):
        return
    if any(each.code.startswith("DDP2") and each.severity != "info" for each in case.found):
        return  # why that is so was told
    for wrapper in range(min(len(rank.wrappers) for rank in ranks)):
        passes = [_passes(rank, wrapper) for rank in ranks]
        alike = _until_they_part(passes)
        if how := _do_the_same(case, wrapper, alike):
            yield _same_work(ranks, alike[0], how)
            return
        many = max(_of_one_epoch(ranks, passes), min(map(_of_one_loader, ranks, passes))) - 1
        if many < 2:
            continue  # in one pass nothing is given at different times
        first = [_first_pass(of[:many]) for of in passes]
        again = [
            sum(len(given.rows) for given in of[:many]) - len(own)
            for of, own in zip(passes, first, strict=True)
        ]
        pairs = [
            pair
            for pair in combinations(range(len(ranks)), 2)
            if _share(*(first[n] for n in pair), again=max(again[n] for n in pair))
        ]
        if not pairs:
            continue
        kins = [*loaders.training(case.evidence)]
        fed = [each for kin in kins for each in _loading(kin)]
        streams = [each for kin in kins if _is_stream(kin) for each in loaders.makers(kin)]
        seeds = [each for kin in kins for each in loaders.dealers(kin, by_rank=False)]
        shuffles = [*apart(ranks)]
        if seeds or shuffles or not any(map(_is_dealt_out, kins)):
            those = sorted({n for pair in pairs for n in pair})
            shared = len(set().union(*(_in_common(first[a], first[b]) for a, b in pairs)))
            how = (
                f"{shared} of those in the first {many} passes, in which each was given "
                f"{min(len(first[n]) for n in those)} or more and "
                f"{max(again[n] for n in those) or 'none'} twice, were given to several."
            )
            yield _finding(
                [ranks[n] for n in those], seeds, shuffles, streams, fed, passes[0][0], how
            )
            return


def _in_common(one: dict[str, int], other: dict[str, int]) -> set[str]:
    """The samples that both were given, but in different passes."""
    return {sample for sample, at in one.items() if other.get(sample, at) != at}


def _share(one: dict[str, int], other: dict[str, int], *, again: int) -> bool:
    """Whether two ranks have more in common than chance would give them."""
    fewest = min(len(one), len(other))
    return len(_in_common(one, other)) >= max(_MANY, _SHARE * fewest, _APART * again)


def _do_the_same(case: Case, wrapper: int, passes: list[list[Given]]) -> str:
    """In words how, if all made the same of what all were given in these passes; else ""."""
    rows = [given.rows for given in passes[0]]
    ranks = case.evidence.ranks
    is_varied = len(set().union(*rows)) >= _MANY or len(set(rows)) >= _PASSES
    if len(rows) < _PASSES or not is_varied or any(map(exchanges, ranks)):
        return ""
    if any(each.code == "DDP421" for each in case.found):
        return "come to the same numbers"
    if len(set(rows)) < _NEW or not (shares := [*_shares_used(ranks, wrapper)]):
        return ""
    if _have_the_same_losses(ranks) and min(shares) > _MOST:
        return "come to the same losses"
    begun = {of[0].whole for of in passes}
    is_known = all(any(t.rows_back for t in _trainings(rank, wrapper)) for rank in ranks)
    if is_known and min(shares) > _MOST and len(begun) == 1 and "" not in begun:
        return "learn from all of them"
    return ""


def _until_they_part(passes: list[list[Given]]) -> list[list[Given]]:
    """The passes in which all are given the same; none if these are not most of what was seen.

    Later they may part, as where each begins to read anew somewhere at random.
    """
    together = [*zip(*passes, strict=False)]
    alike = [*takewhile(lambda of: len({given.rows for given in of}) == 1, together)]
    is_most = 2 * len(alike) >= max(map(len, passes))
    return [[of[n] for of in alike] if is_most else [] for n in range(len(passes))]


def _trainings(rank: RankEvidence, wrapper: int) -> list[Training]:
    return [training for (number, _), training in rank.training.items() if number == wrapper]


def _shares_used(ranks: list[RankEvidence], wrapper: int) -> Iterator[float]:
    """Of what the model gave, the share that gradients came back of, as far as that was seen."""
    for rank in ranks:
        for each in _trainings(rank, wrapper):
            yield each.rows_used / each.rows_back if each.rows_back else 1.0


def _have_the_same_losses(ranks: list[RankEvidence]) -> bool:
    """Whether their losses were equal to the bit whenever they were looked at, and changed."""
    of_ranks = [[(each.step, each.value) for each in rank.of(Loss)] for rank in ranks]
    values = {value for _, value in of_ranks[0]}
    return len(values) >= _NEW and None not in values and all(of == of_ranks[0] for of in of_ranks)


def _same_work(ranks: list[RankEvidence], passes: list[Given], how: str) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    return Finding(
        code="DDP202",
        title="no-sampler",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(
            *common(ranks),
            *dict.fromkeys(_built_alike(ranks)),
            RankPlace(ranks=numbers, place=passes[0].place, doing="gives them"),
            *seeded_alike(ranks),
        ),
        cause=f"{named(numbers)} train on the same samples in each of {len(passes)} passes, and "
        f"{how}: {len(ranks)} times the work of one rank.",
        cure=Cure(text=_DEALT),
    )


def _built_alike(ranks: list[RankEvidence]) -> Iterator[RankPlace]:
    """Samplers of torch's that were told one rank on all, whatever they are kept in."""
    numbers = tuple(rank.rank for rank in ranks)
    for built in zip(*(rank.samplers for rank in ranks), strict=False):
        first = built[0]
        alike = {(each.place, each.rank, each.num_replicas) for each in built}
        if alike == {(first.place, first.rank, len(ranks))}:
            doing = f"built the sampler as rank {first.rank}"
            yield RankPlace(ranks=numbers, place=first.place, doing=doing)


def _passes(rank: RankEvidence, wrapper: int) -> list[Given]:
    """Without those that give again what was given since the last step, as another view does."""
    found: list[Given] = []
    since: set[str] = set()
    for given in rank.of(Given):
        if given.wrapper != wrapper:
            continue
        if not found or found[-1].step != given.step:
            since = set()
        if not since.issuperset(given.rows):
            found.append(given)
        since.update(given.rows)
    return found


def _of_one_epoch(ranks: list[RankEvidence], passes: list[list[Given]]) -> int:
    """How many passes are of one epoch, by what the ranks were given and when they communicated.

    Those before its own code communicated, if it then went on; else, as each rank may be given the
    shard of each other before it gets one again, a share of those without repeats.
    """
    fresh = _without_repeats(passes)
    found = [fresh]
    for rank, of in zip(ranks, passes, strict=True):
        begun = (call.begun for call in rank.collectives if call.place is not None)
        told = next((time for time in begun if of and time > of[0].time), float("inf"))
        before = sum(given.time < told for given in of)
        found.append(before if before < len(of) else fresh // rank.world_size)
    return min(found)


def _of_one_loader(rank: RankEvidence, passes: list[Given]) -> int:
    """How many passes of the model came within the first pass over a loader, if that was whole."""
    loading = (loaders.first_epoch(each) for each in rank.loaders if each.trains)
    over = min((each.ended or 0.0 for each in loading), default=0.0)
    return sum(given.time < over for given in passes)


def _without_repeats(passes: list[list[Given]]) -> int:
    """How many passes all ranks have made before any was given a sample for the second time."""
    many = min(map(len, passes))
    for of in passes:
        seen: set[str] = set()
        for number, given in enumerate(of[:many]):
            if len(set(given.rows)) < len(given.rows) or seen.intersection(given.rows):
                many = number
                break
            seen.update(given.rows)
    return many


def _first_pass(passes: list[Given]) -> dict[str, int]:
    """In which pass each sample was given."""
    return {row: number for number, given in enumerate(passes) for row in given.rows}


def _loading(kin: loaders.Kin) -> Iterator[RankPlace]:
    """What feeds it, where that is a loader of torch's to which nothing deals out."""
    if not any(each.sampler for each in kin.values()):
        yield from loaders.places(kin, "built the loader")


def _is_stream(kin: loaders.Kin) -> bool:
    """Whether no sampler could deal it out: it has to see itself what is a worker's of a rank."""
    return all(each.iterable for each in kin.values())


def _is_dealt_out(kin: loaders.Kin) -> bool:
    """Whether torch's own distributed sampler deals it out."""
    return any(each.sampler and each.sampler.type == "DistributedSampler" for each in kin.values())


def _finding(
    ranks: list[RankEvidence],
    seeds: list[RankPlace],
    shuffles: list[RankPlace],
    streams: list[RankPlace],
    fed: list[RankPlace],
    given: Given,
    how: str,
) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    code, title, cure = "DDP202", "no-sampler", _DEALT
    if seeds:
        code, title, cure = "DDP204", "sampler-seed-per-rank", _ORDERED
    elif shuffles:
        code, title, cure = "DDP217", "unlike-datasets", _ORDERED
    elif streams:
        code, title, cure = "DDP215", "iterable-not-sharded", _NUMBERED
    return Finding(
        code=code,
        title=title,
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(
            *seeds,
            *shuffles,
            *(streams if code == "DDP215" else ()),
            *fed,
            RankPlace(ranks=numbers, place=given.place, doing="gives them"),
        ),
        cause=f"{named(numbers)} train on the same samples: {how}",
        cure=Cure(text=cure),
    )
