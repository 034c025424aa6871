"""The schema of what ranks wrote: the only thing that `watch` and `diagnose` share.

A rank appends one JSON object a line to its log (`LOG_NAME`); `RankReader` turns the lines into a
`RankEvidence`. Standard library alone: this is imported into the user's training process.
"""

from ddpdoctor.evidence.model import (
    Collective,
    Evidence,
    ExceptionRecord,
    Fate,
    FileEvent,
    Group,
    Place,
    RankEvidence,
    Sampler,
    Stuck,
    Wrapper,
)
from ddpdoctor.evidence.reader import LOG_NAME, RankReader

__all__ = [
    "LOG_NAME",
    "Collective",
    "Evidence",
    "ExceptionRecord",
    "Fate",
    "FileEvent",
    "Group",
    "Place",
    "RankEvidence",
    "RankReader",
    "Sampler",
    "Stuck",
    "Wrapper",
]
