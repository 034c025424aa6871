"""On which hosts the ranks of a finding run."""

from __future__ import annotations

from collections.abc import Iterable

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Evidence


def located(findings: list[Finding], evidence: Evidence) -> list[Finding]:
    """The same findings; of a job on several hosts, each place says on which of them it is."""
    names = {rank.rank: rank.host for rank in evidence.ranks if rank.host}
    if len(set(names.values())) < 2:
        return findings
    return [
        finding.model_copy(
            update={
                "places": tuple(
                    place.model_copy(update={"hosts": _hosts(place.ranks, names)})
                    for place in finding.places
                )
            }
        )
        for finding in findings
    ]


def _hosts(ranks: Iterable[int], names: dict[int, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names[rank] for rank in ranks if rank in names))
