"""What becomes of the doctor when everything around it goes wrong.

    python -m benchmarks.chaos [--trials 1000] [--seed 0] [--select launch] [--jobs 2]

Each trial is a doctor (`run`, `check`, pytest with our plugin, `attach`, a bare launch) that is
disturbed: processes killed, stopped, starved of memory, descriptors, disk and time, at moments
that the seed decides. Each takes place in a control group and with file systems of its own, where
it may have them. Judged are the exit code, the report, the culprit, the job's output, proofs that
are none, and what is left behind after 5 s: processes, temporary files, shared memory. The same
seed tries the same; `--only SEED` does one again.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import starmap

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from benchmarks.side_by_side import side_by_side
from tests.chaos.trials import Result, get_ready, performed, trials


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--select", default="", help="a part of the names of kinds of trials")
    parser.add_argument("--jobs", "-j", type=int, default=1, help="trials at a time")
    parser.add_argument("--only", type=int, action="append", help="the seed that a line told")
    arguments = parser.parse_args()
    # Begun in the background, by nohup or by a shell, what it starts would ignore the signals sent.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    get_ready()
    chosen = list(trials(arguments.trials, arguments.seed, arguments.select))
    if arguments.only:
        chosen = [each for each in chosen if each[1] in arguments.only]
    began = time.monotonic()
    results: list[Result] = []
    jobs = arguments.jobs
    for result in side_by_side(lambda part: starmap(performed, chosen[part::jobs]), jobs):
        results.append(result)
        for problem in result.problems:
            print(f"{result.name} (seed {result.seed}): {problem}", flush=True)
    _print_table(results)
    wrong = sum(bool(result.problems) for result in results)
    seconds = time.monotonic() - began
    print(f"{wrong} of {len(results)} trials went wrong ({seconds:.0f} s)")
    return int(bool(wrong))


def _print_table(results: Sequence[Result]) -> None:
    by_name: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_name[result.name].append(result)
    print(f"\n{'trial':44s} {'tried':>6s} {'wrong':>6s} {'slowest':>9s}")
    for name, each in sorted(by_name.items()):
        wrong = sum(bool(result.problems) for result in each)
        slowest = max(result.seconds for result in each)
        print(f"{name:44s} {len(each):6d} {wrong or '':>6} {slowest:7.1f} s")


if __name__ == "__main__":
    sys.exit(main())
