"""What a launcher has set is asked for: on rank 0 as well, where it is the text "0"."""

import argparse
import os

import torch.distributed as dist


def settings():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallel", type=int, default=1)
    options = parser.parse_args()
    options.rank = int(os.getenv("RANK", "0"))
    options.ranks = int(os.getenv("WORLD_SIZE", "1"))
    if os.getenv("OMPI_COMM_WORLD_LOCAL_RANK"):
        here = int(os.getenv("OMPI_COMM_WORLD_LOCAL_SIZE"))
        host = int(os.getenv("SLURM_NODEID", "0"))
        options.rank = host * here + int(os.getenv("OMPI_COMM_WORLD_LOCAL_RANK"))
        options.ranks = int(os.getenv("SLURM_JOB_NUM_NODES", "1")) * here
    options.parallel = min(options.parallel, options.ranks)
    return options


def groups(size):
    mine = None
    for first in range(size):
        group = dist.new_group(range(first, dist.get_world_size(), size))
        if dist.get_rank() % size == first:
            mine = group
    return mine


def shared(total):
    launched = bool(os.environ.get("LOCAL_RANK"))
    if launched:
        dist.all_reduce(total)
    if not os.environ.get("RANK"):
        return total
    dist.all_reduce(total)
    return total


def main(total):
    options = settings()
    dist.init_process_group("nccl", rank=options.rank, world_size=options.ranks)
    print(groups(min(options.parallel, dist.get_world_size())), shared(total))
