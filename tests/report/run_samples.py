"""Reports on jobs, made up."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.evidence import (
    Collective,
    Evidence,
    ExceptionRecord,
    Fate,
    FileEvent,
    Group,
    Place,
    Plateau,
    RankEvidence,
    Sample,
    Stuck,
)
from ddpdoctor.evidence.events.losses import Loss
from ddpdoctor.report.job import of_job
from ddpdoctor.report.lives import Attempt
from ddpdoctor.report.model import Report

STARTED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
EVIL = "\x1b[31m</pre><script>alert(1)</script>\r\n| # `x` &amp;\x00\udcff"
SOURCE = """def save_checkpoint(model):
    if rank == 0:
        torch.save(model.state_dict(), PATH)
        dist.barrier()
    return PATH
"""


def script(folder: Path) -> str:
    """A file for the findings to point into."""
    file = folder / "train.py"
    file.write_text(SOURCE)
    return str(file)


def deadlock(file: str = "train.py", **changes: Any) -> Finding:
    """The example of a barrier under `if rank == 0:`."""
    barrier = RankPlace(
        ranks=(0,), place=Place(file, 4, "save_checkpoint"), doing="barrier #413", waits_for=(1, 2)
    )
    reduces = [
        RankPlace(
            ranks=(rank,),
            place=Place(file, 1, "Trainer.fit"),
            doing="all_reduce #413",
            waits_for=(0,),
        )
        for rank in (1, 2)
    ]
    fields: dict[str, Any] = {
        "code": "DDP401",
        "title": "rank-conditional-collective",
        "severity": "error",
        "certainty": "proven",
        "ranks": (0,),
        "places": (barrier, *reduces),
        "cause": "barrier() stands under `if rank == 0:` (train.py:2); ranks 1, 2 never reach it.",
        "cure": Cure(text="Call it on every rank."),
    }
    return Finding(**(fields | changes))


def evidence() -> Evidence:
    """Rank 0 blocked and ended by the doctor, rank 1 raised, rank 2 was never seen."""
    barrier = Collective("0", 413, "barrier", 104.0)
    blocked = RankEvidence(0, 3, pid=10, joining=100.0, steps=7, last_event=105.0)
    blocked.groups = {"0": Group("0", (0, 1, 2), "gloo", 1800.0, None)}
    blocked.stuck = Stuck(104.1, 105.0, (), Place("/a/train.py", 4, "save"), (barrier,))
    blocked.fate = Fate(0, 10, None, 9, 105.5, killed_by_us=True)
    error = ExceptionRecord("ValueError", "no", (), 103.0, Place("/a/train.py", 9, "fit"))
    raised = RankEvidence(1, 3, pid=11, joining=100.5, exceptions=[error], last_event=103.0)
    raised.fate = Fate(1, 11, 1, None, 103.2)
    return Evidence(3, [blocked, raised, RankEvidence(2, 3)])


def blocked_world(file: str, size: int) -> Evidence:
    """Rank 0 waits in a barrier, the others in an all_reduce; the last is late to every call."""
    ranks = []
    of_all = Group("0", tuple(range(size)), "gloo", 1800.0, None)
    for number in range(size):
        rank = RankEvidence(number, size, pid=10 + number, joining=100.0, last_event=112.0)
        rank.groups = {"0": of_all}
        late = 0.2 * (number == size - 1)
        fit, save = Place(file, 1, "fit"), Place(file, 4, "save")
        rank.collectives = [
            Collective("0", seq, "all_reduce", 100.0 + seq + late, fit) for seq in range(1, 9)
        ]
        last = ("barrier", save) if number == 0 else ("all_reduce", fit)
        waiting = Collective("0", 9, last[0], 109.1, last[1])
        rank.collectives.append(waiting)
        main = Place(file, 5, "main")
        rank.stuck = Stuck(109.5, 112.0, (main, last[1]), last[1], (waiting,))
        rank.fate = Fate(number, rank.pid, None, 9, 112.5, killed_by_us=True)
        rank.samples = [
            Sample(
                optimizer=0,
                step=step,
                parameters={"head.weight": f"w{step}", "head.bias": f"b{step}{apart}"},
                wrapper=0,
                time=100.0 + step + late,
            )
            for step, apart in ((1, ""), (2, ""), (4, number % 2), (8, number % 2))
        ]
        rank.plateaus = [Plateau(n, 1.0 / n + late, None) for n in (1, 2, 3)]
        rank.of(Loss).extend(
            Loss(n, None if (n, number) == (3, 1) else 4.0 / n + late, fit) for n in (1, 2, 3, 4)
        )
        cache = FileEvent("mkdir", "/tmp/torchinductor_root", 100.5, 100.5, fit)
        rank.files = [cache, FileEvent("save", "/a/last.pt", 109.0, 109.05, save)][: 2 - number]
        ranks.append(rank)
    return Evidence(size, ranks)


def evil_report(folder: Path) -> Report:
    """Everything that comes of the job tries to break out."""
    file = Path(script(folder))
    file.write_text(file.read_text().replace("PATH)", "'\x1b[31m</pre>')"))
    finding = deadlock(
        str(file),
        title=EVIL,
        cause=EVIL,
        evidence=(EVIL,),
        consequences=(EVIL,),
        cure=Cure(text=EVIL),
    )
    return report(finding, subject=("python", EVIL), not_seen=(EVIL,))


def report(*findings: Finding, **changes: Any) -> Report:
    """A run of three ranks that the doctor ended."""
    fields: dict[str, Any] = {
        "subject": ("torchrun", "train.py", "--name", "secret"),
        "started": STARTED,
        "seconds": 12.34,
        "status": -9,
        "ended_by": "doctor",
        "proven_after": 0.71,
    }
    return of_job("run", [Attempt.of("attempt-0", evidence())], findings, **(fields | changes))


def a_crowd(folder: Path) -> Report:
    """10 000 ranks and 100 000 findings, each of which says something else."""
    file = script(folder)
    mild = deadlock(file, code="DDP203", severity="warning")
    more = (
        mild.model_copy(update={"ranks": (n % 10_000,), "cause": f"stale {n}"})
        for n in range(100_000)
    )
    world = Attempt.of("attempt-0", blocked_world(file, 10_000))
    return of_job("run", [world], [deadlock(file), *more], subject=("torchrun",))
