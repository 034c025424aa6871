"""Self-play league: worker 0 referees, 1 and 2 train the shared policy in their own group.   python league_groups.py"""
import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

PLAYERS = [1, 2]
ROUNDS, STEPS = 3, 10


def play(policy, gen, n=64):
    s = torch.randn(n, 6, generator=gen)
    best = (s @ torch.linspace(-1, 1, 6) > 0).long()
    return nn.functional.cross_entropy(policy(s), best)


def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=1 + len(PLAYERS))
    players = dist.new_group(PLAYERS)
    torch.manual_seed(rank)
    policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    for p in policy.parameters():
        dist.broadcast(p.data, src=0)
    opt = torch.optim.SGD(policy.parameters(), lr=0.5)
    gen = torch.Generator().manual_seed(20 + rank)
    for r in range(ROUNDS):
        if rank in PLAYERS:
            for _ in range(STEPS):
                opt.zero_grad()
                play(policy, gen).backward()
                for p in policy.parameters():
                    dist.all_reduce(p.grad, group=players)
                    p.grad /= dist.get_world_size(players)
                opt.step()
        for p in policy.parameters():
            dist.broadcast(p.data, src=PLAYERS[0])
        if rank == 0:
            with torch.no_grad():
                print(f"round {r} referee sees {play(policy, gen, 1000).item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(random.randint(20000, 40000),), nprocs=1 + len(PLAYERS))
