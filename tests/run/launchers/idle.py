"""python idle.py idle: a rank that is told of when it runs, and goes on until `enough` is there.

Without torch, so that it is there at once; spawn:idle starts two of them by torch's mp.spawn.
"""

import os
import sys
import time
from pathlib import Path


def idle(rank):
    Path(f"idles-{rank}").touch()
    while not Path("enough").exists():
        time.sleep(0.05)
    Path(f"ended-{rank}").touch()


if __name__ == "__main__":
    if sys.argv[1].startswith("spawn:"):
        import torch.multiprocessing as mp

        mp.spawn(idle, nprocs=2)
    else:
        names = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
        idle(next(os.environ[name] for name in names if name in os.environ))
