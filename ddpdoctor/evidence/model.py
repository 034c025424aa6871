"""What is known of a rank and of a launch. Times are seconds of CLOCK_MONOTONIC of one host."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from ddpdoctor.evidence.records import (
    Collective,
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
    Warned,
    Wrapper,
)

R = TypeVar("R")
_PASSING: Final = {"passing": True}
"""Marks what a log that is begun anew does not say again."""


@dataclass(slots=True)
class RankEvidence:
    """All that is known of one rank."""

    rank: int
    world_size: int
    pid: int = 0
    torch: str = ""
    python: str = ""
    """Their versions; "" if it wrote none down."""
    boot: str = ""
    """The host, the boot of it, and the container: times and process numbers of one compare."""
    host: str = ""
    """The name of the host."""
    groups: dict[str, Group] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list, metadata=_PASSING)
    ways: dict[int, tuple[Place, ...]] = field(default_factory=dict)
    """The user's frames that led to a collective, by the number that the log gives them."""
    wrappers: list[Wrapper] = field(default_factory=list)
    training: dict[tuple[int, int], Training] = field(default_factory=dict, metadata=_PASSING)
    """By wrapper and optimizer."""
    samples: list[Sample] = field(default_factory=list, metadata=_PASSING)
    copies: list[ModelCopy] = field(default_factory=list)
    plateaus: list[Plateau] = field(default_factory=list)
    seeds: list[Seed] = field(default_factory=list)
    samplers: list[Sampler] = field(default_factory=list)
    loaders: list[Loader] = field(default_factory=list)
    joins: int = 0
    """How often `Join` was entered: uneven inputs on purpose."""
    state_loads: list[StateLoad] = field(default_factory=list)
    files: list[FileEvent] = field(default_factory=list)
    exceptions: list[ExceptionRecord] = field(default_factory=list)
    thrown: list[ExceptionRecord] = field(default_factory=list)
    """Those that were seen on their way out of a backward, a collective or a loader."""
    warnings: list[Warned] = field(default_factory=list)
    steps: int = field(default=0, metadata=_PASSING)
    """Optimizer steps taken."""
    forwards: int | None = field(default=None, metadata=_PASSING)
    """Forward passes of its wrappers that have begun, where it stands still or has left."""
    waits: float = 0.0
    """Share of the last second that the main thread spent waiting for other ranks."""
    joining: float | None = None
    """When it began to join the process group; it has joined once `groups` is not empty."""
    joining_place: Place | None = None
    """The line that joins."""
    source: str = ""
    """A digest of the file with that line; "" where it could not be read."""
    meeting: str = ""
    """Where it is to meet the others: host and port, or a file; "" where that is not known."""
    master: str = ""
    """Host and port that the launcher names for rank 0, wherever ranks meet; "" if it does not."""
    run: str = ""
    """The launcher's name for this run or attempt, the same on all hosts; "" if there is none."""
    agent: int = 0
    """The process of torchrun's that has started it; 0 where that is not its launcher."""
    local_world_size: int = 0
    """How many ranks torchrun has started on its host; 0 where that is not its launcher."""
    parent: int = 0
    """The process that has started it by multiprocessing, and waits for it as it exits; or 0."""
    wanted: int = 0
    """The world size that it joins with."""
    launcher: str = ""
    """What has started it: torchrun, mp.spawn, mpirun, srun; "" where that is not known."""
    started: int = 0
    """How many processes that has started in all; 0 where it does not say."""
    started_at: Place | None = None
    """The line of the user's that has started them."""
    set_at: dict[str, Place] = field(default_factory=dict)
    """The user's lines that set MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE or LOCAL_RANK."""
    unhosted: bool = False
    """Nobody hosts the store it asks for: torchrun does, at the port that it had chosen."""
    nested: Place | None = None
    """Where a process joins that a rank of torchrun has started, in place of that rank."""
    joined_by: set[int] = field(default_factory=set)
    """The processes that have come to join as this rank, one after the other or at once."""
    cut_short: bool = False
    """Its log could not be written to its end: what is not in it may have been done."""
    dissolved: list[str] = field(default_factory=list)
    """Names of groups that it destroyed one by one, and not with the world."""
    leaving: float | None = None
    """When it began to destroy its process group."""
    left: float | None = None
    """When it had destroyed its process group."""
    left_place: Place | None = None
    """The line that destroyed it."""
    exiting: float | None = None
    """When the interpreter began to exit."""
    stuck: Stuck | None = field(default=None, metadata=_PASSING)
    working: Stuck | None = field(default=None, metadata=_PASSING)
    """A main thread that computes, and has issued no collective for a second or longer."""
    stood: Stuck | None = field(default=None, metadata=_PASSING)
    """The last wait for others that it has left, `seen` being when it still waited."""
    pauses: list[Stuck] = field(default_factory=list, metadata=_PASSING)
    """Where it stood still for a while and then went on, `seen` being when it did; the latest."""
    last_event: float = field(default=0.0, metadata=_PASSING)
    state: str = field(default="", metadata=_PASSING)
    """The kernel's letter for a process that gives no sign of life; "" where nobody has asked."""
    unheard: float = field(default=0.0, metadata=_PASSING)
    """Seconds for which nothing was heard of its host, if that is another one."""
    fate: Fate | None = field(default=None, metadata=_PASSING)
    records: dict[type, list[Any]] = field(default_factory=dict, metadata=_PASSING)
    """What has no attribute of its own, by its class; `of` gives it."""

    @property
    def ending(self) -> ExceptionRecord | None:
        """What ended it: its last exception, or what was on its way out when it was ended."""
        if self.exceptions:
            return self.exceptions[-1]
        ended_badly = self.fate is not None and self.fate.exit_code != 0
        if not (self.thrown and ended_badly):
            return None
        last = self.thrown[-1]
        went_on = any(call.begun > last.time for call in self.collectives[-1:])
        return None if went_on else last

    def forget(self, *, passing: bool = True) -> None:
        """Be as a rank of which nothing is known yet; keep what is `passing` if that is False."""
        blank = RankEvidence(self.rank, self.world_size)
        for each in fields(self):
            if passing or not each.metadata.get("passing"):
                setattr(self, each.name, getattr(blank, each.name))

    def way(self, number: int | None) -> tuple[Place, ...]:
        """The user's frames that led to a line, outermost first, by the number that the log gives.

        Raises what is in DAMAGED.
        """
        return self.ways.get(number, ()) if number is not None else ()

    def of(self, cls: type[R]) -> list[R]:
        """The records of this class, in their order."""
        found: list[R] = self.records.setdefault(cls, [])
        return found


@dataclass(slots=True)
class Evidence:
    """All that is known of one launch."""

    world_size: int
    ranks: list[RankEvidence]
    """By rank; a rank that never started has pid 0 and no events."""
    exit_code: int | None = None
    """That of the command that started the ranks, 128 + n for signal n; None if not known."""
    asked_to_end: bool = False
    """Somebody has asked the job to end: what is known is from before."""
    attempt: int = 0
    """How often the launcher had started the ranks before."""
    restarted: bool = False
    """The launcher has then started the ranks again."""
    memory_kills: int = 0
    """So many processes the kernel has killed meanwhile, for want of memory."""
    one_time: bool = True
    """The times of all ranks can be compared: they are of one clock, or were brought to one."""
    cut: float | None = None
    """All that stand still did so at this instant, whatever the clocks of their hosts say."""
    behind: bool = False
    """Hosts have not told all that their ranks are compared by; who waits, they have."""
    damaged: bool = False
    """Lines of it are lost: what one event says of another may not be there."""

    @property
    def is_cut_short(self) -> bool:
        """What a rank did not write may have been done, as a log was cut short."""
        return any(rank.cut_short for rank in self.ranks)
