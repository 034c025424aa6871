"""What a record of a job comes to, whichever it is: what all readers give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Evidence
from ddpdoctor.report.model import Report


class NothingToRead(Exception):
    """There is nothing at the path that could be diagnosed; the message says so in one line."""


@dataclass(frozen=True)
class Material:
    """One record of a job."""

    attempts: tuple[tuple[str, Evidence], ...]
    """Names, and what is known of the ranks; the last one is what the job ended with."""
    judge: Callable[[], list[Finding]]
    """Diagnoses the last attempt; how far such a record can be trusted is part of the judgement."""
    not_seen: tuple[str, ...] = ()
    run: Report | None = None
    """What `run` has reported of it, if it did."""
    faults: list[str] = field(default_factory=list)
    """Of ours, in words, once it was judged."""
