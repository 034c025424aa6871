import contextlib
import os

import torch
import torch.distributed as dist


@contextlib.contextmanager
def leader_first():
    """Process 0 runs the block before the others do."""
    rank = dist.get_rank()
    if rank != 0:
        dist.barrier()
    try:
        yield rank == 0
    finally:
        if rank == 0:
            dist.barrier()


def tokens(folder, count=400):
    path = os.path.join(folder, "tokens.pt")
    with leader_first():
        if not os.path.exists(path):
            os.makedirs(folder, exist_ok=True)
            g = torch.Generator().manual_seed(1)
            seq = torch.randint(0, 20, (count, 10), generator=g)
            seq[:, 5:] = seq[:, :5]
            torch.save(seq, path)
        return torch.load(path)
