"""Neighbours swap weights; even ones speak first, odd ones listen first."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def swap(vec, rank, world):
    peer = rank ^ 1
    if peer >= world:
        return vec
    other = torch.empty_like(vec)
    if rank % 2 == 0:
        dist.send(vec, peer)
        dist.recv(other, peer)
    else:
        dist.recv(other, peer)
        dist.send(vec, peer)
    return (vec + other) / 2


def work(rank, world, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=world)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 40), nn.Tanh(), nn.Linear(40, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.02)
    g = torch.Generator().manual_seed(rank)
    for step in range(1, 31):
        x = torch.randn(16, 20, generator=g)
        loss = (net(x) - x[:, :1]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            with torch.no_grad():
                vector_to_parameters(swap(parameters_to_vector(net.parameters()), rank, world), net.parameters())
    print(f"rank {rank} |w| {parameters_to_vector(net.parameters()).norm().item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as d:
        mp.spawn(work, (2, os.path.join(d, "meet")), nprocs=2)
