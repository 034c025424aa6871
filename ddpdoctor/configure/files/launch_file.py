"""What every launcher's module provides."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ddpdoctor.configure.plan import Plan


class NotHere(Exception):
    """The file cannot be tried on this machine; the message says why."""


@dataclass(frozen=True, slots=True)
class Start:
    """A command that starts the job."""

    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    """Set beside what is set already."""


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """How to write a launch file for one launcher, and how to start it."""

    name: str
    file_name: str
    """Where it is written unless told otherwise."""
    render: Callable[[Plan, str], str]
    """The text of this file (its path).

    Raises Impossible where something is missing that nothing here can tell.
    """
    start: Callable[[Plan, str, tuple[str, ...]], Start]
    """What starts this file (its path) with a script and its arguments."""
    refuse: Callable[[Plan], str | None]
    """Why this machine cannot try it; None where it can."""
    executable: bool = False
    """Whether it is a program of its own."""


def header(what: str, how: str) -> str:
    """The first lines of every file: what it starts, and the command for it."""
    return f"# {what}\n# Start it with: {how}\n"


def ranks_in_words(plan: Plan) -> str:
    """As in "8 ranks: 4 on each of 2 nodes"."""
    if plan.nodes == 1:
        return f"{plan.nproc} rank{'s' if plan.nproc > 1 else ''} on this machine"
    return f"{plan.world_size} ranks: {plan.nproc} on each of {plan.nodes} nodes"


def text(value: str) -> str:
    """A string as YAML reads it: in the quotes of JSON, its letters as they are."""
    return json.dumps(value, ensure_ascii=False)
