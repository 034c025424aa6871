"""DDP300: ranks share gradients without a DDP, and what they train is not the same.

Seen at some steps, of all ranks: the gradients were equal to the bit, and changed from step to
step, so the ranks average them. Proven is then what contradicts that: weights that are not the same
at any of these steps; or that were, and are no more, where the learning rates are not the same. And
where one rank has a gradient of one parameter and another one of another, and these two are equal
to the bit, and new, again and again, one reduction has added up both. By evidence, of weights that
were alike: gradients that were the same at each of these steps, or shared at one step and not at
another, where the weights are apart in the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from math import prod

from ddpdoctor.catalog import Certainty, Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import differing
from ddpdoctor.diagnose.shuffles import seeded_apart
from ddpdoctor.evidence import RankEvidence, StateLoad, named
from ddpdoctor.evidence.events.by_hand import ByHand

_ENOUGH = 3
_REDUCE_ALL = (
    "Reduce the gradients of the same parameters in the same order on every rank, zeros where a "
    "rank has none."
)

_SENT = ("broadcast", "scatter", "all_gather")

_RATES = "Compute the learning rate from what is the same on every rank."

Look = list[ByHand]
"""What each rank was about to step on at one step."""


@detector(precedence=409)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first optimizer of which that is so."""
    for ranks, looks in trained_by_hand(case):
        if len(looks) < _ENOUGH:
            continue
        apart = [differing([each.parameters for each in look]) for look in looks]
        unlike = [_unlike(look) for look in looks]
        if not _are_new(looks):
            continue
        if pairs := _crossed(looks):
            yield _mixed(ranks, looks[0], *pairs[0])
            return
        if not apart[0] and (pair := _in_another_order(looks)) is not None:
            yield _given_back_apart(ranks, looks[0], *pair)
            return
        if not apart[-1]:
            continue
        if all(apart) and not any(unlike):
            yield _loaded(ranks, looks[0], apart[0]) or _begun_apart(ranks, looks[0], apart[0])
            return
        if not apart[0] and not any(unlike):
            yield _stepped_apart(ranks, looks, apart[-1])
            return
        if not apart[0] and (names := _shared_at_times(looks, unlike)):
            yield _missed(ranks, looks, unlike, names)
            return


def trained_by_hand(case: Case) -> Iterator[tuple[list[RankEvidence], list[Look]]]:
    """What was seen of each optimizer of ranks without a DDP, whose job has ended well."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    if len(ranks) < 2 or any(rank.wrappers for rank in ranks) or not case.ended_well:
        return
    for optimizer in sorted({each.optimizer for each in ranks[0].of(ByHand)}):
        yield ranks, looks_of(ranks, optimizer)


def looks_of(ranks: list[RankEvidence], optimizer: int) -> list[Look]:
    """Those steps at which all ranks were looked at."""
    of_ranks = [
        {each.step: each for each in rank.of(ByHand) if each.optimizer == optimizer}
        for rank in ranks
    ]
    steps = sorted(set.intersection(*map(set, of_ranks)))
    return [[of[step] for of in of_ranks] for step in steps]


def _unlike(look: Look) -> tuple[str, ...]:
    """The gradients that are not the same on all ranks, those included that some do not have."""
    held = [set(each.gradients) for each in look]
    some = held[0].union(*held) - held[0].intersection(*held)
    return (*differing([each.gradients for each in look]), *sorted(some))


def _are_new(looks: list[Look]) -> bool:
    """Whether gradients change from step to step: such as are zero are alike everywhere."""
    for of in zip(*looks, strict=True):
        for name in {name for each in of for name in each.gradients}:
            seen = [each.gradients[name] for each in of if name in each.gradients]
            if len(seen) > 1 and len(set(seen)) == 1:
                return False
    return True


def _shared_at_times(looks: list[Look], unlike: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The gradients that were not alike at a step, if each was at another one."""
    world = len(looks[0])
    shared = {
        name
        for look, names in zip(looks, unlike, strict=True)
        for name in look[0].gradients
        if name not in names and sum(name in each.gradients for each in look) == world
    }
    missed = tuple(dict.fromkeys(name for names in unlike for name in names))
    return missed if missed and set(missed) <= shared else ()


