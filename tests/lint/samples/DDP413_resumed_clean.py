import glob
import os

import torch
import torch.distributed as dist
import tqdm
from torch import nn


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    first = 0
    saved = glob.glob("runs/*.pth")
    if saved:
        saved.sort(key=os.path.getmtime)
        first = torch.load(saved[-1])["epoch"]
    with tqdm.trange(first, 10, leave=rank == 0) as epochs:
        for _ in epochs:
            model(torch.ones(2)).sum().backward()
            dist.barrier()


if __name__ == "__main__":
    main()
