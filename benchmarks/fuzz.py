"""What becomes of the doctor when what it reads is damaged.

    python -m benchmarks.fuzz [--inputs 100000] [--seed 0] [--jobs 2]

Run folders, flight-recorder dumps, logs, sources, notebooks, baselines and settings with bytes
flipped, cut, repeated, reordered, nested and replaced, or with a fifo or a link where the file
should be, go through the command line. None may raise an exception, and none may take more than
10 s of the processor.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.side_by_side import side_by_side
from tests.fuzz.corpus import Sample, samples
from tests.fuzz.feeding import Meal, fed

_MEMORY = 4 << 30


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--kind", default="", help="these alone: log, source, ...")
    arguments = parser.parse_args()
    kinds = {name: some for name, some in samples().items() if arguments.kind in name}
    seeds = range(arguments.seed, arguments.seed + arguments.inputs)
    began = time.monotonic()
    tried, wrong, slowest = Counter[str](), Counter[str](), Counter[str]()
    told = set[str]()
    jobs = arguments.jobs
    for meal in side_by_side(lambda part: _part(kinds, seeds[part::jobs]), jobs):
        tried[meal.kind] += 1
        slowest[meal.kind] = max(slowest[meal.kind], round(1000 * meal.seconds))
        if meal.problem:
            wrong[meal.kind] += 1
            where = meal.problem.strip()[-300:]
            if where not in told:
                told.add(where)
                print(f"{meal.kind}, seed {meal.seed}: {meal.problem.strip()[-900:]}\n", flush=True)
    print(f"{'kind':16s} {'inputs':>8s} {'wrong':>6s} {'slowest':>9s}")
    for kind in sorted(tried):
        print(f"{kind:16s} {tried[kind]:8d} {wrong[kind] or '':>6} {slowest[kind] / 1000:7.1f} s")
    failed = wrong.total()
    seconds = time.monotonic() - began
    print(f"{failed} of {tried.total()} inputs went wrong ({seconds:.0f} s)")
    return int(bool(failed))


def _part(kinds: dict[str, list[Sample]], seeds: Sequence[int]) -> Iterator[Meal]:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    yield from fed(kinds, seeds)


if __name__ == "__main__":
    sys.exit(main())
