import os
import socket
from collections import defaultdict

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

NUM_CLASSES = 6


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_split(n, seed, rare=None):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, NUM_CLASSES - 1, (n,), generator=g)
    if rare is not None:
        y[rare] = NUM_CLASSES - 1
    x = torch.randn(n, 16, generator=g)
    x[torch.arange(n), y] += 3.0
    return TensorDataset(x, y)


def average_across_ranks(stats):
    world = dist.get_world_size()
    out = {}
    for name in sorted(stats):
        value = torch.tensor(stats[name], dtype=torch.float64)
        dist.all_reduce(value)
        out[name] = (value / world).item()
    return out


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    hits, seen = defaultdict(int), defaultdict(int)
    for x, y in loader:
        pred = net(x).argmax(1)
        for p, t in zip(pred.tolist(), y.tolist()):
            seen[t] += 1
            hits[t] += int(p == t)
    net.train()
    stats = {f"acc/class{c}": hits[c] / seen[c] for c in seen}
    stats["acc/mean"] = sum(hits.values()) / sum(seen.values())
    return average_across_ranks(stats)


def worker(rank, world_size, port, epochs):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(0)

    train_set = make_split(256, seed=1, rare=[5, 80])
    val_set = make_split(96, seed=2, rare=[10, 44])
    train_sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=16, sampler=train_sampler)
    val_loader = DataLoader(val_set, batch_size=16, sampler=DistributedSampler(val_set, shuffle=False))

    model = DDP(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, NUM_CLASSES)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        train_sampler.set_epoch(epoch)
        for x, y in train_loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        metrics = evaluate(model.module, val_loader)
        dist.barrier()
        if rank == 0:
            print(epoch, {k: round(v, 3) for k, v in metrics.items()}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(2, free_port(), 3), nprocs=2, join=True)
