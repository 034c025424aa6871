"""Where the time of a step goes: data, forward, backward, optimizer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from ddpdoctor.stack.checkpoint import replacing
from ddpdoctor.stack.config import TrainingConfig
from ddpdoctor.stack.process_group import World

T = TypeVar("T")

_AT_MOST = 2000


class PhaseTimer:
    """Adds up the seconds of each phase of this rank.

    On a GPU by CUDA events: the host only queues the work, so a clock there would see next to
    nothing, and to make it wait for the work would slow the training. The backward phase includes
    what DDP waits for its peers. With `named` a profile shows the phases too.
    """

    def __init__(self, device: torch.device, *, named: bool = False) -> None:
        self._name: Callable[[str], Any] = record_function if named else nullcontext
        self._now: Callable[[], Any] = time.perf_counter if device.type == "cpu" else _event
        self._spans: list[tuple[str, Any, Any]] = []
        self._seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of the block as that of `name`."""
        with self._name(name):
            start = self._now()
            yield
            self._spans.append((name, start, self._now()))
        if len(self._spans) > _AT_MOST:
            self._settle()

    def loading(self, batches: Iterable[T]) -> Iterator[T]:
        """Pass on `batches`, and count the time until each is there as that of `data`."""
        remaining = iter(batches)
        while True:
            start = time.perf_counter()
            with self._name("data"):
                batch = next(remaining, None)
            self._add("data", time.perf_counter() - start)
            if batch is None:
                return
            yield batch

    def take(self) -> dict[str, float]:
        """Return the seconds of each phase so far, and begin anew."""
        self._settle()
        seconds, self._seconds = self._seconds, {}
        return seconds

    def _settle(self) -> None:
        for name, start, end in self._spans:
            if isinstance(end, float):
                self._add(name, end - start)
            else:
                end.synchronize()
                self._add(name, start.elapsed_time(end) / 1000)
        self._spans.clear()

    def _add(self, name: str, seconds: float) -> None:
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds


@contextmanager
def profiling(config: TrainingConfig, world: World) -> Iterator[Callable[[], None]]:
    """Record `profile_steps` steps of rank 0; what is yielded is to be called after each step.

    The first steps are left out: they compile, allocate and fill caches. Writes trace.json (for
    ui.perfetto.dev or chrome://tracing) and profile.txt into the output folder.
    """
    if config.profile_steps is None or not world.is_main:
        yield lambda: None
        return

    def write(profiler: Any) -> None:
        averages = profiler.key_averages()
        by = f"self_{world.device.type}_time_total"
        table = averages.table(sort_by=by, row_limit=40)
        with replacing(config.output_dir / "profile.txt") as file:
            file.write(table.encode())
        profiler.export_chrome_trace(str(config.output_dir / "trace.json"))

    activities = [ProfilerActivity.CPU]
    if world.device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    plan = schedule(wait=8, warmup=2, active=config.profile_steps, repeat=1)
    with profile(activities=activities, schedule=plan, on_trace_ready=write) as profiler:
        yield profiler.step


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
