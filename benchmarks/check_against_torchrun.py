"""`ddpdoctor check` against the same variants, one by one, under torchrun.

    python benchmarks/check_against_torchrun.py [--nproc 4] [--sample 60]

The sample is fixed: broken forms and fixes at equal distances in the catalogue's order, each
launched once, of the failures that need no launcher and cannot hang (torchrun would wait half an
hour for each; advice that does not hold may hang too). Both sides run in one go on the same
machine; the ratio is what counts, not the seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict

from ddpdoctor import catalog
from ddpdoctor.catalog import Pitfall, Variant
from ddpdoctor.check import CheckOptions, check

LIMIT = 120.0


def under_torchrun(pitfall: Pitfall, variant: Variant, nproc: int) -> float:
    """Seconds that one variant takes under torchrun, its start included."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={nproc}", str(pitfall.proof), variant.name]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "DDPDOCTOR_RUN_DIR": folder}
        began = time.monotonic()
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as torchrun:
            try:
                torchrun.wait(LIMIT)
            except subprocess.TimeoutExpired:
                torchrun.terminate()  # it ends its ranks
                raise
        return time.monotonic() - began


def sampled(size: int) -> list[Pitfall]:
    """The failures of the sample, each with its variants that are in it."""
    candidates = [
        (pitfall, variant.model_copy(update={"launches": 1}))
        for pitfall in catalog.load().values()
        for variant in pitfall.variants
        if "hang" not in pitfall.symptoms and not pitfall.needs and not variant.launch
        if variant.kind != "documented"
    ]
    size = min(size, len(candidates))
    chosen: dict[str, list[Variant]] = defaultdict(list)
    for number in range(size):
        pitfall, variant = candidates[number * len(candidates) // size]
        chosen[pitfall.code].append(variant)
    pitfalls = catalog.load()
    return [
        pitfalls[code].model_copy(update={"variants": tuple(variants)})
        for code, variants in chosen.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nproc", type=int, default=4)
    parser.add_argument("--sample", type=int, default=60)
    options = parser.parse_args()
    asked = CheckOptions(nproc=options.nproc)

    began = time.monotonic()
    everything = check(
        list(catalog.load().values()),
        CheckOptions(nproc=options.nproc, suite="quick"),
        lambda _: None,
        lambda *_: None,
    )
    print(
        f"check --suite quick, all {len(everything.verdicts)} variants: "
        f"{time.monotonic() - began:.1f} s, start included"
    )

    sample = sampled(options.sample)
    started: list[float] = []
    began = time.monotonic()
    report = check(sample, asked, lambda _: None, lambda *_: started.append(time.monotonic()))
    ours = time.monotonic() - began
    ready = started[1] - began  # the second launch begins when the server is up
    print(f"check, {len(report.verdicts)} of them: {ours:.1f} s, start included")

    theirs = 0.0
    for pitfall in sample:
        for variant in pitfall.variants:
            seconds = under_torchrun(pitfall, variant, options.nproc)
            theirs += seconds
            print(f"  torchrun {pitfall.code} {variant.name}: {seconds:.1f} s", flush=True)
    print(f"torchrun, one by one: {theirs:.1f} s")
    print(f"ratio: {theirs / ours:.1f} with our start of {ready:.1f} s, ", end="")
    print(f"{theirs / (ours - ready):.1f} without it")


if __name__ == "__main__":
    main()
