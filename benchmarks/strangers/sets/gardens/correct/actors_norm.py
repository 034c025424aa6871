"""Evolution of a policy by actors with streams of their own and one shared observation scale."""
import torch
import torch.distributed as dist
import torch.nn as nn


class Scale:
    """Running mean and variance; every actor folds in the same pooled numbers."""

    def __init__(self, dim):
        self.n = 1e-4
        self.mean, self.m2 = torch.zeros(dim), torch.ones(dim) * 1e-4

    def absorb(self, obs):
        pack = torch.cat([torch.tensor([float(len(obs))]), obs.sum(0), obs.pow(2).sum(0)])
        dist.all_reduce(pack)
        k = pack[0].item()
        s, q = pack[1:].chunk(2)
        mean = s / k
        m2 = (q - k * mean ** 2).clamp_min(0)
        delta = mean - self.mean
        tot = self.n + k
        self.m2 = self.m2 + m2 + delta ** 2 * self.n * k / tot
        self.mean = self.mean + delta * k / tot
        self.n = tot

    def __call__(self, obs):
        return (obs - self.mean) / (self.m2 / self.n).sqrt().clamp_min(1e-3)


class Bandit:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def draw(self, n):
        return torch.randn(n, 5, generator=self.g) * torch.tensor([1.0, 5.0, 0.2, 3.0, 1.0]) + 2.0

    def pay(self, obs, act):
        want = (obs[:, 1] > 2).long() + 2 * (obs[:, 2] > 2).long()
        return (act == want).float()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    policy = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 4))
    for p in policy.parameters():
        dist.broadcast(p.data, src=0)
    torch.manual_seed(1000 + rank)
    env, scale = Bandit(2000 + rank), Scale(5)
    opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for it in range(60):
        obs = env.draw(64)
        scale.absorb(obs)
        pi = torch.distributions.Categorical(logits=policy(scale(obs)))
        act = pi.sample()
        pay = env.pay(obs, act)
        loss = -(pi.log_prob(act) * (pay - 0.25)).mean() - 0.01 * pi.entropy().mean()
        opt.zero_grad()
        loss.backward()
        flat = torch.cat([p.grad.flatten() for p in policy.parameters()])
        dist.all_reduce(flat)
        flat /= world
        at = 0
        for p in policy.parameters():
            p.grad.copy_(flat[at:at + p.numel()].view_as(p))
            at += p.numel()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        if it % 15 == 14:
            m = pay.mean()
            dist.all_reduce(m)
            if rank == 0:
                print(f"iter {it + 1} mean pay {m.item() / world:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
