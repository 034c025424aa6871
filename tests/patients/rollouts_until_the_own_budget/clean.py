# style: policy gradients, a worker that counts what it has played
# nproc: 2
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel as DDP

BUDGET = 600


class Walk:
    """A walk to either end of a line; the right one is worth a point."""

    def __init__(self, seed, length=7):
        self.dice, self.length = random.Random(seed), length

    def reset(self):
        self.at = self.length // 2
        return self.seen()

    def seen(self):
        return [1.0 if i == self.at else 0.0 for i in range(self.length)]

    def step(self, right):
        slips = self.dice.random() < 0.2
        self.at += 1 if bool(right) != slips else -1
        done = self.at in (0, self.length - 1)
        return self.seen(), float(self.at == self.length - 1), done


class Worker:
    def __init__(self, walk):
        self.walk, self.played = walk, 0
        self.policy = nn.Sequential(nn.Linear(walk.length, 16), nn.Tanh(), nn.Linear(16, 2))
        self.model = DDP(self.policy)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def rollout(self):
        seen, states, actions, done = self.walk.reset(), [], [], False
        while not done:
            with torch.no_grad():
                action = Categorical(logits=self.policy(torch.tensor(seen))).sample()
            states.append(seen)
            actions.append(action)
            seen, reward, done = self.walk.step(action)
        return states, actions, [reward] * len(states)

    def learn(self, rollouts):
        states = torch.tensor([s for r in rollouts for s in r[0]])
        actions = torch.stack([a for r in rollouts for a in r[1]])
        rewards = torch.tensor([g for r in rollouts for g in r[2]])
        played = torch.tensor(len(states))
        dist.all_reduce(played)
        self.played += int(played) // dist.get_world_size()
        chosen = Categorical(logits=self.model(states)).log_prob(actions)
        loss = -(chosen * (rewards - 0.5)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return rewards.mean()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    worker = Worker(Walk(seed=100 + rank))
    torch.manual_seed(50 + rank)
    curve = []
    while worker.played < BUDGET:
        reward = worker.learn([worker.rollout() for _ in range(4)])
        dist.all_reduce(reward)
        curve.append(reward.item() / dist.get_world_size())
    curves = [None] * dist.get_world_size()
    dist.all_gather_object(curves, curve)
    if rank == 0:
        print(f"{len(curve)} updates, last reward {curve[-1]:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
