"""`ddpdoctor check` against the same variants, one by one, under torchrun.

    python benchmarks/check_against_torchrun.py [--nproc 4] [--select DDP301]

Variants that hang are left out of both sides: torchrun would wait for them for half an hour each.
Both sides run in one go on the same machine; the ratio is what counts, not the seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

from ddpdoctor import catalog
from ddpdoctor.catalog import Pitfall, Variant, Verdict
from ddpdoctor.check import CheckOptions, check

LIMIT = 120.0


def under_torchrun(pitfall: Pitfall, variant: Variant, nproc: int) -> float:
    """Seconds that one variant takes under torchrun, its start included."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={nproc}", str(pitfall.proof), variant.name]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "DDPDOCTOR_RUN_DIR": folder}
        began = time.monotonic()
        subprocess.run(command, env=environment, capture_output=True, timeout=LIMIT, check=False)
        return time.monotonic() - began


def hangs(verdict: Verdict) -> bool:
    """Whether the variant ended only because the doctor proved it dead."""
    return any(finding.title in ("deadlock", "ema-deadlock") for finding in verdict.findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nproc", type=int, default=4)
    parser.add_argument("--select", action="append", default=[])
    options = parser.parse_args()
    pitfalls = catalog.select(catalog.load(), options.select)
    asked = CheckOptions(nproc=options.nproc)

    started: list[float] = []
    began = time.monotonic()
    report = check(pitfalls, asked, lambda _: None, lambda *_: started.append(time.monotonic()))
    everything = time.monotonic() - began
    ready = started[min(len(os.sched_getaffinity(0)), len(started) - 1)] - began
    print(f"check, all {len(report.verdicts)} variants: {everything:.1f} s, start included")

    hanging = {(v.code, v.variant) for v in report.verdicts if hangs(v)}
    ending = [
        pitfall.model_copy(update={"variants": kept})
        for pitfall in pitfalls
        if (kept := tuple(v for v in pitfall.variants if (pitfall.code, v.name) not in hanging))
    ]
    began = time.monotonic()
    report = check(ending, asked, lambda _: None, lambda *_: None)
    ours = time.monotonic() - began
    print(f"check, the {len(report.verdicts)} that end: {ours:.1f} s, start included")

    theirs = 0.0
    for pitfall in ending:
        for variant in pitfall.variants:
            seconds = under_torchrun(pitfall, variant, options.nproc)
            theirs += seconds
            print(f"  torchrun {pitfall.code} {variant.name}: {seconds:.1f} s", flush=True)
    print(f"torchrun, one by one: {theirs:.1f} s")
    print(f"ratio: {theirs / ours:.1f} with our start of {ready:.1f} s, ", end="")
    print(f"{theirs / (ours - ready):.1f} without it")


if __name__ == "__main__":
    main()
