"""DDP217: the same index of a dataset is not the same sample on every rank.

A sampler deals out indices, so ranks share the data only if an index means one sample. Seen in
three ways, whatever the code looks like. The part of one set that each rank has chosen, as a split
does. The elements of what the dataset is made of: in another order,
or others; that these are its samples is concluded. And, when ranks change shards from epoch to
epoch, the samples themselves: proven where all that was stable on each rank (the same index gave
the same twice) differs between ranks; what augmentation changes is stable nowhere. Where another
part is alike, as a label is under an augmentation of each rank's own, it is evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ddpdoctor.catalog import Cure, Finding
from ddpdoctor.diagnose import loaders, shuffles
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import named
from ddpdoctor.evidence.events.meant import Meant

_ENOUGH = 2
_CURE = "Shuffle and split with a seed that all ranks share, sort what is listed, or let rank 0 "
_CURE += "decide and broadcast it."


@detector(precedence=447)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first loader whose indices mean different things."""
    for kin in loaders.kin(case.evidence):
        if len(kin) < 2 or any(each.iterable for each in kin.values()):
            continue
        if not loaders.are_dealt_out(kin):
            continue
        lengths = {rank: loader.length for rank, loader in kin.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"rank {rank} {n}" for rank, n in sorted(lengths.items())[:8])
            yield _finding(case, kin, f"their lengths differ: {told}", "proven")
            return
        if any(loader.listings for loader in kin.values()) and not _lists_others(kin):
            continue  # told by the order of the files
        if "DDP206" in case.told and any(loader.members for loader in kin.values()):
            continue  # told by the split
        seen = _by_members(kin) or _by_elements(kin) or _by_samples(case, kin)
        if seen is not None:
            yield _finding(case, kin, *seen)
            return


def _lists_others(kin: loaders.Kin) -> bool:
    """Whether each lists files of its own, one for each sample."""
    names = set.intersection(*(set(each.listings) & set(each.elements) for each in kin.values()))
    return any(len({each.listings[name][1] for each in kin.values()}) > 1 for name in names)


def _by_members(kin: loaders.Kin) -> tuple[str, str] | None:
    """The parts of one set that ranks have chosen, by which of its indices these are.

    What has nothing in common may have been dealt out before.
    """
    first, *others = dict.fromkeys(frozenset(each.members or ()) for each in kin.values())
    sets = {each.identity for each in kin.values()}
    if len(sets) > 1 or "" in sets or not others or not all(first & each for each in others):
        return None
    return "each is another part of one and the same set", "evidence"


def _by_elements(kin: loaders.Kin) -> tuple[str, str] | None:
    """Attributes with one element for each sample."""
    names = set.intersection(*(set(loader.elements) for loader in kin.values()))
    unlike = [n for n in sorted(names) if len({each.elements[n][0] for each in kin.values()}) > 1]
    if not unlike:
        return None
    of = next(iter(kin.values())).dataset
    for name in unlike:
        regardless = {each.elements[name][1] for each in kin.values()}
        if len(regardless) == 1 and regardless != {""}:
            attribute = f"{of}.{name}" if name else of
            return f"{attribute} holds the same samples, in another order on each", "evidence"
    if len(unlike) < len(names):
        return None  # what is alike is the data; the rest may be a rank's own
    attribute = f"{of}.{unlike[0]}" if unlike[0] else of
    return f"{attribute} holds other samples on each", "evidence"


def _by_samples(case: Case, kin: loaders.Kin) -> tuple[str, str] | None:
    """The samples that came of the same index on several ranks."""
    seen: dict[int, dict[int, list[tuple[str, ...]]]] = {}
    for rank in case.evidence.ranks:
        number = next((n for n, each in enumerate(rank.loaders) if each is kin.get(rank.rank)), -1)
        for meant in rank.of(Meant):
            if meant.loader == number:
                for index, parts in meant.samples.items():
                    seen.setdefault(index, {}).setdefault(rank.rank, []).append(parts)
    width = min((len(p) for of in seen.values() for ps in of.values() for p in ps), default=0)
    told = [_Part.of(part, seen) for part in range(width)]
    unlike = [part for part in told if part.is_unlike]
    if not unlike:
        return None
    apart, of_all = unlike[0].conflicts, unlike[0].conflicts + unlike[0].agreements
    is_proven = not any(part.is_alike for part in told)
    how = f"{apart} of {of_all} indices gave another sample on another rank"
    return how, "proven" if is_proven else "evidence"


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of the samples, as the image or the label, by the indices that came again."""

    stable: int
    """So often the same index gave the same on the same rank again."""
    unstable: int
    conflicts: int
    """So many indices gave something else on another rank."""
    agreements: int

    @classmethod
    def of(cls, part: int, seen: Mapping[int, Mapping[int, list[tuple[str, ...]]]]) -> _Part:
        stable = unstable = conflicts = agreements = 0
        for of in seen.values():
            told = {rank: {parts[part] for parts in each} for rank, each in of.items()}
            stable += sum(len(told[rank]) == 1 and len(of[rank]) > 1 for rank in of)
            unstable += sum(len(each) > 1 for each in told.values())
            if len(told) > 1:
                alike = len(set().union(*told.values())) == 1
                agreements += alike
                conflicts += not alike
        return cls(stable, unstable, conflicts, agreements)

    @property
    def is_unlike(self) -> bool:
        enough = min(self.stable, self.conflicts) >= _ENOUGH
        return enough and not self.unstable and self.conflicts > self.agreements

    @property
    def is_alike(self) -> bool:
        return self.agreements >= _ENOUGH and not self.conflicts


def _finding(case: Case, kin: loaders.Kin, how: str, certainty: str) -> Finding:
    ranks = tuple(sorted(kin))
    return Finding(
        code="DDP217",
        title="unlike-datasets",
        severity="error",
        certainty="proven" if certainty == "proven" else "evidence",
        ranks=ranks,
        places=(
            *shuffles.apart([case.evidence.ranks[rank] for rank in ranks], generators=True),
            *loaders.makers(kin),
            *loaders.places(kin, "built the loader", sampler="built the sampler"),
        ),
        cause=f"the datasets of {named(ranks)} are not the same: {how}. The sampler deals out "
        "indices, so samples are seen twice and others never.",
        cure=Cure(text=_CURE),
    )
