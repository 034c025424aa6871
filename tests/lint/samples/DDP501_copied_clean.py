import shutil
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def keep(model, folder, epoch, rank):
    if rank == 0:
        torch.save(model.module.state_dict(), folder / f"epoch-{epoch}.pt")


def train(model, folder, losses):
    rank = dist.get_rank()
    least = float("inf")
    for epoch, loss in enumerate(losses):
        model(torch.ones(1, 4)).sum().backward()
        keep(model, folder, epoch, rank)
        if rank == 0 and loss < least:
            least = loss
            shutil.copyfile(folder / f"epoch-{epoch}.pt", folder / "best.pt")


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 4))
    train(model, Path("kept"), [0.5, 0.4, 0.3])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
