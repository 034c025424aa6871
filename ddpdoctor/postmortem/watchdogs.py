"""What NCCL's watchdogs say when they give up: which collective each rank was waiting in."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ddpdoctor.evidence.checking import checked
from ddpdoctor.postmortem.lines import Line

_TIMEOUT = re.compile(
    r"Rank (\d+)\].*?Watchdog caught collective operation timeout: WorkNCCL\((.*?)\) ran for"
)
_QUEUE = re.compile(
    r"Rank (\d+)\].*?work: (\d{1,18}), last enqueued (?:NCCL )?work: (-?\d{1,18})\b"
)
_FIELD = re.compile(r"(\w+)(?:\(ms\))?=(\w+)")
_GROUP = re.compile(r"\[PG (?:ID )?(\d+)")


@dataclass
@checked
class Timeout:
    """The oldest collective that a rank gave up on, in one process group."""

    rank: int
    seq: int
    op: str
    numel: int | None
    seconds: float
    group: str = "0"
    enqueued: int = 0
    """The last collective that the rank had issued by then."""


class Watchdogs:
    """Collects timeouts.

    A rank is told by torch's mark before the line; the number within is that of the group. The
    group itself stands in another line, with the same number of work.
    """

    def __init__(self) -> None:
        self._timeouts: dict[tuple[int, int], Timeout] = {}
        self._queues: dict[tuple[int, int], tuple[str, int]] = {}

    def take(self, line: Line) -> bool:
        """Take in a line; whether it was a watchdog's."""
        if match := _TIMEOUT.search(line.text):
            rank = int(match[1]) if line.rank is None else line.rank
            fields = dict(_FIELD.findall(match[2]))
            seq = int(fields.get("SeqNum", 0))
            self._timeouts[rank, seq] = Timeout(
                rank=rank,
                seq=seq,
                op=fields.get("OpType", "collective").lower(),
                numel=int(fields["NumelIn"]) if fields.get("NumelIn", "").isdigit() else None,
                seconds=int(fields.get("Timeout", 0)) / 1000,
            )
        elif match := _QUEUE.search(line.text):
            rank = int(match[1]) if line.rank is None else line.rank
            group = found[1] if (found := _GROUP.search(line.text)) else "0"
            self._queues[rank, int(match[2])] = (group, int(match[3]))
        else:
            return False
        return True

    def timeouts(self) -> list[Timeout]:
        """The oldest collective of each rank in each group that it gave up on, by rank."""
        oldest: dict[tuple[int, str], Timeout] = {}
        for (rank, seq), timeout in sorted(self._timeouts.items()):
            group, enqueued = self._queues.get((rank, seq), ("0", seq))
            oldest.setdefault(
                (rank, group), replace(timeout, group=group, enqueued=max(seq, enqueued))
            )
        return list(oldest.values())
