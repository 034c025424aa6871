"""What lint finds when its own patients and samples are told otherwise.

    python -m tests.lint.metamorphic [--only NAME...] [--list] [--keep FOLDER] [SUBJECT...]

A table: of each transformation how many programs it changes, how many of the bugs that were found
before are found after, and how many clean programs are newly accused. `--list` names them,
`--keep` writes the transformed programs into a folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.lint.metamorphic.scoring import Score, score, told_otherwise
from tests.lint.metamorphic.subjects import Subject, subjects
from tests.lint.metamorphic.transformations import Transform, all_transformations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], help="transformations")
    parser.add_argument("--list", action="store_true", help="name what is lost and newly accused")
    parser.add_argument("--keep", type=Path, help="write the transformed programs here")
    parser.add_argument("subjects", nargs="*", help="beginnings: patients/local_stop, samples/DDP4")
    options = parser.parse_args()
    chosen = subjects(tuple(options.subjects))
    ways = all_transformations()
    unknown = sorted(set(options.only) - set(ways))
    if unknown or not chosen:
        parser.error(f"no transformation {unknown}" if unknown else "no such subject")
    print(
        f"{'transformation':24}{'programs':>9}{'bugs':>6}{'kept':>6}{'share':>8}{'accused':>9}{'noise':>7}"
    )
    for name, transform in ways.items():
        if not options.only or name in options.only:
            if options.keep:
                keep(options.keep / name, transform, chosen)
            print(row(name, score(transform, chosen), in_full=options.list), flush=True)
    return 0


def row(name: str, one: Score, *, in_full: bool) -> str:
    """One line of the table, with what is behind it below."""
    kept = one.bugs - len(one.lost)
    counts = f"{one.programs:9}{one.bugs:6}{kept:6}{one.kept:8.1%}{len(one.accused):9}"
    lines = [f"{name:24}{counts}{len(one.noise):7}"]
    if in_full:
        for title, group in (("lost", one.lost), ("accused", one.accused), ("noise", one.noise)):
            lines += [f"    {title:8} {each}" for each in group]
    return "\n".join(lines)


def keep(folder: Path, transform: Transform, chosen: list[Subject]) -> None:
    """Write the transformed programs, each into a folder of its own."""
    for subject in chosen:
        new = told_otherwise(subject.program, transform)
        for name, source in new.files.items() if new else ():
            target = folder / subject.name / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