def _crossed(looks: list[Look]) -> list[tuple[str, str, int]]:
    """Parameters of rank 0 and of another rank that had one and the same gradient, and which rank.

    Neither rank had the other's parameter in use. It was another one each time: zeros are alike
    without any reduction.
    """
    shared: defaultdict[tuple[str, str, int], set[str]] = defaultdict(set)
    for look in looks:
        first = look[0].gradients
        for rank, other in enumerate(look):
            by_digest = {
                digest: name for name, digest in other.gradients.items() if name not in first
            }
            for name, digest in first.items():
                if name not in other.gradients and digest in by_digest:
                    shared[name, by_digest[digest], rank].add(digest)
    return [pair for pair, digests in shared.items() if len(digests) >= _ENOUGH]


def _in_another_order(looks: list[Look]) -> tuple[str, str, int] | None:
    """Two parameters that have each other's place on two ranks, where all have the same gradients.

    At each step that was looked at; such as are not on any other parameter are left out.
    """
    found = None
    for look in looks:
        first = look[0].gradients
        if any(
            each.gradients.keys() != first.keys()
            or Counter(each.gradients.values()) != Counter(first.values())
            for each in look
        ):
            return None
        once = {n: d for n, d in first.items() if list(first.values()).count(d) == 1}
        for rank, other in enumerate(look):
            by_digest = {digest: name for name, digest in other.gradients.items()}
            moved = [(name, by_digest[d]) for name, d in once.items() if by_digest[d] != name]
            if moved and found is None:
                found = (*moved[0], rank)
    return found


def _given_back_apart(
    ranks: list[RankEvidence], look: Look, mine: str, theirs: str, rank: int
) -> Finding:
    numbers = tuple(each.rank for each in ranks)
    return Finding(
        code="DDP413",
        title="unordered-collectives",
        severity="error",
        certainty="proven",
        ranks=numbers,
        places=(
            *lines_of(ranks, "all_reduce", "reduces gradients in an order of each rank's own"),
            RankPlace(ranks=numbers, place=look[0].place, doing="optimizer.step()"),
        ),
        cause=f"the ranks step on the same gradients, on other parameters: that of {mine} on rank "
        f"{ranks[0].rank} is that of {theirs} on rank {ranks[rank].rank}, to the bit. Each rank "
        "puts them together in an order of its own, so gradients of different parameters were "
        "added up.",
        cure=Cure(
            text="Go through the parameters in one order on every rank, such as that of "
            "named_parameters(), or sort their names: the order of a set is each process's own."
        ),
    )


def _mixed(ranks: list[RankEvidence], look: Look, mine: str, theirs: str, rank: int) -> Finding:
    numbers = tuple(each.rank for each in ranks)
    return _finding(
        numbers,
        look,
        f"the gradient of {mine} on rank {ranks[0].rank} and that of {theirs} on rank "
        f"{ranks[rank].rank} are equal to the bit: one reduction has added up the two, as each "
        "rank leaves out other parameters.",
        _REDUCE_ALL,
        "proven",
        lines_of(ranks, "all_reduce", "reduces what this rank has"),
    )


def lines_of(ranks: list[RankEvidence], op: str, doing: str) -> list[RankPlace]:
    """The line from which such a collective of several numbers is called most often."""
    of_several = (
        call
        for call in ranks[0].collectives
        if call.op == op and any(prod(shape) > 1 for shape in call.shapes)
    )
    calls = Counter(call.place for call in of_several if call.place)
    numbers = tuple(rank.rank for rank in ranks)
    return [RankPlace(ranks=numbers, place=place, doing=doing) for place, _ in calls.most_common(1)]


