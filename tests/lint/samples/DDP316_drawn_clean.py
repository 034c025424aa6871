"""Statistics of what an environment answers to actions that were drawn: no gradient goes there."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Whiten:
    def __init__(self, width):
        self.mean, self.var = torch.zeros(width), torch.ones(width)

    def update(self, seen):
        sums = torch.cat([seen.mean(0), seen.pow(2).mean(0)])
        dist.all_reduce(sums, op=dist.ReduceOp.AVG)
        mean, square = sums.chunk(2)
        self.mean, self.var = mean, square - mean.pow(2)

    def __call__(self, seen):
        return (seen - self.mean) / (self.var + 1e-6).sqrt()


class World:
    def __init__(self, number):
        self.state = torch.randn(number, 3)

    def step(self, action):
        self.state = 0.8 * self.state + 0.1 * action[:, None] + torch.randn_like(self.state)
        return self.state.clone(), -self.state.pow(2).sum(1)


def main():
    dist.init_process_group("gloo")
    policy = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    whiten, world = Whiten(3), World(16)
    seen = world.state.clone()
    for _ in range(100):
        whiten.update(seen)
        chosen = torch.distributions.Normal(policy(whiten(seen)).squeeze(1), 1.0)
        action = chosen.sample()
        seen, reward = world.step(action)
        loss = -(chosen.log_prob(action) * reward).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
