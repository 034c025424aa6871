"""What the ranks did, told in the order of time, and where each party stood when they parted."""

from __future__ import annotations

from collections.abc import Iterator
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


@dataclass
class _Event:
    """Something that some ranks did."""

    first: float
    last: float
    who: list[int] = field(default_factory=list)


def story(report: Report, finding: Finding) -> str:
    """The events until the ranks parted, then the parties side by side."""
    attempt = report.attempts[-1] if report.attempts else None
    told = _told(attempt) if attempt else ""
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
        if each.who and (waits := each.places[0]).waits_for
    ]
    label = 'aria-label="who waits in what for whom"'
    return f'<ul class="waits" {label}>{"".join(rows)}</ul>' if rows else ""


def together(attempt: Attempt) -> Call | None:
    """The last collective of the default group that all ranks made, and all alike."""
    of_all = completed(attempt.ranks)
    last = max((key for key in of_all if key[0] == "0"), key=lambda key: key[1], default=None)
    same = [call for line in attempt.ranks for call in line.calls if call.key == last]
    return max(same, key=lambda call: call.at, default=None)


def _told(attempt: Attempt) -> str:
    shared = together(attempt) if _parted(attempt) else None
    since = shared.at if shared else -1.0
    events: dict[tuple[str, Place | None], _Event] = {}
    for line in attempt.ranks:
        for at, said, place in _done(line, since):
            event = events.setdefault((said, place), _Event(at, at))
            event.first, event.last = min(at, event.first), max(at, event.last)
            event.who.append(line.rank)
    ordered = sorted(events.items(), key=lambda each: each[1].first)
    rows = [_row(said, place, event) for (said, place), event in ordered]
    if shared is not None:
        where = f" at <b>{text(shared.place)}</b>" if shared.place else ""
        rows.insert(
            sum(event.first <= since for _, event in ordered),
            f"<li><time>{seconds(shared.at)}</time> {text(named(range(attempt.world_size)))} did "
            f"the same until here: {text(shared.op)} #{shared.seq}{where} is the last "
            "collective that all of them called</li>",
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


def _done(line: RankLine, since: float) -> Iterator[tuple[float, str, Place | None]]:
    """(when, what, where) of what a rank did after a moment."""
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
            yield mark.at, mark.text, mark.place
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
    return f"<li><time>{when}</time> {text(named(event.who))} {text(said)}{where}</li>"


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
    """The stack, outermost first, then the line where the party stands, in its surroundings."""
    here = party.places[0].place
    said = {each.place: each.doing for each in party.places[1:] if each.place}
    outer = [place for place in _stack(report, party, here) if place != here]
    outer += [place for place in said if place not in outer]
    rows = []
    for place in outer[-_MOST_FRAMES:]:
        note = f" <small>{text(said[place])}</small>" if place in said else ""
        rows.append(
            f"<li><span>{text(place.function)}</span> <b>{text(place)}</b>{note}"
            f"{_line(report, place)}</li>"
        )
    if rows:
        yield f'<ol class="stack">{"".join(rows)}</ol>'
    if here is not None:
        excerpt = report.excerpt_at(here)
        line = text(f"{report.path(here)}:{here.line}")
        yield f"<p><span>{text(here.function)}</span> <b>{line}</b></p>"
        yield source(excerpt) if excerpt else ""


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
