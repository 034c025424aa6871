"""Self-play with a referee: process 0 judges and keeps the table, process 1 learns.

Messages: [kind, value...] as a float vector of four; kind 0 = game, 1 = bye.
"""
import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

GAME, BYE = 0.0, 1.0


def referee():
    rng = random.Random(5)
    wins, games = 0, 0
    box = torch.zeros(4)
    while True:
        dist.recv(box, src=1)
        if box[0] == BYE:
            break
        price = rng.random()
        reward = 1.0 if abs(box[1].item() - 0.6) < 0.1 + 0.2 * price else -0.2
        wins, games = wins + (reward > 0), games + 1
        dist.send(torch.tensor([GAME, reward, games, wins / games]), dst=1)
    dist.send(torch.tensor([BYE, 0.0, games, wins / max(games, 1)]), dst=1)
    return wins / games


def learner():
    rng = random.Random(9)
    torch.manual_seed(2)
    mean = torch.tensor([0.1], requires_grad=True)
    opt = torch.optim.Adam([mean], lr=0.03)
    answer = torch.zeros(4)
    recent = []
    while True:
        bid = mean.item() + rng.gauss(0, 0.15)
        dist.send(torch.tensor([GAME, bid, 0.0, 0.0]), dst=0)
        dist.recv(answer, src=0)
        reward = answer[1].item()
        recent = (recent + [reward])[-60:]
        opt.zero_grad()
        (0.5 * ((bid - mean) / 0.15) ** 2 * (reward - sum(recent) / len(recent))).sum().backward()
        opt.step()
        if answer[2] >= 400 or (len(recent) == 60 and sum(recent) / 60 > 0.9):
            break
    dist.send(torch.tensor([BYE, 0.0, 0.0, 0.0]), dst=0)
    dist.recv(answer, src=0)
    return mean.item(), int(answer[2])


def main(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29701")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    out = referee() if rank == 0 else learner()
    print("referee share of wins" if rank == 0 else "learner bid, games", out, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(main, nprocs=2)
