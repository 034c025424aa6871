"""The doctors of one set of ranks, from the side of one of them.

A `Member` tells the first doctor what its ranks write, but for their heartbeats, and how they end;
and answers the questions. The `First` takes that in, asks, and says when the job is to be ended.
What each sends is in the order in which it happened, and begins anew with each connection.
"""

from __future__ import annotations

import gc
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Set
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddpdoctor.diagnose import may_be_deadlocked
from ddpdoctor.diagnose.detectors.host_lost import LONG
from ddpdoctor.evidence import (
    DAMAGED,
    Evidence,
    Fate,
    LogReader,
    RankEvidence,
    Saying,
    Words,
    folded,
    unfolded,
)
from ddpdoctor.hosts.messages import PROTOCOL, Meeting, opened, sealed
from ddpdoctor.hosts.outbox import Outbox
from ddpdoctor.hosts.post import Post, StorePost
from ddpdoctor.hosts.rounds import PAUSE, Cut, Rounds, answer, holds, later, seen_at_once
from ddpdoctor.hosts.shared import EitherPost, FolderPost

if TYPE_CHECKING:
    from ddpdoctor.observation import Observation

_BEAT = 1.0
"""Seconds between two signs of life of a doctor, while little happens."""
_LATE = 1.5
"""Seconds by which a sign of life may be late before nothing is heard of a host."""
_AT_ONCE = 500_000
"""Bytes of lines in one message, at most; they pack to a tenth."""
_TO_BEGIN = 40.0
"""Seconds that a courier gets to be connected: it loads torch, on a machine that is at work."""
_TO_MEET = 10.0
"""Seconds from then that the others get before each doctor proves what it can by itself."""
_LOST = 7.0
"""Seconds by which a word of the first doctor may be late before each is on its own."""
_BEATS = 2000
"""Signs of life that the first doctor can well take in a second: more hosts give fewer each."""
_FLOW = 200_000.0
"""Bytes a second that it can well take, of all hosts, of what ranks are compared by."""
_FEW = 4
"""Of ranks that wait alike so many are asked what they had called."""
_KINDS = 64
"""Of so many kinds of waits, at most; those of the fewest ranks first."""
_MANY = 1000
"""Ranks of whose evidence it takes long to look through all for cycles of objects."""
_RARELY = 100_000, 20, 20
"""How often that is done then; there are none but by accident."""
_LONG_WAIT = 5.0
"""Seconds of a wait after which it is asked for them, too, where there may be no deadlock."""
_HOLD = 2.0
"""Seconds after a question in which nothing is sent that can wait."""
_SPARING = 5.0
"""Once that took none for a deadlock, it is not looked for one for so many times as long."""


class Company(ABC):
    """The doctors of a job on several hosts, from the side of one of them."""

    lost: Set[str] = frozenset()
    """Hosts of which nothing has been heard for long."""
    may_come = False
    """Others may yet be heard of."""
    told_to_end = ""
    """What was proven, once the first doctor says that the job is to be ended."""

    def __init__(self, meeting: Meeting, post: Post) -> None:
        self.fates: dict[int, Fate] = {}
        """How ranks of other hosts ended."""
        self._token, self._post = meeting.token, post
        self._began: dict[bool, float] = {}
        self._ready: float | None = None
        """When this host's courier was first connected."""

    def _is_early(self, evidence: Evidence, now: float) -> bool:
        """Whether others may yet be heard of: what is proven without them is only a part of it.

        Once the ranks have joined, all doctors know that there are others.
        """
        self.may_come = self._may_come(evidence, now)
        return self.may_come

    def _may_come(self, evidence: Evidence, now: float) -> bool:
        joined = any(rank.groups for rank in evidence.ranks)
        began = self._began.setdefault(joined, now)
        if all(rank.pid for rank in evidence.ranks):
            return False
        if self._ready is None:
            return now - began < _TO_BEGIN
        return now - max(began, self._ready) < _TO_MEET

    @property
    @abstractmethod
    def speaks_elsewhere(self) -> bool:
        """Another doctor tells the verdict."""

    @abstractmethod
    def look(self, evidence: Evidence, mine: list[RankEvidence], now: float) -> Evidence:
        """Tell and take in what is new. Returns the evidence that a deadlock is proven of."""

    @abstractmethod
    def not_seen(self) -> list[str]:
        """What was amiss between the doctors, one line each."""

    @abstractmethod
    def has_concluded(self, now: float) -> bool:
        """Once the job has ended here: whether there is nothing more to tell or to hear."""

    def end(self, what: str) -> None:  # noqa: B027 - for the first doctor to do
        """Have the job ended on the other hosts: this was proven."""

    def part(self, verdict: str) -> None:
        """Tell the others what was found, and go."""
        self._post.close()


