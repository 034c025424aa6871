"""How many scripts by other people are diagnosed right, each under its own launcher, or by `lint`.

    python -m benchmarks.strangers [--lint] [--only KIND] [--verbose] [--set FOLDER ...] [NAME...]

By default the sets in `sets/`, of bugs recreated from public issues, in many styles, by people who
had not read this project. They were counted once unread, and have been learned from since: what
they say now is that nothing is lost. A set of your own has `manifest*.json` (one entry a script:
id, file, cause, culprit_line, launch, world_size, and where they are known code, culprit_file and
command), may have `correct.json` (such entries without a culprit), and has the folders `buggy`,
`clean` and `correct`. A hit has the code that the cause stands for (any, where it has none), and a
line of the culprit: anywhere in the same statement, or two lines off. What is told above info of a
clean or correct script is an accusation. With `--lint` a buggy script that is not
`static_detectable` is left out.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.strangers.scoring import Outcome, outcomes, told

SETS = sorted(each for each in (Path(__file__).parent / "sets").iterdir() if each.is_dir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lint", action="store_true")
    parser.add_argument("--only", default="", choices=["buggy", "clean", "correct", ""])
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--set", action="append", type=Path, metavar="FOLDER", dest="sets")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for folder in options.sets or SETS:
        found = []
        for outcome in outcomes(
            folder.absolute(), options.names, options.only, by_lint=options.lint
        ):
            found.append(outcome)
            if options.verbose or outcome.verdict != "ok":
                print(told(outcome, verbose=options.verbose), flush=True)
        print(f"{folder.name}: {_summed(found)}", flush=True)


def _summed(found: list[Outcome]) -> str:
    sick = [each for each in found if each.kind == "buggy"]
    well = [each for each in found if each.kind != "buggy"]
    return (
        f"{sum(each.has_line for each in sick)} of {len(sick)} with the right cause and line, "
        f"{sum(each.has_cause for each in sick)} with the right cause; "
        f"{sum(bool(each.graver) for each in well)} of {len(well)} correct ones accused"
    )


if __name__ == "__main__":
    main()
