"""From the lines that a rank writes to what is known of it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from ddpdoctor.evidence.model import (
    Collective,
    Epoch,
    ExceptionRecord,
    FileEvent,
    Group,
    Loader,
    ModelCopy,
    Place,
    Plateau,
    RankEvidence,
    Sample,
    Sampler,
    Seed,
    StateLoad,
    Stuck,
    Training,
    Warned,
    Wrapper,
)
from ddpdoctor.evidence.run_directory import LOG_NAME

_PASSING = (
    *("fate", "last_event", "collectives", "samples", "stuck", "working", "pauses", "steps"),
    "training",
)
"""What a log that is begun anew does not say again."""
_PAUSE = 0.5
"""Seconds from which on standing still is remembered."""
_PAUSES = 32
_WINDOW = 8192
"""At least so many collectives are remembered, the latest; twice as many at most."""


class RankReader:
    """Reads a rank's log while it is being written, and keeps the `RankEvidence` up to date."""

    def __init__(self, run_dir: Path, rank: int, world_size: int) -> None:
        self.evidence = RankEvidence(rank, world_size)
        self.unreadable = 0
        """Lines that are no events: somebody else wrote into the log, or a newer doctor."""
        self._path = run_dir / LOG_NAME.format(rank=rank)
        self._log: BinaryIO | None = None
        self._rest = b""

    def poll(self) -> bool:
        """Take in what was written since the last call; whether there was anything.

        A line that is not complete yet is left for the next call; one that a kill cut short, or a
        full disk, is never completed and so never read. A log that was begun anew is followed.
        """
        before = self._log
        if self._log is None or self._is_replaced(self._log):
            try:
                self._log = self._path.open("rb")
            except OSError:
                self._log = None
        news = self._read(before) if before is not None and before is not self._log else False
        if before is not None and before is not self._log:
            before.close()
            self._rest = b""
        return (self._read(self._log) if self._log is not None else False) or news

    def close(self) -> None:
        """Read no more."""
        if self._log is not None:
            self._log.close()

    def _is_replaced(self, log: BinaryIO) -> bool:
        try:
            now, then = self._path.stat(), os.fstat(log.fileno())
        except OSError:
            return False
        return (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino)

    def _read(self, log: BinaryIO) -> bool:
        # Not to the end of what can be read: a log may be a link to a device.
        new = log.read(max(0, os.fstat(log.fileno()).st_size - log.tell()))
        *lines, self._rest = (self._rest + new).split(b"\n")
        for line in lines:
            try:
                self._apply(json.loads(line))
            except (ValueError, TypeError, KeyError, IndexError, AttributeError):
                self.unreadable += 1
        return bool(lines)

    def _start_over(self) -> None:
        """Forget what the log is about to say again."""
        old = self.evidence
        kept = {name: getattr(old, name) for name in _PASSING}
        old.__init__(old.rank, old.world_size)  # type: ignore[misc]
        for name, value in kept.items():
            setattr(old, name, value)

    def _apply(self, event: dict[str, Any]) -> None:
        kind, time = event.pop("k"), event.pop("t")
        rank = self.evidence
        rank.last_event = max(rank.last_event, time)
        match kind:
            case "anew":
                self._start_over()
            case "start":
                processes, nested = rank.processes + (rank.pid != event["pid"]), rank.nested
                if rank.pid not in (0, event["pid"]):  # a later process, as the same rank
                    rank.__init__(rank.rank, rank.world_size)  # type: ignore[misc]
                rank.processes, rank.nested = processes, nested
                rank.pid, rank.torch = event["pid"], event["torch"]
                rank.world_size, rank.boot = event["world_size"], event["boot"]
            case "joining":
                rank.joining, rank.joining_place = time, _value("place", event["place"])
                rank.source = event.get("source") or ""
                rank.nested = rank.joining_place if event.get("nested") else rank.nested
            case "dissolved":
                rank.dissolved.append(event["name"])
            case "leaving":
                rank.leaving, rank.left_place = time, _value("place", event.get("place"))
            case "left":
                rank.left, rank.left_place = time, _value("place", event.get("place"))
            case "group":
                group = Group(**_typed(event))
                rank.groups[group.name] = group
            case "collective":
                rank.collectives += (Collective(**_typed(row)) for row in event["rows"])
                if len(rank.collectives) > 2 * _WINDOW:
                    del rank.collectives[:_WINDOW]
            case "wrapper":
                rank.wrappers.append(Wrapper(**_typed(event)))
            case "gradients":
                wrapper = rank.wrappers[event["wrapper"]]
                wrapper.without_gradient = tuple(event["without_gradient"])
                wrapper.unreferenced = tuple(event["unreferenced"])
                places = (Place(*frame) for frame in event["registered"])
                wrapper.registered = tuple(dict.fromkeys(places))
            case "training":
                lines = {name: Place(*frame) for name, frame in event.pop("places").items()}
                training = Training(places=lines, **_typed(event))
                rank.training[training.wrapper, training.optimizer] = training
            case "sample":
                rank.samples.append(Sample(**_typed(event)))
            case "copy":
                copied = tuple(Place(*frame) for frame in event.pop("places"))
                rank.copies.append(ModelCopy(places=copied, **event))
            case "seed":
                rank.seeds.append(Seed(**_typed(event)))
            case "plateau":
                rank.plateaus.append(Plateau(**_typed(event)))
            case "sampler":
                rank.samplers.append(Sampler(**_typed(event)))
            case "loader":
                if event.pop("number") == len(rank.loaders):
                    rank.loaders.append(_loader(event))
            case "epoch":
                passes, number = rank.loaders[event.pop("loader")].epochs, event.pop("number")
                passes[number] = Epoch(begun=time, **_typed(event))
            case "drawn":
                passes, number = rank.loaders[event.pop("loader")].epochs, event.pop("number")
                ended = time if event.pop("ended") else None
                passes[number] = replace(passes[number], ended=ended, **_typed(event))
            case "join":
                rank.joins += 1
            case "state-load":
                rank.state_loads.append(StateLoad(time=time, **_typed(event)))
            case "file":
                rank.files.append(FileEvent(begun=time, ended=None, **_typed(event)))
            case "file-end":
                begun = rank.files[event["number"]]
                rank.files[event["number"]] = replace(begun, ended=time, error=event["error"])
            case "warning":
                rank.warnings.append(Warned(time=time, **_typed(event)))
            case "exception":
                rank.exceptions.append(_exception(event["exception"], time))
            case "step":
                rank.steps = event["number"]
            case "exiting":
                rank.exiting = time
            case "stuck":
                _remember(rank, rank.stuck or rank.working, time)
                rank.stuck, rank.working = _stuck(event, time), None
            case "still":
                if rank.stuck is not None:
                    rank.stuck = replace(rank.stuck, seen=time)
            case "working":
                rank.working = _stuck(event, time)
            case "moved":
                _remember(rank, rank.stuck or rank.working, time)
                rank.stuck = rank.working = None
            case "alive":
                rank.waits, rank.steps = event["waits"], event["steps"]


