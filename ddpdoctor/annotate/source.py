"""The programs that findings speak of, as lint reads them: read once for all findings."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ddpdoctor.catalog import Finding, RankPlace
from ddpdoctor.evidence import Place
from ddpdoctor.lint.linter import lint
from ddpdoctor.lint.reason import Heads, Line, Reason, shares
from ddpdoctor.lint.rule import Diagnostic

if TYPE_CHECKING:
    from ddpdoctor.annotate.naming import Party

_OURSELVES = f"{Path(__file__).parent.parent}/"
_PATIENTS = (f"{_OURSELVES}reproducers/", f"{_OURSELVES}stack/")


class Sources:
    """What the source says of the lines at which ranks stand."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._heads = Heads(self.stack(each) for finding in findings for each in finding.places)
        self._said: dict[tuple[str, ...], Sequence[Diagnostic]] = {}

    def stack(self, at: RankPlace) -> tuple[Line, ...]:
        """The user's own lines that led there, outermost first, as far as they can be read."""
        frames = at.stack or ((at.place,) if at.place is not None else ())
        return tuple((each.file, each.line) for each in frames if not is_foreign(each.file))

    def alike(self, mine: tuple[Line, ...], theirs: tuple[Line, ...]) -> bool:
        """Whether two stacks stand in the same statements."""
        return self._heads.alike(mine, theirs)

    def shared(self, mine: tuple[Line, ...], theirs: tuple[Line, ...]) -> int:
        """How many of the outermost lines two stacks share."""
        return self._heads.shared(mine, theirs)

    def calls(self, at: RankPlace) -> list[Place]:
        """The calls by which the program comes to a line, innermost first."""
        way = self._heads.way(self.stack(at))
        return [self.place(*each) for each in reversed(way[:-1])]

    def built_apart(self, at: RankPlace) -> list[RankPlace]:
        """What ranks answer differently in building the model that is wrapped there."""
        stack = self.stack(at)
        found = self._heads.built_apart(stack) if stack else []
        return [
            RankPlace(ranks=at.ranks, place=self.place(each.path, each.line), doing=each.message)
            for each in found
        ]

    def rates_set_apart(self, at: RankPlace) -> list[RankPlace]:
        """The lines that set a learning rate of a rank's own, of the program that steps there."""
        stack = self.stack(at)
        found = self._heads.rates_set_apart(stack) if stack else []
        return [
            RankPlace(ranks=at.ranks, place=self.place(each.path, each.line), doing=each.message)
            for each in found
        ]

    def condition(self, at: RankPlace) -> Place | None:
        """The nearest decision on the way to a line, as the program runs: what may leave it out."""
        found = self._heads.condition(self.stack(at))
        return self.place(*found) if found is not None else None

    def reasons(self, party: Party) -> list[Reason]:
        """Why these ranks came here, and the others did not."""
        other = party.other
        theirs = other.stack if other is not None else ()
        elsewhere = other.at.ranks if other is not None else party.gone
        return self._heads.reasons(party.stack, theirs, (party.at.ranks, elsewhere))

    def decisions(self, party: Party) -> list[Place]:
        """What is decided on its way, from where it is another one than that of the others."""
        theirs = party.other.stack if party.other is not None else ()
        return [self.place(*each) for each in self._heads.decisions(party.stack, theirs)]

    def by_rank(self, stack: tuple[Line, ...], ranks: Sequence[int]) -> Reason | None:
        """The nearest condition of the rank on the way to a line."""
        found = self._heads.reasons(stack, (), (ranks, ()))
        return next((each for each in found if each.kind == "rank"), None)

    def divides(self, finding: Finding) -> bool:
        """Whether what a finding's lines reduce is divided by the number of ranks."""
        lines = {(p.place.file, p.place.line) for p in finding.places if p.place is not None}
        return any(
            shares.is_divided(self._heads, each) for each in lines if not is_foreign(each[0])
        )

    def sums_parts(self, at: RankPlace) -> bool:
        """Whether what a line reduces was divided by the number of ranks before."""
        if at.place is None or is_foreign(at.place.file):
            return False
        return shares.is_a_part(self._heads, (at.place.file, at.place.line))

    def goes_back_in_parts(self, at: RankPlace) -> list[Line]:
        """The lines that divided by the number of ranks what goes backward on one; 0: unknown."""
        if at.place is None or is_foreign(at.place.file):
            return []
        return shares.goes_back_in_parts(self._heads, (at.place.file, at.place.line))

    def leaves(self, at: RankPlace) -> bool:
        """Whether nothing is made of what a line reduces, from the start of the program on."""
        stack = self.stack(at)
        return bool(stack) and shares.is_left(self._heads, stack)

    def said(self, code: str, places: Iterable[Place]) -> list[Diagnostic]:
        """What lint says under a code in the user's files that these lines are of."""
        files = dict.fromkeys(each.file for each in places)
        own = tuple(each for each in files if not is_foreign(each) and Path(each).is_file())
        if own not in self._said:
            self._said[own] = lint(own).diagnostics
        return [each for each in self._said[own] if each.code == code and not each.cell]

    def raises(self, place: Place | None) -> bool:
        """Whether the statement at a line is a `raise`."""
        if place is None or is_foreign(place.file):
            return False
        return isinstance(self._heads.statement((place.file, place.line)), ast.Raise)

    def place(self, file: str, line: int) -> Place:
        """A line, with the function that it is in."""
        return Place(file, line, self._heads.function((file, line)))


def is_foreign(file: str) -> bool:
    """Whether no user of ours wrote this file: a library, or what starts a rank."""
    if file.startswith(_PATIENTS):
        return False
    library = "/site-packages/" in file or "/lib/python" in file
    return library or file.startswith((_OURSELVES, "<"))
