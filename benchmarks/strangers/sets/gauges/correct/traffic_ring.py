"""Decentralised training on a ring of road sensors: neighbours average their weights.

    python traffic_ring.py
"""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

WORLD = 4


def flows(rank, n=200):
    g = torch.Generator().manual_seed(rank)
    x = torch.randn(n, 6, generator=g)
    return x, (x[:, 0] - x[:, 1] + 0.1 * torch.randn(n, generator=g)).unsqueeze(1)


def exchange(vec, rank):
    """Send to the right, take from the left."""
    right, left = (rank + 1) % WORLD, (rank - 1) % WORLD
    incoming = torch.empty_like(vec)
    if rank % 2 == 0:
        dist.send(vec, right)
        dist.recv(incoming, left)
    else:
        dist.recv(incoming, left)
        dist.send(vec, right)
    return incoming


def worker(rank, store_path):
    torch.set_num_threads(1)
    store = dist.FileStore(store_path, WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    torch.manual_seed(rank)
    x, y = flows(rank)
    net = nn.Linear(6, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for rnd in range(15):
        for _ in range(3):
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        mine = nn.utils.parameters_to_vector(net.parameters()).detach()
        theirs = exchange(mine, rank)
        nn.utils.vector_to_parameters((mine + theirs) / 2, net.parameters())
    spread = nn.utils.parameters_to_vector(net.parameters()).detach().clone()
    low, high = spread.clone(), spread.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(f"loss {loss.item():.4f}, disagreement {(high - low).max():.4f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    path = os.path.join(tempfile.mkdtemp(), "rendezvous")
    mp.spawn(worker, args=(path,), nprocs=WORLD)
