from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def table(folder, size):
    """Rank 0 computes the table where it is not there yet."""
    path = Path(folder) / f"table-{size}.npy"
    if dist.get_rank() == 0:
        if not path.exists():
            np.save(path, np.sqrt(np.arange(size, dtype=np.float32)))
    dist.barrier()
    return torch.from_numpy(np.load(path))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = table("cache", 4096)[rank::world]
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(200):
        optimizer.zero_grad()
        (model(mine[:, None]) - mine[:, None].square()).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
