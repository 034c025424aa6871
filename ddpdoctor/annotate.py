"""Reads the culprit's source, and says why a rank went another way."""

from __future__ import annotations

from ddpdoctor.catalog import Finding


def annotate(findings: list[Finding]) -> list[Finding]:
    """The findings, refined by what the source says."""
    return findings
