"""PPO-style updates on a bandit with context; learners stop a round together."""
import argparse
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel as DDP


class Policy(nn.Module):
    def __init__(self, ctx=6, arms=4, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(ctx, hidden), nn.Tanh())
        self.pi, self.v = nn.Linear(hidden, arms), nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return self.pi(h), self.v(h).squeeze(1)


class Bandit:
    def __init__(self, seed):
        self.weight = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
        self.g = torch.Generator().manual_seed(seed)

    def contexts(self, n):
        return torch.randn(n, 6, generator=self.g)

    def pull(self, x, arm):
        mean = (x @ self.weight).gather(1, arm[:, None]).squeeze(1)
        return mean + 0.3 * torch.randn(len(x), generator=self.g)


class Referee:
    """Everybody reports, everybody hears the same verdict."""

    def __init__(self, limit):
        self.limit, self.world = limit, dist.get_world_size()

    def verdict(self, kl):
        report = torch.as_tensor(kl).detach().clone().reshape(1)
        dist.all_reduce(report, op=dist.ReduceOp.MAX)
        return report.item() > self.limit


def rounds(max_rounds, referee, box):
    for r in range(max_rounds):
        yield r
        if referee.verdict(box.kl):
            break


@torch.no_grad()
def rollout(net, env, n=256):
    x = env.contexts(n)
    logits, value = net(x)
    pi = Categorical(logits=logits)
    arm = pi.sample()
    reward = env.pull(x, arm)
    adv = reward - value
    return x, arm, pi.log_prob(arm), reward, (adv - adv.mean()) / (adv.std() + 1e-6)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--iters", type=int, default=8)
    p.add_argument("--max-rounds", type=int, default=8)
    p.add_argument("--kl-limit", type=float, default=0.01)
    p.add_argument("--lr", type=float, default=5e-3)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(100 + rank)
    net = Policy()
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    env, referee = Bandit(rank), Referee(args.kl_limit)
    for it in range(args.iters):
        x, arm, old, reward, adv = rollout(net, env)
        box, used = SimpleNamespace(kl=0.0), 0
        for _ in rounds(args.max_rounds, referee, box):
            kls = []
            for idx in torch.randperm(len(x)).chunk(4):
                logits, value = model(x[idx])
                pi = Categorical(logits=logits)
                ratio = (pi.log_prob(arm[idx]) - old[idx]).exp()
                gain = torch.min(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx])
                loss = -gain.mean() + 0.5 * (value - reward[idx]).pow(2).mean() - 0.01 * pi.entropy().mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                kls.append((ratio - 1 - ratio.log()).mean().item())
            box.kl = sum(kls) / len(kls)
            used += 1
        shared = torch.tensor([reward.mean().item()])
        dist.all_reduce(shared)
        if rank == 0:
            print(f"iter {it} reward {shared.item() / world:.3f} rounds {used}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
