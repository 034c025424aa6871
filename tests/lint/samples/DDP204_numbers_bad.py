"""Compares what a group of ranks computes together with what one of them computes alone."""

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(size=32):
    dist.init_process_group("gloo")
    rank, part = dist.get_rank(), size // dist.get_world_size()
    np.random.seed(rank)  # <-- DDP204
    given = np.random.permutation(size).astype(np.float32)
    rows = torch.from_numpy(given)
    norm = DistributedDataParallel(nn.LayerNorm(4))
    out = norm(torch.ones(size, 4)[rows.long()][rank * part : (rank + 1) * part])
    out.sum().backward()
    return [each.grad for each in norm.parameters()]


if __name__ == "__main__":
    main()
