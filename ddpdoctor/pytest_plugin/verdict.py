"""What the watch over a test's ranks has seen: a hang, as soon as it is one, told as `run` does."""

from __future__ import annotations

import sys
import time

from ddpdoctor.annotate import annotate
from ddpdoctor.diagnose import Deadlock, diagnose
from ddpdoctor.evidence import Fate
from ddpdoctor.launch import WorkerGroup
from ddpdoctor.observation import Observation
from ddpdoctor.report import as_text
from ddpdoctor.report.job import of_job
from ddpdoctor.report.output import Page


class Verdict:
    """On the ranks of one test, which log into the world's folder."""

    def __init__(self, world: WorkerGroup) -> None:
        self._observation = Observation(world.job.run_dir, world.job.nproc)
        self._over: dict[int, Fate] = {}
        self._proven_after: float | None = None
        self.close = self._observation.close

    def is_hang(self, world: WorkerGroup, over: set[int], deadline: float) -> bool:
        """Whether ranks wait for ever, or for longer than the test may take.

        `over` are the ranks on which the test has ended: none of them communicates any more. A
        group that gives up before the deadline is let: to see that may be what the test is for.
        """
        for rank in over - self._over.keys():
            pid = world.ranks[rank].pid
            self._over[rank] = Fate(rank, pid, exit_code=0, signal=None, time=time.monotonic())
        deadlock = self._observation.poll(list(self._over.values()))
        if deadlock is None or self._gives_up(deadlock) < deadline:
            return False
        if self._proven_after is None:
            self._proven_after = time.monotonic() - deadlock.since
        return True

    def text(self, fates: list[Fate], passed: bool) -> str:
        """Errors that have a name; "" if there are none, for the ranks tell their exceptions.

        Of a test that all ranks passed only what is proven: replicas that parted, as they do
        without a word.
        """
        died = {fate.rank: fate for fate in fates} | self._over
        self._observation.poll(list(died.values()))
        found = [each for each in diagnose(self._observation.evidence) if each.severity == "error"]
        told = [
            each
            for each in (annotate(found) if found else ())
            if (each.certainty == "proven" if passed else each.is_narrow)
        ]
        after = self._proven_after
        report = of_job("run", [], told, subject=sys.argv, proven_after=after)
        page = Page.of(sys.stdout, "never")
        return "\n".join(as_text.finding(report, each, page) for each in report.findings).rstrip()

    def _gives_up(self, deadlock: Deadlock) -> float:
        """When the first of the waiting collectives will have waited for its group's timeout."""
        ends = [float("inf")]
        for blocked in deadlock.blocked:
            group = self._observation.evidence.ranks[blocked.rank].groups.get(
                blocked.collective.group
            )
            if group is not None and group.timeout > 0:
                ends.append(blocked.stuck.since + group.timeout)
        return min(ends)
