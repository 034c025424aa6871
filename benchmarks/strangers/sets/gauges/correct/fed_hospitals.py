"""Federated averaging over hospitals; patients never leave their site.

    python fed_hospitals.py
"""
import argparse
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

PATIENTS = (180, 60, 340)


def site(rank):
    g = torch.Generator().manual_seed(rank)
    n = PATIENTS[rank]
    x = torch.randn(n, 10, generator=g) + 0.3 * rank
    risk = (x[:, :4].sum(1) - 0.5 * x[:, 5] > 0).float()
    return x, risk


def local_update(net, x, y, lr, epochs, batch=20):
    opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    for _ in range(epochs):
        for take in torch.randperm(len(x)).split(batch):
            loss = nn.functional.binary_cross_entropy_with_logits(net(x[take]).squeeze(1), y[take])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


def federate(net, weight):
    """Weighted mean of the models, the weight is the share of patients of the site."""
    total = torch.tensor(float(weight))
    dist.all_reduce(total)
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(weight / total)
            dist.all_reduce(p)


def hospital(rank, args, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=len(PATIENTS))
    x, y = site(rank)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
    torch.manual_seed(100 + rank)
    for rnd in range(args.rounds):
        last = local_update(net, x, y, args.lr, epochs=1 + (rank == 1))
        federate(net, len(x))
        with torch.no_grad():
            hit = torch.tensor([((net(x).squeeze(1) > 0) == y.bool()).sum().item(), len(x)], dtype=torch.float64)
        dist.all_reduce(hit)
        if rank == 0:
            print(f"round {rnd}: local loss {last:.3f}, accuracy over all sites {hit[0] / hit[1]:.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--lr", type=float, default=0.05)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(hospital, args=(args, port), nprocs=len(PATIENTS))
