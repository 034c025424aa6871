import pytest
from report_samples import VERDICTS, report_of

from ddpdoctor.check.telling import CheckReport


@pytest.fixture
def report() -> CheckReport:
    """Every status that a verdict can have."""
    return report_of(*VERDICTS)


@pytest.fixture
def healthy() -> CheckReport:
    """A failure that was recognised, advice that holds and a fix that holds."""
    return report_of(*VERDICTS[:3])
