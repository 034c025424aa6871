"""`run --tui`: a full-screen view of a watched job; q leaves it, and the job goes on.

The job's own output goes to a file meanwhile, of which the end is shown. When the view is left, or
the job has ended, all of it goes to stdout, so that the terminal holds what it would have held.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import RankEvidence
from ddpdoctor.report.words import count, one_line
from ddpdoctor.run.worlds import WatchedWorld

if TYPE_CHECKING:
    from rich.console import RenderableType

_EVERY = 0.25
"""Seconds between two pictures."""
_SPAN = 10.0
"""Seconds over which the pace is averaged."""
_TAIL = 1 << 14
"""Bytes of the job's output of which the last lines are shown."""


@dataclass(frozen=True)
class Line:
    """A rank as it is shown."""

    rank: int
    steps: int
    pace: float
    """Steps per second."""
    behind: int
    """Steps that it lacks to the foremost rank."""
    waits: float
    """Share of the last second that it waited for others."""
    doing: str


class Pace:
    """Remembers how many steps each rank had taken a while ago."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, list[int]]] = deque()

    def lines(self, ranks: list[RankEvidence], now: float) -> list[Line]:
        """All ranks, those first that have taken the fewest steps, then those that wait least."""
        steps = [rank.steps for rank in ranks]
        self._past.append((now, steps))
        while now - self._past[0][0] > _SPAN:
            self._past.popleft()
        then, before = self._past[0]
        lines = [
            Line(
                rank=rank.rank,
                steps=rank.steps,
                pace=(rank.steps - earlier) / (now - then) if now > then else 0.0,
                behind=max(steps) - rank.steps,
                waits=rank.waits,
                doing=_doing(rank),
            )
            for rank, earlier in zip(ranks, before, strict=True)
        ]
        return sorted(lines, key=lambda line: (-line.behind, line.waits, line.rank))


def _doing(rank: RankEvidence) -> str:
    if rank.fate is not None:
        code = rank.fate.exit_code
        return f"ended by signal {rank.fate.signal}" if code is None else f"ended with {code}"
    if rank.stuck is not None:
        at = f" at {rank.stuck.place}" if rank.stuck.place is not None else ""
        call = rank.stuck.awaited or next(iter(rank.stuck.waiting), None)
        return one_line(f"waits in {call.op} #{call.seq}{at}" if call is not None else f"idle{at}")
    if rank.pid and not rank.groups:
        return "has not joined yet"
    return "" if rank.pid else "not seen yet"


class Screen:
    """Shows a job while it runs; what is found is told by `tell` where the view was left."""

    def __init__(self, output: Path, tell: Callable[[Finding], None]) -> None:
        from rich.console import Console
        from rich.live import Live

        output.touch()
        self._output, self._tell = output, tell
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._world: WatchedWorld | None = None
        self._stall: Finding | None = None
        self._found: dict[tuple[str, str], Finding] = {}
        self._pace = Pace()
        self._began = time.monotonic()
        self._is_shown = True
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="screen", daemon=True)

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(sys.stdin)
        tty.setcbreak(sys.stdin)
        self._live.start()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Give the terminal back, with all that the job has printed."""
        self._over.set()
        self._thread.join()

    def look(self, world: WatchedWorld, stall: Finding | None = None) -> None:
        """Show this from now on."""
        self._world, self._stall = world, stall

    def found(self, finding: Finding) -> None:
        """Show a finding, or tell it where the view was left."""
        if self._is_shown:
            self._found[finding.code, str(finding.place)] = finding
        else:
            self._tell(finding)

    def withdrawn(self, finding: Finding) -> None:
        """Show it no more."""
        self._found.pop((finding.code, str(finding.place)), None)

    def _run(self) -> None:
        try:
            while not self._over.is_set() and self._is_shown:
                self._live.update(self._picture(), refresh=True)
                if select.select([sys.stdin], [], [], _EVERY)[0]:
                    key = os.read(sys.stdin.fileno(), 1)
                    self._is_shown = key not in (b"q", b"Q", b"")
        finally:
            self._is_shown = False
            self._live.stop()
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
            self._hand_out()

    def _hand_out(self) -> None:
        """Copy what the job prints to stdout, until it has ended."""
        with self._output.open("rb") as output:
            while True:
                is_last = self._over.is_set()
                shutil.copyfileobj(output, sys.stdout.buffer)
                sys.stdout.flush()
                if is_last:
                    return
                self._over.wait(_EVERY)

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        height, width = self._console.height, self._console.width
        told = [
            Text(f"✖ {each.code} {each.title}: {one_line(each.cause)}", "red")
            for each in list(self._found.values())[-3:]
        ]
        if self._stall is not None:
            told.append(Text(one_line(self._stall.cause), "yellow"))
        for line in told:
            line.truncate(width, overflow="ellipsis")
        below = max(3, height // 3)
        room = height - below - len(told) - 4
        tail = [Text(line[:width], "dim") for line in self._tail(below)]
        foot = Text("q leaves this view; the job goes on", "reverse")
        return Group(
            self._heading(), *self._table(room), *told, Text("─" * width, "dim"), *tail, foot
        )

    def _heading(self) -> RenderableType:
        from rich.text import Text

        world = self._world
        if world is None:
            return Text(f"ddpdoctor: no ranks yet ({time.monotonic() - self._began:.0f} s)", "bold")
        ranks = world.evidence.ranks
        steps = [rank.steps for rank in ranks]
        parts = [f"{len(world.living)} of {count(len(ranks), 'rank')}", f"step {min(steps)}"]
        if max(steps) > min(steps):
            parts.append(f"{max(steps) - min(steps)} steps between first and last")
        return Text(f"ddpdoctor: {' · '.join(parts)}", "bold")

    def _table(self, room: int) -> list[RenderableType]:
        from rich.table import Table
        from rich.text import Text

        if self._world is None or room < 2:
            return []
        lines = self._pace.lines(list(self._world.evidence.ranks), time.monotonic())
        shown = lines if len(lines) < room else lines[: room - 2]
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("rank", "step", "steps/s", "behind", "waits"):
            table.add_column(name, justify="right")
        table.add_column("", no_wrap=True, overflow="ellipsis")
        for line in shown:
            numbers = (f"{line.pace:.1f}", str(line.behind or ""), f"{line.waits:.0%}")
            table.add_row(str(line.rank), str(line.steps), *numbers, Text(line.doing))
        more = len(lines) - len(shown)
        return [table, *([Text(f"and {more} more", "dim")] if more else [])]

    def _tail(self, number: int) -> list[str]:
        """The last lines that the job has printed."""
        with self._output.open("rb") as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
            text = output.read().decode(errors="replace")
        return [one_line(line) for line in text.splitlines()[-number:]]
