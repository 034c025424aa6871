"""Parts that ranks take in turn, and a last one of each after which totals are shared."""

import numpy as np
import torch
import torch.distributed as dist


def totals(rows, most):
    world = dist.get_world_size()
    number = max((len(rows) - 1) // (most * world) + 1, 1) * world
    mine = np.array_split(np.arange(len(rows)), number)[dist.get_rank() :: world]
    total = torch.zeros(1)
    for at, part in enumerate(mine):
        total += rows[part].sum()
        dist.all_reduce(torch.ones(1))
        if at == len(mine) - 1:
            dist.all_reduce(total)
    return total


def main(rows):
    dist.init_process_group("gloo")
    print(totals(rows, 64))
    dist.destroy_process_group()