class Member(Company):
    """A doctor that is not the first."""

    def __init__(self, meeting: Meeting, post: Post, open_log: Callable[[int], LogReader]) -> None:
        super().__init__(meeting, post)
        self.verdict: str | None = None
        """What the first doctor has found, in a word or two, once it has concluded."""
        self._open_log = open_log
        self._connected = self._has_told_all = False
        self._other_protocol = ""
        """The host of a first doctor of another version."""
        self.first = ""
        """The name of the first doctor's host, once it was heard of."""
        self._me = f"{os.uname().nodename}:{os.getpid()}:{os.urandom(4).hex()}"
        self._session = self._number = 0
        self._logs: dict[int, LogReader] = {}
        self._outbox = Outbox()
        self._told_fates: dict[int, Fate] = {}
        self._asked, self._answered = (0, 0.0), 0
        self._beat, self._next_beat = _BEAT, 0.0
        self._heard = 0.0

    @property
    def speaks_elsewhere(self) -> bool:
        """The first doctor does, while it is heard."""
        return self._connected or self.verdict is not None

    def look(self, evidence: Evidence, mine: list[RankEvidence], now: float) -> Evidence:
        """While the first doctor is heard, nothing is proven here."""
        self._hear(now)
        if self._connected:
            hosts = evidence.world_size // max(1, len(mine))
            self._outbox.allow(_FLOW / max(1, hosts - 1), len(mine))
            self._tell(mine, now)
        is_early = self._is_early(evidence, now)
        self.may_come = is_early and not self._connected
        waits = self._connected or is_early
        return replace(evidence, one_time=False) if waits else evidence

    def not_seen(self) -> list[str]:
        """Where the verdict is told, or that there is none on all hosts."""
        if self.verdict is not None:
            told = f"what ranks of other hosts did: {self.first} tells it ({self.verdict})"
            return [told] if self.verdict else []
        if self.first:
            return [f"{self.first} has not told what was found there"]
        if self._other_protocol:
            return [f"{self._other_protocol} has a doctor of another version"]
        return ["no doctor of another host was heard of: what is said is of this host alone"]

    def has_concluded(self, now: float) -> bool:
        """The first doctor has, and had heard all."""
        if not self._connected:
            return True
        if not self._outbox.has_first and not self._has_told_all:
            self._has_told_all = True
            self._send({"done": True, "behind": self._outbox.is_behind}, now)
        return self._has_told_all and self.verdict is not None

    def _tell(self, ranks: list[RankEvidence], now: float) -> None:
        for rank in ranks:
            log = self._logs.get(rank.rank)
            if log is None:
                log = self._logs[rank.rank] = self._open_log(rank.rank)
            for line in log.poll():
                self._outbox.put(rank.rank, line, now)
        fates = {r.rank: r.fate for r in ranks if r.fate and self._told_fates.get(r.rank) != r.fate}
        for number in fates if not self.told_to_end else ():
            self._outbox.tell_calls(number)
        self._outbox.lasting_waits(now)
        is_time = now > self._next_beat
        if is_time:
            self._next_beat = now + self._beat
            self._outbox.beat()
        news: dict[str, Any] = {}
        lines = [*self._outbox.batch(_AT_ONCE)]
        if fates and not self._outbox.has_first:  # last words come before how a rank ended
            news["fates"] = [asdict(fate) for fate in fates.values()]
            self._told_fates |= fates
        number, asked = self._asked
        is_open = number > self._answered and not self._outbox.has_first
        if is_open and (waits := answer(ranks, asked, now)) is not None:
            news["answer"] = [number, [[rank, since] for rank, since in waits.items()]]
            self._answered = number
        # While there may be a deadlock, the first doctor has no time for more.
        holds = self._outbox.spares and (self._outbox.all_wait or now - self._asked[1] < _HOLD)
        more = [*self._outbox.more(now)] if is_time and not holds else []
        if lines or more:
            news["lines"] = (folded if self._outbox.spares else unfolded)(lines + more)
        if news or is_time:
            news["behind"] = self._outbox.is_behind
            size = self._send(news, now)
            self._outbox.sent(size if more else 0)
        if self._post.is_full:
            self._begin_anew()

    def _begin_anew(self) -> None:
        for log in self._logs.values():
            log.close()
        self._logs, self._told_fates = {}, {}
        self._outbox = Outbox(self._outbox.room)
        self._session += 1
        self._number = 0
        self._post.is_full = False

    def _send(self, content: dict[str, Any], now: float) -> int:
        """The size of the message."""
        self._number += 1
        head = {"v": PROTOCOL, "from": self._me, "session": self._session, "n": self._number}
        message = sealed(self._token, {**head, "now": now, **content})
        self._post.send(message)
        return len(message)

    def _hear(self, now: float) -> None:
        for message in self._post.taken():
            if not message:
                self._connected, self._heard = True, now
                self._ready = self._ready or now
                self._begin_anew()
            elif (said := opened(self._token, message)) and said["v"] != PROTOCOL:
                self._other_protocol = str(said["first"])
            elif said:
                self._heard = now
                self.first, self._beat = str(said["first"]), float(said["beat"])
                if isinstance(number := said.get("round"), int):
                    self._asked = later(self._asked, number, now)
                for rank in self._logs.keys() & said.get("calls", ()):
                    self._outbox.tell_calls(rank)
                if said.get("end"):
                    self.told_to_end = self.verdict = str(said["end"])
                if "verdict" in said:
                    self.verdict = str(said["verdict"])
                if said.get("anew") == self._me:
                    self._begin_anew()
        if self._connected and now - self._heard > self._beat + _LOST:
            self._connected = False


