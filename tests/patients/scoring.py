"""How many patients are diagnosed right."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from ddpdoctor.catalog import Finding
from tests.patients.patient import Patient, Score, patients
from tests.patients.ward import ward


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torchrun", action="store_true", help="as users start them, not forked")
    parser.add_argument("names", nargs="*", help="beginnings of names: local_stop, correct/")
    options = parser.parse_args()
    scores = []
    for score in scored(patients(options.names), really=options.torchrun):
        scores.append(score)
        print(told(score), flush=True)
    print(summary(scores))
    return int(not all(score.is_good for score in scores))


def scored(chosen: Sequence[Patient], *, really: bool = False) -> Iterator[Score]:
    """Run patients one after the other."""
    with ward(really=really) as here:
        for patient in chosen:
            yield here.score(patient)


def told(score: Score) -> str:
    """One patient in words; what was wrong with the diagnosis below it."""
    verdict = "ok" if score.is_good else "NOISE" if score.named else "MISS"
    if not score.patient.marks and score.noise:
        verdict = "FALSE ALARM"
    lines = [f"{verdict:<12}{score.patient.name:<44}{score.seconds:6.1f} s"]
    if not score.is_good:
        wanted = [f"{code} at line {line}" for code, line in sorted(score.patient.marks)]
        lines += [f"    wanted {' or '.join(wanted) or 'nothing'}"]
        lines += [f"    said {_line(finding)}" for finding in score.findings]
    return "\n".join(lines)


def _line(finding: Finding) -> str:
    places = ", ".join(f"{each.ranks}@{each.place}" for each in finding.places)
    return f"{finding.code} {finding.title} [{finding.severity}] {places}: {finding.cause}"


def summary(scores: Sequence[Score]) -> str:
    """The counts that the promise is about."""
    sick = [score for score in scores if score.patient.marks]
    well = [score for score in scores if not score.patient.marks]
    return (
        f"{sum(s.named is not None for s in sick)} of {len(sick)} bugs named with code and line, "
        f"{sum(len(s.noise) for s in sick)} findings beside them; "
        f"{sum(bool(s.noise) for s in well)} of {len(well)} correct scripts accused"
    )


if __name__ == "__main__":
    raise SystemExit(main())
