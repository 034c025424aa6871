"""The codes that `probe` gives, and how a finding of it is put together."""

from __future__ import annotations

from collections.abc import Iterable

from ddpdoctor.catalog import Cure, Finding, Severity

TITLES = {
    "DDP110": "mixed-nodes",
    "DDP718": "kernel-setting",
    "DDP719": "hosts-differ",
    "DDP720": "wrong-result",
    "DDP721": "slow-link",
    "DDP722": "slow-rank",
    "DDP723": "peer-lost",
    "DDP724": "slower-than-before",
}


def finding(
    code: str,
    severity: Severity,
    cause: str,
    cure: str,
    *,
    ranks: Iterable[int] = (),
    notes: Iterable[str] = (),
    commands: Iterable[str] = (),
    proven: bool = False,
) -> Finding:
    """What was measured, and what it means."""
    return Finding(
        code=code,
        title=TITLES[code],
        severity=severity,
        certainty="proven" if proven else "evidence",
        ranks=tuple(ranks),
        places=(),
        cause=cause,
        cure=Cure(text=cure, commands=tuple(commands)),
        evidence=tuple(notes),
    )
