"""Each state has a file of its own; the epoch is in all of them, and is read of one."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def save(model, optimizer, epoch):
    torch.save({"epoch": epoch, "model": model.module.state_dict()}, "model.new")
    torch.save({"epoch": epoch, "optimizer": optimizer.state_dict()}, "optimizer.new")
    os.replace("model.new", "model.pth")
    os.replace("optimizer.new", "optimizer.pth")


def resume(model, optimizer):
    kept = torch.load("model.pth", map_location="cpu")
    model.module.load_state_dict(kept["model"])
    first = kept["epoch"] + 1
    kept = torch.load("optimizer.pth", map_location="cpu")
    optimizer.load_state_dict(kept["optimizer"])
    return first


def main(batches):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(resume(model, optimizer), 10):
        for batch in batches:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        if dist.get_rank() == 0:
            save(model, optimizer, epoch)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main([])
