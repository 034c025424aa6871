"""From evidence to findings: pure functions, no processes, no clocks, no torch.

The same evidence gives the same findings in the same order. A detector is one file in `detectors/`;
it takes the incidents of a `Case` (exceptions, deaths, a deadlock) that it can name. What nobody
names is reported under its family's general code, with the same places and ranks.
"""

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detectors import DETECTORS
from ddpdoctor.diagnose.proof import may_be_deadlocked, prove_deadlock
from ddpdoctor.diagnose.waiting import Deadlock
from ddpdoctor.evidence import DAMAGED, Evidence

__all__ = ["Deadlock", "diagnose", "may_be_deadlocked", "prove_deadlock"]


def diagnose(evidence: Evidence, faults: list[str] | None = None) -> list[Finding]:
    """All findings about a launch that has ended, or was ended; causes before what they caused.

    Of whole evidence, a detector that fails is a fault of ours. It is raised; where there is a list
    of `faults`, it is put there in words, and the other detectors are asked all the same.
    """
    case = Case(evidence)
    for detect in DETECTORS:
        found: list[Finding] = []
        try:
            found += detect(case)
        except Exception as error:
            if not (evidence.damaged and isinstance(error, DAMAGED)):
                if faults is None:
                    raise
                faults.append(_fault(detect.__module__, error))
        # What one line does again and again is one finding: a loader is built for each epoch.
        for each in found:
            if not any(_is_again(each, known) for known in case.found):
                case.found.append(each)
    return case.found


def _fault(module: str, error: Exception) -> str:
    looked_for = module.rpartition(".")[2].replace("_", " ")
    return (
        f"a fault of ours, {type(error).__name__}: {error}: what there is to tell of {looked_for} "
        "is missing; please report it"
    )


def _is_again(found: Finding, other: Finding) -> bool:
    return (found.code, found.cause, found.places) == (other.code, other.cause, other.places)
