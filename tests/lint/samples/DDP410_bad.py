import sys

import torch.distributed as dist


def train(stages, rank, run_stage):
    for stage in stages:
        loss = run_stage(stage)
        dist.all_reduce(loss)
        if rank == 0 and loss < 0.1:
            sys.exit(0)  # <-- DDP410
