import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def number():
    """Under srun, under torchrun, or alone."""
    for name in ("SLURM_PROCID", "RANK"):
        if name in os.environ:
            return int(os.environ[name])
    return int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))


def main():
    rank = number()
    os.environ["RANK"] = str(rank)
    os.environ.setdefault("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1"))
    dist.init_process_group("gloo")
    torch.manual_seed(100 + int(os.environ.get("SLURM_PROCID", rank)))
    model = DistributedDataParallel(nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(100):
        noise = torch.randn(32, 8)
        optimizer.zero_grad()
        (model(noise) - noise).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
