"""Ranks of a launcher, forked from a process that has torch: in no time, and on any host."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ddpdoctor.launch import ForkServer, Job, WorkerGroup

_HERE = Path(__file__)
_FOREVER = 120.0
_LATE = 4.0


class Launched:
    """The ranks of one launch, which have their own output and exit codes."""

    def __init__(self, world: WorkerGroup) -> None:
        self._world = world

    def said(self, rank: int) -> str:
        """What it printed, when it has ended."""
        while self.exit_code(rank) is None and not self._world.ended:
            assert not self._world.wait_for_news(_FOREVER) or self._world.ended
        return self._world.job.rank_file(rank, "stdout").read_text()

    def exit_code(self, rank: int) -> int | None:
        """None while it runs, or if a signal ended it."""
        return next((one.exit_code for one in self._world.poll() if one.rank == rank), None)


class Launcher:
    """Starts `ddpdoctor probe` as the ranks of a job."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._worlds: list[WorkerGroup] = []

    def start(
        self,
        number: int,
        arguments: Sequence[str],
        target: str = "probe",
        hosts: Sequence[str] = (),
        only: Mapping[int, Mapping[str, str]] | None = None,
        dies: tuple[int, str, str] | None = None,
        **environ: str,
    ) -> Launched:
        """`hosts` are network namespaces, `only` variables of single ranks.

        `dies` says which rank gets a signal, in which phase, and which.
        """
        job = Job(
            target=f"{_HERE}:{target}",
            nproc=number,
            run_dir=self._server.fresh_run_dir(),
            kwargs={
                "arguments": list(arguments),
                "hosts": list(hosts),
                "only": {str(rank): dict(more) for rank, more in (only or {}).items()},
                "dies": list(dies) if dies else None,
            },
            env={"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo", **environ},
        )
        world = self._server.launch(job)
        self._worlds.append(world)
        return Launched(world)

    def close(self) -> None:
        """End what still runs."""
        for world in self._worlds:
            world.kill()


def probe(
    arguments: list[str],
    hosts: list[str],
    only: dict[str, dict[str, str]],
    dies: list[Any] | None,
) -> None:
    """One rank."""
    from ddpdoctor import cli

    rank = os.environ["RANK"]
    os.environ.update(only.get(rank, {}))
    if hosts:
        _move_to(hosts[int(rank)])
    if dies:
        _measure_little()  # nobody looks at the numbers
    if dies and int(rank) == dies[0]:
        _die(dies[1], getattr(signal, dies[2]))
    sys.exit(cli.run(["probe", *arguments]))


def waits_for_one_that_waits(
    arguments: list[str], hosts: list[str], only: dict[str, dict[str, str]], dies: list[Any] | None
) -> None:
    """Rank 0 waits for rank 2, which waits for rank 1, which is gone."""
    import torch
    import torch.distributed as dist

    from ddpdoctor.probe import rank

    def measure(talk: Any, *_: object) -> None:
        if talk.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.recv(torch.zeros(1), {0: 2, 2: 1}[talk.rank])

    rank._measure = measure  # type: ignore[assignment]
    probe(arguments, hosts, only, dies)


def joins_late(
    arguments: list[str], hosts: list[str], only: dict[str, dict[str, str]], dies: list[Any] | None
) -> None:
    """A rank gets no CPU for a while after all have met: it joins later than the others."""
    import torch.distributed as dist

    join = dist.init_process_group
    if "JOINS_LATE" in only.get(os.environ["RANK"], {}):
        dist.init_process_group = lambda *given, **named: (time.sleep(_LATE), join(*given, **named))
    probe(arguments, hosts, only, dies)


def gets_little(
    arguments: list[str], hosts: list[str], only: dict[str, dict[str, str]], dies: list[Any] | None
) -> None:
    """A rank is in a control group of its own while it is measured how fast each is.

    All go before what else the machine does: else that may leave the others no more than this one.
    """
    from ddpdoctor.probe import pace

    group = only.get(os.environ["RANK"], {}).get("CONTROL_GROUP")
    os.nice(-15)
    compute, steps = pace.compute, pace.steps

    def enter(folder: Path) -> None:
        (folder / "cgroup.procs").write_text(str(os.getpid()))

    def compute_in_it(talk: Any) -> Any:
        if group:
            enter(Path(group))
        return compute(talk)

    def leave_after_steps(talk: Any) -> Any:
        taken = steps(talk)
        if group:  # what comes then would only take long
            enter(Path(group).parent)
        return taken

    pace.compute, pace.steps = compute_in_it, leave_after_steps
    probe(arguments, hosts, only, dies)


def stays_away(
    arguments: list[str], hosts: list[str], only: dict[str, dict[str, str]], dies: list[Any] | None
) -> None:
    """Rank 1 lives, and takes no part any more."""
    from ddpdoctor.probe import rank

    measure = rank._measure

    def measure_but_for_rank_1(talk: Any, *given: Any) -> Any:
        if talk.rank == 1:
            time.sleep(_FOREVER)
        return measure(talk, *given)

    rank._measure = measure_but_for_rank_1
    probe(arguments, hosts, only, dies)


def _move_to(host: str) -> None:
    with Path("/run/netns", host).open("rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")


def _measure_little() -> None:
    from ddpdoctor.probe import bandwidth, correctness, pace

    correctness.DTYPES, correctness.SIZES = ("float32",), (1, 7)
    pace._SUSTAINED, pace._PIECES, pace._ROUNDS = 0.01, 2, 2
    bandwidth._LEAST, bandwidth.SIZES, bandwidth._COPY = 0.1, bandwidth.SIZES[:3], 1 << 20


def _die(phase: str, how: signal.Signals) -> None:
    """Have that happen to this process in that phase."""
    import torch.distributed as dist

    from ddpdoctor.probe import meeting, progress

    def dying(function: Callable[..., Any], before: bool) -> Callable[..., Any]:
        def then(*given: Any) -> Any:
            if not before:
                function(*given)
            if before or phase in given:
                os.kill(os.getpid(), how)
            return function(*given)

        return then

    if phase == "nothing":
        os._exit(0)
    elif phase == "meeting":
        meeting.Meeting.gather = dying(meeting.Meeting.gather, True)  # type: ignore[method-assign]
    elif phase == "joining":
        dist.init_process_group = lambda *_, **__: os.kill(os.getpid(), how)
    else:
        progress.Progress.tell = dying(progress.Progress.tell, False)  # type: ignore[method-assign]