@dataclass
class _Host:
    """What is known of another host."""

    name: str
    session: int
    number: int
    ahead: float
    """Seconds to add to its times to have them on the first doctor's clock."""
    heard: float
    ranks: set[int] = field(default_factory=set)
    done: bool = False
    behind: bool = False
    """Not all is told that its ranks wrote."""
    quiet: float = 0.0
    """Seconds for which nothing was heard of it, if that is longer than it may be."""
    longest: float = 0.0
    """The most that was."""


class First(Company):
    """The doctor of rank 0's host."""

    speaks_elsewhere = False

    def __init__(self, meeting: Meeting, post: Post, ledger: Observation) -> None:
        super().__init__(meeting, post)
        self.refused = 0
        """Messages that were not of one of us."""
        self._ledger = ledger
        self._hosts: dict[str, _Host] = {}
        self._told_by: dict[int, str] = {}
        """Ranks of other hosts, and the doctor that tells of them."""
        self._other_protocols: set[str] = set()
        self._disputed: dict[int, str] = {}
        """Ranks of which two doctors tell, and what to say of it."""
        self._rounds = Rounds()
        self._words = Words()
        if ledger.evidence.world_size > _MANY:
            gc.set_threshold(*_RARELY)
        self._has_asked: dict[int, float] = {}
        """Ranks whose calls were asked for, and since when they waited."""
        self._known_since: dict[int, float] = {}
        """When it was heard how a rank of another host ended."""
        self._mine: tuple[int, float] | None = None
        self._next_beat = self._next_search = 0.0
        self._of_cut: Evidence | None = None
        """What the latest shows."""
        self._has_ended = False
        """It was said that the job is to be ended: who falls silent now does as it was told."""

    @property
    def _beat(self) -> float:
        return max(_BEAT, len(self._hosts) / _BEATS)

    def _note_silence(self, evidence: Evidence, now: float) -> None:
        for host in self._hosts.values():
            before, quiet = host.quiet, now - host.heard
            is_late = quiet > self._beat + _LATE and not (host.done or self._has_ended)
            host.quiet = quiet if is_late else 0.0
            host.longest = max(host.longest, host.quiet)
            for rank in host.ranks if before or host.quiet else ():
                evidence.ranks[rank].unheard = host.quiet
        self.lost = {host.name for host in self._hosts.values() if host.quiet > LONG}

    def not_seen(self) -> list[str]:
        """Who was not heard of, or not listened to."""
        lines = [
            f"nothing was heard of {host.name} for {host.longest:.0f} s"
            for host in self._hosts.values()
            if host.longest
        ]
        if self.refused:
            lines.append(f"{self.refused} messages of strangers were refused")
        lines += [f"{each} has a doctor of another version" for each in self._other_protocols]
        lines += self._disputed.values()
        if behind := sum(host.behind for host in self._hosts.values()):
            lines.append(
                f"not all that ranks of {behind} of {len(self._hosts)} other hosts did: it is more "
                "than the first can take, so nothing is concluded from what they did not do"
            )
        return lines

    def look(self, evidence: Evidence, mine: list[RankEvidence], now: float) -> Evidence:
        """Ask in rounds while there may be a deadlock; the evidence is that of the latest cut."""
        for message in self._post.taken():
            if message:
                self._hear(message, now)
            else:
                self._ready = self._ready or now
        self._note_silence(evidence, now)
        evidence.behind = any(host.behind for host in self._hosts.values())
        if self._mine is not None:
            number, asked = self._mine
            if (waits := answer(mine, asked, now)) is not None:
                self._rounds.hear("", number, waits)
                self._mine = None
        talking = {name for name, host in self._hosts.items() if not host.done}
        self._rounds.close({"", *talking}, now)
        if self._rounds.is_due(now) and now >= self._next_search:
            if self._may_be_deadlocked(evidence, now):
                told = {rank.rank: rank.stuck.since for rank in evidence.ranks if rank.stuck}
                question = self._rounds.ask(now, told)
                self._mine = question, now
                self._say(round=question, calls=self._wanted(evidence, now))
            elif wanted := self._wanted(evidence, now - _LONG_WAIT):
                self._say(calls=wanted)
        if now > self._next_beat:
            self._next_beat = now + self._beat
            self._say()
        cut = self._rounds.cut
        if self._is_early(evidence, now) or not cut.since:
            return replace(evidence, one_time=False)
        return self._at_once(cut, evidence)

    def has_concluded(self, now: float) -> bool:
        """All have told their last, or were not heard of for long."""
        return all(host.done or host.quiet > LONG for host in self._hosts.values())

    def end(self, what: str) -> None:
        """Have the job ended on the other hosts: this was proven."""
        self._has_ended = True
        self._say(end=what)

    def part(self, verdict: str) -> None:
        """Tell the others what was found, and go."""
        self._say(verdict=verdict)
        super().part(verdict)

    def _may_be_deadlocked(self, evidence: Evidence, now: float) -> bool:
        """Whether it is worth asking; while ranks only wait long, the cores are the job's."""
        began = time.thread_time()
        found = may_be_deadlocked(evidence)
        took = time.thread_time() - began
        self._next_search = now if found else now + _SPARING * took
        return found

    def _wanted(self, evidence: Evidence, before: float) -> list[int]:
        """Ranks that stand for those that wait alike: what they called before is worth knowing.

        Of those alone that have waited since `before`.
        """
        alike: dict[tuple[int, ...], list[int]] = {}
        for rank in evidence.ranks:
            stuck = rank.stuck
            if stuck is not None and stuck.since <= before and rank.rank in self._told_by:
                alike.setdefault(stuck.alike, []).append(rank.rank)
        fewest = sorted(alike.values(), key=len)[:_KINDS]
        stand = [rank for ranks in fewest for rank in ranks[:_FEW]]
        since = {r: stuck.since for r in stand if (stuck := evidence.ranks[r].stuck) is not None}
        wanted = [rank for rank in stand if self._has_asked.get(rank) != since[rank]]
        self._has_asked |= since
        return wanted

    def _at_once(self, cut: Cut, evidence: Evidence) -> Evidence:
        """What is known, with only those waiting that did so in that cut; and all that did."""
        known = self._of_cut
        gone = {
            rank.rank
            for rank in evidence.ranks
            if rank.fate and self._known_since.get(rank.rank, rank.fate.time) < cut.time - PAUSE
        }
        if known is None or known.cut != cut.time or not holds(known, cut.since, gone):
            known = self._of_cut = seen_at_once(evidence, cut.since, gone, cut.time)
        return known

    def _say(self, **content: Any) -> None:
        head = {"v": PROTOCOL, "first": os.uname().nodename, "beat": self._beat}
        self._post.send(sealed(self._token, {**head, **content}))

    def _hear(self, message: bytes, now: float) -> None:
        said = opened(self._token, message)
        try:
            if said is None or not isinstance(said["from"], str):
                self.refused += 1
            elif said["v"] != PROTOCOL:
                self._other_protocols.add(said["from"].partition(":")[0])
            else:
                self._take(said["from"], said, now)
        except DAMAGED:
            self.refused += 1

    def _take(self, sender: str, said: dict[str, Any], now: float) -> None:
        session, number = int(said["session"]), int(said["n"])
        host = self._hosts.get(sender)
        if host is None or session > host.session:
            if number != 1:
                self._say(anew=sender)  # its beginning is lost
                return
            for rank in host.ranks if host is not None else ():
                self._ledger.forget(rank)
                self.fates.pop(rank, None)
            name, longest = sender.partition(":")[0], host.longest if host is not None else 0.0
            host = self._hosts[sender] = _Host(
                name, session, 0, now - float(said["now"]), now, longest=longest
            )
        if session < host.session or number <= host.number:
            return  # it comes late, or again
        if number != host.number + 1:
            self._say(anew=sender)
            return
        host.number, host.heard = number, now
        for who, line in said.get("lines", ()):
            if isinstance(who, int):
                self._tell(sender, who, line.encode())
                continue
            word = self._words.word(line)
            for rank, *own in who:
                self._tell(sender, rank, Saying(word, own))
        for fate in (Fate(**given) for given in said.get("fates", ())):
            if fate.rank in host.ranks:
                self.fates[fate.rank] = replace(
                    fate, time=fate.time + self._ledger.ahead(fate.rank)
                )
                self._known_since.setdefault(fate.rank, now)
        if "answer" in said:
            asked, waits = said["answer"]
            ahead = self._ledger.ahead
            theirs = {
                rank: float(since) + ahead(rank) for rank, since in waits if rank in host.ranks
            }
            self._rounds.hear(sender, int(asked), theirs)
        host.behind = bool(said.get("behind"))
        host.done = host.done or bool(said.get("done"))

    def _tell(self, sender: str, rank: int, line: bytes | Saying) -> None:
        """Take in what a rank of that host wrote."""
        host = self._hosts[sender]
        if rank not in host.ranks:
            if (other := self._hosts[self._told_by.get(rank, sender)]) is not host:
                self._disputed[rank] = (
                    f"{host.name} says that it runs rank {rank}, which runs on {other.name}"
                )
                return
            self._told_by[rank] = sender
            host.ranks.add(rank)
        self._ledger.tell(rank, line, host.ahead)


