"""DDP202: ranks put gradients together that are the same on all of them already.

Proven, of steps without a DDP: some elements of what the latest backward pass had left were equal
to the bit on all ranks, at each step that was looked at, and new each time. Nothing was
communicated while backward ran, and just these gradients were reduced after it: so it was not a
reduction that made them equal. Weights that are alike give equal gradients only of the same
samples, but for rows of a table that no sample has used, which have the same penalty everywhere. So
gradients that are small enough to be read whole must have been given to that reduction alike, too,
or the gradients of all parameters, as far as they were read, must have been alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.by_hand import Look, trained_by_hand
from ddpdoctor.diagnose.detectors.stepped_alone import line_of_gradients
from ddpdoctor.diagnose.shuffles import common, seeded_alike
from ddpdoctor.evidence import Place, RankEvidence, named

_ENOUGH = 3


@detector(precedence=427)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first optimizer of which that is so."""
    for ranks, every in trained_by_hand(case):
        line = line_of_gradients(ranks, every)
        if line is None:
            continue
        looks = [look for look in every if all(each.left for each in look)]
        if len(looks) < _ENOUGH or not all(map(_is_shared, looks)) or not _is_new(looks):
            continue
        if not _are_alike(_given_from(ranks, line)) and not _are_alike(_wholes(looks)):
            continue
        numbers = tuple(rank.rank for rank in ranks)
        yield Finding(
            code="DDP202",
            title="no-sampler",
            severity="warning",
            certainty="proven",
            ranks=numbers,
            places=(
                *common(ranks),
                RankPlace(ranks=numbers, place=line, doing="reduces gradients that are alike"),
                RankPlace(ranks=numbers, place=looks[0][0].place, doing="optimizer.step()"),
                *seeded_alike(ranks),
            ),
            cause=f"{named(numbers)} have the same gradients before they reduce them, to the bit "
            f"in all that was seen of {len(looks)} steps: all train on the same samples, and do "
            f"{len(ranks)} times the work of one rank.",
            cure=Cure(text="Give each rank a share of its own of the samples."),
        )
        return


def _are_alike(contents: list[set[str]]) -> bool:
    """Whether ranks had the same each time, and it was another one, often enough."""
    return len(set().union(*contents)) >= _ENOUGH and all(len(each) == 1 for each in contents)


def _wholes(looks: list[Look]) -> list[set[str]]:
    """All gradients, as the ranks had them at each look that could be read."""
    read = (look for look in looks if all(each.whole for each in look))
    return [{each.whole for each in look} for look in read]


def _given_from(ranks: list[RankEvidence], line: Place) -> list[set[str]]:
    """What the ranks have given to each reduction of a line, of those that were read whole."""
    found: dict[tuple[str, int], set[str]] = {}
    for rank in ranks:
        for call in rank.collectives:
            if call.place == line and call.content:
                found.setdefault((call.group, call.seq), set()).add(call.content)
    return list(found.values())


def _is_shared(look: Look) -> bool:
    return all(each.left == look[0].left and not each.talked for each in look)


def _is_new(looks: list[Look]) -> bool:
    """Whether some gradient was another one each time."""
    names = set.intersection(*({*look[0].left} for look in looks))
    return any(len({tuple(look[0].left[n]) for look in looks}) == len(looks) for n in names)
