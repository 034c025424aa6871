"""Feeds damaged files to the command line, as a user would, and notes what it cannot stomach."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

from ddpdoctor import cli, complaints
from tests.fuzz.corpus import Sample, damageable
from tests.fuzz.damage import damaged, misplace

LIMIT = 10.0
"""Seconds of the processor that one input may take: what else the machine does is not its fault."""
_WAITING = 60.0
"""Seconds that it may take on the clock: what waits for a file uses no processor."""


class TooLong(BaseException):
    """No Exception, which what is being tried might catch."""


@dataclass(frozen=True)
class Meal:
    """What became of one input."""

    kind: str
    seed: int
    seconds: float  # of the processor
    problem: str = ""


def fed(kinds: dict[str, list[Sample]], seeds: Sequence[int]) -> Iterator[Meal]:
    """One input for each seed, kinds in turn. In the main thread: it is timed by a signal."""
    names = sorted(kinds)
    with _caught() as faults, _in_a_folder() as folder:
        for seed in seeds:
            random = Random(seed)
            sample = random.choice(kinds[names[seed % len(names)]])
            yield _fed(sample, seed, random, faults, folder)


def _fed(sample: Sample, seed: int, random: Random, faults: list[str], folder: Path) -> Meal:
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    spoilt = random.choice(damageable(sample))
    for name, content in sample.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(damaged(content, random) if name == spoilt else content)
    if random.random() < 0.02:
        misplace(folder / spoilt, random, named=spoilt in sample.arguments)
    faults.clear()
    began = time.process_time()
    _limit(LIMIT, _WAITING)
    try:
        code = cli.run(sample.arguments)
        _limit(0, 0)
        problem = faults[0] if faults else "" if code in (0, 1, 2, 3) else f"exit code {code}"
    except TooLong:
        problem = f"took {LIMIT:.0f} s of the processor, or {_WAITING:.0f} s on the clock"
    except BaseException:
        problem = traceback.format_exc()
    finally:
        _limit(0, 0)
    return Meal(sample.kind, seed, time.process_time() - began, problem)


def _limit(computing: float, waiting: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, computing)
    signal.setitimer(signal.ITIMER_REAL, waiting)


@contextlib.contextmanager
def _caught() -> Iterator[list[str]]:
    """The faults of ours that the command line confesses, with their tracebacks."""
    faults: list[str] = []
    confess = complaints._confess

    def note(error: Exception) -> int:
        faults.append("".join(traceback.format_exception(error)))
        return complaints.USAGE

    def too_long(number: int, frame: FrameType | None) -> None:
        raise TooLong

    timers = (signal.SIGPROF, signal.SIGALRM)
    before = [signal.signal(timer, too_long) for timer in timers]
    complaints._confess = note
    try:
        yield faults
    finally:
        complaints._confess = confess
        for timer, handler in zip(timers, before, strict=True):
            signal.signal(timer, handler)


@contextlib.contextmanager
def _in_a_folder() -> Iterator[Path]:
    """With nothing said to anybody."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(_Nowhere()), contextlib.redirect_stderr(_Nowhere()):
                yield Path(folder)
        finally:
            os.chdir(home)


class _Nowhere(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def write(self, text: str) -> int:
        text.encode(errors="surrogateescape")
        return len(text)
