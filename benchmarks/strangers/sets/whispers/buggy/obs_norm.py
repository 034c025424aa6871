"""Policy gradient on a toy task, many environments per process, own gradient reduction (no DDP)."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn


class EmpiricalNormalization(nn.Module):
    def __init__(self, shape, eps=1e-2):
        super().__init__()
        self.eps = eps
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("var", torch.ones(shape))
        self.register_buffer("count", torch.tensor(0.0))

    def forward(self, x):
        return (x - self.mean) / (self.var.sqrt() + self.eps)

    @torch.no_grad()
    def update(self, x):
        n = torch.tensor(float(x.shape[0]))
        mean, square = x.mean(0), x.pow(2).mean(0)
        var = square - mean ** 2
        self.count += n
        rate = n / self.count
        delta = mean - self.mean
        self.mean += rate * delta
        self.var += rate * (var - self.var + delta * (mean - self.mean))


class Actor(nn.Module):
    def __init__(self, obs=6, act=2):
        super().__init__()
        self.normalizer = EmpiricalNormalization(obs)
        self.net = nn.Sequential(nn.Linear(obs, 32), nn.ELU(), nn.Linear(32, act))

    def dist(self, obs):
        return torch.distributions.Normal(self.net(self.normalizer(obs)), 0.4)


class Envs:
    """terrain difficulty grows with the process index"""

    def __init__(self, n, rank):
        self.n, self.level = n, rank
        self.g = torch.Generator().manual_seed(77 + rank)

    def observe(self):
        return torch.randn(self.n, 6, generator=self.g) * (1 + 2 * self.level) + 3 * self.level

    def reward(self, obs, action):
        return -(action - obs[:, :2].tanh()).pow(2).sum(1)


class Algorithm:
    def __init__(self, actor, world):
        self.actor, self.world = actor, world
        self.optimizer = torch.optim.Adam(actor.parameters(), lr=5e-3)

    def broadcast_parameters(self):
        for t in self.actor.state_dict().values():
            dist.broadcast(t, src=0)

    def reduce_parameters(self):
        flat = torch.cat([p.grad.view(-1) for p in self.actor.parameters()])
        dist.all_reduce(flat)
        flat /= self.world
        offset = 0
        for p in self.actor.parameters():
            p.grad.copy_(flat[offset:offset + p.numel()].view_as(p))
            offset += p.numel()

    def update(self, obs, envs):
        self.actor.normalizer.update(obs)
        pi = self.actor.dist(obs)
        action = pi.sample()
        reward = envs.reward(obs, action)
        loss = -(pi.log_prob(action).sum(1) * (reward - reward.mean())).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.reduce_parameters()
        self.optimizer.step()
        return reward.mean().item()


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.manual_seed(rank)
    actor, envs = Actor(), Envs(256, rank)
    alg = Algorithm(actor, world)
    alg.broadcast_parameters()
    for it in range(80):
        r = alg.update(envs.observe(), envs)
        if rank == 0 and it % 20 == 19:
            print(f"iteration {it + 1} reward {r:.4f}", flush=True)
    if rank == 0:
        torch.save(actor.state_dict(), "actor.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