def meet(
    ranks: list[RankEvidence],
    world_size: int,
    ledger: Observation,
    open_log: Callable[[int], LogReader],
    run_dir: Path | None,
) -> Company | None:
    """The company of these ranks' doctors, by what those of this host say; None if there is none.

    In `run_dir`, if the user has named one, all hosts may see the same. Raises OSError.
    """
    said = next((rank for rank in ranks if rank.meeting or rank.master), None)
    meeting = said and Meeting.of(said.meeting, said.wanted or world_size, said.run)
    if said and said.master and not (meeting and meeting.host):
        meeting = Meeting.of(said.master, said.wanted or world_size, said.run)
    if not meeting:
        return None
    is_first = any(rank.rank == 0 for rank in ranks)
    if (post := _post(meeting, run_dir, first=is_first)) is None:
        return None
    return First(meeting, post, ledger) if is_first else Member(meeting, post, open_log)


def _post(meeting: Meeting, run_dir: Path | None, *, first: bool) -> Post | None:
    """The way to the others, or what finds it. Raises OSError."""

    def store() -> Post:
        return StorePost(meeting, first=first)

    if run_dir is None:
        return store() if meeting.host else None
    folder = FolderPost(run_dir, meeting, first=first)
    return EitherPost(folder, store if meeting.host else None, first=first)
