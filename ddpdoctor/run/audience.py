"""Who is told of a job while it goes on, and of what."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ddpdoctor.catalog import Finding
from ddpdoctor.run.worlds import WatchedWorld, Worlds

_DIAGNOSE_EVERY = 2.0
"""Seconds between two looks for what is wrong with a job that goes on."""

_MEETING_TAKES = 30.0
"""Seconds at most, of ranks that will meet at all where a limit is low."""

_SHARE = 0.002
"""Of a core, that may be spent on it: the cores are the job's."""

_SHARE_HELD_UP = 0.05
"""The same, while ranks wait."""


def _ignore(*_: object) -> None:
    pass


@dataclass(frozen=True)
class Audience:
    """Who is told of a job while it goes on."""

    found: Callable[[Finding], None] = _ignore
    """Something is wrong with it."""
    stalled: Callable[[Finding], None] = _ignore
    """Ranks wait long for one that may come yet."""
    went_on: Callable[[Finding], None] = _ignore
    """It came: nothing was wrong."""
    withdrawn: Callable[[Finding], None] = _ignore
    """What was found is not so any more: the job has refuted it."""
    look: Callable[[WatchedWorld, Finding | None], None] = _ignore
    """Several times a second: how it is, and in which stall."""


class Watcher:
    """Looks for what is wrong while the job goes on; tells what two looks in a row have found."""

    def __init__(self, audience: Audience, limit: Finding | None = None) -> None:
        """`limit` is one that is too low, told if the ranks do not meet."""
        self.stall: Finding | None = None
        """The one that lasts."""
        self._pending: Finding | None = None
        """The one that was told and not taken back."""
        self._audience = audience
        self._limit = limit
        self._began = time.monotonic()
        self._next = 0.0
        self._lost: set[str] = set()
        """Hosts of which nothing has been heard for long."""
        self._seen: set[tuple[str, str]] = set()
        self._told: dict[tuple[str, str], Finding] = {}

    def look(self, worlds: Worlds) -> None:
        """Look again, if it is time to."""
        if (lost := worlds.lost) - self._lost:
            self._next = 0.0
        self._lost = lost
        if (worlds.all or self._limit is not None) and time.monotonic() > self._next:
            began = time.thread_time()  # where others have the cores, a look lasts longer than that
            found = {_identity(each): each for each in self._found(worlds)}
            self._withdraw(found.values())
            sure = {
                key: each for key, each in found.items() if key in self._seen or each.has_lasted
            }
            self.stall = next((each for each in sure.values() if each.may_pass), None)
            for key, finding in sure.items():
                if key not in self._told:
                    self._told[key] = finding
                    self._tell(finding)
            self._refute(found)
            self._seen = set(found)
            took = time.thread_time() - began
            share = _SHARE_HELD_UP if worlds.are_held_up else _SHARE
            self._next = time.monotonic() + max(_DIAGNOSE_EVERY, took / share)

    def _found(self, worlds: Worlds) -> list[Finding]:
        late = time.monotonic() > self._began + _MEETING_TAKES
        if self._limit is None or not late or worlds.have_met:
            return worlds.findings()
        return [*worlds.findings(), self._limit]

    def conclude(self, findings: Iterable[Finding], *, was_ended: bool) -> None:
        """The job has ended, and this was found.

        What was told and is not among it is not so, unless somebody ended the job before it showed.
        """
        found = {_identity(each): each for each in findings}
        self._withdraw(found.values())
        if not was_ended:
            self._seen = set(found)
            self._refute(found)

    def _tell(self, finding: Finding) -> None:
        if finding is self.stall:
            self._pending = finding
            self._audience.stalled(finding)
        else:
            self._audience.found(finding)

    def _refute(self, found: Mapping[tuple[str, str], Finding]) -> None:
        """Take back what two looks did not find any more, unless an error has taken its place."""
        if any(each.severity == "error" for each in found.values()):
            return
        for key in [key for key in self._told if key not in found and key not in self._seen]:
            finding = self._told.pop(key)
            if not finding.may_pass:
                self._audience.withdrawn(finding)

    def _withdraw(self, findings: Iterable[Finding]) -> None:
        """Take back a stall that was told and is over, unless it came to something worse."""
        if self._pending is not None and not any(
            each.may_pass or each.severity == "error" for each in findings
        ):
            self._audience.went_on(self._pending)
            self._pending = None


def _identity(finding: Finding) -> tuple[str, str]:
    """By its place; a rank that is late may be seen anywhere."""
    where = finding.ranks if finding.may_pass else finding.place
    return finding.code, str(where)
