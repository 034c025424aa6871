"""
Two clinics, two workers each. Inside a clinic the gradients are averaged at every step, between the
clinics only the weights of the two lead workers are averaged once a round (rows never leave a clinic).

    python silo_avg.py
"""
import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

SILOS = [[0, 1], [2, 3]]
WORLD = sum(len(s) for s in SILOS)
ROUNDS, LOCAL_STEPS = 4, 8


def flatten(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def write_back(flat, tensors):
    at = 0
    for t in tensors:
        t.copy_(flat[at:at + t.numel()].view_as(t))
        at += t.numel()


class Silo:
    def __init__(self, rank):
        groups = [dist.new_group(s) for s in SILOS]
        self.leads = dist.new_group([s[0] for s in SILOS])
        self.index = next(i for i, s in enumerate(SILOS) if rank in s)
        self.group = groups[self.index]
        self.rank = dist.get_rank(self.group)
        self.size = dist.get_world_size(self.group)

    @property
    def is_lead(self):
        return self.rank == 0

    def average_grads(self, model):
        grads = [p.grad for p in model.parameters()]
        flat = flatten(grads)
        dist.all_reduce(flat, group=self.group)
        write_back(flat / self.size, grads)

    @torch.no_grad()
    def exchange(self, model):
        params = list(model.parameters())
        flat = flatten(params)
        if self.is_lead:
            dist.all_reduce(flat, group=self.leads)
            flat /= len(SILOS)
        dist.broadcast(flat, src=dist.get_global_rank(self.group, 0), group=self.group)
        write_back(flat, params)


def clinic_rows(silo, rank, n=256):
    g = torch.Generator().manual_seed(31 * silo + rank)
    x = torch.randn(n, 12, generator=g) + 0.3 * silo
    w = torch.linspace(-1, 1, 12)
    y = (x @ w + 0.3 * torch.randn(n, generator=g) > 0).float()
    return x, y


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    silo = Silo(rank)
    x, y = clinic_rows(silo.index, rank)
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for r in range(ROUNDS):
        for step in range(LOCAL_STEPS):
            idx = torch.randint(len(x), (32,))
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[idx]).squeeze(1), y[idx])
            opt.zero_grad()
            loss.backward()
            silo.average_grads(model)
            opt.step()
        silo.exchange(model)
        acc = ((model(x).squeeze(1) > 0) == (y > 0)).float().mean()
        dist.all_reduce(acc)
        if rank == 0:
            print(f"round {r}: accuracy {acc.item() / WORLD:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(random.randint(20000, 40000),), nprocs=WORLD)
