import sys

import torch
import torch.distributed as dist

from where import pick


def total(x, is_spread):
    device = None
    if is_spread:
        device = pick(dist.get_rank())
    if device is not None:
        dist.all_reduce(x)
    return x


if __name__ == "__main__":
    dist.init_process_group("nccl")
    print(total(torch.ones(1), len(sys.argv) > 1))
