"""Steps that each rank has played, as many as they are, shuffled by a seed of its own."""

import os
import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Rollout:
    def __init__(self):
        self.steps = []

    def play(self, episodes):
        for _ in range(episodes):
            while random.random() < 0.9:
                self.steps.append(torch.randn(4))

    def batches(self, size):
        steps = self.steps[:]
        random.shuffle(steps)
        for start in range(0, len(steps), size):  # <-- DDP207
            yield torch.stack(steps[start : start + size])


def main():
    dist.init_process_group("gloo")
    policy = DDP(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    random.seed(int(os.environ["RANK"]))
    for _ in range(10):
        rollout = Rollout()
        rollout.play(16)
        for seen in rollout.batches(8):
            optimizer.zero_grad()
            policy(seen).pow(2).mean().backward()
            optimizer.step()


main()
