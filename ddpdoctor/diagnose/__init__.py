"""From evidence to findings: pure functions, no processes, no clocks, no torch.

The same evidence gives the same findings in the same order. A detector is one file in `detectors/`;
it takes the incidents of a `Case` (exceptions, deaths, a deadlock) that it can name. What nobody
names is reported under its family's general code, with the same places and ranks.
"""

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detectors import DETECTORS
from ddpdoctor.diagnose.waiting import Deadlock, prove_deadlock
from ddpdoctor.evidence import Evidence

__all__ = ["Deadlock", "diagnose", "prove_deadlock"]


def diagnose(evidence: Evidence) -> list[Finding]:
    """All findings about a launch that has ended, or was ended; causes before what they caused."""
    case = Case(evidence)
    return [finding for detect in DETECTORS for finding in detect(case)]
