import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

ATOMS = 9


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def molecules(n, seed):
    g = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 6, (n, ATOMS), generator=g).float()
    logs = counts @ torch.linspace(-1, 1, ATOMS) - 0.1 * counts.sum(1)
    return counts, logs.unsqueeze(1)


class Readout(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(ATOMS, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, c):
        return self.net(c)


def run(rank, world_size, port, epochs):
    setup(rank, world_size, port)
    torch.manual_seed(3)
    x, y = molecules(256, seed=rank)
    model = DDP(Readout())
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for e in range(epochs):
        for i in range(0, len(x), 32):
            loss = (model(x[i:i + 32]) - y[i:i + 32]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {e}: mse {loss.item():.4f}", flush=True)
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    WORLD = 2
    mp.spawn(run, args=(WORLD, free_port(), 4), nprocs=WORLD, join=True)
