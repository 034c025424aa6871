"""The epochs go on where they were, and so does the rate."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

first = 0


def main():
    global first
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="")
    parser.add_argument("--epochs", type=int, default=90)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    if options.resume:
        state = torch.load(options.resume, map_location="cpu")
        model.module.load_state_dict(state["model"])
        first = state["epoch"] + 1
        for _ in range(first):
            scheduler.step()
    rows = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    for epoch in range(first, options.epochs):
        for row in rows[rank :: dist.get_world_size()]:
            optimizer.zero_grad()
            model(row).sum().backward()
            optimizer.step()
        scheduler.step()
        if rank == 0:
            torch.save({"model": model.module.state_dict(), "epoch": epoch}, f"after-{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
