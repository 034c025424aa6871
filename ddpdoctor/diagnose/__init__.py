"""From evidence to findings: pure functions, no processes, no clocks, no torch.

The same evidence gives the same findings in the same order. A detector is one file in `detectors/`;
it takes the incidents of a `Case` (exceptions, deaths, a deadlock) that it can name. What nobody
names is reported under its family's general code, with the same places and ranks.
"""

import contextlib

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detectors import DETECTORS
from ddpdoctor.diagnose.proof import may_be_deadlocked, prove_deadlock
from ddpdoctor.diagnose.waiting import Deadlock
from ddpdoctor.evidence import DAMAGED, Evidence

__all__ = ["Deadlock", "diagnose", "may_be_deadlocked", "prove_deadlock"]


def diagnose(evidence: Evidence) -> list[Finding]:
    """All findings about a launch that has ended, or was ended; causes before what they caused."""
    case = Case(evidence)
    for detect in DETECTORS:
        found: list[Finding] = []
        # Of whole evidence, a detector that fails is a fault of ours, and is told as one.
        with contextlib.suppress(*DAMAGED if evidence.damaged else ()):
            found += detect(case)
        # What one line does again and again is one finding: a loader is built for each epoch.
        for each in found:
            if not any(_is_again(each, known) for known in case.found):
                case.found.append(each)
    return case.found


def _is_again(found: Finding, other: Finding) -> bool:
    return (found.code, found.cause, found.places) == (other.code, other.cause, other.places)
