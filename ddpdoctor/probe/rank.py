"""One rank of a probe, from joining to leaving. Started by `local`, or by the user's launcher."""

from __future__ import annotations

import os
import socket
import sys
import time
import warnings
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.facts.variables import variables
from ddpdoctor.environment.redaction import first_line
from ddpdoctor.environment.variables import known
from ddpdoctor.probe import bandwidth, clocks, correctness, links, pace
from ddpdoctor.probe.meeting import Meeting, PeerLost
from ddpdoctor.probe.model import Measured, RankFacts
from ddpdoctor.probe.progress import Progress
from ddpdoctor.probe.talk import Talk
from ddpdoctor.probe.terms import Terms

_OF_ALL = ("NCCL_", "GLOO_", "TORCH_NCCL_", "TORCH_GLOO_", "TORCH_DIST")
_OF_A_HOST = ("IFNAME", "HCA", "GID_INDEX", "HOSTID", "CPUSET", "_FILE")
STAGE, RESULT = "stage", "measured.json"
_TO_START, _LEAST = 6.0, 5.0
"""Seconds that starting may take beside the measuring; and those that are measured at least."""


def in_folder(
    folder: str, backend: str, seconds: float, patience: float | None, begun: float
) -> None:
    """A rank that `local` has started: what rank 0 measured goes into a file."""
    rank = int(os.environ["RANK"])
    with Progress(rank, Path(folder, f"rank-{rank}.{STAGE}")) as progress:
        try:
            measured = measure(backend, Terms(seconds, patience, begun), progress)
        except PeerLost as lost:
            sys.exit(str(lost))  # its last line, without a traceback
    if measured:
        Path(folder, RESULT).write_text(measured.model_dump_json(), encoding="utf-8")


def measure(backend: str, terms: Terms, progress: Progress) -> Measured | None:
    """Everything, in about the time that is given; None on all ranks but 0. Raises PeerLost."""
    # The newest torch calls some collectives by other names, which older ones do not have.
    warnings.filterwarnings("ignore", ".*is deprecated", FutureWarning, r"torch\.distributed")
    joining = time.monotonic()
    chosen, device = _device(backend)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    meeting = Meeting(rank, size, terms.wait)
    meeting.gather()
    talk = Talk(rank, size, device, progress)
    measured, lost = None, ""
    with meeting.answering(lambda: progress.words):
        try:
            dist.init_process_group(
                chosen,
                store=meeting.store,
                rank=rank,
                world_size=size,
                timeout=timedelta(seconds=terms.wait),
            )
            talk.together()
            facts = _facts(talk, time.monotonic() - joining)
            measured = _measure(talk, facts, chosen, talk.agreed(_left(terms.seconds, terms.begun)))
            talk.together()
        except RuntimeError as error:
            lost = first_line(error)
    if measured is None or lost:
        # Not in the handler: the error's frames hold the group, which is to go before it asks.
        raise meeting.ask(progress.words, lost, dist.is_initialized())
    dist.destroy_process_group()
    measured = measured.model_copy(update={"seconds": time.monotonic() - joining})
    return measured if rank == 0 else None


def _left(seconds: float, begun: float) -> float:
    """What a slow start has left of the time."""
    gone = time.time() - begun
    return min(seconds, max(_LEAST, seconds + _TO_START - gone))


def _device(backend: str) -> tuple[str, torch.device]:
    usable = torch.cuda.is_available() and dist.is_nccl_available()
    chosen = ("nccl" if usable else "gloo") if backend == "auto" else backend
    if chosen != "nccl":
        return chosen, torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return chosen, device


def _facts(talk: Talk, rendezvous: float) -> RankFacts:
    name = torch.cuda.get_device_name(talk.device) if talk.device.type == "cuda" else "CPU"
    return RankFacts(
        rank=talk.rank,
        host=socket.gethostname(),
        device=name,
        torch=str(torch.__version__),
        rendezvous=rendezvous,
        variables=_must_agree(),
    )


def _must_agree() -> dict[str, str]:
    """Settings of the communication, but for those that name a device or a file of the host."""
    return {
        one.name: one.value
        for one in variables(Machine(os.environ))
        if one.name.startswith(_OF_ALL)
        and not one.name.endswith(_OF_A_HOST)
        and not (one.name in known() and "file" in known()[one.name].kind)
    }


def _measure(talk: Talk, facts: RankFacts, backend: str, seconds: float) -> Measured:
    begun = time.monotonic()
    checked = correctness.checks(talk, seconds * 0.25)
    pairs, all_pairs = links.links(talk, seconds * 0.25) if talk.size > 1 else ([], True)
    talk.progress.tell("pace")
    computed = pace.compute(talk)
    own, whole = pace.steps(talk)
    copied = bandwidth.copy_bandwidth(talk)
    # Last, for the others take as long as they take here, and large sizes are what can be left out.
    points = bandwidth.points(talk, begun + seconds * 0.9 - time.monotonic())
    paces = {
        "compute": computed.middle,
        "compute_range": computed.range,
        "step": own.middle,
        "step_range": own.range,
        "compute_alone": computed.alone,
        "step_alone": own.alone,
    }
    mine = facts.model_copy(update=paces)
    ranks = tuple(RankFacts.model_validate(one) for one in talk.gathered(mine.model_dump()))
    apart = clocks.clocks(talk, [one.host for one in ranks])
    talk.progress.tell("done")
    return Measured(
        world_size=talk.size,
        backend=backend,
        seconds=0.0,
        ranks=ranks,
        checks=tuple(checked),
        points=tuple(points),
        overhead=bandwidth.overhead(talk),
        copy_bandwidth=copied,
        links=tuple(pairs),
        links_measured="all" if all_pairs else "some",
        clocks=tuple(apart),
        full_step=whole,
    )
