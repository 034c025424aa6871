"""One launch of a variant, from start to end: in forked ranks, or by a launcher as users have it.

Either way its processes belong to a keeper of the fork server, so none of them outlives the launch,
whatever becomes of the doctor; and what its ranks wrote goes through the same diagnosis.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ddpdoctor.annotate import annotate
from ddpdoctor.catalog import Finding, Pitfall, Variant
from ddpdoctor.diagnose import Deadlock, diagnose
from ddpdoctor.evidence import Fate, RankEvidence, signal_name
from ddpdoctor.launch import ForkServer, Job, Lost, WorkerGroup
from ddpdoctor.launch.processes import share
from ddpdoctor.observation import Observation
from ddpdoctor.postmortem import text_log
from ddpdoctor.reproducer import MEASURED
from ddpdoctor.run.job import exit_code, under_watch
from ddpdoctor.run.worlds import Worlds

DEADLINE = 30.0
"""Seconds after which ranks that neither end nor are proven dead are ended all the same.

Of this and of those below a second counts for what the ranks get of it, where others have the
cores: on a busy machine a fix holds as on any other, only later.
"""

LAUNCHER_DEADLINE = 120.0
"""The same for what a launcher starts, which takes seconds to begin, on a busy machine many."""

GRACE = 5.0
"""Seconds that forked ranks may go on after one of them has failed: torchrun ends them at once."""

_LOOK = 0.03
"""Seconds between two looks at what a launcher has started: its ranks are many small files."""

_ENVIRONMENT = {"TORCH_DISTRIBUTED_DEBUG": "OFF"}
"""DETAIL, if it is set here, crashes every DDP on gloo (torch 2.13): it is no part of a pitfall."""


@dataclass(frozen=True)
class Ending:
    """How a launch ended, and what the diagnosis says about it."""

    findings: list[Finding]
    ranks: int
    """How many ranks there were; 0 where none is known."""
    failure: str = ""
    """What went wrong, in one line; "" where everything ended by itself, with exit code 0."""
    measured: str = ""
    """What the ranks counted or timed, in their own words."""

    @property
    def well(self) -> str:
        """The good ending, in words."""
        return f"all {self.ranks} ranks ended well" if self.ranks > 1 else "it ended well"


@dataclass(frozen=True)
class Setting:
    """What the launches of one `check` share."""

    server: ForkServer
    nproc: int
    backend: str

    @property
    def begins_slowly(self) -> bool:
        """Whether ranks take seconds to begin: fresh interpreters do, and those that use GPUs."""
        return bool(self.server.cold) or self.backend == "nccl"


class Forked:
    """Ranks that call the variant, forked from the server."""

    def __init__(self, setting: Setting, pitfall: Pitfall, variant: Variant, run_dir: Path) -> None:
        job = Job(
            target=f"{pitfall.proof}:{variant.name}",
            nproc=setting.nproc,
            run_dir=run_dir,
            env=_ENVIRONMENT | _told_to(run_dir, setting.backend),
            watch=True,
            import_once=True,
        )
        self._run_dir = run_dir
        self._open = ExitStack()
        self._world: WorkerGroup = self._open.enter_context(setting.server.launch(job))
        self._observation = Observation(run_dir, setting.nproc)
        self._open.callback(self._observation.close)
        self._began = time.monotonic()
        self._failed: float | None = None

    def close(self) -> None:
        """End its ranks, and keep nothing of it open."""
        self._open.close()

    def poll(self) -> Ending | None:
        """Look at it; how it ended, once it has."""
        fates = self._world.poll()
        _expect_a_keeper(self._world)
        deadlock = self._observation.poll(fates)
        overdue = not self._world.ended and self._is_overdue(fates)
        if not self._world.ended:
            if not (deadlock or overdue):
                return None
            self._world.kill()
            fates = self._world.poll()
        self._observation.poll(fates)
        return Ending(
            findings=annotate(diagnose(self._observation.evidence)),
            ranks=len(fates),
            failure=self._failure(fates, deadlock, overdue=overdue),
            measured=_measured(self._run_dir),
        )

    def _is_overdue(self, fates: list[Fate]) -> bool:
        if self._failed is None and any(fate.exit_code != 0 for fate in fates):
            self._failed = time.monotonic()
        ranks = self._observation.evidence.ranks
        since_failure = self._failed is not None and _overdue(self._failed, GRACE, ranks)
        return since_failure or _overdue(self._began, DEADLINE, ranks)

    def _failure(self, fates: list[Fate], deadlock: Deadlock | None, *, overdue: bool) -> str:
        failed = [fate for fate in fates if fate.exit_code != 0 and not fate.killed_by_us]
        if failed:
            return "; ".join(f"rank {fate.rank} {_how(fate)}" for fate in failed)
        if deadlock is not None:
            return "a deadlock was proven, and the ranks ended"
        return _endless(DEADLINE) if overdue else ""


class Commanded:
    """The command that the variant names, under the watch that `ddpdoctor run` has over a job."""

    def __init__(self, setting: Setting, pitfall: Pitfall, variant: Variant, run_dir: Path) -> None:
        home = run_dir / "home"
        home.mkdir(exist_ok=True)
        proof = pitfall.proof.absolute()
        command = variant.command(proof, nproc=setting.nproc, port=_free_port())
        self._job = Job(
            target="ddpdoctor.launch.command:become",
            nproc=1,
            fresh=setting.nproc,
            run_dir=run_dir,
            kwargs={"command": command},
            env=_ENVIRONMENT
            | _told_to(run_dir, setting.backend)
            | under_watch(run_dir)
            | {"PATH": search_path()},
            cwd=home,
        )
        self._run_dir = run_dir
        self._open = ExitStack()
        self._process: WorkerGroup = self._open.enter_context(setting.server.launch(self._job))
        self._worlds = Worlds(run_dir)
        self._open.callback(self._worlds.close)
        self._began = self._looked = time.monotonic()

    def close(self) -> None:
        """End its processes, and keep nothing of it open."""
        self._open.close()

    def poll(self) -> Ending | None:
        """Look at it; how it ended, once it has."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return None
        self._looked = now
        self._worlds.note_deaths()
        self._worlds.poll()
        deadlocked = bool(self._worlds.deadlocked)
        self._process.poll()
        _expect_a_keeper(self._process)
        overdue = not self._process.ended and self._is_overdue()
        if not (self._process.ended or deadlocked or overdue):
            return None
        if self._process.ended:
            (fate,) = self._process.poll()
            status = -fate.signal if fate.signal is not None else fate.exit_code or 0
            self._worlds.settle(exit_code(status), killed_by_us=False)
        findings = self._worlds.findings()
        self._process.kill()
        (fate,) = self._process.poll()
        failure = ""
        if deadlocked:
            failure = "a deadlock was proven, and the command ended"
        elif overdue:
            failure = _endless(LAUNCHER_DEADLINE)
        elif fate.exit_code != 0:
            failure = f"the command ended with {fate.exit_code}"
        elif not self._worlds.reached:
            failure = "the command ended well, but no process of its came under watch"
        return Ending(
            findings=findings or (self._findings_in_log() if failure else []),
            ranks=max((world.evidence.world_size for world in self._worlds.all), default=0),
            failure=failure,
            measured=_measured(self._run_dir),
        )

    def _is_overdue(self) -> bool:
        ranks = [rank for world in self._worlds.all for rank in world.evidence.ranks]
        return _overdue(self._began, LAUNCHER_DEADLINE, ranks)

    def _findings_in_log(self) -> list[Finding]:
        """What the command printed tells, where it failed before any process was a rank."""
        files = [(self._job.rank_file(0, kind), None) for kind in ("stdout", "stderr")]
        return annotate(text_log.read_files(files).judge())


def _expect_a_keeper(world: WorkerGroup) -> None:
    """Raise Lost where ranks were killed with theirs: it would be told as a fault of theirs."""
    if world.lost:
        raise Lost("the keeper was killed, and its ranks with it")


def _overdue(since: float, seconds: float, ranks: Iterable[RankEvidence]) -> bool:
    passed = time.monotonic() - since
    return passed > seconds and passed * share(rank.pid for rank in ranks) > seconds


def search_path() -> str:
    """Where launchers are looked for: beside this interpreter first, as they belong to it."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


def _told_to(run_dir: Path, backend: str) -> dict[str, str]:
    return {"DDPDOCTOR_RUN_DIR": str(run_dir), "DDPDOCTOR_BACKEND": backend}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _how(fate: Fate) -> str:
    if fate.signal is not None:
        return f"was ended by {signal_name(fate.signal)}"
    return f"exited with {fate.exit_code}"


def _endless(seconds: float) -> str:
    return f"did not end within {seconds:.0f} s, and no deadlock could be proven"


def _measured(run_dir: Path) -> str:
    try:
        return "; ".join((run_dir / MEASURED).read_text(encoding="utf-8").splitlines())
    except OSError:
        return ""
