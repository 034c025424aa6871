"""Reads the culprit's source, and says why a rank went another way.

`diagnose` knows what the ranks did; the condition that made them do it stands in the source alone.
The one room that knows findings and lint both: a general finding gets the narrower name that the
source gives it, with the line of the decision. What the source does not say stays as it was.
"""

from __future__ import annotations

from ddpdoctor.annotate.lines import pointed
from ddpdoctor.annotate.naming import named
from ddpdoctor.annotate.remarks import remarked
from ddpdoctor.annotate.source import Sources
from ddpdoctor.catalog import Finding

__all__ = ["annotate"]


def annotate(findings: list[Finding]) -> list[Finding]:
    """The findings, refined by what the source says; without suspicions that it does not share."""
    sources = Sources(findings)
    refined = [remarked(pointed(named(finding, sources)), sources) for finding in findings]
    return [each for each in refined if not (each.is_suspicion and each.severity == "info")]
