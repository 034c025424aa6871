"""Python's tracebacks, put together again from lines that several ranks wrote at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ddpdoctor.evidence import ExceptionRecord, Place
from ddpdoctor.postmortem.frames import is_users
from ddpdoctor.postmortem.lines import Line

_START = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s+File "(.+)", line (\d+), in (.+)$')
_ERROR = re.compile(r"(?:[A-Za-z_]\w*\.)*((?<=\.)\w+|[A-Z_]\w*)(?::\s?(.*))?$")
_LINKS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_SPAWNED = re.compile(r"-- Process (\d+) terminated with the following error:")
_ANOTHER = re.compile(r"\[?[IWEF]\d{3,4} \d\d:|\d{4}-\d\d-\d\d[ T]\d\d:|={20}|-{20}")
_PATIENCE = 1000
"""Lines of others that may stand between two of a traceback."""
_MOST_LINES = 20
_MOST_FRAMES = 400

# A log has bare names where the detectors expect qualified ones.
_QUALIFIED = {
    ("torch/utils/data/distributed.py", "__init__"): "DistributedSampler.__init__",
}


@dataclass
class Traceback:
    """One traceback as far as it has been read."""

    rank: int | None
    in_group: bool
    line: int
    frames: list[Place] = field(default_factory=list)
    type: str = ""
    message: list[str] = field(default_factory=list)
    cause: ExceptionRecord | None = None
    linked: bool = False
    """The next traceback of the stream was raised from this one."""
    blank: bool = False

    def record(self) -> ExceptionRecord:
        """The exception; its time is the number of its line."""
        users = [frame for frame in self.frames if is_users(frame.file)]
        return ExceptionRecord(
            type=self.type,
            message="\n".join(self.message).strip()[:4000],
            frames=tuple(self.frames),
            time=float(self.line),
            place=users[-1] if users else None,
            cause=self.cause,
        )


class Tracebacks:
    """All tracebacks of a log, by the stream that they came in."""

    def __init__(self) -> None:
        self.finished: list[Traceback] = []
        self._open: dict[int | None, Traceback] = {}
        self._next_rank: int | None = None
        self._silence = 0

    @property
    def is_open(self) -> bool:
        """Whether one is being read, and its next line may be expected soon."""
        return bool(self._open) and self._silence < _PATIENCE

    def take(self, line: Line) -> bool:
        """Take in a line; whether it belonged to a traceback."""
        belongs = self._take(line)
        self._silence = 0 if belongs else self._silence + 1
        return belongs

    def _take(self, line: Line) -> bool:
        text = line.text
        if match := _SPAWNED.search(text):
            self._close(line.rank)
            self._next_rank = int(match[1])
            return True
        current = self._open.get(line.rank)
        if text.lstrip().startswith(_START) and not text.startswith("  "):
            self._begin(line, current)
            return True
        if current is None:
            return False
        if current.type:
            return self._after_the_error(line, current)
        return self._within(text, line.rank, current)

    def end(self) -> None:
        """The log is over."""
        for rank in list(self._open):
            self._close(rank)

    def _begin(self, line: Line, before: Traceback | None) -> None:
        cause = before.record() if before is not None and before.linked else None
        if before is not None and cause is None:
            self._close(line.rank)
        said, self._next_rank = self._next_rank, None
        rank = line.rank if said is None else said
        self._open[line.rank] = Traceback(rank, line.in_group, line.number, cause=cause)

    def _within(self, text: str, stream: int | None, current: Traceback) -> bool:
        if match := _FRAME.match(text):
            if len(current.frames) < _MOST_FRAMES:
                current.frames.append(_place(match[1], int(match[2]), match[3]))
            return True
        if not text.strip() or text[0] in " \t":
            return True
        if current.frames and (match := _ERROR.match(text)):
            current.type, current.message = match[1], [match[2] or ""]
            return True
        # Another writer in the same stream; a traceback that never comes to its error is dropped.
        if not current.frames:
            del self._open[stream]
        return False

    def _after_the_error(self, line: Line, current: Traceback) -> bool:
        text = line.text
        if text in _LINKS:
            current.linked = True
            return True
        if not text.strip():
            current.blank = True
            return True
        over = current.blank or current.linked or len(current.message) >= _MOST_LINES
        if over or _ANOTHER.match(text):
            self._close(line.rank)
            return False
        current.message.append(text)
        return True

    def _close(self, stream: int | None) -> None:
        current = self._open.pop(stream, None)
        if current is not None and current.type:
            self.finished.append(replace(current))


def _place(file: str, line: int, function: str) -> Place:
    for (ending, bare), qualified in _QUALIFIED.items():
        if function == bare and file.endswith(ending):
            return Place(file, line, qualified)
    return Place(file, line, function)