def _typed(event: dict[str, Any]) -> dict[str, Any]:
    """Places and tuples as the dataclasses want them: JSON knows only lists."""
    return {key: _value(key, value) for key, value in event.items()}


def _value(key: str, value: Any) -> Any:
    if key in ("place", "members_place"):
        return Place(*value) if value else None
    if key == "stack":
        return tuple(Place(*frame) for frame in value)
    if isinstance(value, list):
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return value


def _stuck(event: dict[str, Any], time: float) -> Stuck:
    waiting = tuple(Collective(**_typed(c)) for c in event.pop("waiting", ()))
    awaited = event.pop("awaited", None)
    return Stuck(
        seen=time,
        waiting=waiting,
        awaited=Collective(**_typed(awaited)) if awaited else None,
        **_typed(event),
    )


def _remember(rank: RankEvidence, pause: Stuck | None, time: float) -> None:
    if pause is not None and time - pause.since > _PAUSE:
        rank.pauses.append(replace(pause, seen=time))
        del rank.pauses[:-_PAUSES]


def _loader(event: dict[str, Any]) -> Loader:
    sampler = event.pop("sampler")
    listings = {name: tuple(digests) for name, digests in event.pop("listings").items()}
    return Loader(
        **_typed(event),
        sampler=Sampler(**_typed(sampler)) if sampler else None,
        listings=listings,
    )


def _exception(event: dict[str, Any], time: float) -> ExceptionRecord:
    cause = event["cause"]
    return ExceptionRecord(
        type=event["type"],
        message=event["message"],
        frames=tuple(Place(*frame) for frame in event["frames"]),
        time=time,
        place=_value("place", event["place"]),
        cause=_exception(cause, time) if cause else None,
    )
