"""What is to be launched, and where it leaves its files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

JSON = Any
"""None, bool, int, float, str, and lists and string-keyed dictionaries of these."""


class LaunchError(Exception):
    """A world could not be started; the message is one line that says why and what to do."""


class NoRoom(LaunchError):
    """The machine has not got what these ranks need; without them it may have."""


class Lost(LaunchError):
    """Somebody has killed the process that held these ranks: nobody knows what became of them."""


@dataclass(frozen=True)
class Job:
    """A function to be called on `nproc` ranks of this host."""

    target: str
    """"package.module:function" or "/path/to/file.py:function"."""
    nproc: int
    run_dir: Path
    """An existing folder of this launch alone: the ranks' output, the rendezvous, the evidence."""
    kwargs: Mapping[str, JSON] = field(default_factory=dict)
    """Passed to the function."""
    env: Mapping[str, str] = field(default_factory=dict)
    """On top of the caller's environment at the time of the launch."""
    watch: bool = False
    """Record what the ranks do (`ddpdoctor.watch`)."""
    import_once: bool = False
    """Import the target before the ranks are forked: for files that ask nothing of a rank then, and
    draw and seed nothing."""
    fresh: int = 0
    """Interpreters that it starts in turn and that import torch, as the ranks of a launcher do."""
    cwd: Path = field(default_factory=Path.cwd)
    sys_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))

    def __post_init__(self) -> None:
        if self.nproc < 1:
            raise LaunchError(f"nproc is {self.nproc}; a world needs at least one rank")
        if ":" not in self.target:
            raise LaunchError(f"the target {self.target!r} is not of the form module:function")

    @property
    def processes(self) -> int:
        """How many processes will have torch."""
        return max(self.nproc, self.fresh)

    def rank_file(self, rank: int, kind: str) -> Path:
        """Where rank `rank` leaves its stdout, stderr, stacks or result."""
        return self.run_dir / f"rank-{rank}.{kind}"

    @property
    def rendezvous(self) -> Path:
        """The file through which the ranks find each other, in place of an address and a port."""
        return self.run_dir / "rendezvous"

    def resolved(self) -> Job:
        """The job with an absolute run directory and the environment common to all its ranks."""
        # Without an interface gloo resolves the host name, which a container may not be able to.
        defaults = {"GLOO_SOCKET_IFNAME": "lo"}
        ours = {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
        world = {"WORLD_SIZE": str(self.nproc), "LOCAL_WORLD_SIZE": str(self.nproc)}
        env = {**defaults, **os.environ, **ours, **self.env, **world}
        return replace(self, env=env, run_dir=self.run_dir.absolute())

    def to_json(self) -> str:
        """One line that `from_json` reads back. Raises LaunchError if the kwargs are not JSON."""
        facts = {**asdict(self), "run_dir": str(self.run_dir), "cwd": str(self.cwd)}
        try:
            return json.dumps(facts)
        except TypeError as error:
            raise LaunchError(f"the kwargs of {self.target} are not JSON: {error}") from error

    @classmethod
    def from_json(cls, line: str) -> Job:
        """The job that `to_json` wrote."""
        facts = json.loads(line)
        return cls(**{**facts, "run_dir": Path(facts["run_dir"]), "cwd": Path(facts["cwd"])})
