"""`ddpdoctor env`: the facts about this machine and process, then findings about them.

Imports no torch, here or later: torch is asked in a child process. No secret of the environment is
in what `collect` returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ddpdoctor.environment.model import EnvironmentReport


def examine(nproc: int | None = None, checkpoints: Path | None = None) -> EnvironmentReport:
    """Facts and findings of this machine and process. Never raises.

    `nproc` is how many ranks a launch to come will start here, `checkpoints` where it will save,
    if that is known.
    """
    from ddpdoctor.environment.checks import findings
    from ddpdoctor.environment.facts import collect
    from ddpdoctor.environment.model import EnvironmentReport

    environment = collect(nproc=nproc, checkpoints=checkpoints)
    return EnvironmentReport(environment=environment, findings=tuple(findings(environment)))
