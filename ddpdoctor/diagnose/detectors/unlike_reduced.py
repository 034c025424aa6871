"""DDP413: what ranks reduce together is not the same thing, as each goes by an order of its own.

Seen is what the numbers stood for. Either the ranks came to one line, between two steps, with the
same words in a variable, in another order (`for name in metrics: all_reduce(...)`): so the sum
under one number is of different things. What is gathered is too, unless they go round, each from
another word: so work is dealt out. Or what was reduced were the values of a dictionary, in
its order, and the dictionaries have the same keys in another order. Both are evidence: what a word
stands for is the program's affair. A word that another rank does not come to in the same pass, as
the name of a shard, is none of these.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Collective, Place, named

Calls = dict[int, Collective]
"""One call, as each rank made it."""


@detector(precedence=398)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line."""
    for place, passes in _passes(case).items():
        found = next((pair for calls in passes.values() if (pair := _unlike(calls))), None)
        if found is None:
            continue
        calls, what = found
        ranks = tuple(sorted(calls))
        first = calls[ranks[0]]
        told = ", ".join(f"rank {rank} {of}" for rank, of in list(what.items())[:4])
        yield Finding(
            code="DDP413",
            title="unordered-collectives",
            severity="warning",
            certainty="evidence",
            ranks=ranks,
            places=(
                RankPlace(ranks=ranks, place=place, doing=f"{first.op} of unlike things"),
                *callers(ranks, first.way, place),
            ),
            cause=f"{named(ranks)} put different things together in {first.op} #{first.seq} at "
            f"{place}, as each goes by an order of its own: {told}.",
            cure=Cure(text="Go through them in one order on all ranks: sorted(...)."),
        )


def _passes(case: Case) -> dict[Place, dict[tuple[str, int], dict[int, Calls]]]:
    """By line, group and step: the calls with labels, by number, that all members have made."""
    found: dict[Place, dict[tuple[str, int], dict[int, Calls]]] = {}
    for rank in case.evidence.ranks:
        for call in rank.collectives:
            if call.labels and call.place is not None:
                passes = found.setdefault(call.place, {})
                calls = passes.setdefault((call.group, call.step), {})
                calls.setdefault(call.seq, {})[rank.rank] = call
    return found


def _unlike(calls: dict[int, Calls]) -> tuple[Calls, dict[int, str]] | None:
    """The first call in which ranks meant different things, and what each meant."""
    most = max(map(len, calls.values()))
    whole = [of for _, of in sorted(calls.items()) if len(of) == most > 1]
    for of in whole:
        labels = {rank: _by_name(call) for rank, call in of.items()}
        for name in set.intersection(*map(set, labels.values())):
            mine = {rank: each[name] for rank, each in labels.items()}
            if len(set(mine.values())) == 1:
                continue
            if name.endswith("[]"):
                if len({tuple(sorted(keys)) for keys in mine.values()}) == 1:
                    return of, {rank: ", ".join(keys) for rank, keys in mine.items()}
            elif _all_come_to(whole, name, set(mine.values())) and not _go_round(whole, name):
                return of, {rank: repr(keys[0]) for rank, keys in mine.items()}
    return None


def _all_come_to(whole: list[Calls], name: str, words: set[tuple[str, ...]]) -> bool:
    """Whether each rank has had all of these words in this variable, in the same pass."""
    return all(
        words <= {_by_name(of[rank]).get(name, ()) for of in whole if rank in of}
        for rank in whole[0]
    )


def _go_round(whole: list[Calls], name: str) -> bool:
    """Whether what is gathered comes in one order everywhere, which each begins somewhere else."""
    if any(call.op != "all_gather" for of in whole for call in of.values()):
        return False
    orders = [
        [*dict.fromkeys(_by_name(of[rank]).get(name, ()) for of in whole if rank in of)]
        for rank in whole[0]
    ]
    rounds = [orders[0][n:] + orders[0][:n] for n in range(len(orders[0]))]
    return all(order in rounds for order in orders)


def _by_name(call: Collective) -> dict[str, tuple[str, ...]]:
    return {name: tuple(words) for name, *words in call.labels}
