"""A probe on this machine alone: starts its ranks, and names the one that is lost."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import psutil

from ddpdoctor.environment.redaction import safe_line
from ddpdoctor.evidence import Fate
from ddpdoctor.launch import ForkServer, Job, WorkerGroup
from ddpdoctor.probe.model import Measured
from ddpdoctor.probe.progress import STAGES, read
from ddpdoctor.probe.terms import Terms

_STAGE, _RESULT = "stage", "measured.json"
_LOOK = 0.1
_SPARE = 40.0
"""Seconds beyond the budget and the patience, after which ranks that do not go on are given up."""


class RankLost(Exception):
    """A rank ended, or stopped, before the end; the message names it, and says what it did."""

    def __init__(self, rank: int, message: str) -> None:
        super().__init__(message)
        self.rank = rank


def probe(nproc: int, backend: str, terms: Terms, on_stage: Callable[[str], None]) -> Measured:
    """Measure with `nproc` ranks of this machine. Raises RankLost, and LaunchError."""
    with ForkServer() as server:
        folder = server.fresh_run_dir()
        job = Job(
            target="ddpdoctor.probe.rank:in_folder",
            nproc=nproc,
            run_dir=folder,
            kwargs={"folder": str(folder), "backend": backend, **asdict(terms)},
            env={"MASTER_PORT": str(_free_port())},
        )
        with server.launch(job) as world:
            _follow(world, folder, terms, on_stage)
        return Measured.model_validate_json((folder / _RESULT).read_bytes())


def _follow(
    world: WorkerGroup, folder: Path, terms: Terms, on_stage: Callable[[str], None]
) -> None:
    deadline = time.monotonic() + 3 * terms.seconds + terms.wait + _SPARE
    while not world.wait_for_news(_LOOK):
        stage, _ = read(folder / f"rank-0.{_STAGE}")
        on_stage(stage or STAGES[0])
        if failed := _failed(world.poll()):
            raise _lost(failed, folder, world)
        if time.monotonic() > deadline:
            raise _stuck(folder, world)
    if failed := _failed(world.poll()):
        raise _lost(failed, folder, world)


def _failed(fates: list[Fate]) -> Fate | None:
    """The first rank that did not end well."""
    return next((fate for fate in fates if fate.exit_code != 0 and not fate.killed_by_us), None)


def _lost(fate: Fate, folder: Path, world: WorkerGroup) -> RankLost:
    rank = fate.rank
    if fate.signal:
        how = f"was ended by {signal.Signals(fate.signal).name}"
    elif stopped := [one.rank for one in world.ranks if _is_stopped(one.pid)]:
        rank, how = stopped[0], "is stopped, as by SIGSTOP"  # the one that ended had waited for it
    else:
        how = f"ended with exit code {fate.exit_code}"
        said = world.job.rank_file(rank, "stderr").read_text("utf-8", "replace").strip()
        how += f": {safe_line(said.splitlines()[-1])}" if said else ""
    stage, detail = read(folder / f"rank-{rank}.{_STAGE}")
    doing = f"{stage} ({detail})" if detail else stage or STAGES[0]
    return RankLost(rank, f"rank {rank} {how}, while {doing}")


def _is_stopped(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    except psutil.NoSuchProcess:
        return False


def _stuck(folder: Path, world: WorkerGroup) -> RankLost:
    """Nobody ended, and nobody goes on: the one that is least far holds up the others."""
    stages = [read(folder / f"rank-{rank}.{_STAGE}")[0] for rank in range(world.job.nproc)]
    answering = world.stacks()
    silent = [rank for rank in range(world.job.nproc) if rank not in answering]
    behind = min(range(len(stages)), key=lambda rank: STAGES.index(stages[rank] or STAGES[0]))
    rank = silent[0] if silent else behind
    how = "does not answer: it is stopped" if silent else "does not go on"
    return RankLost(rank, f"rank {rank} {how}, while {stages[rank] or STAGES[0]}")


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port
