"""The ranks that came of a job: found by their logs, followed, diagnosed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ddpdoctor.annotate import annotate, prepare
from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import Deadlock, diagnose, prove_deadlock
from ddpdoctor.diagnose.hosts import located
from ddpdoctor.evidence import (
    ALONE,
    DEATHS,
    IMPORTING,
    Evidence,
    Fate,
    LogReader,
    RankEvidence,
    attempt_name,
    attempt_number,
    boot,
    named,
    noted_deaths,
    world_size,
)
from ddpdoctor.observation import Observation
from ddpdoctor.report import words
from ddpdoctor.run.fates import Death, Deaths
from ddpdoctor.run.memory import OutOfMemory

if TYPE_CHECKING:
    from ddpdoctor.hosts.company import Company

_YOUNG = 10.0
"""Seconds for which new ranks are looked at closely: a parent may take away one that has died."""
_LOOK_EVERY = 0.5
"""Seconds between two looks for new worlds: each costs a core that is the job's."""
_UNCLAIMED = 10.0
"""Seconds for which a death is kept of which no rank is known yet."""
_LONG_JOINING = 10.0
"""Seconds for which ranks wait to join before the others are looked for on other hosts."""
_TO_HEAR = 0.5
"""Seconds in which they hear that the job is to be ended."""
_OTHERS = 4.0
"""Seconds that the doctors of other hosts get to say how it ended there."""
_DEAF = 4.0
"""Seconds that a process has to react to a signal before it is said that it cannot."""
_SILENCE = 3.0
"""Seconds without a sign of life, after which the kernel is asked what a process does."""
_POLITE = (-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
"""By these a launcher ends the other ranks; then, if they do not go, by SIGKILL."""


@dataclass(frozen=True)
class _Proof:
    """A deadlock that was proven at that time, with what was found then."""

    time: float
    blocked: tuple[RankEvidence, ...]
    findings: list[Finding]

    @property
    def is_over(self) -> bool:
        """A rank went on after all: it caught the timeout that ended its wait."""
        return any(
            (rank.fate is not None and rank.fate.exit_code == 0)
            or any(call.begun > self.time for call in rank.collectives[-1:])
            for rank in self.blocked
        )


class WatchedWorld:
    """One set of ranks that belong together."""

    def __init__(
        self, folder: Path, world_size: int, deaths: Deaths, memory: OutOfMemory, boot: str
    ) -> None:
        self.folder = folder
        self.attempt = attempt_number(folder.name) or 0
        """How often the launcher had started the ranks before."""
        self.proven_after = 0.0
        """Seconds from the last rank's blocking to the proof that it will not end."""
        self._observation = Observation(folder, world_size)
        self.evidence.attempt = self.attempt
        self._deaths, self._memory, self._boot = deaths, memory, boot
        self._dead: dict[int, tuple[Death, bool]] = {}
        self._proof: _Proof | None = None
        self._has_met = False
        self._company: Company | None = None
        """The doctors of other hosts, if ranks run there."""
        self._shown: tuple[Evidence, Deadlock | None] = (self.evidence, None)
        """What they have shown last, and what it proves."""
        self._faults: list[str] = []
        """Of detectors of ours, in words."""

    @property
    def evidence(self) -> Evidence:
        """What is known of the ranks."""
        return self._observation.evidence

    @property
    def size(self) -> int:
        """How many ranks it has."""
        return self.evidence.world_size

    @property
    def is_whole(self) -> bool:
        """Whether all of its ranks have been seen."""
        return all(rank.pid for rank in self.evidence.ranks)

    @property
    def living(self) -> list[int]:
        """Processes of this host that are ranks and have not ended."""
        return [rank.pid for rank in self._ours() if rank.fate is None]

    def poll(self, dead: list[Death], *, killed_by_us: bool) -> None:
        """Take in what ranks wrote and who of them ended."""
        by_pid = {rank.pid: rank for rank in self._ours()}
        for death in dead:
            if (rank := by_pid.get(death.pid)) is not None:
                self._dead[rank.rank] = (death, killed_by_us)
                self.evidence.memory_kills = self._memory.kills
        fates = self._fates()
        if self._company is not None:
            fates += self._company.fates.values()
        deadlock = self._observation.poll(fates)
        now, evidence = time.monotonic(), self.evidence
        for rank in self._ours():
            if rank.fate is None:
                self._deaths.watch(rank.pid, rank.last_event)
                rank.state = _state(rank.pid) if now - rank.last_event > _SILENCE else ""
        if self._company is not None:
            evidence = self._company.look(evidence, self._ours(), now)
            if evidence is not self._shown[0]:
                self._shown = evidence, prove_deadlock(evidence)
            deadlock = self._observation.settled(self._shown[1])
        if deadlock is not None and not self.deadlocked:
            self.proven_after = now - deadlock.since
            ranks = tuple(self.evidence.ranks[blocked.rank] for blocked in deadlock.blocked)
            self._proof = _Proof(now, ranks, _diagnosed(evidence, self._faults))

    def meet(self, shared: Path | None) -> None:
        """Look for the doctors of other hosts, once it shows that ranks run there.

        `shared` is a folder that they may see, too.
        """
        if self._company is not None or self._has_met:
            return
        ours = self._ours()
        joined = any(rank.groups for rank in ours)
        began = min((rank.joining for rank in ours if rank.joining is not None), default=None)
        waits = began is not None and time.monotonic() - began > _LONG_JOINING
        if (joined or waits) and any(not rank.pid for rank in self.evidence.ranks):
            from ddpdoctor.hosts.company import meet

            self._has_met = True
            with contextlib.suppress(OSError):
                self._company = meet(
                    ours,
                    self.size,
                    self._observation,
                    lambda rank: LogReader(self.folder, rank),
                    shared,
                )

    def end_elsewhere(self) -> None:
        """Have the job ended on the other hosts, too."""
        if self._company is not None and self._proof is not None:
            self._company.end(_verdict(self._proof.findings))
            time.sleep(_TO_HEAR)  # else their launchers end for want of this host's, and first

    def part(self, findings: list[Finding]) -> None:
        """Tell the doctors of other hosts what was found, and go."""
        if self._company is not None:
            self._company.part(_verdict(findings))

    def has_concluded(self, *, failed: bool) -> bool:
        """There is nothing more to tell to the doctors of other hosts, or to hear of them.

        Of a job that has failed before they could meet it is waited for them.
        """
        if self._company is None:
            return True
        may_come = failed and self._company.may_come
        return self._company.has_concluded(time.monotonic()) and not may_come

    @property
    def lost(self) -> Set[str]:
        """Other hosts of which nothing has been heard for long."""
        return self._company.lost if self._company is not None else frozenset()

    @property
    def deadlocked(self) -> bool:
        """It was proven that ranks will never move again, here or by the first host's doctor."""
        return self._proof is not None or bool(self._company and self._company.told_to_end)

    @property
    def agents(self) -> set[int]:
        """The processes of torchrun's that have started its ranks here."""
        return {rank.agent for rank in self._ours() if rank.agent}

    @property
    def agents_at_work(self) -> set[int]:
        """Those of them that have a rank which has not ended."""
        return {rank.agent for rank in self._ours() if rank.fate is None}

    def asked_to_end(self) -> None:
        """Note that somebody has asked the job to end."""
        self.evidence.asked_to_end = True

    def is_deaf_since(self, moment: float) -> bool:
        """Whether no living rank can ever hear a signal that was sent then.

        Python hears of it when torch returns, which it never does in a deadlock; and whoever waits
        for the others to join waits for half an hour, with nothing yet that could be lost.
        """
        living = [rank for rank in self._ours() if rank.fate is None]
        proof = prove_deadlock(self.evidence)
        blocked = {each.rank for each in proof.blocked} if proof is not None else set()
        return all(
            rank.stuck is not None
            and rank.stuck.since < moment
            and rank.stuck.seen > moment + _DEAF
            and (rank.rank in blocked or (rank.joining is not None and not rank.groups))
            for rank in living
        )

    def idles_since(self, moment: float) -> bool:
        """Whether it is no rank, and waits: whoever started ranks waits for them before it ends."""
        return all(
            rank.joining is None
            and not rank.groups
            and rank.stuck is not None
            and rank.stuck.seen > moment + _DEAF
            for rank in self._ours()
            if rank.fate is None
        )

    def command_ended(self, exit_code: int) -> None:
        """Note how the command ended that has started the ranks."""
        self.evidence.exit_code = exit_code

    def findings(self) -> list[Finding]:
        """What is wrong, as far as it is known now; what was proven stays, whatever ended it."""
        if self._proof is not None and not self._proof.is_over:
            return self._proof.findings
        if self._company is not None and self._company.speaks_elsewhere:
            return []
        return _diagnosed(self.evidence, self._faults)

    def not_seen(self) -> list[str]:
        """What could not be watched, one line each."""
        lines = list(dict.fromkeys(self._faults))
        silent = [rank.rank for rank in self.evidence.ranks if rank.pid == 0]
        if self._company is not None:
            # Of an attempt that is over, the first doctor tells together with the next.
            if not (self.evidence.restarted and self._company.speaks_elsewhere):
                lines += self._company.not_seen()
        elif silent and len(silent) < self.evidence.world_size:
            why = (
                "before the job ended"
                if self._was_started_here
                else "here (each host of a job has a doctor of its own)"
            )
            lines.append(f"{named(silent)} of {self.evidence.world_size} wrote nothing {why}")
        lines += words.cut_short([r.rank for r in self.evidence.ranks if r.cut_short])
        if not self.evidence.one_time and self._company is None:
            lines.append("some ranks run on other hosts: deadlocks across hosts are not proven")
        return lines

    @property
    def _was_started_here(self) -> bool:
        """Whether a launcher on this host has started all of the ranks."""
        here = max((each.local_world_size for each in self._ours()), default=0)
        return here == self.evidence.world_size

    def _fates(self) -> list[Fate]:
        """How ranks ended: those that their launcher ended because of another are told apart."""
        deaths = [death for death, _ in self._dead.values()]
        return [
            replace(
                _fate(self.evidence.ranks[number], death, ending or _follows(death, deaths)),
                out_of_memory=death.code == -signal.SIGKILL and self._memory.has_killed(death.pid),
            )
            for number, (death, ending) in self._dead.items()
        ]

    def _ours(self) -> list[RankEvidence]:
        return [r for r in self._observation.here if r.pid and r.boot == self._boot]


class Worlds:
    """All worlds of a job: a script may start several, and torchrun starts one for each attempt."""

    def __init__(
        self, run_dir: Path | None, *, alone: bool = False, shared: Path | None = None
    ) -> None:
        """`alone`: do not look for the doctors of other hosts; `shared`: where they may be met."""
        self.all: list[WatchedWorld] = []
        self._run_dir, self._alone, self._shared = run_dir, alone, shared
        self._deaths = Deaths(run_dir)
        self._memory = OutOfMemory()
        self._noted: list[Death] = []
        self._asked_to_end: set[int] = set()
        """Processes that have ended because they were told to."""
        self._next_look = self._newest = 0.0
        self._boot = boot()
        self._is_prepared = False

    @property
    def reached(self) -> bool:
        """Some process has come under watch, be it a rank or none."""
        return self._run_dir is not None and (self._run_dir / DEATHS).exists()

    @property
    def had_torch(self) -> bool:
        """Some process has imported it; where there were ranks, one of them."""
        ranks = [rank for world in self.all for rank in world.evidence.ranks]
        return any(rank.torch for rank in ranks) if ranks else self.reached

    @property
    def importing(self) -> bool:
        """Some process has begun to import torch, and has not come to the end of it by itself."""
        return not self._asked_to_end.issuperset(self._importers)

    @property
    def _importers(self) -> list[int]:
        marks = self._run_dir.glob(f"{IMPORTING}*") if self._run_dir is not None else ()
        numbers = (mark.name.removeprefix(IMPORTING) for mark in marks)
        return [int(number) for number in numbers if number.isdecimal()]

    @property
    def mute(self) -> list[str]:
        """Attempts whose ranks came under watch, and could write nothing."""
        known = {world.folder for world in self.all}
        return [f.name for f in _folders(self._run_dir) if f not in known and any(f.iterdir())]

    @property
    def latest(self) -> WatchedWorld | None:
        """The world that came last."""
        return self.all[-1] if self.all else None

    @property
    def deadlocked(self) -> list[WatchedWorld]:
        """Those that will never move again."""
        return [world for world in self.all if world.deadlocked]

    @property
    def is_eventful(self) -> bool:
        """Ranks may just have begun, or one waits for others: a death or a proof may be near."""
        return self._is_young or self.are_held_up

    @property
    def are_held_up(self) -> bool:
        """Whether a rank waits for others."""
        return any(rank.stuck for world in self.all for rank in world.evidence.ranks)

    @property
    def lost(self) -> set[str]:
        """Other hosts of which nothing has been heard for long."""
        return {host for world in self.all for host in world.lost}

    @property
    def _is_young(self) -> bool:
        return not self.all or time.monotonic() - self._newest < _YOUNG

    @property
    def have_met(self) -> bool:
        """Whether all ranks of all worlds are members of a process group."""
        return bool(self.all) and all(
            rank.groups for world in self.all for rank in world.evidence.ranks
        )

    @property
    def living(self) -> list[int]:
        """Processes of this host that are ranks and have not ended."""
        return [pid for world in self.all for pid in world.living]

    def findings(self) -> list[Finding]:
        """What is wrong with any of the worlds; the same in several attempts is told once."""
        found: dict[tuple[str, str], Finding] = {}
        last = max((world.attempt for world in self.all), default=0)
        for world in reversed(self.all):
            is_over = world.attempt < last or world.evidence.restarted
            for finding in world.findings():
                told = _survived(finding, world.attempt) if is_over else finding
                found.setdefault((finding.code, str(finding.place)), told)
        return list(found.values())

    def asked_to_end(self) -> None:
        """Note that somebody has asked the job to end."""
        for world in self.all:
            world.asked_to_end()

    def are_deaf_since(self, moment: float) -> bool:
        """Whether ranks live, and none of them can ever hear a signal that was sent then."""
        others = [world for world in self.all if not world.idles_since(moment)]
        alive = any(world.living for world in others)
        return alive and all(world.is_deaf_since(moment) for world in others)

    @property
    def idle_agents(self) -> set[int]:
        """The processes of torchrun's whose ranks have all ended.

        They wait for those of other hosts, for up to 5 minutes, and hear no signal meanwhile.
        """
        agents = {agent for world in self.all for agent in world.agents}
        return agents - {agent for world in self.all for agent in world.agents_at_work}

    def close(self) -> None:
        """Watch for no more deaths."""
        self._deaths.close()
        self._memory.close()

    def note_deaths(self) -> None:
        """Note who has ended, for the next poll."""
        new = self._deaths.taken()
        self._noted += new
        self._asked_to_end |= {each.pid for each in new if each.code in _POLITE}

    def poll(self, *, killed_by_us: bool = False) -> None:
        """Look for new worlds, and take in the noted deaths and what else is new of all."""
        self._look_for_new()
        of_ranks = {rank.pid for world in self.all for rank in world.evidence.ranks}
        for world in self.all:
            world.poll(self._noted, killed_by_us=killed_by_us)
            if not self._alone:
                world.meet(self._shared)
        recent = time.monotonic() - _UNCLAIMED
        self._noted = [d for d in self._noted if d.noticed > recent and d.pid not in of_ranks]
        self._note_restarts()
        # Not before all are watched: meanwhile one could leave, and nobody would know how.
        if not self._is_prepared and self.all and all(world.is_whole for world in self.all):
            self._is_prepared = True
            prepare()

    def _look_for_new(self) -> None:
        if time.monotonic() < self._next_look and not self._is_young:
            return
        self._next_look = time.monotonic() + _LOOK_EVERY
        for pid in self._importers:  # one that becomes a rank may end before its log is read
            self._deaths.foresee(pid)
        known = {world.folder for world in self.all}
        for folder in _folders(self._run_dir):
            if folder not in known and (size := world_size(folder)):
                self.all.append(WatchedWorld(folder, size, self._deaths, self._memory, self._boot))
                self._newest = time.monotonic()

    def _look_for_one_alone(self, exit_code: int) -> None:
        """Where there were no ranks, the last process to fail as the command did is one."""
        self._look_for_new()
        if self.all or self._run_dir is None:
            return
        alone = self._run_dir / ALONE
        for pid in [pid for pid, code in noted_deaths(alone).items() if code == exit_code][-1:]:
            with contextlib.suppress(OSError):
                for name in (attempt_name("0", str(pid)), DEATHS):
                    (alone / name).rename(self._run_dir / name)
            self.poll()

    def _note_restarts(self) -> None:
        """Which worlds have been followed by another of the same agents'.

        Where hosts come or go, torchrun does not count the attempt.
        """
        later: set[int] = set()
        for world in reversed(self.all):
            world.evidence.restarted = not later.isdisjoint(world.agents)
            later |= world.agents

    def settle(self, exit_code: int, *, killed_by_us: bool, patience: float = 1.0) -> None:
        """Wait for the last words and the deaths of ranks, once their launcher has ended so."""
        self._next_look = self._newest = 0.0
        failed = exit_code != 0 and not killed_by_us
        if failed:
            self._look_for_one_alone(exit_code)
        deadline = time.monotonic() + patience
        while True:
            self.note_deaths()
            self.poll(killed_by_us=killed_by_us)
            late = time.monotonic() - deadline
            concluded = all(each.has_concluded(failed=failed) for each in self.all)
            if late > _OTHERS or ((not self.living or late > 0) and concluded):
                break
            time.sleep(0.02)
        joined = [world for world in self.all if any(r.groups for r in world.evidence.ranks)]
        for world in (joined or self.all)[-1:]:
            world.command_ended(exit_code)


def _state(pid: int) -> str:
    """The kernel's letter for what a process does; "" if it is not to be had."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _diagnosed(evidence: Evidence, faults: list[str]) -> list[Finding]:
    return located(annotate(diagnose(evidence, faults)), evidence)


def _verdict(findings: list[Finding]) -> str:
    gravest = (each for each in findings if each.severity == "error")
    return next((f"{each.code} {each.title}" for each in gravest), "")


def _survived(finding: Finding, attempt: int) -> Finding:
    """A finding about an attempt after which the launcher started another one."""
    note = f"in attempt {attempt}, after which the launcher started the ranks again"
    severity = "warning" if finding.severity == "error" else finding.severity
    return finding.model_copy(update={"severity": severity, "evidence": (*finding.evidence, note)})


def _folders(run_dir: Path | None) -> list[Path]:
    if run_dir is None:
        return []
    try:
        with os.scandir(run_dir) as entries:
            found = [entry for entry in entries if attempt_number(entry.name) is not None]
            return [Path(e.path) for e in sorted(found, key=lambda e: e.stat().st_ctime)]
    except OSError:
        return []


def _follows(death: Death, deaths: list[Death]) -> bool:
    """Whether a rank was ended by its launcher because another had failed before."""
    harmless: tuple[int | None, ...] = (0, None, *_POLITE)
    if death.code not in _POLITE:
        harmless += (-signal.SIGKILL,)
    return any(other.code not in harmless for other in deaths if other.time < death.time)


def _fate(rank: RankEvidence, death: Death, being_ended: bool) -> Fate:
    """How a rank ended: by its exit code, or, if nobody knows that, by its last words."""
    code = death.code
    if code is None:
        code = 1 if rank.exceptions else 0 if rank.exiting else None
        return Fate(rank.rank, death.pid, code, None, death.time, being_ended and code is None)
    if code >= 0:
        return Fate(rank.rank, death.pid, code, None, death.time)
    ended = being_ended and code in (*_POLITE, -signal.SIGKILL)
    return Fate(rank.rank, death.pid, None, -code, death.time, killed_by_us=ended)
