"""Files and folders that ranks may share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import FileEvent


@event("file")
def file(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """Something is about to be done to a file."""
    rank.files.append(FileEvent(begun=time, ended=None, **typed(given)))


@event("file-end")
def file_end(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It was done, or has failed."""
    begun = rank.files[given["number"]]
    rank.files[given["number"]] = replace(begun, ended=time, error=given["error"])
