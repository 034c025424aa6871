"""The schema of what ranks wrote: the only thing that `watch` and `diagnose` share.

A rank appends one JSON object a line to its log (`LOG_NAME`); `RankReader` turns the lines into a
`RankEvidence`. Standard library alone: this is imported into the user's training process.
"""

from ddpdoctor.evidence.model import (
    MAKING_GROUPS,
    Collective,
    Epoch,
    Evidence,
    ExceptionRecord,
    Fate,
    FileEvent,
    Group,
    Loader,
    ModelCopy,
    Place,
    Plateau,
    RankEvidence,
    Sample,
    Sampler,
    Seed,
    StateLoad,
    Stuck,
    Training,
    Wrapper,
    pair_key,
)
from ddpdoctor.evidence.reader import RankReader
from ddpdoctor.evidence.run_directory import (
    DEATHS,
    LOG_NAME,
    attempt_name,
    attempt_number,
    boot,
    logs,
    noted_deaths,
)

__all__ = [
    "DEATHS",
    "LOG_NAME",
    "MAKING_GROUPS",
    "Collective",
    "Epoch",
    "Evidence",
    "ExceptionRecord",
    "Fate",
    "FileEvent",
    "Group",
    "Loader",
    "ModelCopy",
    "Place",
    "Plateau",
    "RankEvidence",
    "RankReader",
    "Sample",
    "Sampler",
    "Seed",
    "StateLoad",
    "Stuck",
    "Training",
    "Wrapper",
    "attempt_name",
    "attempt_number",
    "boot",
    "logs",
    "noted_deaths",
    "pair_key",
]
