"""What all ranks unpack at once is marked by each of them, with an empty file."""

import shutil
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def once(work):
    def inner():
        marker = Path("data/.unpacked")
        if not marker.is_file():  # <-- DDP212
            work()
            marker.touch()

    return inner


@once
def unpack():
    shutil.unpack_archive("data.zip", "data")


def main():
    dist.init_process_group("gloo")
    unpack()
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(8, 4, generator=noise)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
