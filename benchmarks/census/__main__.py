"""What lint says of public training repositories, against a reader's verdict on each place.

    python -m benchmarks.census --root FOLDER [--only PART...] [--list]

FOLDER has one folder for each repository, named OWNER+NAME, with its sources at the commit that
`verdicts/` names; those that it lacks are told and left out. From a clone:

    mkdir FOLDER/OWNER+NAME && git -C CLONE archive COMMIT | tar -x -C FOLDER/OWNER+NAME

Printed are precision by level, recall, and what changed; `--list` names the places. A finding that
nobody has judged is unread: read it, and write its verdict down.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks.census.scoring import Tally, add, details, lint, table
from benchmarks.census.verdicts import census


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", required=True, type=Path, help="the repositories' folders")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of repositories' names")
    parser.add_argument("--list", action="store_true", help="name the places, not numbers alone")
    args = parser.parse_args()
    chosen = [each for each in census() if any(part in each.folder for part in args.only)]
    there = [each for each in chosen if (args.root / each.folder).is_dir()]
    if not there:
        parser.error(f"{args.root}: none of the {len(chosen)} repositories is there")
    tally = Tally()
    for one in track(there, "linting", console=Console(stderr=True), transient=True):
        strays = one.strays(args.root / one.folder)
        if strays:
            print(f"{one.folder}: {len(strays)} of {len(one.verdicts)} lines read otherwise:")
            print(f"    it is not commit {one.commit}, or not all of it")
        add(tally, one, lint(args.root, one.folder))
    absent = [each.folder for each in chosen if each not in there]
    print(f"{len(there)} repositories, {tally.lines} lines")
    if absent:
        print(f"not in {args.root}: {' '.join(absent)}")
    print(*table(tally), sep="\n")
    if args.list:
        print(*details(tally), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
