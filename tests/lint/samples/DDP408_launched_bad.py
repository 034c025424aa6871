"""What a launcher has set is asked for, as a number: on rank 0 that is 0."""

import argparse
import os

import torch.distributed as dist


def settings():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallel", type=int, default=1)
    options = parser.parse_args()
    options.rank = int(os.getenv("RANK", "0"))
    options.ranks = int(os.getenv("WORLD_SIZE", "1"))
    if options.rank:
        options.parallel = min(options.parallel, options.ranks)
    return options


def groups(options):
    mine = None
    if int(os.getenv("RANK", "0")):
        mine = dist.new_group(range(1, options.ranks))  # <-- DDP408
    return mine


def shared(total):
    others = bool(int(os.environ.get("LOCAL_RANK", "0")))
    if others:
        dist.all_reduce(total)  # <-- DDP401
    return total


def main(total):
    options = settings()
    dist.init_process_group("nccl", rank=options.rank, world_size=options.ranks)
    print(groups(options), shared(total))
