"""What is said of a variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NCCL_GROUP = "PyTorch for NCCL"
"""The reader of what ProcessGroupNCCL.cpp looks up: a torch without NCCL never does."""

Status = Literal[
    "known",  # read, and fine to set
    "debug",  # read, and meant to be taken away again
    "launcher",  # set by a launcher for its ranks, not by people
    "obsolete",  # read, and asks for what is the default by now
    "legacy",  # still read, under a name that was replaced
    "removed",  # was read once
    "phantom",  # was never read, though people set it
    "script",  # no library reads it, but scripts commonly do
]

Kind = Literal[
    "text",  # anything
    "python int",  # int(): raises
    "node count",  # torchrun's N or MIN:MAX: raises
    "zero or one",  # bool(int()): raises
    "c10d int",  # std::stoi: digits first, else raises
    "c10d bool",  # y yes 1 t true, n no 0 f false, any case; else raises
    "exactly 1",  # == "1", all else is off
    "c int",  # strtoll with base 0: no digits means 0
    "threads",  # a positive number, or a comma list of them
    "port",  # 0 to 65535
    "host",  # a name or an address, no scheme and no port
    "choice",  # one of `choices`, any case
    "exact choice",  # one of `choices` as written there
    "choices",  # a comma list of `choices`, any case
    "pattern",  # what `pattern` matches whole
    "interfaces",  # a comma list of exact interface names
    "interface prefixes",  # NCCL's comma list of prefixes, with ^ and =
    "devices",  # CUDA's list of ordinals or UUIDs
    "input file",  # a file that is read
    "output file",  # a file that is written, or the beginning of its name
    "log file",  # the same, and what is written there goes elsewhere where it cannot be
]


@dataclass(frozen=True, slots=True)
class Variable:
    """A row of the table."""

    name: str
    read_by: str
    kind: Kind = "text"
    status: Status = "known"
    default: str = ""
    """What counts when it is unset, as one would write it; "" where that depends."""
    note: str = ""
    """What it does, and what else a person should know who has set it."""
    instead: str = ""
    """What to write instead; for a legacy variable, the new name."""
    choices: tuple[str, ...] = ()
    pattern: str = ""
    expected: str = ""
    """What the pattern matches, in words."""
    least: int | None = None
    most: int | None = None
    """Bounds of a number, beyond which it means something else than it says, or ends the process
    where the row is `fatal`."""
    beyond: str = ""
    """What becomes of a number beyond them."""
    misread: str = ""
    """What becomes of a value that is not understood, where its kind does not tell."""
    fatal: bool = False
    """Whether a value that is no choice ends the process."""
    slow: bool = False
    """It costs so much speed that nobody who knows would leave it on."""
    ordinary_name: bool = False
    """Too ordinary a name to be what somebody else's similar name was meant to be."""

    @property
    def reader(self) -> str:
        """Who reads it, and what it does there."""
        return f"read by {self.read_by}" + (f": {self.note}" if self.note else "")

    @property
    def read_by_allocator(self) -> bool:
        """Whether it is about the memory of GPUs alone."""
        return self.name.endswith("_ALLOC_CONF")

    @property
    def of_nccl(self) -> bool:
        """Whether only a torch with NCCL reads it."""
        return self.read_by in ("NCCL", NCCL_GROUP)


def rows(
    read_by: str, kind: Kind, names: str, *, prefix: str = "", status: Status = "known"
) -> tuple[Variable, ...]:
    """A row for each of the blank-separated names, of which there is nothing more to say."""
    return tuple(Variable(prefix + name, read_by, kind, status) for name in names.split())


def described(
    read_by: str, kind: Kind, lines: str, *, prefix: str = "", status: Status = "known"
) -> tuple[Variable, ...]:
    """A row for each line, `NAME: what it does`."""
    named = (line.strip().split(": ", 1) for line in lines.splitlines() if line.strip())
    return tuple(Variable(prefix + name, read_by, kind, status, note=what) for name, what in named)
