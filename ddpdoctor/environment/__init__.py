"""`ddpdoctor env`: the facts about this machine and process, then findings about them.

Imports no torch, here or later: torch is asked in a child process. No secret of the environment is
in what `collect` returns.
"""

from ddpdoctor import __version__
from ddpdoctor.environment.checks import findings
from ddpdoctor.environment.checks.finding import TITLES
from ddpdoctor.environment.facts import collect
from ddpdoctor.environment.model import Environment, EnvironmentReport

__all__ = ["TITLES", "Environment", "EnvironmentReport", "collect", "examine", "findings"]


def examine() -> EnvironmentReport:
    """Facts and findings of this machine and process. Never raises."""
    environment = collect()
    return EnvironmentReport(
        ddpdoctor=__version__, environment=environment, findings=tuple(findings(environment))
    )
