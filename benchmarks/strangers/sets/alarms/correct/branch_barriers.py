"""The two branches look different, but both take part in the same operations."""
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def share_settings(rank):
    if rank == 0:
        box = [{"lr": 0.02, "steps": 18, "width": 24}]
        time.sleep(0.3)
        dist.broadcast_object_list(box, src=0)
    else:
        box = [None]
        dist.broadcast_object_list(box, src=0)
    return box[0]


def save_or_wait(rank, model, path):
    if rank == 0:
        torch.save(model.module.state_dict(), path)
        dist.barrier()
        return os.path.getsize(path)
    dist.barrier()
    return None


def collect(rank, value):
    if rank == 0:
        bins = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.gather(torch.tensor([value]), gather_list=bins, dst=0)
        return [round(b.item(), 3) for b in bins]
    dist.gather(torch.tensor([value]), dst=0)


def main():
    rank = dist.get_rank()
    s = share_settings(rank)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, s["width"]), nn.Tanh(), nn.Linear(s["width"], 2)))
    opt = torch.optim.SGD(model.parameters(), lr=s["lr"])
    gen = torch.Generator().manual_seed(31 + rank)
    for _ in range(s["steps"]):
        x = torch.randn(10, 6, generator=gen)
        loss = nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
    size = save_or_wait(rank, model, "net.pt")
    losses = collect(rank, loss.item())
    if rank == 0:
        print(f"saved {size} bytes, losses per process {losses}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
