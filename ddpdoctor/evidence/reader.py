"""From the lines that a rank writes to what is known of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ddpdoctor.evidence.model import (
    Collective,
    ExceptionRecord,
    FileEvent,
    Group,
    Place,
    RankEvidence,
    Sampler,
    Stuck,
    Wrapper,
)

LOG_NAME = "rank-{rank}.log"


class RankReader:
    """Reads a rank's log while it is being written, and keeps the `RankEvidence` up to date."""

    def __init__(self, run_dir: Path, rank: int, world_size: int) -> None:
        self.evidence = RankEvidence(rank, world_size)
        self._path = run_dir / LOG_NAME.format(rank=rank)
        self._offset = 0

    def poll(self) -> bool:
        """Take in what was written since the last call; whether there was anything.

        A line that is not complete yet is left for the next call; one that a kill cut short, or a
        full disk, is never completed and so never read.
        """
        try:
            with self._path.open("rb") as log:
                log.seek(self._offset)
                data = log.read()
        except FileNotFoundError:
            return False
        complete = data.rfind(b"\n") + 1
        for line in data[:complete].splitlines():
            self._apply(json.loads(line))
        self._offset += complete
        return complete > 0

    def _apply(self, event: dict[str, Any]) -> None:
        kind, time = event.pop("k"), event.pop("t")
        rank = self.evidence
        rank.last_event = max(rank.last_event, time)
        match kind:
            case "start":
                rank.pid, rank.torch = event["pid"], event["torch"]
            case "group":
                group = Group(**_typed(event))
                rank.groups[group.name] = group
            case "collective":
                rank.collectives.append(Collective(begun=time, **_typed(event)))
            case "wrapper":
                rank.wrappers.append(Wrapper(**_typed(event)))
            case "gradients":
                wrapper = rank.wrappers[event["wrapper"]]
                wrapper.without_gradient = tuple(event["without_gradient"])
                wrapper.unreferenced = tuple(event["unreferenced"])
                places = (Place(*frame) for frame in event["registered"])
                wrapper.registered = tuple(dict.fromkeys(places))
            case "sampler":
                rank.samplers.append(Sampler(**_typed(event)))
            case "file":
                rank.files.append(FileEvent(begun=time, ended=None, **_typed(event)))
            case "file-end":
                begun = rank.files[event["number"]]
                rank.files[event["number"]] = replace(begun, ended=time, error=event["error"])
            case "exception":
                rank.exceptions.append(_exception(event["exception"], time))
            case "step":
                rank.steps = event["number"]
            case "exiting":
                rank.exiting = time
            case "stuck":
                waiting = tuple(Collective(**_typed(c)) for c in event.pop("waiting"))
                rank.stuck = Stuck(seen=time, waiting=waiting, **_typed(event))
            case "still":
                if rank.stuck is not None:
                    rank.stuck = replace(rank.stuck, seen=time)
            case "moved":
                rank.stuck = None


def _typed(event: dict[str, Any]) -> dict[str, Any]:
    """Places and tuples as the dataclasses want them: JSON knows only lists."""
    return {key: _value(key, value) for key, value in event.items()}


def _value(key: str, value: Any) -> Any:
    if key == "place":
        return Place(*value) if value else None
    if key == "stack":
        return tuple(Place(*frame) for frame in value)
    if isinstance(value, list):
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return value


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
