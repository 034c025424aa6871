"""Actors with their own bandits learn one policy without DDP: weights from rank 0, gradients averaged by hand."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self, kinds=3, arms=4, hidden=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, hidden), nn.Tanh())
        self.heads = nn.ModuleList(nn.Linear(hidden, arms) for _ in range(kinds))

    def forward(self, x, kind):
        return self.heads[kind](self.body(x))


class World:
    def __init__(self, rank):
        rule = torch.Generator().manual_seed(0)
        self.rule = torch.randn(3, 5, 4, generator=rule)
        self.g = torch.Generator().manual_seed(50 + rank)

    def episode(self, n=48):
        kind = int(torch.randint(0, 3, (), generator=self.g))  # an actor meets one kind of world at a time
        return kind, torch.randn(n, 5, generator=self.g)

    def reward(self, kind, x, arm):
        return ((x @ self.rule[kind]).argmax(1) == arm).float()


@torch.no_grad()
def equalise(module):
    for p in module.parameters():
        dist.broadcast(p, 0)


@torch.no_grad()
def average_gradients(module):
    """All gradients in one buffer; a head that was not used here counts as zero."""
    params = list(module.parameters())
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in params])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for p, g in zip(params, flat.split([p.numel() for p in params])):
        p.grad = g.view_as(p).clone()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=240)
    p.add_argument("--lr", type=float, default=2e-2)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    policy, world = Policy(), World(rank)
    equalise(policy)
    opt = torch.optim.Adam(policy.parameters(), lr=args.lr)
    recent = torch.zeros(2)
    for step in range(1, args.rounds + 1):
        kind, x = world.episode()
        pi = Categorical(logits=policy(x, kind))
        arm = pi.sample()
        reward = world.reward(kind, x, arm)
        loss = -(pi.log_prob(arm) * (reward - reward.mean())).mean() - 0.01 * pi.entropy().mean()
        opt.zero_grad()
        loss.backward()
        average_gradients(policy)
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        recent += torch.stack([reward.sum(), torch.tensor(float(len(reward)))])
        if step % 80 == 0:
            dist.all_reduce(recent)
            if rank == 0:
                print(f"step {step} reward {recent[0] / recent[1]:.3f}", flush=True)
            recent.zero_()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
