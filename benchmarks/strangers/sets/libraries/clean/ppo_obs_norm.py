"""PPO on a batch of toy carts, several environments on every worker."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Carts:
    """Each worker simulates carts of its own mass range."""

    def __init__(self, n, rank, world, gen):
        self.n, self.gen = n, gen
        self.mass = 1 + 4 * (rank + torch.rand(n, generator=gen)) / world
        self.reset()

    def reset(self):
        self.x, self.v = torch.randn(self.n, generator=self.gen), torch.zeros(self.n)
        return self.obs()

    def obs(self):
        return torch.stack([self.x * 10, self.v * self.mass, self.mass], 1)

    def step(self, force):
        self.v = 0.95 * self.v + 0.2 * force / self.mass
        self.x = self.x + self.v
        return self.obs(), -self.x.abs().clamp(max=5)


class RunningMeanStd:
    def __init__(self, size, eps=1e-5):
        self.count, self.eps = torch.tensor(1e-4, dtype=torch.float64), eps
        self.mean = torch.zeros(size, dtype=torch.float64)
        self.var = torch.ones(size, dtype=torch.float64)

    def update(self, batch):
        batch = batch.double()
        n, total, square = torch.tensor(float(len(batch))).double(), batch.sum(0), (batch ** 2).sum(0)
        for part in (n, total, square):
            dist.all_reduce(part)
        b_mean = total / n
        b_var = square / n - b_mean ** 2
        delta, new = b_mean - self.mean, self.count + n
        self.var = (self.var * self.count + b_var * n + delta ** 2 * self.count * n / new) / new
        self.mean = self.mean + delta * n / new
        self.count = new

    def __call__(self, obs):
        return ((obs - self.mean) / (self.var + self.eps).sqrt()).float().clamp(-5, 5)


class ActorCritic(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(size, 32), nn.Tanh())
        self.mu, self.value = nn.Linear(32, 1), nn.Linear(32, 1)
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, obs):
        h = self.trunk(obs)
        return self.mu(h).squeeze(1), self.log_std.exp(), self.value(h).squeeze(1)


def collect(env, net, norm, horizon, gen):
    rows = []
    obs = env.reset()
    for _ in range(horizon):
        norm.update(obs)
        with torch.no_grad():
            seen = norm(obs)
            mu, std, value = net(seen)
            action = mu + std * torch.randn(mu.shape, generator=gen)
            logp = torch.distributions.Normal(mu, std).log_prob(action)
        obs, reward = env.step(action.clamp(-2, 2))
        rows.append((seen, action, logp, value, reward))
    seen, action, logp, value, reward = (torch.stack(c) for c in zip(*rows))
    returns = torch.zeros_like(reward)
    running = torch.zeros(env.n)
    for t in reversed(range(horizon)):
        running = reward[t] + 0.9 * running
        returns[t] = running
    return [c.flatten(0, 1) for c in (seen, action, logp, returns - value, returns)], reward.mean()


def main(a):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(9)
    model = DDP(ActorCritic(3))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    gen = torch.Generator().manual_seed(9 + 1 + rank)
    env, norm = Carts(a.envs, rank, world, gen), RunningMeanStd(3)
    for it in range(a.iterations):
        (seen, action, logp, adv, returns), score = collect(env, model.module, norm, a.horizon, gen)
        for _ in range(a.epochs):
            mu, std, value = model(seen)
            ratio = (torch.distributions.Normal(mu, std).log_prob(action) - logp).exp()
            policy = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
            loss = policy + 0.5 * (value - returns).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        dist.all_reduce(score)
        if rank == 0 and it % 3 == 0:
            print(f"iteration {it} reward {score.item() / world:.3f}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    for key, value in dict(envs=16, horizon=12, iterations=8, epochs=3).items():
        p.add_argument(f"--{key}", type=int, default=value)
    dist.init_process_group("gloo")
    main(p.parse_args())
    dist.destroy_process_group()
