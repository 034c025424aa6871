"""What NCCL's watchdogs say when they give up: which collective each rank was waiting in."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ddpdoctor.postmortem.lines import Line

_TIMEOUT = re.compile(
    r"Rank (\d+)\].*?Watchdog caught collective operation timeout: WorkNCCL\((.*?)\) ran for"
)
_QUEUE = re.compile(
    r"Rank (\d+)\].*?last enqueued (?:NCCL )?work: (-?\d+), last completed (?:NCCL )?work: (-?\d+)"
)
_FIELD = re.compile(r"(\w+)(?:\(ms\))?=(\w+)")
_GROUP = re.compile(r"\[PG (?:ID )?(\d+)")


@dataclass
class Timeout:
    """The oldest collective that a rank gave up on, in one process group."""

    rank: int
    group: str
    seq: int
    op: str
    numel: int | None
    seconds: float
    line: int
    enqueued: int | None = None


class Watchdogs:
    """Collects timeouts; of several of one rank and group the oldest collective counts."""

    def __init__(self) -> None:
        self.timeouts: dict[tuple[str, int], Timeout] = {}
        self.enqueued: dict[tuple[str, int], int] = {}

    def take(self, line: Line) -> bool:
        """Take in a line; whether it was a watchdog's."""
        group = found[1] if (found := _GROUP.search(line.text)) else "0"
        if match := _TIMEOUT.search(line.text):
            fields = dict(_FIELD.findall(match[2]))
            rank, seq = int(match[1]), int(fields.get("SeqNum", 0))
            key = (group, rank)
            if key not in self.timeouts or seq < self.timeouts[key].seq:
                self.timeouts[key] = Timeout(
                    rank=rank,
                    group=group,
                    seq=seq,
                    op=fields.get("OpType", "collective").lower(),
                    numel=int(fields["NumelIn"]) if fields.get("NumelIn", "").isdigit() else None,
                    seconds=int(fields.get("Timeout", 0)) / 1000,
                    line=line.number,
                )
            return True
        if match := _QUEUE.search(line.text):
            self.enqueued[group, int(match[1])] = int(match[2])
            return True
        return False
