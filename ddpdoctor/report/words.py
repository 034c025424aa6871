"""The words that the formats for people share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ddpdoctor.evidence import named

if TYPE_CHECKING:
    from ddpdoctor.catalog import Finding, Kind, RankPlace
    from ddpdoctor.report.model import Report

KINDS: dict[Kind, str] = {"broken": "broken", "documented": "advice", "fix": "fix"}

_CERTAINTY = {
    "evidence": "by evidence, not proven",
    "certain": "read in the source, not observed",
    "likely": "likely, by the source alone",
}
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SPECIAL_IN_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~&])")
Row = tuple[str, str, str, str, str]
"""What some ranks did at one line: who, line, function, doing, waits or fate."""
COLUMNS = ("ranks", "line", "function", "doing", "waits")


def one_line(text: str) -> str:
    """Text of somebody else's on one line, unable to move the cursor or to colour anything."""
    text = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def plain_markdown(text: str) -> str:
    """Text on one line with nothing in it that Markdown or HTML would act upon."""
    return _SPECIAL_IN_MARKDOWN.sub(r"\\\1", one_line(text))


def markdown_prose(text: str, *, in_table: bool = False) -> str:
    """The same, with what stands in backticks as code, in which a table alone is acted upon."""

    def told(part: str, is_code: int) -> str:
        # Behind a backslash of its own no bar of a table can be escaped.
        if not is_code or (in_table and r"\|" in part):
            return _SPECIAL_IN_MARKDOWN.sub(r"\\\1", f"`{part}`" if is_code else part)
        bar = r"\|" if in_table else "|"
        return f"`{part.replace('|', bar)}`"

    return "".join(told(each, n % 2) for n, each in enumerate(_CODE.split(one_line(text))))


def count(number: int, noun: str) -> str:
    """A number of things: "1 fix", "2 fixes", "0 errors"."""
    plural = f"{noun}es" if noun.endswith(("x", "ss")) else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def in_bytes(size: float) -> str:
    """As in "4 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} PiB"


def headline(report: Report, finding: Finding) -> str:
    """How sure it is: "deadlock proven 0.7 s after the last rank blocked"."""
    waits = any(place.waits_for for place in finding.places)
    if finding.certainty != "proven" or not waits:
        return _CERTAINTY.get(finding.certainty, finding.certainty)
    if report.proven_after is None:
        return "deadlock proven"
    return f"deadlock proven {report.proven_after:.1f} s after the last rank blocked"


def cure(finding: Finding) -> str:
    """What to do, as a sentence."""
    text = one_line(finding.cure.text)
    return f"{text}." if text and text[-1] not in ".!?:" else text


def remedy(finding: Finding) -> list[str]:
    """The cure and the page that tells more, then the commands to try."""
    more = f"{cure(finding)} ddpdoctor explain {finding.code}".lstrip()
    return [more, *(f"$ {one_line(command)}" for command in finding.cure.commands)]


def rows(finding: Finding) -> Iterator[Row]:
    """One row for all ranks that did the same at the same line, in the order of the finding."""
    together: dict[tuple[object, ...], list[RankPlace]] = {}
    for place in finding.places:
        key = (place.place, place.doing, place.waits_for)
        together.setdefault(key, []).append(place)
    for same in together.values():
        numbers = sorted({number for each in same for number in each.ranks})
        first, waits = same[0], ""
        if first.waits_for:
            verb = "waits" if len(numbers) == 1 else "wait"
            waits = f"{verb} for {named(first.waits_for).partition(' ')[2]}"
        hosts = tuple(dict.fromkeys(host for each in same for host in each.hosts))
        yield row(numbers, hosts, first, waits)


def standing(finding: Finding) -> Iterator[Row]:
    """The same of what ranks did; of what was read in the source the evidence tells the places."""
    return rows(finding) if finding.span is None else iter(())


def row(numbers: Sequence[int], hosts: Sequence[str], at: RankPlace, waits: str) -> Row:
    """Of ranks on these hosts that stand there and do that."""
    return (
        f"{named(numbers)}{on(hosts)}" if numbers else "",
        one_line(str(at.place)) if at.place else "",
        # As people call it: without the functions around it.
        one_line(at.place.function.rpartition("<locals>.")[2]) if at.place else "",
        one_line(at.doing),
        one_line(waits),
    )


def on(hosts: Sequence[str]) -> str:
    """Where ranks run: " on node02", " on node01, node02", " on 40 hosts"; "" if it is not told."""
    if not hosts:
        return ""
    return f" on {', '.join(map(one_line, hosts)) if len(hosts) < 4 else f'{len(hosts)} hosts'}"


def cut_short(numbers: Sequence[int]) -> list[str]:
    """What is not known where these ranks could not write all that happened, if there are any."""
    if not numbers:
        return []
    return [
        f"no room was left for the evidence of {named(numbers)} (is the disk full?): nothing is "
        "concluded from what is not there"
    ]
