"""The command `probe`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpdoctor.complaints import Complaint, complaining_about, leaving_in_order, need
from ddpdoctor.options import Asked, Backend, BackendOption, reporting
from ddpdoctor.probe.terms import Terms
from ddpdoctor.report import output

if TYPE_CHECKING:
    from ddpdoctor.catalog import Finding
    from ddpdoctor.probe.model import Measured


@reporting()
def probe(
    nproc: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Ranks on this machine; under a launcher: its own."),
    ] = None,
    backend: BackendOption = Backend.auto,
    seconds: Annotated[
        float, typer.Option(min=1, max=3600, metavar="S", help="How long to measure, about.")
    ] = 20.0,
    patience: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=86400,
            metavar="S",
            help="Seconds that ranks wait for one another; else as long as they measure, from 20.",
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="OLD.json", help="Tell what became slower since.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw what was measured into this file too.")
    ] = None,
    *,
    asked: Asked,
) -> None:
    """See whether ranks can talk, with right results, and how fast.

    Alone on this machine with --nproc ranks, or under any launcher, across hosts:
    torchrun --nnodes=2 ... -m ddpdoctor probe

    Exit code: 0 all is well; 1 a result is wrong, a rank is lost, or something is slow (--fail-on);
    2 a usage error or a fault of ours.
    """
    begun = time.time()
    need("torch", "torch")
    if png:
        need("crystal", "matplotlib")
        output.check_writable(png)
    if png and asked.target and png.resolve() == asked.target.resolve():
        raise Complaint(f"{png}: one file cannot be both the picture and the report")

    from ddpdoctor.probe import telling
    from ddpdoctor.probe.against import NotComparable, read, slower
    from ddpdoctor.probe.judge import judge, unchecked
    from ddpdoctor.probe.model import ProbeReport
    from ddpdoctor.report.model import Unreadable

    with complaining_about(NotComparable, Unreadable):
        then = read(against) if against else None
    if backend is Backend.nccl:
        _check_nccl()
    measured, found = _perform(nproc, backend.value, Terms(seconds, patience, begun))
    busy: list[str] = []
    if measured:
        found, busy = judge(measured), unchecked(measured)
        if then:
            with complaining_about(NotComparable):
                since, also_busy = slower(measured, then)
            found, busy = found + since, busy + also_busy
    if measured is None and not found:
        return  # rank 0 tells
    report = ProbeReport(measured=measured, findings=tuple(found), unchecked=tuple(busy))
    told = telling.told(report)
    asked.deliver(told)
    if png:
        telling.write_png(report, png)
    asked.leave(told, unseen=bool(busy))


def _perform(
    nproc: int | None, backend: str, terms: Terms
) -> tuple[Measured | None, list[Finding]]:
    if _is_a_rank():
        if nproc is not None:
            raise Complaint("under a launcher the number of ranks is the launcher's: no --nproc")
        return _as_a_rank(backend, terms)
    return _alone(nproc or 4, backend, terms)


def _is_a_rank() -> bool:
    """Whether a launcher has started this process; its numbers are then where torch reads them."""
    from ddpdoctor.environment.facts.launcher import launchers
    from ddpdoctor.environment.facts.machine import Machine

    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        _check_world()
        return True
    found = [one for one in launchers(Machine(os.environ)) if (one.size or 0) > 1]
    if not found:
        return False
    outer = found[0]
    if "MASTER_ADDR" not in os.environ and outer.local_size != outer.size:
        raise Complaint(
            f"{outer.name} says rank {outer.rank} of {outer.size}, but MASTER_ADDR is not set: "
            "`ddpdoctor config` writes a launch file that sets it"
        )
    os.environ |= {"RANK": str(outer.rank), "WORLD_SIZE": str(outer.size)}
    os.environ.setdefault("LOCAL_RANK", str(outer.local_rank or 0))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    return True


def _check_world() -> None:
    """What env:// reads, before torch does."""
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if not 0 <= rank < size:
            raise Complaint(f"RANK={rank} and WORLD_SIZE={size}: no such rank")
        missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
        if missing:
            raise Complaint(f"RANK and WORLD_SIZE are set, but not {missing[0]}: `ddpdoctor env`")
        if not 0 < int(os.environ["MASTER_PORT"]) < 1 << 16:
            raise ValueError
    except ValueError as error:
        raise Complaint(
            "RANK, WORLD_SIZE or MASTER_PORT is no possible number: `ddpdoctor env` says which"
        ) from error


def _check_nccl() -> None:
    import torch
    import torch.distributed as dist

    if not dist.is_nccl_available():
        raise Complaint(f"torch {torch.__version__} is built without NCCL: take --backend gloo")
    if not torch.cuda.is_available():
        raise Complaint("no GPU is seen, and NCCL needs one for each rank: take --backend gloo")


def _as_a_rank(backend: str, terms: Terms) -> tuple[Measured | None, list[Finding]]:
    from ddpdoctor.environment.redaction import first_line
    from ddpdoctor.probe.finding import finding
    from ddpdoctor.probe.meeting import PeerLost
    from ddpdoctor.probe.progress import Progress
    from ddpdoctor.probe.rank import measure

    rank = int(os.environ["RANK"])
    with Progress(rank) as progress:
        try:
            return measure(backend, terms, progress), []
        except PeerLost as lost:
            cause, ranks = str(lost), lost.ranks
            cure = "Look at that process: what it printed last, and dmesg on its host."
        except RuntimeError as error:  # its own: no store can be hosted here, say
            cause = f"rank {rank} failed while {progress.words}: {first_line(error)}"
            ranks = (rank,)
            cure = "See whether MASTER_ADDR, MASTER_PORT and the interfaces are right: env tells."
        return None, [finding("DDP723", "error", cause, cure, ranks=ranks)]


def _alone(nproc: int, backend: str, terms: Terms) -> tuple[Measured | None, list[Finding]]:
    from ddpdoctor.launch import LaunchError
    from ddpdoctor.probe import local
    from ddpdoctor.probe.finding import finding
    from ddpdoctor.probe.progress import STAGES, bar

    drawn = bar()
    shown = drawn.task_ids[0]

    def on_stage(stage: str) -> None:
        drawn.update(shown, completed=STAGES.index(stage), description=stage)

    if sys.stderr.isatty():
        drawn.start()
    try:
        with complaining_about(LaunchError), leaving_in_order():
            return local.probe(nproc, backend, terms, on_stage), []
    except local.RankLost as lost:
        cure = "Look at what ended it: memory, a limit, or somebody's kill."
        return None, [
            finding("DDP723", "error", str(lost), cure, ranks=(lost.rank,), certainty="proven")
        ]
    finally:
        if drawn.live.is_started:  # else it would end a line that it never began
            drawn.stop()
