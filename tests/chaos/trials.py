"""All kinds of trials, and how many of them go wrong."""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ddpdoctor.launch.warm_up import warm_up
from tests.chaos import on_attach, on_check, on_run
from tests.chaos.scene import Case, perform
from tests.control_group import ControlGroup, NoControlGroup

_NOT_NEEDED = ("ddpdoctor.stack", "ddpdoctor.watch.inject")


@dataclass(frozen=True)
class Result:
    """What came of one trial."""

    name: str
    seed: int
    problems: tuple[str, ...]
    seconds: float


def makers() -> list[Callable[[Any], Case]]:
    """One for each kind of trial."""
    return [*on_run.cases(), *on_check.cases(), *on_attach.cases()]


def get_ready() -> None:
    """Import once what every process of every trial would import. Call it before any thread is."""
    import torch
    import torch._dynamo
    import torch.nn.parallel.distributed  # noqa: F401

    import ddpdoctor

    for module in pkgutil.walk_packages(ddpdoctor.__path__, "ddpdoctor."):
        if not module.name.startswith(_NOT_NEEDED) and not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # what needs an extra is in no trial
                if (error.name or "").startswith("ddpdoctor"):
                    raise
    warm_up()


def trials(number: int, seed: int, wanted: str = "") -> Iterator[tuple[Case, int]]:
    """So many, every kind equally often, in a random order that the seed decides."""
    order = random.Random(seed)
    kinds = [make for make in makers() if wanted in make(random.Random(0)).name]
    drawn: list[Callable[[Any], Case]] = []
    for each in range(number):
        if not drawn:
            drawn = order.sample(kinds, len(kinds))
        own = seed * 1_000_003 + each
        yield drawn.pop()(random.Random(own)), own


def performed(case: Case, seed: int) -> Result:
    """Perform one, in a control group of its own.

    Where none can be made, a limit on the memory of each process is what remains.
    """
    try:
        with ControlGroup(memory=case.memory, tasks=case.tasks) as group:
            problems, seconds = perform(case, seed, group)
    except NoControlGroup:
        problems, seconds = perform(case, seed, None)
    return Result(case.name, seed, tuple(problems), seconds)
