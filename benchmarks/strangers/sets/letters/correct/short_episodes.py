"""REINFORCE in a corridor. Episodes end when the walker falls, at other times on each worker; updates are counted."""
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributions import Bernoulli
from torch.nn.parallel import DistributedDataParallel as DDP

UPDATES, EPISODES, LIMIT = 10, 6, 40


def episode(policy, gen):
    pos, logits, acts, rewards = torch.zeros(2), [], [], []
    states = []
    for _ in range(LIMIT):
        with torch.no_grad():
            p = policy(pos).sigmoid()
        a = (torch.rand(1, generator=gen) < p).float()
        states.append(pos)
        acts.append(a)
        wind = 0.3 * torch.randn(1, generator=gen)
        pos = torch.cat([pos[:1] + 0.2 * (2 * a - 1) + wind * 0.2, wind])
        rewards.append(1.0)
        if pos[0].abs() > 0.6:
            break
    togo = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    return torch.stack(states), torch.stack(acts), togo


def worker(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(3)
    policy = DDP(nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1)))
    opt = torch.optim.Adam(policy.parameters(), 1e-2)
    gen = torch.Generator().manual_seed(40 + rank)
    for update in range(UPDATES):
        runs = [episode(policy.module, gen) for _ in range(EPISODES)]
        s, a, g = (torch.cat(t) for t in zip(*runs))
        adv = (g - g.mean()) / (g.std() + 1e-6)
        loss = -(Bernoulli(logits=policy(s)).log_prob(a).squeeze(1) * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        length = torch.tensor([len(s) / EPISODES])
        dist.all_reduce(length)
        if rank == 0:
            print(f"update {update} length {length.item() / world:.1f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(2, port), nprocs=2)
