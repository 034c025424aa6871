"""REINFORCE-style policy for a batch of point-reach environments (one env batch per process)."""
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ReachEnv:
    """Vectorised 2D reach task; goals are placed inside an annulus."""

    def __init__(self, num_envs, seed, min_r, max_r):
        self.n = num_envs
        self.g = torch.Generator().manual_seed(seed)
        self.min_r, self.max_r = min_r, max_r
        self.reset()

    def reset(self):
        ang = torch.rand(self.n, generator=self.g) * 6.2832
        rad = self.min_r + (self.max_r - self.min_r) * torch.rand(self.n, generator=self.g)
        self.goal = torch.stack([rad * ang.cos(), rad * ang.sin()], 1)
        self.pos = torch.zeros(self.n, 2)
        return self.obs()

    def obs(self):
        return torch.cat([self.pos, self.goal], 1) * 10.0

    def step(self, action):
        before = (self.pos - self.goal).norm(dim=1)
        self.pos = self.pos + 0.3 * action.clamp(-1, 1)
        return self.obs(), before - (self.pos - self.goal).norm(dim=1)


class EmpiricalNormalization(nn.Module):
    def __init__(self, dim, eps=1e-2):
        super().__init__()
        self.eps = eps
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("var", torch.ones(dim))
        self.register_buffer("count", torch.tensor(0.0))

    @torch.no_grad()
    def update(self, x):
        n = torch.tensor(float(len(x)))
        s1, s2 = x.sum(0), x.pow(2).sum(0)
        for t in (n, s1, s2):
            dist.all_reduce(t)
        mean, var = s1 / n, s2 / n - (s1 / n) ** 2
        self.count += n
        rate = n / self.count
        delta = mean - self.mean
        self.mean += rate * delta
        self.var += rate * (var - self.var + delta * (mean - self.mean))

    def forward(self, x):
        return (x - self.mean) / (self.var.clamp_min(0).sqrt() + self.eps)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 32), nn.ELU(), nn.Linear(32, 2))
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, obs, action=None):
        d = torch.distributions.Normal(self.net(obs), self.log_std.exp())
        a = d.sample() if action is None else action
        return a, d.log_prob(a).sum(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--iterations", type=int, default=6)
    p.add_argument("--horizon", type=int, default=10)
    p.add_argument("--num_envs", type=int, default=64)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed + rank)
    env = ReachEnv(args.num_envs, args.seed + rank, 0.5 + rank, 1.5 + rank)
    normalizer = EmpiricalNormalization(4)
    actor = DDP(Actor())
    opt = torch.optim.Adam(actor.parameters(), lr=1e-2)

    for it in range(args.iterations):
        obs, ret = env.reset(), torch.zeros(2)
        for t in range(args.horizon):
            normalizer.update(obs)
            inp = normalizer(obs)
            with torch.no_grad():
                action, _ = actor.module(inp)
            obs, reward = env.step(action)
            adv = reward / 0.3
            _, logp = actor(inp, action)
            loss = -(logp * adv).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            ret += torch.tensor([reward.sum().item(), reward.numel()])
        dist.all_reduce(ret)
        if rank == 0:
            print(f"it {it} mean reward {ret[0] / ret[1]:.4f}")
    if rank == 0:
        torch.save({"actor": actor.module.state_dict(), "obs_norm": normalizer.state_dict()}, "policy.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
