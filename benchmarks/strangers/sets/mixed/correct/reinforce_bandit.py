"""REINFORCE without a wrapper: every process plays its own games, gradients are averaged by hand."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn


class Bandit:
    def __init__(self, seed, arms=5):
        self.arms, self.g = arms, torch.Generator().manual_seed(seed)

    def reset(self, n):
        self.best = torch.randint(0, self.arms, (n,), generator=self.g)
        return nn.functional.one_hot(self.best, self.arms).float() + 0.3 * torch.randn(n, self.arms, generator=self.g)

    def step(self, action):
        return (action == self.best).float()


def sync_parameters(net):
    for p in net.parameters():
        dist.broadcast(p.data, src=0)


def sync_gradients(net, world):
    flat = torch.cat([p.grad.flatten() for p in net.parameters()])
    dist.all_reduce(flat)
    flat /= world
    offset = 0
    for p in net.parameters():
        p.grad.copy_(flat[offset:offset + p.numel()].view_as(p))
        offset += p.numel()


def actor(rank, world, port, seed):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(seed + rank)
    env = Bandit(seed * 100 + rank)
    policy = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 5))
    sync_parameters(policy)
    opt = torch.optim.Adam(policy.parameters(), lr=2e-2)
    for episode in range(60):
        pi = torch.distributions.Categorical(logits=policy(env.reset(32)))
        action = pi.sample()
        reward = env.step(action)
        mean = reward.mean()
        dist.all_reduce(mean)
        mean /= world
        loss = -(pi.log_prob(action) * (reward - mean)).mean()
        opt.zero_grad()
        loss.backward()
        sync_gradients(policy, world)
        opt.step()
        if rank == 0 and episode % 20 == 19:
            print(f"episode {episode}: reward {mean.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("localhost", 0))
        free = s.getsockname()[1]
    mp.spawn(actor, args=(2, free, 3), nprocs=2)
