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
    Group,
    Place,
    RankEvidence,
    Stuck,
)
from ddpdoctor.report.run import Attempt, RunReport

STARTED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
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


def report(*findings: Finding, **changes: Any) -> RunReport:
    """A run of three ranks that the doctor ended."""
    fields: dict[str, Any] = {
        "command": ("torchrun", "train.py", "--name", "secret"),
        "started": STARTED,
        "seconds": 12.34,
        "status": -9,
        "ended_by": "doctor",
        "proven_after": 0.71,
    }
    return RunReport.of(
        "run", [Attempt.of("attempt-0", evidence())], findings, **(fields | changes)
    )
