"""A launched job, as the doctor sees it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ddpdoctor.evidence import Fate
from ddpdoctor.launch.channel import Channel
from ddpdoctor.launch.job import JSON, Job, Lost, NoRoom

_STACKS_PATIENCE = 2.0
_KILL_PATIENCE = 15.0
_RANK_FILE = Path(__file__).with_name("rank.py")


@dataclass(frozen=True)
class Rank:
    """One process of a world."""

    rank: int
    pid: int
    stdout: Path
    stderr: Path


class WorkerGroup:
    """The ranks of one job. Leaving its `with` block ends them, if they have not ended.

    To be used from one thread at a time; other worlds may be used from other threads.
    """

    def __init__(self, job: Job, channel: Channel) -> None:
        """Wait for the keeper at the other end of `channel`, which starts the ranks then.

        Raises ConnectionError if there is none. If it cannot start them, whatever next asks about
        them raises LaunchError.
        """
        self.job = job
        self.began = time.monotonic()
        self.survivors: tuple[int, ...] = ()
        """Processes that could not be killed. Empty, but for a hung kernel call."""
        self.lost = False
        """Whether somebody has killed the keeper, and so ranks whose end nobody has seen."""
        self._channel = channel
        self._ranks: tuple[Rank, ...] = ()
        self._fates: list[Fate] = []
        self._asked: list[int] | None = None
        self._killed = False
        self._keeper = 0
        while not self._keeper:
            self._listen(timeout=None)
            if channel.ended:
                raise ConnectionError("there is no keeper")

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """The processes, as soon as all have been started; none if the world was ended before."""
        while not self._ranks and not self.ended:
            self._listen(timeout=None)
        return self._ranks

    @property
    def ended(self) -> bool:
        """All ranks have ended, and whatever they left behind has been swept."""
        return self._channel.ended

    @property
    def results(self) -> dict[int, JSON]:
        """What the target returned on each rank where it did return."""
        files = {rank: self.job.rank_file(rank, "result") for rank in range(self.job.nproc)}
        return {r: json.loads(f.read_text("utf-8")) for r, f in files.items() if f.exists()}

    def poll(self) -> list[Fate]:
        """The fates so far, in the order in which the ranks ended. Never blocks.

        All that was said is heard, the end too: who asks rarely must not take the dead for living.
        """
        while self._listen(timeout=0.0):
            pass
        return list(self._fates)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the world; returns whether it has ended within `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.ended:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            self._listen(left)
            if left == 0.0:
                break
        return self.ended

    def wait_for_news(self, timeout: float | None = None) -> bool:
        """Wait for news of the ranks, at most `timeout` seconds; returns whether all is over."""
        self._listen(timeout)
        return self.ended

    def stacks(self) -> dict[int, str]:
        """The Python stack of every thread of each rank that lives, as faulthandler writes it.

        Works on a rank that is blocked in C, with or without the GIL. A rank that is stopped, or
        does not answer within 2 s, is left out.
        """
        before = {rank: self._stack_size(rank) for rank in range(self.job.nproc)}
        self._asked = None
        self._channel.send({"stacks": True})
        while self._asked is None and not self.ended:
            self._listen(timeout=None)
        waiting: set[int] = set(self._asked or ())
        found: dict[int, str] = {}
        deadline = time.monotonic() + _STACKS_PATIENCE
        sizes = dict(before)
        while waiting and time.monotonic() < deadline:
            time.sleep(0.03)
            for rank in list(waiting):
                # Nothing marks the end of a dump, which takes about a millisecond to write.
                if (size := self._stack_size(rank)) == sizes[rank] > before[rank]:
                    dump = self.job.rank_file(rank, "stacks").read_bytes()[before[rank] :]
                    found[rank] = _without_ours(dump.decode(errors="replace"))
                    waiting.discard(rank)
                sizes[rank] = size
        return dict(sorted(found.items()))

    def kill(self) -> None:
        """End every process of this world, and wait until they are gone."""
        self._killed = True
        self._channel.finish()
        if not self.ended:
            with contextlib.suppress(OSError):
                os.kill(self._keeper, signal.SIGCONT)  # it may have been stopped
        self.wait(_KILL_PATIENCE)
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def _stack_size(self, rank: int) -> int:
        file = self.job.rank_file(rank, "stacks")
        return file.stat().st_size if file.exists() else 0

    def _listen(self, timeout: float | None) -> bool:
        """Take in what was said; whether anything was."""
        lines = self._channel.receive(timeout)
        for line in lines:
            match json.loads(line):
                case {"kept": keeper}:
                    self._keeper = keeper
                case {"born": _}:
                    self._channel.send({"go on": True})
                case {"started": pids}:
                    self._ranks = tuple(self._rank(rank, pid) for rank, pid in enumerate(pids))
                case {"fate": facts}:
                    self._fates.append(Fate(**facts))
                case {"asked": ranks}:
                    self._asked = ranks
                case {"survivors": pids}:
                    self.survivors = tuple(pids)
                case {"no room": message} if not self._killed:
                    raise NoRoom(message)
        if self._channel.ended:
            if self._keeper and not self._ranks and not self._killed:
                raise Lost("the keeper was killed before it had started the ranks")
            self._account_for_the_rest()
        return bool(lines)

    def _rank(self, rank: int, pid: int) -> Rank:
        job = self.job
        return Rank(rank, pid, job.rank_file(rank, "stdout"), job.rank_file(rank, "stderr"))

    def _account_for_the_rest(self) -> None:
        """Only if the keeper was killed: the kernel has killed its ranks then, unseen."""
        known = {fate.rank for fate in self._fates}
        now = time.monotonic()
        for rank in self._ranks:
            if rank.rank not in known:
                self.lost = self.lost or not self._killed
                fate = Fate(rank.rank, rank.pid, None, signal.SIGKILL, now, killed_by_us=True)
                self._fates.append(fate)


def _without_ours(dump: str) -> str:
    """Cut what lies below the target off the stack of the main thread."""
    kept: list[str] = []
    ours = False
    for line in dump.splitlines():
        ours = f'"{_RANK_FILE}"' in line or (ours and line.startswith("  "))
        if not ours:
            kept.append(line)
    return "\n".join(kept).strip() + "\n"
