"""What is known of a rank and of a launch. Times are seconds of CLOCK_MONOTONIC of one host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """A line of somebody's source."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective (or send/recv) as one rank issued it."""

    group: str
    """Name of the process group; "0" is the default group."""
    seq: int
    """Number of the collective within its group, on this rank, from 1."""
    op: str
    """all_reduce, broadcast, barrier, ..."""
    begun: float
    place: Place | None = None
    """The user's line that issued it; None for what DDP issues from C++."""
    shapes: tuple[tuple[int, ...], ...] = ()
    dtype: str = ""
    root: int | None = None
    reduce_op: str | None = None
    at_exit: bool = False
    """Issued while the interpreter was already exiting (an atexit hook)."""


@dataclass(frozen=True, slots=True)
class ExceptionRecord:
    """An exception that ended the rank, or one of its chain."""

    type: str
    message: str
    frames: tuple[Place, ...]
    """Outermost first, library frames included."""
    time: float
    place: Place | None
    """The innermost frame that is the user's own."""
    cause: ExceptionRecord | None = None
    """What it was raised from, or while handling."""


@dataclass(frozen=True, slots=True)
class FileEvent:
    """One torch.save or torch.load, or a rename that published a file."""

    action: str
    """save, load or replace."""
    path: str
    begun: float
    ended: float | None
    place: Place | None
    error: str = ""
    """Type and message, if it failed."""
    keys: tuple[str, ...] = ()
    """Top-level keys of the saved dictionary."""
    source: str = ""
    """For replace: the path that was renamed."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """A DistributedSampler as it was built."""

    length: int
    num_replicas: int
    rank: int
    seed: int
    shuffle: bool
    place: Place | None


@dataclass(slots=True)
class Wrapper:
    """A DistributedDataParallel as it was built, and what became of its parameters."""

    place: Place | None
    parameters: tuple[str, ...]
    """Names of the parameters that need gradients, in DDP's own order of indices."""
    find_unused: bool
    static_graph: bool
    broadcast_buffers: bool
    without_gradient: tuple[str, ...] = ()
    """Parameters that had no gradient when the optimizer stepped, or when the reducer gave up."""
    unreferenced: tuple[str, ...] = ()
    """Those of them whose module no method of its parent ever names: dead, whatever the data."""
    registered: tuple[Place, ...] = ()
    """The lines that register the dead ones, without repetition."""


@dataclass(frozen=True, slots=True)
class Group:
    """A process group that this rank joined."""

    name: str
    ranks: tuple[int, ...]
    """Global ranks of the members."""
    backend: str
    timeout: float
    """Seconds after which a collective of this group gives up."""
    place: Place | None


@dataclass(frozen=True, slots=True)
class Stuck:
    """The heartbeat's view of a main thread that has idled in one call between two beats."""

    since: float
    """First beat at which it was seen there."""
    seen: float
    """Latest beat at which it was still there."""
    stack: tuple[Place, ...]
    """Main thread, outermost first, library frames included."""
    place: Place | None
    """The innermost frame that is the user's own."""
    waiting: tuple[Collective, ...]
    """Collectives that were issued and have not completed, oldest first."""
    issued: Mapping[str, int] = field(default_factory=dict)
    """How many collectives this rank has issued, by group, those that DDP issues included."""
    other_threads_communicate: bool = False
    """Another thread of this rank has issued collectives: it might yet issue the missing one."""


@dataclass(frozen=True, slots=True)
class Fate:
    """How a rank's process ended, as its parent saw it."""

    rank: int
    pid: int
    exit_code: int | None
    """None if a signal ended it."""
    signal: int | None
    time: float
    killed_by_us: bool = False
    """The launcher ended it, after a verdict, a deadline or an interrupt."""


@dataclass(slots=True)
class RankEvidence:
    """All that is known of one rank."""

    rank: int
    world_size: int
    pid: int = 0
    torch: str = ""
    boot: str = ""
    """The host, and the boot of it: times of different boots cannot be compared."""
    groups: dict[str, Group] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)
    wrappers: list[Wrapper] = field(default_factory=list)
    samplers: list[Sampler] = field(default_factory=list)
    files: list[FileEvent] = field(default_factory=list)
    exceptions: list[ExceptionRecord] = field(default_factory=list)
    steps: int = 0
    """Optimizer steps taken."""
    joining: float | None = None
    """When it began to join the process group; it has joined once `groups` is not empty."""
    left: float | None = None
    """When it had destroyed its process group."""
    exiting: float | None = None
    """When the interpreter began to exit."""
    stuck: Stuck | None = None
    last_event: float = 0.0
    fate: Fate | None = None


@dataclass(slots=True)
class Evidence:
    """All that is known of one launch."""

    world_size: int
    ranks: list[RankEvidence]
    """By rank; a rank that never started has pid 0 and no events."""