def _loaded(ranks: list[RankEvidence], look: Look, names: tuple[str, ...]) -> Finding | None:
    """Where some ranks alone have loaded a model before the first step, and none was sent since."""
    loads = {rank.rank: _early_loads(rank) for rank in ranks}
    lines = {number: {each.place for each in of} for number, of in loads.items()}
    everywhere = set.intersection(*lines.values())
    own = {
        number: next((each for each in of if each.place not in everywhere), None)
        for number, of in loads.items()
    }
    lone = {number: load for number, load in own.items() if load is not None}
    if not lone or len(lone) == len(ranks):
        return None
    since = min(load.time for load in lone.values())
    early = (call for rank in ranks for call in rank.collectives if call.step <= look[0].step)
    if any(call.op in _SENT and call.begun > since for call in early):
        return None
    numbers, load = tuple(lone), lone[min(lone)]
    others = tuple(rank.rank for rank in ranks if rank.rank not in lone)
    return Finding(
        code="DDP513",
        title="resume-on-one-rank",
        severity="error",
        certainty="evidence",
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=load.place, doing="load_state_dict"),
            *callers(numbers, load.way, load.place),
            RankPlace(
                ranks=tuple(rank.rank for rank in ranks),
                place=look[0].place,
                doing="optimizer.step()",
            ),
        ),
        cause=f"{named(numbers)} alone loaded weights before the first step, and {named(others)} "
        f"did not: {listed(names)} differ at each step that was looked at, and all step on the "
        "same gradients.",
        cure=Cure(
            text="Load on every rank, or broadcast what was loaded from the rank that loads."
        ),
    )


def _early_loads(rank: RankEvidence) -> list[StateLoad]:
    """Into models, before the first step."""
    loads = (each for each in rank.state_loads if each.of != "optimizer" and each.keys)
    return [each for each in loads if each.step == 0 and each.place is not None]


def _begun_apart(ranks: list[RankEvidence], look: Look, names: tuple[str, ...]) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    return _finding(
        numbers,
        look,
        f"{named(numbers)} step on the same gradients, and hold different weights at each step "
        f"that was looked at ({listed(names)}): each trains a model of its own by what others' "
        "models have found.",
        "Broadcast the weights themselves from rank 0 before the first step, into the parameters "
        "and not into copies of them.",
        "proven",
        [*lines_of(ranks, "broadcast", "broadcasts"), *seeded_apart(ranks)],
    )


def _stepped_apart(ranks: list[RankEvidence], looks: list[Look], names: tuple[str, ...]) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    parted = next((look for look in looks if len({each.rates for each in look}) > 1), None)
    before = next((look for look in looks if len({each.rates_so_far for each in look}) > 1), None)
    if parted is None and before is not None:
        why = f"the learning rates differed between ranks at some step before {before[0].step}"
        cure = _RATES
    elif parted is None:
        why = "something else than these changes them on some ranks"
        cure = "Look for what ranks do otherwise than step, or step by: noise, decay, averages."
    else:
        told = ", ".join(
            f"rank {rank} {look.rates[0]:g}"
            for rank, look in zip(numbers, parted, strict=True)
            if look.rates
        )
        why = f"the learning rates differ between ranks ({told} at step {parted[0].step})"
        cure = _RATES
    return _finding(
        numbers,
        looks[-1],
        f"{named(numbers)} step on the same gradients, from weights that were alike, and have "
        f"parted ({listed(names)}): {why}.",
        cure,
        "evidence" if parted is None and before is None else "proven",
        [],
        "silent-divergence" if parted is None and before is None else "rates-apart",
    )


def _missed(
    ranks: list[RankEvidence],
    looks: list[Look],
    unlike: list[tuple[str, ...]],
    names: tuple[str, ...],
) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    steps = [look[0].step for look, of in zip(looks, unlike, strict=True) if of]
    return _finding(
        numbers,
        looks[-1],
        f"the gradients of {listed(names)} are shared at some steps and not at others (step "
        f"{', '.join(map(str, steps[:3]))}): the weights of {named(numbers)} have parted.",
        _REDUCE_ALL,
        "evidence",
        lines_of(ranks, "all_reduce", "reduces"),
    )


def _finding(
    numbers: tuple[int, ...],
    look: Look,
    cause: str,
    cure: str,
    certainty: Certainty,
    lines: list[RankPlace],
    title: str = "silent-divergence",
) -> Finding:
    return Finding(
        code="DDP300",
        title=title,
        severity="error",
        certainty=certainty,
        ranks=numbers,
        places=(*lines, RankPlace(ranks=numbers, place=look[0].place, doing="optimizer.step()")),
        cause=cause,
        cure=Cure(text=cure),
    )
