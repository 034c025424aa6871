"""What launchers say when it is over: torchrun's summary, and the last words of mp.spawn."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.postmortem.lines import Line

_PATIENCE = 100
"""Lines of others that may stand between two of a table."""
_RULE = re.compile(r"[=-]{20,}$")
_FAILED = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)")
_EXITED = re.compile(
    r"ProcessExitedException: process (\d+) terminated with (?:signal (\w+)|exit code (\d+))"
)
_RANK = re.compile(r"\s*rank\s+: (\d+) \(local_rank: (\d+)\)")
_EXIT = re.compile(r"\s*exitcode\s+: (-?\d+) \(pid: (\d+)\)")


@dataclass
@checked
class Ending:
    """How a launcher says that a rank ended."""

    rank: int
    exit_code: int
    """-n for signal n."""
    pid: int = 0
    first: bool = False
    """The launcher calls it the root cause: the first failure that it saw."""


class Summary:
    """Collects endings."""

    def __init__(self) -> None:
        self.endings: dict[int, Ending] = {}
        self.is_open = False
        """Within torchrun's table."""
        self._first = False
        self._rank: int | None = None
        self._provisional: list[Ending] = []
        self._silence = 0

    def take(self, line: Line) -> bool:
        """Take in a line; whether it was a launcher's."""
        text = line.text
        if text.endswith("FAILED") or (self.is_open and _RULE.match(text)):
            self.is_open = True
        elif text.startswith("Root Cause (first observed failure)"):
            self.is_open, self._first = True, True
        elif match := _RANK.match(text):
            self._rank = int(match[1])
        elif self._rank is not None and (match := _EXIT.match(text)):
            ending = Ending(self._rank, int(match[1]), int(match[2]), self._first)
            self.endings[self._rank] = ending
            self.is_open, self._first, self._rank = not self._first, False, None
        elif match := _FAILED.search(text):
            self._provisional.append(Ending(int(match[2]), int(match[1]), int(match[3]), True))
        elif match := _EXITED.search(text):
            number = -_signal(match[2]) if match[2] else int(match[3])
            self._provisional.append(Ending(int(match[1]), number, first=True))
        else:
            self._silence += 1
            self.is_open = self.is_open and self._silence < _PATIENCE
            return False
        self._silence = 0
        return True

    def end(self) -> None:
        """The log is over: what had no table is taken from the lines that came before one."""
        if not self.endings:
            for ending in self._provisional:
                self.endings.setdefault(ending.rank, ending)


def _signal(name: str) -> int:
    known = signal.Signals.__members__.get(name)
    return int(known) if known is not None else int(signal.SIGKILL)
