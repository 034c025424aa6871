"""DDP300: a module that the training calls beside the DDP holds something else on each rank.

What a rank holds for itself it may hold on purpose: its part of the data, the state of its stream,
a teacher of its own. Told is, by evidence, what no rank has chosen:

* parameters that never change, where each rank had seeded itself apart before it seeded itself in
  any other way and before a model was wrapped, and where nothing of the kind was loaded: it seems
  that each has drawn its own, as a frozen teacher or a random projection;
* parameters that some ranks change and the others never do, which have what they were made with: it
  seems that what is brought up to date under a condition of the rank was meant to be so on all;
* buffers that change, of a module whose output is what the model is given, and that come to numbers
  of one sign and size on all ranks, or stand beside one that counts alike on all: it seems that all
  measure the same, each on its own data.

Where ranks give each other tensors, each may hold a part, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import shuffles
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import differing, divergences, exchanges, is_a_replica
from ddpdoctor.evidence import RankEvidence, named
from ddpdoctor.evidence.events.beside import Beside

_ENOUGH = 2
"""Windows in which they must have been seen to differ."""
_OFTEN = 3
"""The same, where a rank is to be found that never changes it."""
_FAR = 2.0
"""What measures the same comes to less than so many times as much on another rank."""

Window = list[Beside]
"""What each rank held of one module at one step."""


@detector(precedence=406)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first of them."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    if len(ranks) < 2 or not all(map(is_a_replica, ranks)) or not case.ended_well:
        return
    if any(len(rank.groups) > 1 or exchanges(rank) for rank in ranks) or divergences(case):
        return
    seeds = shuffles.seeded_apart(ranks)
    for windows in _modules(ranks):
        seen = windows[0][0]
        loaded = any(each.name == seen.type for rank in ranks for each in rank.state_loads)
        if seeds and not loaded and (names := _drawn(windows)):
            text = "Build it from the same seed or file on every rank, or broadcast it from rank 0."
            yield _finding(ranks, seen, names, "does not change", seeds, text)
            return
        if left := _left_behind(windows):
            yield _of_some(ranks, windows, *left)
            return
        if names := _measured(windows):
            text = "Reduce its statistics over the ranks before it takes them in."
            where = _changes(windows, 0, tuple(rank.rank for rank in ranks))
            yield _finding(ranks, seen, names, "goes by the data of each rank", where, text)
            return


def _modules(ranks: list[RankEvidence]) -> Iterator[list[Window]]:
    """The windows of each module that all ranks have called alike in two of them or more."""
    for number in sorted({each.number for each in ranks[0].of(Beside)}):
        of_ranks = [
            {each.step: each for each in rank.of(Beside) if each.number == number} for rank in ranks
        ]
        steps = sorted(set.intersection(*map(set, of_ranks)))
        windows = [[of[step] for of in of_ranks] for step in steps]
        if len(windows) >= _ENOUGH and len({_kind(each) for w in windows for each in w}) == 1:
            yield windows


def _kind(seen: Beside) -> tuple[object, ...]:
    """What is alike where it is the same module of the program."""
    return seen.type, seen.place, seen.shapes, (*seen.parameters,), (*seen.buffers,)


def _drawn(windows: list[Window]) -> tuple[str, ...]:
    """Parameters that are the same in all windows, and differ between ranks."""
    frozen = [
        {each.parameters[name] for each in of_rank}
        for of_rank in zip(*windows, strict=True)
        for name in of_rank[0].parameters
    ]
    if any(len(held) > 1 for held in frozen):
        return ()  # it is trained
    return differing([each.parameters for each in windows[0]])


def _left_behind(windows: list[Window]) -> tuple[tuple[str, ...], set[int]] | None:
    """Parameters that some ranks alone change in every window, and which ranks these are."""
    if len(windows) < _OFTEN:
        return None
    found = []
    for of_rank in zip(*windows, strict=True):
        names = tuple(of_rank[0].parameters)
        held = [{each.parameters[name] for each in of_rank} for name in names]
        moving = tuple(n for n, of in zip(names, held, strict=True) if len(of) == len(windows))
        found.append((moving, all(len(of) == 1 for of in held)))
    moved = {number for number, (moving, _) in enumerate(found) if moving}
    others = [number for number, (_, rests) in enumerate(found) if rests]
    if not moved or len(moved) + len(others) < len(found) or not others:
        return None
    alike = [windows[0][number].parameters for number in others]
    if any(each != alike[0] for each in alike):
        return None
    return found[min(moved)][0], moved


def _of_some(
    ranks: list[RankEvidence], windows: list[Window], names: tuple[str, ...], moved: set[int]
) -> Finding:
    """They are changed on these ranks alone."""
    numbers = tuple(rank.rank for number, rank in enumerate(ranks) if number in moved)
    others = tuple(rank.rank for number, rank in enumerate(ranks) if number not in moved)
    seen = windows[0][0]
    return Finding(
        code="DDP300",
        title="silent-divergence",
        severity="warning",
        certainty="evidence",
        ranks=others,
        places=(
            *_changes(windows, min(moved), numbers),
            RankPlace(
                ranks=tuple(sorted((*numbers, *others))),
                place=seen.place,
                doing=f"calls {seen.type}",
            ),
        ),
        cause=f"{seen.type} is no part of a DistributedDataParallel, and {listed(names)} of it "
        f"{'is' if len(names) == 1 else 'are'} brought up to date on {named(numbers)} alone: "
        f"{named(others)} use{'s' if len(others) == 1 else ''} it as it was made.",
        cure=Cure(text="Bring it up to date on every rank, or send it from the rank that does."),
    )


def _changes(windows: list[Window], by: int, numbers: tuple[int, ...]) -> list[RankPlace]:
    """Where the first of these ranks was seen to change it, and what led there."""
    seen = next((window[by] for window in windows if window[by].changed_at), None)
    if seen is None:
        return []
    at = RankPlace(ranks=numbers, place=seen.changed_at, doing=f"changes {seen.type}")
    return [at, *callers(numbers, seen.way, seen.changed_at)]


def _measured(windows: list[Window]) -> tuple[str, ...]:
    """Buffers that change on all ranks, differ in all windows, and are of one size or counted."""
    if not all(each.feeds for window in windows for each in window):
        return ()
    counts = _counts_alike(windows)
    return tuple(
        name
        for number, name in enumerate(windows[0][0].buffers)
        if all(len({each.buffers[name] for each in of}) > 1 for of in zip(*windows, strict=True))
        and all(name in differing([each.buffers for each in window]) for window in windows)
        and (
            counts
            or all(_is_of_one_size([each.few[number] for each in window]) for window in windows)
        )
    )


def _counts_alike(windows: list[Window]) -> bool:
    """Whether one of the buffers is a number of samples, the same on all ranks.

    One that grows by no more than the steps counts these, of whatever else the module does.
    """
    return any(
        all(len({each.few[number] for each in of}) == 1 for of in windows)
        and all(
            len(a.few[number]) == 1 and b.few[number][0] - a.few[number][0] > b.step - a.step
            for (a, *_), (b, *_) in pairwise(windows)
        )
        for number in range(len(windows[0][0].buffers))
    )


def _is_of_one_size(rows: list[tuple[float, ...]]) -> bool:
    """Whether the ranks have numbers of one sign, of which none is far larger than another."""
    return all(rows) and all(
        max(map(abs, of)) < _FAR * min(map(abs, of)) and (min(of) > 0 or max(of) < 0)
        for of in zip(*rows, strict=True)
    )


def _finding(
    ranks: list[RankEvidence],
    seen: Beside,
    names: tuple[str, ...],
    how: str,
    more: list[RankPlace],
    cure: str,
) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    return Finding(
        code="DDP300",
        title="silent-divergence",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=seen.place, doing=f"calls {seen.type}"),
            RankPlace(
                ranks=numbers, place=ranks[0].wrappers[0].place, doing="wrapped another module"
            ),
            *more,
        ),
        cause=f"{seen.type} is no part of a DistributedDataParallel, and {listed(names)} of it, "
        f"which {how}, {'is' if len(names) == 1 else 'are'} not the same on {named(numbers)}.",
        cure=Cure(text=cure),
    )
