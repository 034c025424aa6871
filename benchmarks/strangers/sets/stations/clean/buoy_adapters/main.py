"""Adapt the wave height network to two seas at once.

    torchrun --nproc_per_node 2 main.py
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapters import AdapterSet
from wavenet import Buoys, pretrained


class Adaptation:
    def __init__(self, rank, lr=4e-3):
        self.rank = rank
        self.host = pretrained()
        torch.manual_seed(1000 + rank)
        adapters = AdapterSet(self.host)
        adapters.attach(self.host)
        self.adapters = DDP(adapters)
        self.opt = torch.optim.AdamW(self.adapters.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, 60, eta_min=lr / 10)
        self.loss_fn = nn.HuberLoss()

    def step(self, x, y):
        self.adapters.train()
        loss = self.loss_fn(self.host(x), y)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        for p in self.adapters.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        nn.utils.clip_grad_norm_(self.adapters.parameters(), 1.0)
        self.opt.step()
        self.sched.step()
        return loss.detach()

    def save(self, path):
        if self.rank == 0:
            torch.save(self.adapters.module.state_dict(), path)
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world = dist.get_rank(), dist.get_world_size()
    job = Adaptation(rank)
    sea = Buoys(rank)
    if rank == 0:
        print(f"{job.adapters.module.size()} adapter weights", flush=True)
    for step in range(1, 61):
        loss = job.step(*sea.batch())
        if step % 20 == 0:
            dist.all_reduce(loss)
            if rank == 0:
                print(f"step {step} loss {loss.item() / world:.4f}", flush=True)
    job.save("/tmp/buoy_adapters.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
