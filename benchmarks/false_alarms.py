"""How often something wrong is said of correct programs, made up and run on real ranks.

    python -m benchmarks.false_alarms [--runs 1000]

Each is another one; what is said of it above a note is printed with its source.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from tests.patients.patient import Patient
from tests.patients.ward import Ward, ward
from tests.programs.generated import Program, programs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    runs = accused = 0
    with ward() as here:

        @settings(
            max_examples=options.runs,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(programs)
        def judge(program: Program) -> None:
            nonlocal runs, accused
            runs += 1
            said = findings(here, program)
            accused += bool(said)
            for line in said:
                print(f"{line}\n{program}", flush=True)
            if runs % 50 == 0:
                print(f"{runs} runs, {accused} accused", flush=True)

        judge()
    print(f"{accused} of {runs} correct programs accused")


def findings(here: Ward, program: Program) -> list[str]:
    """What is said of one above a note."""
    with tempfile.TemporaryDirectory(prefix="program-") as folder:
        script = Path(folder) / "train.py"
        script.write_text(program.source)
        score = here.score(Patient(script, "", 2, "torchrun", frozenset()))
    return [f"{each.code} {each.title}: {each.cause}" for each in score.noise]


if __name__ == "__main__":
    main()
