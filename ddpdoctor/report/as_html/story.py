"""What the ranks did, told in the order of time, and where each party stood when they parted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ddpdoctor.catalog import Finding, RankPlace
from ddpdoctor.evidence import Place, named
from ddpdoctor.report import words
from ddpdoctor.report.as_html.markup import code, prose, seconds, source, spoken, text
from ddpdoctor.report.lives import Attempt, Call, RankLine, completed
from ddpdoctor.report.model import Report

_MOST_EVENTS = 14
_MOST_PARTIES = 4
_MOST_FRAMES = 12
_CALLS_AFTER = 4
_ENDERS = {"doctor": " by the doctor", "signal": " as the job was asked to end"}


@dataclass
class _Event:
    """Something that some ranks did."""

    first: float
    last: float
    who: list[int] = field(default_factory=list)


def story(report: Report, finding: Finding) -> str:
    """The events until the ranks parted, then the parties side by side."""
    attempt = report.attempts[-1] if report.attempts else None
    told = _told(report, attempt) if attempt else ""
    parties = _parties(report, finding)
    shown = "".join(_party(report, finding, each) for each in parties[:_MOST_PARTIES])
    more = len(parties) - _MOST_PARTIES
    rest = f"<p>and {more} more parties, in the table of ranks</p>" if more > 0 else ""
    sides = f'<div class="sides">{shown}</div>{rest}' if shown else ""
    return f"{told}{_arrows(parties[:_MOST_PARTIES])}{sides}"


def _arrows(parties: list[_Party]) -> str:
    """Who waits in what for whom."""
    rows = [
        f"<li><b>{text(named(each.who))}</b> <span>"
        f"{spoken('waits in ' if len(each.who) == 1 else 'wait in ')}{text(waits.doing)}"
        f"{spoken(' for ')}</span> <b>{text(named(waits.waits_for))}</b></li>"
        for each in parties
        for waits in [place for place in each.places if place.waits_for][:1]
        if each.who
    ]
    label = 'aria-label="who waits in what for whom"'
    return f'<ul class="waits" {label}>{"".join(rows)}</ul>' if rows else ""


def together(attempt: Attempt) -> dict[int, Call]:
    """The calls, by rank, of the last collective of the default group that all ranks made."""
    of_all = completed(attempt.ranks)
    last = max((key for key in of_all if key[0] == "0"), key=lambda key: key[1], default=None)
    return {line.rank: call for line in attempt.ranks for call in line.calls if call.key == last}


def _until(shared: dict[int, Call]) -> str:
    """How far they came together; that they met from several lines is no going the same way."""
    first = next(iter(shared.values()))
    name, all_of_them = f"{first.op} #{first.seq}", named(tuple(shared))
    parties: dict[Place | None, list[int]] = {}
    for rank, call in shared.items():
        parties.setdefault(call.place, []).append(rank)
    if len(parties) == 1:
        where = f" at <b>{text(first.place)}</b>" if first.place else ""
        return (
            f"{text(all_of_them)} did the same until here: {text(name)}{where} is the last "
            "collective that all of them called"
        )
    lines = [
        f"{text(named(who))} at <b>{text(place or 'a line that is not known')}</b>"
        for place, who in list(parties.items())[:_MOST_PARTIES]
    ]
    more = [f"{len(parties) - _MOST_PARTIES} more parties"] * (len(parties) > _MOST_PARTIES)
    return (
        f"{text(name)} is the last in which {text(all_of_them)} met, from several lines: "
        f"{', '.join([*lines, *more])}"
    )


def _told(report: Report, attempt: Attempt) -> str:
    shared = together(attempt) if _parted(attempt) else {}
    since = max((call.at for call in shared.values()), default=-1.0)
    events: dict[tuple[str, Place | None], _Event] = {}
    for line in attempt.ranks:
        for at, said, place in _done(line, since, _ENDERS.get(report.ended_by or "", "")):
            event = events.setdefault((said, place), _Event(at, at))
            event.first, event.last = min(at, event.first), max(at, event.last)
            event.who.append(line.rank)
    ordered = sorted(events.items(), key=lambda each: each[1].first)
    rows = [_row(said, place, event) for (said, place), event in ordered]
    if shared:
        rows.insert(
            sum(event.first <= since for _, event in ordered),
            f"<li><time>{seconds(since)}</time> {_until(shared)}</li>",
        )
    if len(rows) > _MOST_EVENTS:
        left_out = f"<li>… and {len(rows) - _MOST_EVENTS} more events …</li>"
        rows = [*rows[:4], left_out, *rows[4 - _MOST_EVENTS :]]
    return f'<ol class="story">{"".join(rows)}</ol>' if rows else ""


def _parted(attempt: Attempt) -> bool:
    """Whether a rank ended badly, or stands still: else there is nothing until which all went."""
    bad = ("blocked", "exception")
    return any(
        line.exit_code or line.signal or any(mark.kind in bad for mark in line.marks)
        for line in attempt.ranks
    )


def _done(line: RankLine, since: float, by: str) -> Iterator[tuple[float, str, Place | None]]:
    """(when, what, where) of what a rank did after a moment; `by` says who ended ranks."""
    stuck = next((mark for mark in line.marks if mark.kind == "blocked"), None)
    raised = any(mark.kind == "exception" for mark in line.marks)
    for call in [call for call in line.calls if call.at > since][-_CALLS_AFTER:]:
        name = f"{call.op} #{call.seq}"
        if stuck is not None and stuck.text == f"blocked in {name}":
            waited = "waited in it" if raised else "never came out of it"
            yield call.at, f"called {name}, and {waited}", call.place
            stuck = None
        else:
            yield call.at, f"called {name}", call.place
    for mark in line.marks:
        if mark.at > since and mark.kind in ("joining", "file", "exception", "warning", "end"):
            who = by if mark.kind == "end" and line.was_ended else ""
            yield mark.at, f"{mark.text}{who}", mark.place
    for last in [mark for mark in line.marks if mark.kind == "step"][-1:]:
        yield last.at, f"came to {last.text}", None
    if stuck is not None:
        # A heartbeat may have seen it stand still in the call before, already.
        before = [mark.at for mark in line.marks if mark.kind in ("step", "file")]
        yield max([stuck.at, *before]), stuck.text, stuck.place


def _row(said: str, place: Place | None, event: _Event) -> str:
    when = seconds(event.first)
    if event.last - event.first >= 0.05:
        when = f"{when.removesuffix(' s')}–{seconds(event.last)}"
    where = f" at <b>{text(place)}</b>" if place else ""
    said = f"were{said[3:]}" if said.startswith("was ") and len(event.who) > 1 else said
    return f"<li><time>{when}</time> {text(named(event.who))} {prose(said)}{where}</li>"


@dataclass
class _Party:
    """Ranks of which a finding says the same."""

    who: list[int]
    places: list[RankPlace]


def _parties(report: Report, finding: Finding) -> list[_Party]:
    by_rank: dict[int, list[RankPlace]] = {}
    for place in finding.places:
        for rank in place.ranks or (-1,):
            by_rank.setdefault(rank, []).append(place)
    found: dict[object, _Party] = {}
    for rank, places in by_rank.items():
        key = tuple((each.place, each.doing, each.waits_for) for each in places)
        party = found.setdefault(key, _Party([], places))
        party.who += [rank] if rank >= 0 else []
    return list(found.values())


def _party(report: Report, finding: Finding, party: _Party) -> str:
    first = party.places[0]
    to_blame = not set(party.who).isdisjoint(finding.ranks)
    who = text(named(party.who) + words.on(first.hosts)) if party.who else "in the source"
    waits = f", waits for {text(named(first.waits_for))}" if first.waits_for else ""
    body = "".join(_frames(report, party))
    kind = ' class="culprit"' if to_blame else ""
    head = f"<h3>{who}</h3><p>{prose(first.doing)}{waits}</p>"
    return f'<article{kind} aria-label="{who}">{head}{body}</article>'


def _frames(report: Report, party: _Party) -> Iterator[str]:
    """The stack, outermost first, the line where the party stands, and what is said of others."""
    here = party.places[0].place
    said = {each.place: each.doing for each in party.places[1:] if each.place}
    outer = [place for place in _stack(report, party, here) if place != here]

    def rows(places: Sequence[Place]) -> str:
        return "".join(
            f"<li><span>{text(place.function)}</span> <b>{text(place)}</b>"
            f"{f' <small>{prose(said[place])}</small>' if said.get(place) else ''}"
            f"{_line(report, place)}</li>"
            for place in places[-_MOST_FRAMES:]
        )

    if outer:
        yield f'<ol class="stack">{rows(outer)}</ol>'
    if here is not None:
        excerpt = report.excerpt_at(here)
        line = text(f"{report.path(here)}:{here.line}")
        yield f"<p><span>{text(here.function)}</span> <b>{line}</b></p>"
        yield source(excerpt) if excerpt else ""
    if others := [place for place in said if place not in outer and place != here]:
        yield f'<ul class="stack" aria-label="besides">{rows(others)}</ul>'


def _stack(report: Report, party: _Party, here: Place | None) -> tuple[Place, ...]:
    lines = {line.rank: line for line in report.attempts[-1].ranks} if report.attempts else {}
    for rank in party.who:
        line = lines.get(rank)
        if line is not None and here in line.stack:
            return line.stack
    return ()


def _line(report: Report, place: Place) -> str:
    excerpt = report.excerpt_at(place)
    if excerpt is None:
        return ""
    return f"<code>{code(excerpt.marked.strip())}</code>"
