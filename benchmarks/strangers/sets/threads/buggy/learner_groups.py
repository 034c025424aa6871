"""Actor-learner set-up on three ranks: rank 0 and 1 learn together, every rank collects experience.

The value network is trained by the learners only and handed to the collector at intervals.
"""
import datetime
import itertools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

LEARNERS = [int(r) for r in os.environ.get("LEARNERS", "0,1").split(",")]


class Topology:
    """Who is who, and the process groups between them."""

    def __init__(self):
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.learns = self.rank in LEARNERS
        self.learner_group = None

    def build(self):
        if self.learns:
            self.learner_group = dist.new_group(LEARNERS)
        self.logging_group = dist.new_group(timeout=datetime.timedelta(minutes=20))
        return self


class ValueNet:
    """A critic that lives on the learners; `publish` copies it to the rest."""

    def __init__(self, topo, period):
        self.topo, self.period = topo, period
        self.net = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=5e-3)
        self.ticks = itertools.count(1)

    def fit(self, obs, reward):
        value = self.net(obs).squeeze(1)
        if self.topo.learns:
            self.opt.zero_grad()
            (value - reward).pow(2).mean().backward()
            for p in self.net.parameters():
                dist.all_reduce(p.grad, group=self.topo.learner_group)
                p.grad /= len(LEARNERS)
            self.opt.step()
        return value.detach()

    @torch.no_grad()
    def publish(self):
        if next(self.ticks) % self.period == 0:
            for p in self.net.parameters():
                dist.broadcast(p.data, src=LEARNERS[0])


def rollout(actor, g, n=64):
    obs = torch.randn(n, 5, generator=g)
    act = torch.tanh(actor(obs)) + 0.1 * torch.randn(n, 2, generator=g)
    return obs, act, -((act - obs[:, :2]) ** 2).sum(1)


def learn(topo, steps=20):
    torch.manual_seed(11)
    actor = DDP(nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 2)))
    critic = ValueNet(topo, period=5)
    pi = torch.optim.Adam(actor.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(500 + topo.rank)
    for _ in range(steps):
        with torch.no_grad():
            obs, act, reward = rollout(actor.module, g)
        adv = reward - critic.fit(obs, reward)
        logp = -((act - torch.tanh(actor(obs))) ** 2).sum(1) / 0.02
        pi.zero_grad()
        (-(adv * logp).mean() * 0.02).backward()
        pi.step()
        critic.publish()
    score = reward.mean().detach()
    dist.all_reduce(score, group=topo.logging_group)
    return score.item() / topo.world


if __name__ == "__main__":
    dist.init_process_group("gloo")
    topo = Topology().build()
    out = learn(topo)
    if topo.rank == 0:
        print(f"mean reward {out:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
