import sys

import torch.distributed as dist


def train(stages, rank, run_stage):
    for stage in stages:
        loss = run_stage(stage)
        dist.all_reduce(loss)
        if loss < 0.1:
            sys.exit(0)
        if rank == 0 and loss > 1e9:
            sys.exit(1)


def log(stages, rank):
    for stage in stages:
        if rank == 0 and stage.is_last:
            sys.exit(0)
