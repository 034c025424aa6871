"""The schema of what ranks wrote: the only thing that `watch` and `diagnose` share.

A rank appends one JSON object a line to its log (`LOG_NAME`); `RankReader` turns the lines into a
`RankEvidence`. Each kind of event has one place, in `events/`. Standard library alone: this is
imported into the user's training process.
"""

from ddpdoctor.evidence import events  # noqa: F401 - that it registers itself
from ddpdoctor.evidence.checking import changed
from ddpdoctor.evidence.clock import Clock
from ddpdoctor.evidence.event import KINDS
from ddpdoctor.evidence.model import Evidence, RankEvidence
from ddpdoctor.evidence.reader import LogReader, RankReader
from ddpdoctor.evidence.records import (
    EXCHANGES,
    MAKING_GROUPS,
    Collective,
    Epoch,
    ExceptionRecord,
    Fate,
    FileEvent,
    Group,
    Loader,
    ModelCopy,
    Place,
    Plateau,
    Sample,
    Sampler,
    Seed,
    StateLoad,
    Stuck,
    Training,
    Wrapper,
    pair_key,
    signal_name,
)
from ddpdoctor.evidence.run_directory import (
    CUT_SHORT,
    DAMAGED,
    DEATHS,
    HOST,
    LAST_WORDS,
    LOG_NAME,
    MOST_RANKS,
    OUTPUT,
    REPORT,
    attempt_name,
    attempt_number,
    boot,
    log_of,
    logs,
    noted_deaths,
    open_file,
    world_size,
)
from ddpdoctor.evidence.spans import named, spans

__all__ = [
    "CUT_SHORT",
    "DAMAGED",
    "DEATHS",
    "EXCHANGES",
    "HOST",
    "KINDS",
    "LAST_WORDS",
    "LOG_NAME",
    "MAKING_GROUPS",
    "MOST_RANKS",
    "OUTPUT",
    "REPORT",
    "Clock",
    "Collective",
    "Epoch",
    "Evidence",
    "ExceptionRecord",
    "Fate",
    "FileEvent",
    "Group",
    "Loader",
    "LogReader",
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
    "changed",
    "log_of",
    "logs",
    "named",
    "noted_deaths",
    "open_file",
    "pair_key",
    "signal_name",
    "spans",
    "world_size",
]
