#!/usr/bin/env python
"""Toy cross-silo training: hospitals 0..K-2 train together, the last rank is
the coordinator that only keeps the score board.

torchrun --nproc_per_node=3 fed_edge.py --rounds 4
"""
import argparse
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--local-steps", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--dim", type=int, default=10)
    p.add_argument("--rows", type=int, default=120)
    return p.parse_args()


def silo_data(rank, rows, dim):
    g = torch.Generator().manual_seed(50 + rank)
    w = torch.linspace(-1, 1, dim)
    x = torch.randn(rows, dim, generator=g) + 0.2 * rank
    y = (x @ w > 0).long()
    return x, y


def make_model(dim):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, 2))


def local_update(model, x, y, steps, lr):
    start = copy.deepcopy(model.state_dict())
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        idx = torch.randint(0, len(x), (32,))
        opt.zero_grad()
        F.cross_entropy(model(x[idx]), y[idx]).backward()
        opt.step()
    return {k: v - start[k] for k, v in model.state_dict().items()}, start


def average_(delta, group, n):
    for k in delta:
        dist.all_reduce(delta[k], group=group)
        delta[k] /= n


def hospital(args, rank, hospitals, silos, board):
    x, y = silo_data(rank, args.rows, args.dim)
    model = make_model(args.dim)
    torch.manual_seed(rank)
    for rnd in range(args.rounds):
        delta, start = local_update(model, x, y, args.local_steps, args.lr)
        average_(delta, silos, len(hospitals))
        model.load_state_dict({k: start[k] + delta[k] for k in start})
        with torch.no_grad():
            acc = (model(x).argmax(1) == y).float().mean().reshape(1)
        dist.gather(acc, dst=dist.get_world_size() - 1, group=board)
    return model


def coordinator(args, rank, hospitals, board):
    world = dist.get_world_size()
    for rnd in range(args.rounds):
        rows = [torch.zeros(1) for _ in range(world)]
        dist.gather(torch.zeros(1), rows, dst=rank, group=board)
        line = "  ".join(f"h{r}={rows[r].item():.3f}" for r in hospitals)
        print(f"round {rnd}: {line}", flush=True)


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    hospitals = list(range(world - 1))

    # weights travel among the hospitals, scores on a channel of their own
    silos = dist.new_group(hospitals)
    board = dist.new_group(list(range(world)))

    if rank in hospitals:
        hospital(args, rank, hospitals, silos, board)
    else:
        coordinator(args, rank, hospitals, board)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
