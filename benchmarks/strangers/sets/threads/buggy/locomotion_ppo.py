"""PPO on a toy point-mass walker; every rank steps its own batch of environments."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions import Normal
from torch.nn.parallel import DistributedDataParallel as DDP


class Walkers:
    """Vectorised environment. The terrain (and with it the scale of the readings) depends on the seed."""

    def __init__(self, n, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.n = n
        self.slope = 1.0 + 3.0 * torch.rand(1, generator=self.g)
        self.reset()

    def reset(self):
        self.pos = torch.randn(self.n, 2, generator=self.g) * 3
        self.vel = torch.zeros(self.n, 2)
        return self.read()

    def read(self):
        return torch.cat([self.pos * 50 * self.slope, self.vel, (self.pos * self.vel).sum(1, keepdim=True)], 1)

    def step(self, force):
        self.vel = 0.9 * self.vel + 0.1 * force.clamp(-2, 2)
        self.pos = self.pos + self.vel
        return self.read(), -self.pos.norm(dim=1) * 0.1


class EmpiricalNorm(nn.Module):
    """Whitens observations by running moments (Chan et al.)."""

    def __init__(self, size, eps=1e-2):
        super().__init__()
        self.eps = eps
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("var", torch.ones(size))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        return (x - self.mean) / (self.var.sqrt() + self.eps)

    @torch.no_grad()
    def observe(self, x):
        n = torch.tensor(float(len(x)))
        m = x.mean(0)
        v = x.var(0, unbiased=False)
        self.count += n
        rate = n / self.count
        delta = m - self.mean
        self.mean += rate * delta
        self.var += rate * (v - self.var + delta * (m - self.mean))


class ActorCritic(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.norm = EmpiricalNorm(obs)
        self.pi = nn.Sequential(nn.Linear(obs, 32), nn.ELU(), nn.Linear(32, act))
        self.v = nn.Sequential(nn.Linear(obs, 32), nn.ELU(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.zeros(act))

    def forward(self, obs):
        z = self.norm(obs)
        return self.pi(z), self.log_std.exp(), self.v(z).squeeze(-1)


class Runner:
    def __init__(self, rank, horizon=16, envs=32):
        self.rank, self.horizon = rank, horizon
        self.env = Walkers(envs, seed=9 + rank)
        torch.manual_seed(0)
        self.policy = ActorCritic(5, 2)
        self.train_policy = DDP(self.policy, broadcast_buffers=False)
        self.opt = torch.optim.Adam(self.train_policy.parameters(), lr=3e-3)
        torch.manual_seed(1000 + rank)

    @torch.no_grad()
    def collect(self):
        obs, roll = self.env.reset(), []
        for _ in range(self.horizon):
            self.policy.norm.observe(obs)
            mu, std, val = self.policy(obs)
            act = Normal(mu, std).sample()
            nxt, rew = self.env.step(act)
            roll.append((obs, act, Normal(mu, std).log_prob(act).sum(1), val, rew))
            obs = nxt
        obs, act, logp, val, rew = map(torch.stack, zip(*roll))
        ret, acc = torch.zeros_like(rew), torch.zeros(self.env.n)
        for t in reversed(range(self.horizon)):
            acc = rew[t] + 0.97 * acc
            ret[t] = acc
        adv = ret - val
        return obs, act, logp, ret, (adv - adv.mean()) / (adv.std() + 1e-6), rew.mean()

    def update(self, batch, epochs=3, clip=0.2):
        obs, act, logp_old, ret, adv, _ = batch
        for _ in range(epochs):
            mu, std, val = self.train_policy(obs)
            ratio = (Normal(mu, std).log_prob(act).sum(-1) - logp_old).exp()
            surr = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
            loss = -surr + 0.5 * (val - ret).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.train_policy.parameters(), 1.0)
            self.opt.step()

    def learn(self, iterations):
        for it in range(iterations):
            batch = self.collect()
            self.update(batch)
            reward = batch[-1].clone()
            dist.all_reduce(reward)
            if self.rank == 0 and it % 4 == 3:
                print(f"iteration {it + 1} reward {reward.item() / dist.get_world_size():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Runner(dist.get_rank()).learn(12)
    dist.barrier()
    dist.destroy_process_group()
